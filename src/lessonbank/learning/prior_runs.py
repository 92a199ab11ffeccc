"""What the bank holds already of runs that are handed in: it is read once, and decides what a report may still say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import shown
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Recall, Settle, Trajectory, Verdict
from lessonbank.contracts.store_calls import get_recall, get_trajectories, settled_runs, settlement_of
from lessonbank.guard.identity import is_separate_writer

from .run_report import RunReport, Verdicts


@dataclass(frozen=True, slots=True)
class PriorRuns:
    """Runs that are handed in, together with the others of the experience that they belong to already."""

    reported: Sequence[Trajectory]
    new: Sequence[Trajectory]
    """What is to be learned: runs that were not, and with them those that wait in the same experience."""
    known: tuple[str, ...] = ()
    """The ids handed in that were learned before."""
    experiences: Sequence[Experience] = ()
    """Those that hold a run that is reported, oldest first."""
    settles: str | None = None
    """The id of the receipt that these runs settle."""
    recall: Recall | None = None
    """This receipt, where the bank still has it."""

    @property
    def is_learned(self) -> bool:
        """Whether nothing that is reported is new. Others of the experience may wait all the same."""
        return len(self.known) == len(self.reported)

    def verdict(self, id: str, /) -> Verdict | None:
        """What was decided about a run before. It stands until the caller knows better: no judge is asked twice."""
        attempts = self.experiences[-1].attempts if self.experiences else ()
        told = [ref.verdict for ref in attempts if ref.trajectory_id == id and ref.verdict.outcome != "unknown"]
        return told[0] if told else None

    async def allow(self, store: Store, report: RunReport, /, *, identity: str) -> RunReport:
        """`report` with the receipt that its runs settle, and without a word on what another writer told.

        Only that writer, or the process, may correct it. What a judge said is nobody's word.
        """
        report = self._with_own_receipt(report)
        if not (report.receipt and is_separate_writer(identity)):
            return report
        told = await settlement_of(store, report.receipt.id, scope=report.receipt.scope)
        if told is None or told.source == "judge" or told.identity == identity:
            return report
        note = f"told by another writer: the recall {shown(told.recall_id)} is settled, and its outcome stays"
        truths: Verdicts = {} if self.is_learned else report.truths
        return replace(report, receipt=None, truths=truths, notes=(note, *report.notes))

    def _with_own_receipt(self, report: RunReport, /) -> RunReport:
        """`report` with the receipt that its runs settle, and a note where another one was handed in.

        A run settles one receipt: its outcome, counted twice, would be taken for two. Runs that were handed in beside
        one of another receipt settle none.
        """
        receipt = report.receipt
        if receipt is None or self.settles in (None, receipt.id):
            return replace(report, receipt=receipt or self.recall)
        note = (
            f"settled before: the run has settled the recall {shown(self.settles)}, so {shown(receipt.id)} stays "
            "without an outcome: a run counts for one recall"
        )
        held = {ref.trajectory_id for ref in self.experiences[-1].attempts}
        own = self.recall if held.issuperset(run.id for run in self.reported) else None
        return replace(report, receipt=own, notes=(note, *report.notes))


async def find_prior_runs(
    store: Store, runs: Sequence[Trajectory], receipt: Recall | None = None, /, *, scope: str
) -> PriorRuns:
    """How `runs`, which settle `receipt`, stand with `scope`."""
    ids = [run.id for run in runs]
    held = await store.experiences("run", ids, scope=scope)
    if not held:
        return PriorRuns(runs, runs)
    newest = held[-1]
    apart = [ref.trajectory_id for ref in newest.attempts if ref.trajectory_id not in ids]
    learned = frozenset(await settled_runs(store, [*ids, *apart], scope=scope))
    recall = await get_or_none(get_recall(store, newest.recall_id, scope=scope)) if newest.recall_id else None
    settles = recall.id if recall else None
    if receipt and learned and not recall:
        settles = await _settled_by(store, learned, scope=scope)
        recall = await get_or_none(get_recall(store, settles, scope=scope)) if settles else None
    others = await get_trajectories(store, apart, scope=scope)
    new = [run for run in (*runs, *others) if run.id not in learned]
    return PriorRuns(runs, new, tuple([id for id in ids if id in learned]), held, settles, recall)


async def _settled_by(store: Store, runs: frozenset[str], /, *, scope: str) -> str | None:
    """Find the receipt that one of these runs settled although the run was learned without a recall."""
    journal = store.journal(scope=scope, kinds=("settle",))
    settled = [e.entry.settlement async for e in journal if isinstance(e.entry, Settle)]
    return next((one.recall_id for one in settled if not runs.isdisjoint(one.trajectory_ids)), None)
