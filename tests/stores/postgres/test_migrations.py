"""Tables change in numbered steps, forward and one back, while the release before still works on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import anyio.to_thread
import psycopg
import pytest

from lessonbank.contracts.store_calls import count_records, get_setting
from lessonbank.errors import VersionMismatch
from lessonbank.stores.postgres import PostgresStore, _migrations
from lessonbank.stores.postgres._database import prepared
from lessonbank.testing.store_samples import MINE, added, experience

pytestmark = [pytest.mark.full, pytest.mark.anyio]


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Moves a database's tables as the next release would; `reads` is the oldest step that it still lets work."""

    def move(address: str, *, to: int, reads: int = 2) -> None:
        files = tmp_path / "migrations"
        files.mkdir(exist_ok=True)
        (files / "0003_notes.sql").write_text("ALTER TABLE lessonbank.lessons ADD COLUMN note text;", encoding="utf-8")
        (files / "0003_notes.back.sql").write_text("ALTER TABLE lessonbank.lessons DROP note;", encoding="utf-8")
        with monkeypatch.context() as patch, psycopg.connect(address) as connection:
            patch.setattr(_migrations, "resources", SimpleNamespace(files=lambda _: tmp_path))
            patch.setattr(_migrations, "STEPS", {**_migrations.STEPS, 3: "0003_notes.sql"})
            patch.setattr(_migrations, "OLDEST_READER", reads)
            patch.setattr(_migrations, "NEWEST", 3)
            prepared(connection)
            _migrations.migrate(connection, to=to)

    return move


async def test_the_release_before_works_beside_the_next_one_and_after_its_step_back(
    postgres: Callable[[], str], newer: Callable[..., None]
) -> None:
    address = postgres()
    store = await PostgresStore.open(address, partitions=2)
    await added(store, experience())
    newer(address, to=3)
    await added(store, experience())
    late = await PostgresStore.open(address)
    await added(late, experience())
    assert (await late.verify(tables=False)).storage["tables"] == "step 3 of 2"
    newer(address, to=2)
    await added(store, experience())
    assert (await count_records(store, scope=MINE)).experiences == 4
    assert (await store.verify()).problems == []
    for one in (store, late):
        await one.close()


async def test_a_step_that_has_to_wait_keeps_nobody_else_waiting(
    postgres: Callable[[], str], newer: Callable[..., None]
) -> None:
    address = postgres()
    store = await PostgresStore.open(address, partitions=2)
    await added(store, experience())
    async with anyio.create_task_group() as tasks:
        with psycopg.connect(address) as reader:
            reader.execute("SELECT count(*) FROM lessonbank.lessons")  # and stays open
            tasks.start_soon(anyio.to_thread.run_sync, partial(newer, address, to=3))
            await _somebody_waits(address)
            with anyio.fail_after(20):
                await added(store, experience())
            assert (await store.verify(tables=False)).storage["tables"] == "step 2 of 2", "the reader is still there"
    assert (await store.verify(tables=False)).storage["tables"] == "step 3 of 2"
    await store.close()


@pytest.mark.release
async def test_a_step_over_a_million_lessons_keeps_nobody_waiting_for_a_second(
    postgres: Callable[[], str], newer: Callable[..., None]
) -> None:
    address = postgres()
    store = await PostgresStore.open(address, partitions=2)
    await added(store, experience())
    with psycopg.connect(address) as connection:
        connection.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
        connection.execute(
            "INSERT INTO lessonbank.lessons SELECT scope, id || n, experience, place + n, state, created_at, kind,"
            " writer, wording || n, seen FROM lessonbank.lessons, generate_series(1, 1000000) n"
        )
    waits: list[float] = []
    for step in (3, 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_write_until_done, store, waits, done := anyio.Event())
            await anyio.to_thread.run_sync(partial(newer, address, to=step))
            done.set()
    assert len(waits) > 2
    assert max(waits) < 1, f"somebody waited {max(waits):.2f} s"
    await store.close()


async def _write_until_done(store: PostgresStore, waits: list[float], done: anyio.Event) -> None:
    while not done.is_set():
        begun = anyio.current_time()
        await added(store, experience())
        waits.append(anyio.current_time() - begun)


async def _somebody_waits(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        while connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
            await anyio.sleep(0.01)


async def test_a_release_that_is_too_old_changes_nothing(
    postgres: Callable[[], str], newer: Callable[..., None]
) -> None:
    address = postgres()
    await (await PostgresStore.open(address, partitions=2)).close()
    newer(address, to=3, reads=3)
    with pytest.raises(VersionMismatch, match="upgrade lessonbank"):
        await PostgresStore.open(address)


@pytest.mark.parametrize("step", [1, 2])
async def test_tables_of_a_development_version_are_refused_in_one_sentence(
    postgres_bank: Callable[..., str], step: int
) -> None:
    address = postgres_bank(2)
    with psycopg.connect(address) as raw:
        raw.execute("ALTER TABLE lessonbank.lessons DROP seen")
        raw.execute("DELETE FROM lessonbank.migrations WHERE number > %s", (step,))
    for read_only in (True, False):
        with pytest.raises(
            VersionMismatch, match=r"a development version made .* without lessons\.seen: export"
        ) as told:
            await PostgresStore.open(address, read_only=read_only)
        assert len(str(told.value).splitlines()) == 1
    with psycopg.connect(address) as raw:
        assert raw.execute("SELECT max(number) FROM lessonbank.migrations").fetchone() == (step,)


async def test_tables_of_the_step_before_are_not_read_before_they_are_upgraded(
    postgres_bank: Callable[..., str],
) -> None:
    address = postgres_bank(2)
    with psycopg.connect(address) as raw:
        raw.execute("DELETE FROM lessonbank.migrations WHERE number > 1")
    with pytest.raises(VersionMismatch, match="at step 1, and this release reads step 2: open it for writing once"):
        await PostgresStore.open(address, read_only=True)


async def test_many_that_open_a_new_database_at_once_make_its_tables_once(postgres: Callable[[], str]) -> None:
    from lessonbank._base.aio import gather

    address = postgres()
    stores = await gather([lambda: PostgresStore.open(address, partitions=2) for _ in range(6)], limit=6)
    secrets = {await get_setting(store, "receipt_secret") for store in stores}
    assert len(secrets) == 1
    for store in stores:
        await store.close()
