"""What the bank holds already of runs that are handed in: it is read once, and decides what a report may still say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lessonbank._base.aio import if_there
from lessonbank._base.checks import shown
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Recall, RunRef, Settle, Settlement, Trajectory, Verdict
from lessonbank.contracts.store_calls import get_recall, get_trajectories, settled_runs, settlement_of
from lessonbank.guard.identity import is_separate_writer

from .run_report import RunReport, Verdicts


@dataclass(frozen=True)
class PriorRuns:
    """Runs that are handed in, together with the others of the experience that they belong to already."""

    reported: Sequence[Trajectory]
    experiences: Sequence[Experience] = ()
    """Those that hold a run that is reported, oldest first."""
    others: Sequence[Trajectory] = ()
    learned: frozenset[str] = frozenset()
    settles: str | None = None
    """The id of the receipt that these runs settle."""
    recall: Recall | None = None
    """This receipt, where the bank still has it."""
    settlement: Settlement | None = None
    """How the receipt that they settle is settled, where another writer may have told it."""

    @property
    def attempts(self) -> Sequence[RunRef]:
        """The runs of the newest of them, to which the runs belong."""
        return self.experiences[-1].attempts if self.experiences else ()

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The ids handed in that were learned before."""
        return tuple([run.id for run in self.reported if run.id in self.learned])

    @property
    def is_learned(self) -> bool:
        """Whether nothing that is reported is new. Others of the experience may wait all the same."""
        return len(self.known) == len(self.reported)

    @cached_property
    def new(self) -> list[Trajectory]:
        """What is to be learned: runs that were not, and with them those that wait in the same experience."""
        return [run for run in (*self.reported, *self.others) if run.id not in self.learned]

    def verdict(self, id: str, /) -> Verdict | None:
        """What was decided about a run before. It stands until the caller knows better: no judge is asked twice."""
        kept = (ref.verdict for ref in self.attempts if ref.trajectory_id == id and ref.verdict.outcome != "unknown")
        return next(kept, None)

    def own_receipt(self, receipt: Recall | None, /) -> tuple[Recall | None, tuple[str, ...]]:
        """The receipt that these runs settle, and a note where another one was handed in.

        A run settles one receipt: its outcome, counted twice, would be taken for two. Runs that were handed in beside
        one of another receipt settle none.
        """
        if receipt is None or self.settles in (None, receipt.id):
            return receipt or self.recall, ()
        note = (
            f"settled before: the run has settled the recall {shown(self.settles)}, so {shown(receipt.id)} stays "
            "without an outcome: a run counts for one recall"
        )
        held = {ref.trajectory_id for ref in self.attempts}
        return (self.recall if held.issuperset(run.id for run in self.reported) else None), (note,)

    def allows(self, report: RunReport, /, *, identity: str) -> RunReport:
        """`report` with the receipt that its runs settle, and without a word on what another writer told.

        Only that writer, or the process, may correct it. What a judge said is nobody's word.
        """
        receipt, notes = self.own_receipt(report.receipt)
        told = self.settlement
        if told is None or told.source == "judge" or told.identity == identity:
            return replace(report, receipt=receipt, notes=(*notes, *report.notes))
        note = f"told by another writer: the recall {shown(told.recall_id)} is settled, and its outcome stays"
        truths: Verdicts = {} if self.is_learned else report.truths
        return replace(report, receipt=None, truths=truths, notes=(*notes, note, *report.notes))


async def find_prior_runs(
    store: Store, runs: Sequence[Trajectory], receipt: Recall | None = None, /, *, scope: str, identity: str = ""
) -> PriorRuns:
    """How `runs`, which settle `receipt` as `identity` says, stand with `scope`."""
    held = await store.experiences("run", [run.id for run in runs], scope=scope)
    prior = await _of_experiences(store, runs, held, receipt, scope=scope) if held else PriorRuns(runs)
    if not (is_separate_writer(identity) and (own := prior.own_receipt(receipt)[0])):
        return prior
    return replace(prior, settlement=await settlement_of(store, own.id, scope=own.scope))


async def _of_experiences(
    store: Store, runs: Sequence[Trajectory], held: Sequence[Experience], receipt: Recall | None, /, *, scope: str
) -> PriorRuns:
    ids, newest = [run.id for run in runs], held[-1]
    apart = [ref.trajectory_id for ref in newest.attempts if ref.trajectory_id not in ids]
    learned = frozenset(await settled_runs(store, [*ids, *apart], scope=scope))
    recall = await if_there(get_recall(store, newest.recall_id, scope=scope)) if newest.recall_id else None
    settles = recall.id if recall else None
    if receipt and learned and not recall:
        settles = await _settled_by(store, learned, scope=scope)
        recall = await if_there(get_recall(store, settles, scope=scope)) if settles else None
    return PriorRuns(runs, held, await get_trajectories(store, apart, scope=scope), learned, settles, recall)


async def _settled_by(store: Store, runs: frozenset[str], /, *, scope: str) -> str | None:
    """Find the receipt that one of these runs settled although the run was learned without a recall."""
    journal = store.journal(scope=scope, kinds=("settle",))
    settled = [e.entry.settlement async for e in journal if isinstance(e.entry, Settle)]
    return next((one.recall_id for one in settled if not runs.isdisjoint(one.trajectory_ids)), None)
