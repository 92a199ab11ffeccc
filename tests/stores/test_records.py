"""A moment is kept to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from lessonbank.stores._records import microseconds, moment


@given(st.datetimes(), st.integers(-14, 14))
def test_a_moment_is_kept_to_the_microsecond(at: datetime, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    aware = at.replace(tzinfo=UTC)
    assert moment(microseconds(at)) == moment(microseconds(aware)) == aware
    if 2 < at.year < 9998:
        assert microseconds(aware.astimezone(zone)) == microseconds(aware)
