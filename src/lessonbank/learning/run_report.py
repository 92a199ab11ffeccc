"""What a caller reports to `learn`, and what the bank holds of it already, which decides what still counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import is_instance, kind, safe_getattr, short_repr
from lessonbank._base.plural import plural
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Outcome, Recall, Settle, Trajectory, Verdict
from lessonbank.contracts.records.runs import is_brief
from lessonbank.contracts.store_calls import get_recall, get_trajectories, settled_runs, settlement_of
from lessonbank.errors import UsageError
from lessonbank.guard.identity import is_separate_writer

from .judging import graded_notes, truth_verdict

Verdicts: TypeAlias = Mapping[str, Verdict | None]
"""Ground truth by trajectory id; `None` where the caller gave none."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Runs of one task, as their caller reports them, and what the bank holds of them already."""

    runs: Sequence[Trajectory]
    receipt: Recall | None
    """What the runs were shown, and settle."""
    truths: Verdicts
    identity: str
    """Whose word it is, as the bank knows them."""
    notes: tuple[str, ...] = ()
    """What the caller should know of the report."""
    new: Sequence[Trajectory] = ()
    """What is to be learned: runs that were not, and with them others that wait in the same experience. Empty until the
    bank is asked."""
    known: tuple[str, ...] = ()
    """The ids of the runs that were learned before."""
    experiences: Sequence[Experience] = ()
    """Those that hold one of the runs, oldest first."""

    @property
    def is_learned(self) -> bool:
        """Whether nothing that is reported is new. Others of the experience may wait all the same."""
        return len(self.known) == len(self.runs)

    @property
    def is_short(self) -> bool:
        """Whether it is one run that is read in a few milliseconds, and how it ended is known."""
        return len(self.runs) == 1 and all(self.truths.values()) and is_brief(self.runs[0])

    def verdict(self, id: str, /) -> Verdict | None:
        """How a run ended: as the caller says, or else as it was decided before, because no judge is asked twice."""
        held = [ref.verdict for owner in self.experiences[-1:] for ref in owner.attempts if ref.trajectory_id == id]
        return self.truths.get(id) or next((verdict for verdict in held if verdict.outcome != "unknown"), None)


def truths_of(
    runs: Sequence[Trajectory],
    /,
    *,
    outcome: Outcome | Sequence[Outcome] | None,
    reward: float | Sequence[float] | None,
    success_at: float,
) -> tuple[dict[str, Verdict | None], tuple[str, ...]]:
    """Ground truth by trajectory id, where the caller gave any, and a note on graded rewards that decided alone.

    Raises:
        UsageError: not as many values as runs, no outcome of this package, or a reward that contradicts it.
    """
    each = zip(_each(outcome, len(runs), "outcome"), _each(reward, len(runs), "reward"), strict=True)
    pairs = [(claim, truth_verdict(outcome=claim, reward=earned, success_at=success_at)) for claim, earned in each]
    graded = [truth for claim, truth in pairs if truth and claim in (None, "unknown")]
    alone = [truth.reward for truth in graded if truth.reward is not None]
    notes = graded_notes(alone, success_at=success_at) if alone else ()
    return {run.id: truth for run, (_, truth) in zip(runs, pairs, strict=True)}, notes


def _each(value: object, count: int, name: str, /) -> list[Any]:
    """One value per run: a single one stands for all, a sequence must have as many as there are runs."""
    is_one = value is None or is_instance(value, (str, Verdict)) or not is_instance(value, Iterable)
    if is_one or safe_getattr(cast("object", value), "ndim") == 0:  # an array that only says it can be iterated
        return [value] * count
    try:
        several = list(cast("Iterable[Any]", value))
    except Exception as error:
        raise UsageError(
            f"{name}= could not be read: {kind(error)}; got {short_repr(cast('object', value))}"
        ) from error
    if len(several) != count:
        raise UsageError(
            f"{name} has {plural(len(several), 'value')} for {plural(count, 'run')}: give one, or one for each run"
        )
    return several


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
