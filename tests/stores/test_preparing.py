"""Many entries are made ready by two threads as each of them would be by itself."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.stores._packing import unpacked
from lessonbank.stores._records import microseconds, moment
from lessonbank.stores.sqlite._preparing import all_packed
from lessonbank.testing._store_samples import experience
from lessonbank.types import Add


@pytest.mark.parametrize("many", [0, 1, 3, 127, 128, 129, 400])
def test_entries_keep_their_order_whichever_thread_deflates_them(many: int) -> None:
    entries = [Add(experience=experience(f"task {n}")) for n in range(many)]
    with ThreadPoolExecutor(1) as pool:
        ready = all_packed(entries, beside=pool.submit)
    assert [entry for entry, _ in ready] == entries
    assert [unpacked(blob).decode() for _, blob in ready] == [entry.model_dump_json() for entry in entries]


def test_nobody_waits_for_a_thread_that_never_comes_free() -> None:
    entries = [Add(experience=experience(f"task {n}")) for n in range(300)]
    ready = all_packed(entries, beside=lambda _: Future())
    assert [unpacked(blob).decode() for _, blob in ready] == [entry.model_dump_json() for entry in entries]


@given(st.datetimes(), st.integers(-14, 14))
def test_a_moment_is_kept_to_the_microsecond(at: datetime, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    aware = at.replace(tzinfo=UTC)
    assert moment(microseconds(at)) == moment(microseconds(aware)) == aware
    if 2 < at.year < 9998:
        assert microseconds(aware.astimezone(zone)) == microseconds(aware)
