"""How a receipt is closed: what became of the task that a recall was made for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lessonbank.arguments import shown
from lessonbank.retrieving import TEMPLATE
from lessonbank.types import (
    MODEL,
    SECONDS,
    Change,
    Experience,
    Outcome,
    Recall,
    Rejudge,
    Run,
    RunRef,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
    VerdictSource,
    numbers_cited,
)

_AUTHORITY: Final[tuple[VerdictSource, ...]] = ("judge", "framework_error", "human", "ground_truth")
"""Whose word counts more, the weakest first."""
_REMOVED: Final = re.compile(r"\[[^\[\]\n]{0,60}\]")
"""What stands in the place of a secret: it may be called otherwise in another text."""


def settlement_of(recall: Recall, experience_id: str, attempts: Sequence[Run], /) -> Settlement:
    """How the task of `recall` ended. Of several runs under one recall: the share that succeeded, by majority."""
    decided = [a for a in attempts if a.verdict.outcome != "unknown"]
    share = sum(a.verdict.outcome == "success" for a in decided) / len(decided) if decided else None
    outcome: Outcome = "unknown" if share is None else "success" if share > 0.5 else "failure"
    told = [a.verdict for a in decided or attempts]
    first = next((verdict for verdict in told if verdict.source == "judge"), told[0])
    return Settlement(
        recall_id=recall.id,
        scope=recall.scope,
        experience_id=experience_id,
        trajectory_ids=tuple(a.trajectory.id for a in attempts),
        runs=len(attempts),
        outcome=outcome,
        reward=first.reward if len(attempts) == 1 else share,
        confidence=min((a.verdict.confidence for a in decided), default=0.0),
        source=first.source,
        judge=_judge(first),
        steps=sum(len(a.trajectory.steps) for a in attempts),
        usage=sum((a.trajectory.usage for a in attempts), Usage()),
        seconds=_seconds(attempts),
        cited=cited(recall, [a.trajectory for a in attempts]),
        template=next((t for a in attempts if isinstance(t := a.trajectory.metadata.get(TEMPLATE), str)), None),
        agent=next((m for a in attempts if isinstance(m := a.trajectory.metadata.get(MODEL), str)), ""),
        another_task=bool(of_another_task(recall, [a.trajectory for a in attempts])),
    )


def of_another_task(recall: Recall | None, runs: Iterable[Trajectory], /) -> tuple[str, ...]:
    """A note for each run whose task is not that of the recall it settles, nor a part of it or around it."""
    asked = _plain(recall.task) if recall else ""
    if not recall or not asked:
        return ()
    others = [run for run in runs if (done := _plain(run.task)) not in asked and asked not in done]
    return tuple(
        f"another task: run {shown(run.id)} did {shown(run.task)}, and the recall that it settles was made for "
        f"{shown(recall.task)}: hand each run to learn with the recall that it used"
        for run in others
    )


def _plain(task: str) -> str:
    return " ".join(_REMOVED.sub(" ", task).casefold().split())


def _judge(verdict: Verdict) -> str:
    """Which judge a verdict is of: its model and the version of its prompt."""
    if verdict.source != "judge":
        return ""
    prompt = f"{verdict.prompt.id} {verdict.prompt.version}" if verdict.prompt else ""
    return ", ".join(part for part in (verdict.model or "", prompt) if part) or "judge"


def _seconds(attempts: Sequence[Run]) -> float | None:
    told = [a.trajectory.metadata.get(SECONDS) for a in attempts]
    known = [float(t) for t in told if isinstance(t, int | float) and not isinstance(t, bool) and t >= 0]
    return sum(known) / len(known) * len(attempts) if known else None


def cited(recall: Recall, runs: Iterable[Trajectory], /) -> tuple[str, ...]:
    """Lessons that runs name by number, as `[2]`, in what the agent thought or said: never in what it was told."""
    ids = [c.lesson_id for c in sorted(recall.candidates, key=lambda c: c.rank) if c.shown]
    if not ids:
        return ()
    said = [text for run in runs for step in run.steps for text in (step.thought, step.action.text)]
    numbers = numbers_cited("\n".join((*said, *[run.answer or "" for run in runs])))
    return tuple(id for number, id in enumerate(ids, 1) if number in numbers)


def changed_settlement(
    earlier: Settlement | None, recall: Recall | None, experience: Experience | None, attempts: Sequence[Run], /
) -> Settlement | None:
    """The settlement of a receipt, if it says anything that the earlier one does not."""
    if recall is None or experience is None or not attempts:
        return None
    later = settlement_of(recall, experience.id, attempts)
    same = {"at": later.at, "identity": later.identity}
    return None if earlier and later == earlier.model_copy(update=same) else later


def told_by(settlement: Settlement | None, identity: str, /) -> Settlement | None:
    """`settlement` with who told it."""
    return settlement and settlement.model_copy(update={"identity": identity})


def corrected(
    experience: Experience | None, truths: Mapping[str, Verdict | None], /, *, reason: str = "its outcome became known"
) -> list[Change]:
    """What a truth told later changes in an experience: its verdicts. Its lessons stay until somebody retires them."""
    return [
        Rejudge(experience_id=experience.id, trajectory_id=id, verdict=truth, reason=reason, before=ref.verdict)
        for id, truth in truths.items()
        if experience and truth and (ref := next((r for r in experience.attempts if _differs(r, id, truth)), None))
    ]


def _differs(ref: RunRef, id: str, truth: Verdict) -> bool:
    """Whether `truth` says something else of the run, or the same on better authority."""
    known = ref.verdict
    better = _AUTHORITY.index(truth.source) > _AUTHORITY.index(known.source)
    return ref.trajectory_id == id and (better or (known.outcome, known.reward) != (truth.outcome, truth.reward))
