"""Reads what the bank holds already of runs that are handed in, which decides what a report may still say of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import short_repr
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Recall, Settle
from lessonbank.contracts.store_calls import get_recall, get_trajectories, settled_runs, settlement_of
from lessonbank.guard.identity import is_separate_writer

from .run_report import RunReport, Verdicts


async def find_prior_runs(store: Store, report: RunReport, /, *, scope: str) -> RunReport:
    """`report` with what `scope` holds of its runs, and with the one receipt that they settle."""
    ids = [run.id for run in report.runs]
    held = await store.experiences("run", ids, scope=scope)
    if not held:
        return replace(report, new=report.runs)
    apart = [ref.trajectory_id for ref in held[-1].attempts if ref.trajectory_id not in ids]
    learned = frozenset(await settled_runs(store, [*ids, *apart], scope=scope))
    waiting = [*report.runs, *await get_trajectories(store, apart, scope=scope)]
    new = [run for run in waiting if run.id not in learned]
    known = tuple([id for id in ids if id in learned])
    settles = held[-1].recall_id or (await _settled_by(store, learned, scope=scope) if report.receipt else None)
    recall = await get_or_none(get_recall(store, settles, scope=scope)) if settles else None
    return _with_own_receipt(replace(report, new=new, known=known, experiences=held), recall)


async def _settled_by(store: Store, runs: Collection[str], /, *, scope: str) -> str | None:
    """The id of the receipt that one of these runs settled although it was learned without a recall."""
    journal = store.journal(scope=scope, kinds=("settle",)) if runs else None
    settled = [at.entry.settlement async for at in journal if isinstance(at.entry, Settle)] if journal else ()
    return next((each.recall_id for each in settled if any(id in runs for id in each.trajectory_ids)), None)


def _with_own_receipt(report: RunReport, own: Recall | None) -> RunReport:
    """A run counts for one recall: its outcome, counted twice, would be taken for two. Runs that were handed in beside
    one of another receipt settle none."""
    if own is None or report.receipt is None or report.receipt.id == own.id:
        return replace(report, receipt=report.receipt or own)
    note = (
        f"settled before: the run has settled the recall {short_repr(own.id)}, so {short_repr(report.receipt.id)} "
        "stays without an outcome: a run counts for one recall"
    )
    held = {ref.trajectory_id for ref in report.experiences[-1].attempts}
    is_alone = held.issuperset([run.id for run in report.runs])
    return replace(report, receipt=own if is_alone else None, notes=(note, *report.notes))


async def without_word_of_others(store: Store, report: RunReport, /) -> RunReport:
    """`report` without a word on what another writer told: only that writer, or the process, may correct it.

    What a judge said is nobody's word.
    """
    if not (report.receipt and is_separate_writer(report.identity)):
        return report
    settlement = await settlement_of(store, report.receipt.id, scope=report.receipt.scope)
    if settlement is None or settlement.source == "judge" or settlement.identity == report.identity:
        return report
    note = f"told by another writer: the recall {short_repr(settlement.recall_id)} is settled, and its outcome stays"
    truths: Verdicts = {} if report.is_learned else report.truths
    return replace(report, receipt=None, truths=truths, notes=(note, *report.notes))
