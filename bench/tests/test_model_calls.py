"""What a task asks of a model: one request of the extractor, one of the judge where no outcome is told."""

from __future__ import annotations

from lessonbank_bench.measure.model_calls import record


def test_a_told_outcome_spares_the_judge_and_later_runs_are_read_beside_the_lesson_that_is_held() -> None:
    told, given = record(4, is_told=True)
    assert {part: len(asked) for part, asked in told.asked.items()} == {
        "extractor, first": 1,
        "check for harm": 1,
        "extractor, later": 3,
    }
    assert given[0] == 0
    assert max(given) > 0
    first, later = told.asked["extractor, first"][0][0], told.asked["extractor, later"][0][0]
    assert 0 < later - first <= 600  # tokens that the lessons held may take
    judged, _ = record(2, is_told=False)
    assert len(judged.asked["judge"]) == 2
