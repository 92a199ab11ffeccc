"""What the bank holds already of runs that are handed in: which are known, which wait, and what was said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lessonbank._base.aio import if_there
from lessonbank._base.checks import shown
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Recall, Run, Settle, Settlement, Trajectory, Verdict
from lessonbank.contracts.store_calls import (
    experience_of_runs,
    get_recall,
    get_trajectories,
    get_trajectory,
    settled_runs,
    settlement_of,
)
from lessonbank.guard.identity import one_of_many

from .run_report import RunReport, Verdicts


@dataclass(frozen=True)
class PriorRuns:
    """Runs that are handed in, together with the others of the experience that they belong to already."""

    reported: Sequence[Trajectory]
    others: Sequence[Trajectory]
    experiences: Sequence[Experience]
    """Those that hold a run that is reported, oldest first."""
    recall: Recall | None
    """The receipt these runs were made under, if that was said when they were first handed in."""
    learned: frozenset[str]

    @property
    def experience(self) -> Experience | None:
        """The newest of them, to which the runs belong."""
        return self.experiences[-1] if self.experiences else None

    @cached_property
    def new(self) -> list[Trajectory]:
        """What is to be learned: runs that were not, and with them those that wait in the same experience."""
        return [run for run in (*self.reported, *self.others) if run.id not in self.learned]

    @property
    def strangers(self) -> bool:
        """Whether a run is handed in that the bank does not know."""
        told = {ref.trajectory_id for ref in self.experience.attempts} if self.experience else set[str]()
        return not told.issuperset(run.id for run in self.reported)

    @property
    def is_learned(self) -> bool:
        """Whether nothing that is reported is new. Others of the experience may wait all the same."""
        return self.learned.issuperset(run.id for run in self.reported)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The ids handed in that were learned before."""
        return tuple([run.id for run in self.reported if run.id in self.learned])

    def verdict(self, id: str, /) -> Verdict | None:
        """What was decided about a run before. It stands until the caller knows better: no judge is asked twice."""
        return _decided(self.experience, id)

    def contradictions(self, truths: Verdicts, /) -> tuple[str, ...]:
        """One sentence for each known run that is now said to have ended otherwise than it was learned."""
        pairs = [(id, truths.get(id), self.verdict(id)) for id in self.known]
        return tuple(
            [
                f"run {id} was learned as a {kept.outcome} ({kept.source}) and is now said to be a {truth.outcome}: "
                "its verdict is corrected, its lessons stay until they are retired"
                for id, truth, kept in pairs
                if truth and kept and truth.outcome != kept.outcome
            ]
        )


async def find_prior_runs(store: Store, runs: Sequence[Trajectory], /, *, scope: str) -> PriorRuns:
    """How `runs` stand with `scope`."""
    ids = [run.id for run in runs]
    held = await store.experiences("run", ids, scope=scope)
    experience = held[-1] if held else None
    apart = [ref.trajectory_id for ref in experience.attempts if ref.trajectory_id not in ids] if experience else []
    others = await get_trajectories(store, apart, scope=scope)
    named = experience.recall_id if experience else None
    recall = await if_there(get_recall(store, named, scope=scope)) if named else None
    # What is learned is an experience's: where none holds the runs, nothing of them is.
    learned = await settled_runs(store, [*ids, *apart], scope=scope) if experience else ()
    return PriorRuns(runs, others, held, recall, frozenset(learned))


async def own_receipt(
    store: Store, receipt: Recall | None, prior: PriorRuns, /
) -> tuple[Recall | None, tuple[str, ...]]:
    """The receipt that these runs settle, and a note where another one was handed in.

    A run settles one receipt: its outcome, counted twice, would be taken for two. Runs that were handed in beside one
    of another receipt settle none.
    """
    if receipt is None:
        return prior.recall, ()
    first = prior.recall.id if prior.recall else await _settled_by(store, prior.learned, scope=receipt.scope)
    if first in (None, receipt.id):
        return receipt, ()
    note = (
        f"settled before: the run has settled the recall {shown(first)}, so {shown(receipt.id)} stays without an "
        "outcome: a run counts for one recall"
    )
    if prior.strangers:
        return None, (note,)
    return prior.recall or await if_there(get_recall(store, str(first), scope=receipt.scope)), (note,)


async def settled_by_another(store: Store, receipt: Recall | None, identity: str, /) -> tuple[str, ...]:
    """A note where another writer told the outcome of `receipt`: only that writer, or the process, may correct it.

    What a judge said is nobody's word: every writer may tell the truth later.
    """
    earlier = await settlement_of(store, receipt.id, scope=receipt.scope) if receipt and one_of_many(identity) else None
    if earlier is None or earlier.source == "judge" or earlier.identity == identity:
        return ()
    return (f"told by another writer: the recall {shown(earlier.recall_id)} is settled, and its outcome stays",)


async def _settled_by(store: Store, runs: frozenset[str], /, *, scope: str) -> str | None:
    """The receipt that one of these runs settled although it was learned without one."""
    if not runs:
        return None
    journal = store.journal(scope=scope, kinds=("settle",))
    settled = [e.entry.settlement async for e in journal if isinstance(e.entry, Settle)]
    return next((one.recall_id for one in settled if not runs.isdisjoint(one.trajectory_ids)), None)


async def earlier_settlement(
    store: Store, report: RunReport, prior: PriorRuns, /, *, besides: Sequence[Run] = ()
) -> tuple[Settlement | None, list[Run]]:
    """How a receipt is settled so far, and the runs that count for it `besides` those just learned.

    Those are the known ones, and all it was settled with. What the caller says now of a run goes before what was
    decided then.
    """
    receipt = report.receipt
    if receipt is None:
        return None, []
    earlier = await settlement_of(store, receipt.id, scope=receipt.scope)
    fresh = {attempt.trajectory.id for attempt in besides}
    ids = dict.fromkeys((*(earlier.trajectory_ids if earlier else ()), *prior.known))
    found = [await _attempt(store, id, report.truths.get(id), scope=receipt.scope) for id in ids if id not in fresh]
    return earlier, [attempt for attempt in found if attempt]


async def _attempt(store: Store, id: str, truth: Verdict | None, /, *, scope: str) -> Run | None:
    run = await if_there(get_trajectory(store, id, scope=scope))
    verdict = truth or _decided(await experience_of_runs(store, [id], scope=scope), id)
    return Run(trajectory=run, verdict=verdict) if run and verdict else None


def _decided(experience: Experience | None, id: str, /) -> Verdict | None:
    kept = (ref.verdict for ref in (experience.attempts if experience else ()) if ref.trajectory_id == id)
    return next((verdict for verdict in kept if verdict.outcome != "unknown"), None)
