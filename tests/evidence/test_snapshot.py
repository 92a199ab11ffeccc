"""What a review wrote into a bank is read by later versions, with what it did not know yet."""

from __future__ import annotations

import pytest

from lessonbank.contracts.records.settings import REVIEW
from lessonbank.evidence.policy import Holdout
from lessonbank.evidence.review_snapshot import ReviewSnapshot, TreatmentReview
from lessonbank.evidence.stored_ledger import StoredLedger
from lessonbank.stores.sqlite import SqliteStore


def test_a_snapshot_of_an_earlier_version_is_read_and_knows_no_bound_of_an_effect() -> None:
    text = '{"reviewed": 9, "sequence": 3, "units": {"a": [9, "helps", false, 5.5, 0.0, 0.1, 0.05, 7]}, "proposed": {}}'
    read = ReviewSnapshot.of(text)
    assert (read.reviewed, read.sequence) == (9, 3)
    assert read.treatments["a"] == TreatmentReview(9, "helps", False, 0.1, 0.05, found=7, most=1.0)
    assert ReviewSnapshot.of(read.text()) == read


@pytest.mark.anyio
async def test_a_review_that_still_says_the_same_is_not_read_again_and_a_later_one_is() -> None:
    store = SqliteStore.in_memory()
    treatment = TreatmentReview(recalls=40, grade="helps")
    await store.put_setting(REVIEW.of("t"), ReviewSnapshot(reviewed=9, treatments={"a": treatment}).text())
    ledger, seen = StoredLedger(store, Holdout(0.0, 0.0)), list[ReviewSnapshot]()
    for _ in range(2):
        for _ in range(60):
            seen.append(await ledger._last("t"))
        await store.put_setting(
            REVIEW.of("t"), ReviewSnapshot(reviewed=10, treatments={"a": treatment, "b": treatment}).text()
        )
    assert len({id(one) for one in seen}) == 2
    assert [one.helps for one in (seen[0], seen[-1])] == [{"a"}, {"a", "b"}]
    assert seen[0].helps is seen[0].helps
    await store.close()
