"""The figures of lessons that come again, on a stream short enough for a test."""

from __future__ import annotations

import lessonbank
from lessonbank import Evidence
from lessonbank_bench.measure.recurrence import BANKS, Figures, counter, played


def of(bank: str) -> Figures:
    options = {"scope": "s", "embedder": "lexical", "evidence": Evidence(holdout=None)} | BANKS[bank]
    return played(counter(1, 25), lessonbank.connect(":memory:", **options))


def test_a_bank_that_recognises_holds_fewer_lessons_and_recalls_each_more_often() -> None:
    copies, recognise = of("copies"), of("recognise")
    assert copies.lessons == 25
    assert recognise.lessons < copies.lessons
    assert recognise.mean > 1.2 * copies.mean
    assert recognise.success >= copies.success
