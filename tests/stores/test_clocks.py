"""A clock that was wrong for a while keeps no run from its worker, and hands none out twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import ids
from lessonbank.contracts.store_calls import queue_of
from lessonbank.stores.postgres import PostgresStore
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, trajectory

pytestmark = [pytest.mark.anyio, pytest.mark.full]
Ahead = Callable[[timedelta], None]


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    """Sets the clock of this process."""

    def set_ahead(by: timedelta) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # pyright: ignore[reportIncompatibleMethodOverride]
                return datetime.now(tz) + by

        monkeypatch.setattr(ids, "datetime", Clock)

    return set_ahead


async def claimed(store: Store, worker: str, *, exclusive: bool = False) -> set[str]:
    """The ids of the runs that a worker takes for a minute."""
    claims = await queue_of(store).claim(worker=worker, limit=5, seconds=60.0, exclusive=exclusive)
    return {claim.trajectory.id for claim in claims}


async def test_a_file_takes_what_a_wrong_clock_put_off_for_due(path: Path, ahead: Ahead) -> None:
    store, run, other = await SqliteStore.open(path), trajectory(), trajectory()
    ahead(timedelta(days=5))
    await store.save_runs([run], scope=MINE, wait=600.0)
    ahead(timedelta())
    assert await claimed(store, "one") == {run.id}
    await store.save_runs([other], scope=MINE, wait=0.0)
    ahead(timedelta(days=5))
    assert await claimed(store, "killed") == {run.id, other.id}
    ahead(timedelta())
    status = await queue_of(store).queue()
    assert (status.waiting, status.claimed) == (2, 0)
    assert await claimed(store, "two", exclusive=True) == {run.id, other.id}
    assert await claimed(store, "three") == set()
    await store.close()


async def test_a_database_lends_runs_by_its_own_clock(postgres_bank: Callable[..., str], ahead: Ahead) -> None:
    store, run, other = await PostgresStore.open(postgres_bank(2)), trajectory(), trajectory()
    await store.save_runs([run], scope=MINE, wait=0.0)
    assert await claimed(store, "one") == {run.id}
    ahead(timedelta(seconds=300))
    assert await claimed(store, "two") == set()
    await store.save_runs([other], scope=MINE, wait=0.0)
    ahead(timedelta())
    assert await claimed(store, "three") == {other.id}
    await store.close()
