"""How far a judge can be believed, from the runs of which the truth became known as well."""

from __future__ import annotations

import numpy as np

from .episodes import Episodes, Flags, Floats
from .lift import JudgeReport

_BINS = 10
_FEW = 10
"""Opinions beside the truth below which no threshold is named."""


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
