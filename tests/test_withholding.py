"""The draw that makes lift measurable."""

from __future__ import annotations

from lessonbank._ids import new_id
from lessonbank.ledger import withheld


def test_the_same_recall_draws_the_same_items() -> None:
    ids = [new_id() for _ in range(50)]
    recall_id = new_id()
    first = withheld(ids, recall_id=recall_id, probability=0.3)
    assert first == withheld(ids, recall_id=recall_id, probability=0.3)
    assert 0 < len(first) < 50


def test_zero_withholds_nothing() -> None:
    assert withheld([new_id()], recall_id=new_id(), probability=0.0) == frozenset()


def test_each_item_is_withheld_about_as_often_as_stated_and_independently_of_the_others() -> None:
    draws = [withheld(["a", "b"], recall_id=f"{n:032x}", probability=0.2) for n in range(4000)]
    a, b = (sum(i in d for d in draws) / 4000 for i in ("a", "b"))
    both = sum(len(d) == 2 for d in draws) / 4000
    assert abs(a - 0.2) < 0.025
    assert abs(b - 0.2) < 0.025
    assert abs(both - 0.04) < 0.015
