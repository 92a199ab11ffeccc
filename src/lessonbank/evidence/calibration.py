"""How far a judge can be believed, from the runs of which the truth became known as well."""

from __future__ import annotations

import numpy as np

from .episodes import Episodes, Flags
from .lift import JudgeReport


def calibrations(episodes: Episodes, /) -> tuple[JudgeReport, ...]:
    """Every judge that was asked, against the truth where it is known."""
    return tuple(
        _calibration(name, episodes, episodes.judge == number)
        for number, name in enumerate(episodes.judges)
        if np.any(episodes.judge == number)
    )


def checked(episodes: Episodes, /) -> Flags:
    """The rows of which both the truth and a judge's opinion are known."""
    return episodes.true & episodes.known & ~np.isnan(episodes.judged)


def _calibration(name: str, episodes: Episodes, asked: Flags) -> JudgeReport:
    both = asked & checked(episodes)
    told = JudgeReport(judge=name, asked=int(asked.sum()), checked=int(both.sum()))
    if not told.checked:
        return told
    right = (episodes.outcome[both] > 0.5) == (episodes.judged[both] > 0.5)
    return told.model_copy(update={"agreement": float(right.mean())})


def share(of: Flags, among: Flags, /) -> float | None:
    """How large a part of `among` is `of`; `None` of nothing."""
    return float(of[among].mean()) if among.any() else None
