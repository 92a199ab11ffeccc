"""How a receipt is closed: what became of the task that a recall was made for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lessonbank._base.checks import shown
from lessonbank._base.ids import short
from lessonbank.contracts.lesson_block import numbers_cited
from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.contracts.records import (
    MODEL,
    SECONDS,
    TEMPLATE,
    Change,
    Experience,
    Outcome,
    Recall,
    Rejudge,
    Run,
    Settlement,
    Trajectory,
    Verdict,
    VerdictSource,
)
from lessonbank.evidence.receipts import ERASED, plain_task

from .prior_runs import PriorRuns
from .run_report import RunReport, Verdicts

_AUTHORITY: Final[tuple[VerdictSource, ...]] = ("judge", "framework_error", "human", "ground_truth")
"""Whose word counts more, the weakest first."""


def settlement_of(recall: Recall, experience_id: str, attempts: Sequence[Run], /, *, identity: str = "") -> Settlement:
    """How the task of `recall` ended, as `identity` tells it. Several runs under one recall: by majority, with the mean
    of their rewards. A run without a reward counts 1 or 0."""
    runs, verdicts = [a.trajectory for a in attempts], [a.verdict for a in attempts]
    decided = [verdict for verdict in verdicts if verdict.outcome != "unknown"]
    first = min(decided or verdicts, key=lambda verdict: verdict.source != "judge")
    wins = [verdict.outcome for verdict in decided].count("success")
    majority: Outcome = "success" if 2 * wins > len(decided) else "failure"
    named = {key: said for run in reversed(runs) for key, said in run.metadata.items() if isinstance(said, str)}
    mean = sum(map(_worth, decided)) / len(decided) if decided else None
    return Settlement(
        recall_id=recall.id,
        scope=recall.scope,
        experience_id=experience_id,
        trajectory_ids=tuple([run.id for run in runs]),
        runs=len(runs),
        outcome=majority if decided else "unknown",
        reward=first.reward if len(runs) == 1 else mean,
        confidence=min([verdict.confidence for verdict in decided], default=0.0),
        source=first.source,
        judge=_judge(first),
        steps=sum([len(run.steps) for run in runs]),
        usage=sum([run.usage for run in runs[1:]], runs[0].usage),
        seconds=_seconds(runs),
        cited=_cited(recall, runs),
        template=named.get(TEMPLATE),
        agent=named.get(MODEL, ""),
        another_task=bool(_of_another_task(recall, runs)),
        identity=identity,
    )


def _worth(verdict: Verdict) -> float:
    """What one run counts, from 0 to 1: its reward as it is, where there is one."""
    reward = verdict.reward
    return reward if reward is not None and 0.0 <= reward <= 1.0 else float(verdict.outcome == "success")


def _judge(verdict: Verdict) -> str:
    """Which judge a verdict is of: its model and the version of its prompt."""
    if verdict.source != "judge":
        return ""
    prompt = f"{verdict.prompt.id} {verdict.prompt.version}" if verdict.prompt else ""
    return ", ".join(part for part in (verdict.model or "", prompt) if part) or "judge"


def _seconds(runs: Sequence[Trajectory]) -> float | None:
    told = [run.metadata.get(SECONDS) for run in runs]
    known = [float(t) for t in told if isinstance(t, int | float) and not isinstance(t, bool) and t >= 0]
    return sum(known) / len(known) * len(runs) if known else None


def _cited(recall: Recall, runs: Iterable[Trajectory], /) -> tuple[str, ...]:
    """Lessons that runs name by number, as `[2]`, in what the agent thought or said: never in what it was told."""
    if not (ids := recall.shown_ids):
        return ()
    said = [text for run in runs for step in run.steps for text in (step.thought, step.action.text)]
    numbers = numbers_cited("\n".join((*said, *[run.answer or "" for run in runs])))
    return tuple([id for number, id in enumerate(ids, 1) if number in numbers])


def _of_another_task(recall: Recall, runs: Iterable[Trajectory], /) -> tuple[str, ...]:
    """A note for each run whose task is not that of the recall it settles, nor a part of it or around it."""
    others = [run for run in runs if run.task != recall.task]
    if not others or not (asked := plain_task(recall.task)):
        return ()
    others = [run for run in others if (done := plain_task(run.task)) not in asked and asked not in done]
    return tuple(
        f"another task: run {shown(short(run.id))} did {shown(run.task)}, and the recall that it settles was made for "
        f"{shown(recall.task)}: hand each run to learn with the recall that it used"
        for run in others
    )


def _otherwise(earlier: Settlement, learned: Iterable[Run]) -> tuple[str, ...]:
    """A note where a recall that other runs settled is now settled by one that ended otherwise."""
    return tuple(
        f"settled again: another run settled the recall {shown(short(earlier.recall_id))} as a {earlier.outcome}, and "
        f"run {shown(short(one.trajectory.id))} as a {one.verdict.outcome}: both count as tries at one task; "
        "hand each run to learn with the recall that it used"
        for one in learned
        if one.trajectory.id not in earlier.trajectory_ids
        and "unknown" not in (earlier.outcome, one.verdict.outcome)
        and one.verdict.outcome != earlier.outcome
    )


async def settle(
    store: Store,
    report: RunReport,
    prior: PriorRuns,
    /,
    *,
    experience_id: str,
    identity: str,
    learned: Sequence[Run] = (),
) -> tuple[Settlement | None, list[Run], tuple[str, ...]]:
    """How runs settle their receipt, with all that it was settled with before; these runs; and what to know of it.

    What the caller says now of a run goes before what was decided then. Without runs that were `learned` just now it is
    settled only where that says something new.
    """
    if (receipt := report.receipt) is None:
        return None, [], ()
    kept = await store.recalls(RecallFilter(ids=(receipt.id,), settlements=True), scope=receipt.scope)
    if not kept:
        return None, [], (ERASED,)
    earlier = kept[0].settlement
    new = [one.trajectory.id for one in learned]
    ids = [id for id in dict.fromkeys((*(earlier.trajectory_ids if earlier else ()), *prior.known)) if id not in new]
    counted = [*(await _with_verdicts(store, ids, report, scope=receipt.scope) if ids else ()), *learned]
    if not counted:
        return None, [], ()
    later = settlement_of(receipt, experience_id, counted, identity=identity)
    if not learned and earlier and later == earlier.model_copy(update={"at": later.at, "identity": identity}):
        return None, counted, ()
    told = [one.trajectory for one in learned] or ([] if earlier else prior.reported)
    notes = _of_another_task(receipt, told) if later.another_task or not learned else ()
    return later, counted, (*notes, *(_otherwise(earlier, learned) if earlier else ()))


async def _with_verdicts(store: Store, ids: Sequence[str], report: RunReport, /, *, scope: str) -> list[Run]:
    """Those of these runs that are kept and whose end is known, by what the caller says now, or else as it was."""
    kept = {one.trajectory.id: one for one in await store.runs(RunFilter(ids=tuple(ids)), scope=scope)}
    ended = [(kept[id], report.truths.get(id)) for id in ids if id in kept]
    return [
        Run(trajectory=run.trajectory, verdict=truth or run.verdict)
        for run, truth in ended
        if truth or run.verdict.outcome != "unknown"
    ]


def corrected(
    experiences: Iterable[Experience], truths: Verdicts, /, *, reason: str = "its outcome became known"
) -> list[Change]:
    """What truths told later change: verdicts, each in the newest experience that holds the run.

    `experiences` are oldest first. Lessons stay until somebody retires them.
    """
    held = {ref.trajectory_id: (one.id, ref.verdict) for one in experiences for ref in one.attempts}
    told = [(id, *held[id], truth) for id, truth in truths.items() if truth and id in held]
    return [
        Rejudge(experience_id=home, trajectory_id=id, verdict=truth, reason=reason, before=before)
        for id, home, before, truth in told
        if _differs(before, truth)
    ]


def contradictions(changes: Iterable[Change], /) -> tuple[str, ...]:
    """One sentence for each known run that is now said to have ended otherwise than it was learned."""
    told = [(one.trajectory_id, one.before, one.verdict) for one in changes if isinstance(one, Rejudge)]
    return tuple(
        f"run {short(id)!r} was learned as a {kept.outcome} ({kept.source}) and is now said to be a {truth.outcome}: "
        "its verdict is corrected, its lessons stay until they are retired"
        for id, kept, truth in told
        if kept and kept.outcome not in ("unknown", truth.outcome)
    )


def _differs(known: Verdict, truth: Verdict) -> bool:
    """Whether `truth` says something else of a run, or the same on better authority."""
    better = _AUTHORITY.index(truth.source) > _AUTHORITY.index(known.source)
    return better or (known.outcome, known.reward) != (truth.outcome, truth.reward)
