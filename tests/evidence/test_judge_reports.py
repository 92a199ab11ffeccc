"""What is said of a judge is what a count by hand says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planted import episodes

from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.report import judge_reports

NAN = float("nan")


def said(*rows: tuple[float, float], judge: Any = None, judges: tuple[str, ...] = ("model, judge 1",)) -> Episodes:
    """Rows of the truth (nan: not told), what a judge said (nan: not asked)."""
    truth, opinion = (np.array([row[i] for row in rows], dtype=float) for i in range(2))
    return episodes(
        np.where(np.isnan(truth), opinion, truth),
        true=~np.isnan(truth),
        judged=opinion,
        judge=np.where(np.isnan(opinion), -1, 0) if judge is None else np.asarray(judge),
        judges=judges,
    )


def test_agreement_is_a_count() -> None:
    rows = [(1.0, 1.0)] * 6 + [(1.0, 0.0)] * 2 + [(0.0, 1.0)] * 3 + [(0.0, 0.0)] * 9
    (told,) = judge_reports(said(*rows, (NAN, 1.0), (1.0, NAN)))
    assert (told.judge, told.asked, told.checked) == ("model, judge 1", 21, 20)
    assert told.agreement == pytest.approx(15 / 20)


def test_a_judge_that_was_never_checked_is_named_and_nothing_is_said_of_it() -> None:
    (told,) = judge_reports(said((NAN, 1.0), (NAN, 0.0)))
    assert (told.asked, told.checked, told.agreement) == (2, 0, None)


def test_judges_are_told_apart() -> None:
    rows = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]
    told = judge_reports(said(*rows, judge=[0, 1, 1], judges=("first", "second", "never asked")))
    assert [(one.judge, one.asked, one.agreement) for one in told] == [("first", 1, 1.0), ("second", 2, 0.5)]


def test_nobody_was_asked() -> None:
    assert judge_reports(said((1.0, NAN))) == ()
    assert judge_reports(said()) == ()
