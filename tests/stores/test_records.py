"""A moment is kept to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.store_calls import get_experience
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience


async def kept(*moments: datetime) -> list[datetime]:
    """What a store gives back of these."""
    store = SqliteStore.in_memory()
    made = [experience().model_copy(update={"created_at": at}) for at in moments]
    await added(store, *made)
    found = [await get_experience(store, one.id, scope=MINE) for one in made]
    await store.close()
    return [one.created_at for one in found if one]


@pytest.mark.full
@given(st.datetimes(min_value=datetime(3, 1, 1), max_value=datetime(9997, 1, 1)), st.integers(-14, 14))
def test_a_moment_is_kept_to_the_microsecond(at: datetime, hours: int) -> None:
    aware = at.replace(tzinfo=UTC)
    assert anyio.run(kept, at, aware, aware.astimezone(timezone(timedelta(hours=hours)))) == [aware] * 3


def test_the_first_and_the_last_moment_are_kept_too() -> None:
    ends = [end.replace(tzinfo=UTC) for end in (datetime.min, datetime.max)]
    assert anyio.run(kept, *ends) == ends
