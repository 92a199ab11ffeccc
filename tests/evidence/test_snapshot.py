"""What a review wrote into a bank is read by later versions, with what it did not know yet."""

from __future__ import annotations

from lessonbank.evidence.review_snapshot import ReviewSnapshot, UnitReview


def test_a_snapshot_of_an_earlier_version_is_read_and_knows_no_bound_of_an_effect() -> None:
    text = '{"reviewed": 9, "sequence": 3, "units": {"a": [9, "helps", false, 5.5, 0.0, 0.1, 0.05, 7]}, "proposed": {}}'
    read = ReviewSnapshot.of(text)
    assert (read.reviewed, read.sequence) == (9, 3)
    assert read.units["a"] == UnitReview(9, "helps", False, 5.5, 0.0, 0.1, 0.05, found=7, most=1.0)
    assert ReviewSnapshot.of(read.text()) == read
