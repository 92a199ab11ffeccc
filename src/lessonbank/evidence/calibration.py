"""How far a judge can be believed, from the runs of which the truth became known as well."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .episodes import Episodes, Flags, Floats
from .lift import JudgeReport

_BINS = 10
_FEW = 10
"""Labels of each kind below which nothing is said of how often a judge errs."""
WEAKEST = 0.1
"""A judge whose labels may move less than this when outcomes do says nothing."""
ASSUMED = 0.5
"""What is assumed where no truth was ever told: that sensitivity and specificity add up to at least 1.5, as for a
judge that is right three times in four. The agreement of common judges is .7 to .9 (AgentRewardBench, 2504.08942)."""


@dataclass(frozen=True, slots=True)
class Errors:
    """How often judges err, as it was measured."""

    false_success: float
    """The share of failures that are called a success."""
    sensitivity: float
    variance: float
    """Of `power`."""

    @property
    def power(self) -> float:
        """By how much a judge's labels move when outcomes do (Youden's J): 1 for the truth, 0 for a coin."""
        return self.sensitivity - self.false_success

    @property
    def worthless(self) -> bool:
        """Whether labels may say next to nothing of the truth, as far as that was measured."""
        return self.power - 2 * float(np.sqrt(self.variance)) < WEAKEST


def calibrations(episodes: Episodes, /, *, wanted: float = 0.9) -> tuple[JudgeReport, ...]:
    """Every judge that was asked, against the truth where it is known."""
    return tuple(
        _calibration(name, episodes, episodes.judge == number, wanted=wanted)
        for number, name in enumerate(episodes.judges)
        if np.any(episodes.judge == number)
    )


def checked(episodes: Episodes, /) -> Flags:
    """The rows of which both the truth and a judge's opinion are known."""
    return episodes.true & episodes.known & ~np.isnan(episodes.judged)


def errors_of(episodes: Episodes, rows: Flags, /) -> Errors | None:
    """How often the judges of `rows` err; `None` where too little truth is known to say."""
    both = rows & checked(episodes)
    truth, said = episodes.outcome[both] > 0.5, episodes.judged[both]
    good, bad = int(truth.sum()), int((~truth).sum())
    if min(good, bad) < _FEW:
        return None
    sensitivity = (float(said[truth].sum()) + 0.5) / (good + 1)
    false_success = (float(said[~truth].sum()) + 0.5) / (bad + 1)
    variance = sensitivity * (1 - sensitivity) / good + false_success * (1 - false_success) / bad
    return Errors(false_success, sensitivity, variance)


def believable(episodes: Episodes, /) -> Episodes:
    """`episodes` without the opinions of judges whose labels are measured to say next to nothing of the truth."""
    weak = [judge for judge, errors in by_judge(episodes).items() if errors is not None and errors.worthless]
    if not weak:
        return episodes
    silent = np.isin(episodes.judge, weak) & ~episodes.true
    return replace(episodes, outcome=np.where(silent, np.nan, episodes.outcome))


def label_power(episodes: Episodes, /) -> float:
    """By how much outcomes, as they are labelled, move when the truth does: each judge as it was measured, or assumed.

    The truth counts 1. For a judge that errs alike with memory and without.
    """
    known = episodes.known
    judged = known & ~episodes.true
    if not judged.any():
        return 1.0
    moved = float((known & episodes.true).sum())
    for judge, errors in by_judge(episodes).items():
        power = ASSUMED if errors is None else min(max(errors.power, WEAKEST), 1.0)
        moved += power * float((judged & (episodes.judge == judge)).sum())
    return moved / float(known.sum())


def by_judge(episodes: Episodes, /) -> dict[int, Errors | None]:
    """The errors of each judge by whose word alone an outcome stands; `None` where they were not measured."""
    asked = np.unique(episodes.judge[episodes.known & ~episodes.true])
    return {int(judge): errors_of(episodes, episodes.judge == judge) for judge in asked}


def _calibration(name: str, episodes: Episodes, asked: Flags, *, wanted: float) -> JudgeReport:
    both = asked & checked(episodes)
    told = JudgeReport(judge=name, asked=int(asked.sum()), checked=int(both.sum()))
    if not told.checked:
        return told
    truth, said = episodes.outcome[both] > 0.5, episodes.judged[both] > 0.5
    sure, right = episodes.confidence[both], (episodes.outcome[both] > 0.5) == said
    return told.model_copy(
        update={
            "agreement": float(right.mean()),
            "success_precision": share(truth, said),
            "success_recall": share(said, truth),
            "failure_precision": share(~truth, ~said),
            "failure_recall": share(~said, ~truth),
            "calibration_error": _expected_error(sure, right),
            "threshold": _threshold(sure, right, wanted),
        }
    )


def share(of: Flags, among: Flags, /) -> float | None:
    """How large a part of `among` is `of`; `None` of nothing."""
    return float(of[among].mean()) if among.any() else None


def _expected_error(sure: Floats, right: Flags) -> float | None:
    said = ~np.isnan(sure)
    if not said.any():
        return None
    bins = np.minimum((sure[said] * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, weights=sure[said] - right[said], minlength=_BINS)
    return float(np.abs(gaps).sum() / said.sum())


def _threshold(sure: Floats, right: Flags, wanted: float) -> float | None:
    said = ~np.isnan(sure)
    order = np.argsort(-sure[said], kind="stable")
    levels, agreed = sure[said][order], right[said][order]
    last = np.flatnonzero(np.append(levels[1:] != levels[:-1], True)) if len(levels) else np.empty(0, np.int64)
    shares = np.cumsum(agreed)[last] / (last + 1)
    enough = last[(shares >= wanted) & (last + 1 >= _FEW)]
    return float(levels[enough[-1]]) if len(enough) else None
