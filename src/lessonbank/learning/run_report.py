"""What a caller reports to `learn`: runs, what is known of their outcome, the recall they used, and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from lessonbank._base.checks import is_instance, kind, safe_getattr, short_repr
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Experience, Outcome, Recall, Trajectory, Verdict
from lessonbank.contracts.records.runs import is_brief
from lessonbank.errors import UsageError

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
    if value is None or is_instance(value, (str, Verdict)) or not is_instance(value, Iterable):
        return [value] * count
    if safe_getattr(cast("object", value), "ndim") == 0:  # an array that only says it can be iterated
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
