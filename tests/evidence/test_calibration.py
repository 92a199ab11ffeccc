"""What is said of a judge is what a count by hand says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import episodes

from lessonbank.evidence.calibration import calibrations, checked
from lessonbank.evidence.episodes import Episodes

NAN = float("nan")


def said(
    *rows: tuple[float, float, float], judge: Any = None, judges: tuple[str, ...] = ("model, judge 1",)
) -> Episodes:
    """Rows of the truth (nan: not told), what a judge said (nan: not asked), and how sure it was."""
    truth, opinion, sure = (np.array([row[i] for row in rows], dtype=float) for i in range(3))
    return episodes(
        np.where(np.isnan(truth), opinion, truth),
        true=~np.isnan(truth),
        judged=opinion,
        confidence=sure,
        judge=np.where(np.isnan(opinion), -1, 0) if judge is None else np.asarray(judge),
        judges=judges,
    )


def test_agreement_precision_and_recall_are_counts() -> None:
    rows = [(1.0, 1.0, 0.9)] * 6 + [(1.0, 0.0, 0.6)] * 2 + [(0.0, 1.0, 0.7)] * 3 + [(0.0, 0.0, 0.8)] * 9
    (told,) = calibrations(said(*rows, (NAN, 1.0, 0.5), (1.0, NAN, NAN)))
    assert (told.judge, told.asked, told.checked) == ("model, judge 1", 21, 20)
    assert told.agreement == pytest.approx(15 / 20)
    assert told.success_precision == pytest.approx(6 / 9)
    assert told.success_recall == pytest.approx(6 / 8)
    assert told.failure_precision == pytest.approx(9 / 11)
    assert told.failure_recall == pytest.approx(9 / 12)


def test_a_judge_that_was_never_checked_is_named_and_nothing_is_said_of_it() -> None:
    (told,) = calibrations(said((NAN, 1.0, 0.9), (NAN, 0.0, 0.9)))
    assert (told.asked, told.checked, told.agreement, told.threshold) == (2, 0, None, None)


def test_a_judge_that_knew_only_one_kind_has_no_share_of_the_other() -> None:
    (told,) = calibrations(said((1.0, 1.0, 0.9), (1.0, 1.0, 0.9)))
    assert (told.agreement, told.success_recall, told.failure_precision, told.failure_recall) == (1.0, 1.0, None, None)


def test_judges_are_told_apart() -> None:
    rows = [(1.0, 1.0, 0.9), (1.0, 0.0, 0.9), (0.0, 0.0, 0.9)]
    told = calibrations(said(*rows, judge=[0, 1, 1], judges=("first", "second", "never asked")))
    assert [(one.judge, one.asked, one.agreement) for one in told] == [("first", 1, 1.0), ("second", 2, 0.5)]


def test_nobody_was_asked() -> None:
    assert calibrations(said((1.0, NAN, NAN))) == ()
    assert calibrations(said()) == ()


def test_the_error_of_confidence_is_its_distance_from_agreement() -> None:
    rows = [(1.0, 1.0, 0.95)] * 5 + [(1.0, 0.0, 0.95)] * 5 + [(1.0, 1.0, 0.25)] * 10
    (told,) = calibrations(said(*rows))
    assert told.calibration_error == pytest.approx((10 * 0.45 + 10 * 0.75) / 20)


@pytest.mark.parametrize("sure", [0.0, 1.0])
def test_confidence_may_be_nothing_or_everything(sure: float) -> None:
    (told,) = calibrations(said(*[(1.0, 1.0, sure)] * 12))
    assert told.calibration_error == pytest.approx(1.0 - sure)
    assert told.threshold == sure


def test_a_judge_that_does_not_say_how_sure_it_is_has_no_threshold() -> None:
    (told,) = calibrations(said(*[(1.0, 1.0, NAN)] * 20))
    assert (told.calibration_error, told.threshold, told.agreement) == (None, None, 1.0)


def test_the_threshold_is_the_lowest_confidence_from_which_on_nine_in_ten_agree() -> None:
    rows = [(1.0, 1.0, 0.9)] * 20 + [(1.0, 0.0, 0.9)] + [(1.0, 1.0, 0.7)] * 8 + [(1.0, 0.0, 0.5)] * 20
    (told,) = calibrations(said(*rows))
    assert told.threshold == 0.7
    assert calibrations(said(*rows), wanted=0.99)[0].threshold is None


def test_a_few_lucky_labels_are_no_threshold() -> None:
    assert calibrations(said(*[(1.0, 1.0, 0.9)] * 9))[0].threshold is None


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, NAN])] * 2, st.floats(0, 1)), max_size=60))
def test_whatever_was_said_all_shares_are_shares_and_the_threshold_keeps_its_word(rows: list[Any]) -> None:
    one = said(*rows)
    for told in calibrations(one):
        assert told.checked == int(checked(one).sum()) <= told.asked
        shares = (told.agreement, told.success_precision, told.failure_recall, told.calibration_error)
        assert all(share is None or 0 <= share <= 1 for share in shares)
        if told.threshold is not None:
            sure = checked(one) & (one.confidence >= told.threshold)
            assert np.mean(one.outcome[sure] == one.judged[sure]) >= 0.9
