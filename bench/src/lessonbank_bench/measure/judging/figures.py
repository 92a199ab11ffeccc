"""The figures of a judge: how often it is right, what its confidence is worth, and which of two is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank_bench.experiment.distributions import mcnemar
from lessonbank_bench.statistics import Interval, wilson

from .opinions import Opinion, shared

EDGES: Final = (0.0, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Where the bins of confidence begin; the last one ends at 1."""
SURE: Final = 0.9
WANTED: Final = (0.9, 0.95)
"""Accuracies that a caller may want, for which the coverage is told."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of so many, with an interval (Wilson, 95 %)."""

    count: int
    of: int

    @property
    def interval(self) -> Interval | None:
        """`None` of nothing."""
        return wilson(self.count, self.of) if self.of else None

    def __str__(self) -> str:
        if (told := self.interval) is None:
            return "-"
        return f"{told.estimate:.2f} [{told.low:.2f}, {told.high:.2f}] {self.count}/{self.of}"


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts with about the same confidence."""

    low: float
    high: float
    confidence: float
    """Their mean."""
    right: Share


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of runs that are decided at least this surely, so that `accuracy` of them are decided right."""

    accuracy: float
    threshold: float | None
    """The confidence; `None` where no threshold reaches the accuracy."""
    covered: Share


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table."""

    source: str
    decided: Share
    right: Share
    """Of the decided."""
    said_success: Share
    """Right, of those it called successes."""
    said_failure: Share
    sure: Share
    """Right, of those with a confidence of at least 0.9."""
    covered: Share
    """Those, of all."""
    input_tokens: float
    """The mean of a verdict; so are the next two."""
    cached_tokens: float
    output_tokens: float
    cost: float | None
    """US dollars for all of them; `None` where no price is known."""


def figures(opinions: Sequence[Opinion], /) -> list[Figures]:
    """All of them in one row, then each source in one of its own."""
    sources = sorted({one.source for one in opinions})
    parts = [(source, [one for one in opinions if one.source == source]) for source in sources]
    return [_row(name, own) for name, own in [("all", list(opinions)), *(parts if len(parts) > 1 else [])]]


def _row(source: str, own: Sequence[Opinion]) -> Figures:
    decided = [one for one in own if one.decided]
    sure = [one for one in decided if one.confidence >= SURE]
    costs = [one.usage.cost for one in own if one.usage.cost is not None]
    return Figures(
        source=source,
        decided=Share(len(decided), len(own)),
        right=_right(decided),
        said_success=_right(one for one in decided if one.outcome == "success"),
        said_failure=_right(one for one in decided if one.outcome == "failure"),
        sure=_right(sure),
        covered=Share(len(sure), len(own)),
        input_tokens=_mean(one.usage.input_tokens for one in own),
        cached_tokens=_mean(one.usage.cached_tokens for one in own),
        output_tokens=_mean(one.usage.output_tokens for one in own),
        cost=sum(costs) if costs else None,
    )


def _right(opinions: Iterable[Opinion]) -> Share:
    known = list(opinions)
    return Share(sum(one.right for one in known), len(known))


def _mean(numbers: Iterable[float]) -> float:
    known = list(numbers)
    return sum(known) / len(known) if known else 0.0


def calibration(opinions: Sequence[Opinion], /) -> list[Bin]:
    """The decided verdicts by confidence: in each bin, how sure they were and how many were right."""
    bins: list[Bin] = []
    for low, high in zip(EDGES, (*EDGES[1:], 1.01), strict=True):
        own = [one for one in opinions if one.decided and low <= one.confidence < high]
        if own:
            bins.append(Bin(low, min(high, 1.0), _mean(one.confidence for one in own), _right(own)))
    return bins


def calibration_error(opinions: Sequence[Opinion], /) -> float:
    """The mean distance between confidence and accuracy over the bins, weighted by their size."""
    bins = calibration(opinions)
    total = sum(one.right.of for one in bins)
    return sum(abs(one.confidence * one.right.of - one.right.count) for one in bins) / total if total else 0.0


def coverage(opinions: Sequence[Opinion], accuracy: float, /) -> Coverage:
    """The lowest confidence from which on the decided verdicts are right this often, and how many runs that leaves."""
    decided = [one for one in opinions if one.decided]
    for threshold in sorted({one.confidence for one in decided}):
        kept = [one for one in decided if one.confidence >= threshold]
        if sum(one.right for one in kept) >= accuracy * len(kept):
            return Coverage(accuracy, threshold, Share(len(kept), len(opinions)))
    return Coverage(accuracy, None, Share(0, len(opinions)))


@dataclass(frozen=True, slots=True)
class Paired:
    """Two settings on the same runs. A run that one of them left undecided is not right for it."""

    runs: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    """McNemar's exact test, two-sided."""
    decided_by_both: int
    only_first_decided: int
    """Right under the first only, of those that both decided."""
    only_second_decided: int
    p_decided: float
    first_tokens: float
    """Mean input tokens of a verdict."""
    second_tokens: float
    first_sure_wrong: int
    """Wrong with a confidence of at least 0.9."""
    second_sure_wrong: int


def paired(first: Sequence[Opinion], second: Sequence[Opinion], /) -> Paired:
    """How two settings differ on the runs that both have judged."""
    pairs = shared(first, second)
    mine = [one.right for one, _ in pairs]
    theirs = [other.right for _, other in pairs]
    gained = sum(a and not b for a, b in zip(mine, theirs, strict=True))
    lost = sum(b and not a for a, b in zip(mine, theirs, strict=True))
    decided = [(one.right, other.right) for one, other in pairs if one.decided and other.decided]
    own, others = sum(a and not b for a, b in decided), sum(b and not a for a, b in decided)
    return Paired(
        runs=len(pairs),
        both=sum(a and b for a, b in zip(mine, theirs, strict=True)),
        only_first=gained,
        only_second=lost,
        neither=sum(not a and not b for a, b in zip(mine, theirs, strict=True)),
        p=mcnemar(gained, lost),
        decided_by_both=len(decided),
        only_first_decided=own,
        only_second_decided=others,
        p_decided=mcnemar(own, others),
        first_tokens=_mean(one.usage.input_tokens for one, _ in pairs),
        second_tokens=_mean(other.usage.input_tokens for _, other in pairs),
        first_sure_wrong=sum(_sure_wrong(one) for one, _ in pairs),
        second_sure_wrong=sum(_sure_wrong(other) for _, other in pairs),
    )


def _sure_wrong(one: Opinion) -> bool:
    return one.decided and not one.right and one.confidence >= SURE
