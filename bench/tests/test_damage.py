"""What measures damage makes its table; a small bank keeps the promises, and the release keeps them on a larger one."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from lessonbank_bench.measure import damage


@pytest.mark.full
def test_no_changed_value_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One change in each column of each table; the release makes all of them, in three rows."""
    others = damage.changed
    monkeypatch.setattr(damage, "changed", lambda value: islice(others(value), 1))
    bank = tmp_path / "sound.sqlite"
    damage.fill(bank, lessons=8, seed=1)
    found = damage.change_values(bank, tmp_path, chance=random.Random(1), rows=1)
    assert found.tried > 50
    assert found.broken == []


@pytest.mark.full
def test_files_in_the_place_of_others_are_known_in_every_case(tmp_path: Path) -> None:
    for promise in damage.put_in_place(tmp_path, crashes=2):
        assert promise.tried == 2
        assert promise.broken == [], promise.what


@pytest.mark.full
def test_the_table_says_what_is_broken() -> None:
    promise = damage.Promise("it holds", figure="half")
    promise.holds(True, "one")
    promise.holds(False, "other")
    assert damage.table([promise]).splitlines()[-1] == "| it holds | 2 | 1 | half |"


@pytest.mark.full
def test_every_table_and_index_is_among_the_pages_that_are_damaged(tmp_path: Path) -> None:
    bank = tmp_path / "sound.sqlite"
    damage.fill(bank, lessons=24, seed=1)
    held = damage.pages_of(bank)
    drawn = damage.some_pages(held, 2, random.Random(1))
    assert all(0 < len(set(drawn) & set(numbers)) <= 2 for numbers in held.values())
    every = damage.some_pages(held, 0, random.Random(1))
    assert every == list(range(bank.stat().st_size // damage.PAGE))
    assert {"journal", "experiences", "lessons", "recalls"} <= held.keys()


@pytest.mark.release
def test_every_promise_holds_on_a_larger_bank() -> None:
    for promise in damage.measured(lessons=280, pages=6, pairs=60, crashes=12, seed=2):
        assert promise.tried > 10, promise.what
        assert promise.broken == [], promise.what
