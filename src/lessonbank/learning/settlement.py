"""How a receipt is closed: what became of the task that a recall was made for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lessonbank._base.checks import short_repr
from lessonbank._base.ids import short
from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.contracts.records import MODEL, SECONDS, TEMPLATE, Outcome, Recall, Rejudge, Run, Settlement, Trajectory
from lessonbank.guard.receipts import ERASED, plain_task

from .run_report import RunReport, Verdicts

_AUTHORITY: Final = ("judge", "framework_error", "human", "ground_truth")
"""Whose word counts more, the weakest first."""
BECAME_KNOWN: Final = "its outcome became known"


def settlement_of(recall: Recall, experience_id: str, attempts: Sequence[Run], /, *, identity: str = "") -> Settlement:
    """How the task of `recall` ended, as `identity` tells it. Several runs under one recall: by majority, with the mean
    of their rewards. A run without a reward counts 1 or 0."""
    runs, verdicts = [a.trajectory for a in attempts], [a.verdict for a in attempts]
    decided = [verdict for verdict in verdicts if verdict.outcome != "unknown"]
    first = ([verdict for verdict in decided or verdicts if verdict.source == "judge"] or decided or verdicts)[0]
    wins = [verdict.outcome for verdict in decided].count("success")
    majority: Outcome = "success" if 2 * wins > len(decided) else "failure"
    named = {key: value for run in reversed(runs) for key, value in run.metadata.items() if isinstance(value, str)}
    worth = [v.reward if v.reward is not None and 0 <= v.reward <= 1 else v.outcome == "success" for v in decided]
    prompt = f"{first.prompt.id} {first.prompt.version}" if first.prompt else None
    return Settlement(
        recall_id=recall.id,
        scope=recall.scope,
        experience_id=experience_id,
        trajectory_ids=tuple([run.id for run in runs]),
        runs=len(runs),
        outcome=majority if decided else "unknown",
        reward=first.reward if len(runs) == 1 else sum(worth) / len(worth) if worth else None,
        confidence=min([verdict.confidence for verdict in decided], default=0.0),
        source=first.source,
        judge=", ".join(filter(None, (first.model, prompt))) or "judge" if first.source == "judge" else "",
        steps=sum([len(run.steps) for run in runs]),
        usage=sum([run.usage for run in runs[1:]], runs[0].usage),
        seconds=_seconds(runs),
        cited=recall.citations(words_of(runs)),
        template=named.get(TEMPLATE),
        agent=named.get(MODEL, ""),
        another_task=bool(_of_another_task(recall, runs)),
        identity=identity,
    )


def _seconds(runs: Sequence[Trajectory]) -> float | None:
    values = [run.metadata.get(SECONDS) for run in runs]
    known = [float(t) for t in values if isinstance(t, int | float) and not isinstance(t, bool) and t >= 0]
    return sum(known) / len(known) * len(runs) if known else None


def words_of(runs: Iterable[Trajectory]) -> str:
    """What the agent thought or said: never what it was told."""
    texts = [text for run in runs for step in run.steps for text in (step.thought, step.action.text)]
    return "\n".join((*texts, *[run.answer or "" for run in runs]))


def _of_another_task(recall: Recall, runs: Iterable[Trajectory]) -> list[Trajectory]:
    """The runs whose task is not that of the recall they settle, nor a part of it or around it."""
    others = [run for run in runs if run.task != recall.task]
    if not others or not (asked := plain_task(recall.task)):
        return []
    return [run for run in others if (done := plain_task(run.task)) not in asked and asked not in done]


async def settle(
    store: Store, report: RunReport, /, *, home: str, learned: Sequence[Run] = (), is_first: bool = False
) -> tuple[Settlement | None, list[Run], tuple[str, ...]]:
    """How runs of the experience `home` settle their receipt; all runs that it counts; and what to know of it.

    What the caller says now of a run goes before what was decided then. Without runs that were `learned` just now it is
    settled only where that says something new. `is_first`: nothing is read, the store refuses what is settled already.
    """
    if (receipt := report.receipt) is None:
        return None, [], ()
    asked = RecallFilter(ids=(receipt.id,), settlements=True)
    recalls = () if is_first else await store.recalls(asked, scope=receipt.scope)
    if not (recalls or is_first):
        return None, [], (ERASED,)
    earlier = recalls[0].settlement if recalls else None
    before, new = earlier.trajectory_ids if earlier else (), [run.trajectory.id for run in learned]
    ids = [id for id in dict.fromkeys((*before, *report.known)) if id not in new]
    counted = [*(await _with_verdicts(store, ids, report.truths, scope=receipt.scope) if ids else ()), *learned]
    if not counted:
        return None, [], ()
    later = settlement_of(receipt, home, counted, identity=report.identity)
    if not learned and earlier and later == earlier.model_copy(update={"at": later.at, "identity": report.identity}):
        return None, counted, ()
    fresh = [run for run in counted if run.trajectory.id not in before]
    return later, counted, _doubts(receipt, earlier, fresh) if earlier or later.another_task else ()


async def _with_verdicts(store: Store, ids: Sequence[str], truths: Verdicts, *, scope: str) -> list[Run]:
    """The kept ones of these runs whose end is known, by what the caller says now, or else as it was."""
    runs = {run.trajectory.id: run for run in await store.runs(RunFilter(ids=tuple(ids)), scope=scope)}
    entries = [(runs[id].trajectory, truths.get(id), runs[id].verdict) for id in ids if id in runs]
    return [Run(trajectory=run, verdict=t or was) for run, t, was in entries if t or was.outcome != "unknown"]


def _doubts(recall: Recall, earlier: Settlement | None, fresh: Sequence[Run]) -> tuple[str, ...]:
    """Why a recall may be settled by runs that did not use it: their task is another, or they ended otherwise."""
    others = [
        f"another task: run {short_repr(short(run.id))} did {short_repr(run.task)}, and the recall that it settles was "
        f"made for {short_repr(recall.task)}"
        for run in _of_another_task(recall, [run.trajectory for run in fresh])
    ]
    before = earlier.outcome if earlier else "unknown"
    again = [
        f"settled again: another run settled the recall {short_repr(short(recall.id))} as a {before}, and run "
        f"{short_repr(short(run.trajectory.id))} as a {run.verdict.outcome}: both count as tries at one task"
        for run in fresh
        if "unknown" not in (before, run.verdict.outcome) and before != run.verdict.outcome
    ]
    return tuple(f"{doubt}; hand each run to learn with the recall that it used" for doubt in (*others, *again))


def corrected(report: RunReport, /, *, reason: str = BECAME_KNOWN) -> tuple[list[Rejudge], tuple[str, ...]]:
    """The verdicts of learned runs that the report changes, each in the newest experience that holds the run; and a
    sentence for each run that is now said to have ended otherwise. Lessons stay until somebody retires them."""
    held = {ref.trajectory_id: (owner.id, ref.verdict) for owner in report.experiences for ref in owner.attempts}
    corrections = [(id, *held[id], truth) for id in report.known if id in held and (truth := report.truths.get(id))]
    changes = [
        Rejudge(experience_id=home, trajectory_id=id, verdict=truth, reason=reason, before=before)
        for id, home, before, truth in corrections
        if _AUTHORITY.index(truth.source) > _AUTHORITY.index(before.source)
        or (before.outcome, before.reward) != (truth.outcome, truth.reward)
    ]
    notes = [
        f"run {short(id)!r} was learned as a {before.outcome} ({before.source}) and is now said to be "
        f"{'' if truth.outcome == 'unknown' else 'a '}{truth.outcome}: its verdict is corrected, "
        "its lessons stay until they are retired"
        for id, _, before, truth in corrections
        if before.outcome not in ("unknown", truth.outcome)
    ]
    return changes, tuple(notes)
