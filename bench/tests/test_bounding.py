"""What nobody could do better, computed without the ledger."""

from __future__ import annotations

from math import log

import pytest

from lessonbank_bench.measure.ledger.bounding import information, informed, knowing


def test_a_recall_tells_what_the_draw_and_the_outcome_have_in_common() -> None:
    assert information(0.0, 0.3) == pytest.approx(0.0, abs=1e-12)
    assert information(0.5, 0.5) == pytest.approx(0.75 * log(4 / 3) + 0.25 * log(4) - 0.5 * log(2))
    assert information(0.2, 0.5) > information(0.2, 0.3) > information(0.2, 0.1) > 0
    assert information(0.2, 0.4) == pytest.approx(information(-0.2, 0.4))


def test_who_knows_the_effects_shows_more_topics_where_nothing_blurs_them() -> None:
    whens = [[len(knowing(seed, 0.4, diluted=by)) for by in (0.0, 0.5)] for seed in range(3)]
    sharp, blurred = map(sum, zip(*whens, strict=True))
    assert sharp > 2 * blurred


def test_draws_within_bounds_cannot_make_a_bank_of_harm_useful() -> None:
    assert informed(3, 0.0) < 0 < informed(3, 0.5)
