"""A clock that was wrong for a while keeps no run from its worker, and hands none out twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

import lessonbank
from lessonbank import Extraction
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Run, ids
from lessonbank.contracts.store_calls import queue_of
from lessonbank.http.workers import Worker
from lessonbank.stores.postgres import PostgresStore
from lessonbank.stores.sqlite import SqliteStore, _clock
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


async def test_a_file_takes_what_a_wrong_clock_put_off_for_due(
    path: Path, ahead: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(name: str, by: timedelta) -> None:
        monkeypatch.setattr(_clock, "_start_of_machine", lambda: name)
        ahead(by)

    store, run, other = await SqliteStore.open(path), trajectory(), trajectory()
    starts("with a wrong clock", timedelta(days=5))
    await store.save_runs([run], scope=MINE, wait=600.0)
    starts("with a right one", timedelta())
    assert await claimed(store, "one") == {run.id}
    await store.save_runs([other], scope=MINE, wait=0.0)
    starts("with a wrong clock", timedelta(days=5))
    assert await claimed(store, "killed") == {run.id, other.id}
    starts("with a right one", timedelta())
    status = await queue_of(store).queue()
    assert (status.waiting, status.claimed) == (2, 0)
    assert await claimed(store, "two", exclusive=True) == {run.id, other.id}
    assert await claimed(store, "three") == set()
    await store.close()


@pytest.fixture(params=["file", "database"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Store]:
    """A store of each kind."""
    if request.param == "file":
        made: SqliteStore | PostgresStore = await SqliteStore.open(path)
    else:
        made = await PostgresStore.open(request.getfixturevalue("postgres_bank")(2))
    yield made
    await made.close()


@pytest.mark.parametrize("seconds", [300, -300])
async def test_a_clock_that_jumps_takes_no_run_from_its_worker(store: Store, ahead: Ahead, seconds: float) -> None:
    run, other = trajectory(), trajectory()
    await store.save_runs([run], scope=MINE, wait=0.0)
    assert await claimed(store, "one") == {run.id}
    ahead(timedelta(seconds=seconds))
    assert await claimed(store, "two") == set()
    await store.save_runs([other], scope=MINE, wait=0.0)
    ahead(timedelta())
    assert await claimed(store, "three") == {other.id}
    assert (await queue_of(store).queue()).claimed == 2


async def test_a_clock_that_jumps_has_no_run_learned_twice(path: Path, ahead: Ahead) -> None:
    paid = list[str]()

    async def extract(runs: Sequence[Run]) -> Extraction:
        paid.append(runs[0].trajectory.id)
        if len(paid) == 1:
            ahead(timedelta(seconds=300))
            async with await opened() as late:
                await Worker(late).run(drain=True)
        return Extraction()

    async def opened() -> lessonbank.AsyncReasoningBank:
        parts, learning = lessonbank.Parts(extractor=extract), lessonbank.Learning(submit="worker")
        return await lessonbank.connect_async(path, scope=MINE, embedder="lexical", parts=parts, learning=learning)

    async with await opened() as bank:
        await bank.submit(run := trajectory(), outcome="failure")
        await Worker(bank).run(drain=True)
    assert paid == [run.id]
