"""A bank moves from a file into a database and back, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.ports import LessonFilter, RunFilter, Store
from lessonbank.contracts.records import Rollback
from lessonbank.contracts.store_calls import (
    care_of,
    count_records,
    every_recall,
    list_scopes,
    purge_one,
    queue_of,
)
from lessonbank.errors import Conflict, UsageError
from lessonbank.stores._copying import Row, Table, copy_bank
from lessonbank.stores.postgres import PostgresStore
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_purging import lived_in
from lessonbank.testing.store_samples import MINE, SPACE, THEIRS, added, collected, experience, towards, trajectory

pytestmark = [pytest.mark.full, pytest.mark.anyio]


async def _fill(store: Store) -> None:
    """Two scopes with everything a bank can hold: history, a purge, what is rolled back, what waits and what failed."""
    run, *_ = await lived_in(store)
    await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    away = experience("Exchange the boots", minute=4)
    await added(store, experience("Cancel the flight", minute=4), away, along=[towards(3), towards(4)])
    last = [entry.sequence async for entry in store.journal(scope=MINE)][-1]
    await store.apply([Rollback(to=last - 1, reason="test")], scope=MINE, writer="bob")
    together = [trajectory(), trajectory()]
    await store.save_runs(together, scope=THEIRS, wait=0.0)
    await queue_of(store).claim(worker="w", limit=1, seconds=60.0)
    await queue_of(store).release(together[0].id, scope=THEIRS, worker="w", error="no model \0", wait=None)
    await added(store, experience(scope=THEIRS), scope=THEIRS, along=[towards(0)])
    await store.put_setting("embedder", "hashing")


async def _all_of(store: Store) -> dict[str, Any]:
    told: dict[str, Any] = {"settings": await store.settings(""), "scopes": await list_scopes(store)}
    for scope in (MINE, THEIRS):
        told[scope] = [
            await collected(store.scan(scope=scope)),
            await collected(store.journal(scope=scope)),
            await collected(every_recall(store, scope=scope)),
            await store.runs(RunFilter(), scope=scope),
            await store.lessons(LessonFilter(retired=True), scope=scope),
            await count_records(store, scope=scope),
            await queue_of(store).queue(scope=scope),
            await store.search("cancel the order or the boots", scope=scope, limit=99),
            [
                (m.experience, m.lesson_id)
                for m in (await store.nearest(towards(0), scope=scope, space=SPACE, limit=99)).matches
            ],
            list((await care_of(store).verify()).problems),
        ]
    return told


async def test_a_bank_goes_into_a_database_and_back_unchanged(
    postgres_bank: Callable[..., str], tmp_path: Path
) -> None:
    source, back = await SqliteStore.open(tmp_path / "bank.db"), await SqliteStore.open(tmp_path / "back.db")
    database = await PostgresStore.open(postgres_bank(2), partitions=2)
    try:
        await _fill(source)
        wanted = await _all_of(source)
        assert wanted[MINE][-1] == []
        await copy_bank(source, database, name="bank")
        assert await _all_of(database) == wanted
        await copy_bank(database, back, name="bank")
        assert await _all_of(back) == wanted
        for store in (source, database, back):
            await store.apply([Rollback(to=0, reason="test")], scope=MINE, writer="tests")
            last = [entry.sequence async for entry in store.journal(scope=MINE)][-1]
            await store.apply([Rollback(to=last - 1, reason="test")], scope=MINE, writer="tests")
        assert await collected(database.scan(scope=MINE)) == await collected(source.scan(scope=MINE)) == wanted[MINE][0]
        assert await collected(back.scan(scope=MINE)) == wanted[MINE][0]
    finally:
        for store in (source, database, back):
            await store.close()


class _Broken:
    """A store that fails in the middle of a copy."""

    def __init__(self, store: PostgresStore | SqliteStore, most: int) -> None:
        self._store, self._most = store, most
        self.written: list[Table] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        await self._store.write_rows(table, rows, scope=scope)
        self.written.append(table)
        if len(self.written) == self._most:
            raise ConnectionError("the cable was cut")


@pytest.mark.parametrize("back", [False, True], ids=["into a database", "into a file"])
async def test_a_copy_that_was_interrupted_goes_on_where_it_was(postgres_bank: Callable[..., str], back: bool) -> None:
    file, database = SqliteStore.in_memory(), await PostgresStore.open(postgres_bank(2), partitions=2)
    source: Any = database if back else file
    target: Any = file if back else database
    try:
        if back:
            other = SqliteStore.in_memory()
            await _fill(other)
            await copy_bank(other, database, name="bank")
            await other.close()
        else:
            await _fill(source)
        for most in (3, 1, 2):
            cut: Any = _Broken(target, most)
            with pytest.raises(ConnectionError):
                await copy_bank(source, cut, name="bank")
        whole: Any = _Broken(target, 99)
        told: list[tuple[str, int]] = []
        rows = await copy_bank(source, whole, name="bank", progress=lambda scope, done: told.append((scope, done)))
        assert rows == sum(dict(told).values())
        assert "journal" not in whole.written[:1], "what was copied before is not copied again"
        assert await _all_of(target) == await _all_of(source)
    finally:
        await file.close()
        await database.close()


async def test_a_bank_that_holds_something_is_not_written_over(postgres_bank: Callable[..., str]) -> None:
    source, database = SqliteStore.in_memory(), await PostgresStore.open(postgres_bank(2), partitions=2)
    try:
        await added(source, experience())
        await added(database, experience())
        with pytest.raises(UsageError, match="holds something already"):
            await copy_bank(source, database, name="bank")
    finally:
        await source.close()
        await database.close()


async def test_a_bank_that_is_written_to_meanwhile_is_not_called_a_copy(postgres_bank: Callable[..., str]) -> None:
    source, database = SqliteStore.in_memory(), await PostgresStore.open(postgres_bank(2), partitions=2)

    class Busy(_Broken):
        async def finish_copy(self, *, scope: str) -> None:
            await self._store.finish_copy(scope=scope)
            await added(source, experience())

    try:
        await added(source, experience())
        busy: Any = Busy(database, 99)
        with pytest.raises(Conflict, match="was written to while it was copied"):
            await copy_bank(source, busy, name="bank")
    finally:
        await source.close()
        await database.close()


def test_the_command_copies_a_bank_and_says_how_much(postgres: Callable[[], str], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from lessonbank.cli import app

    file, address = tmp_path / "bank.db", postgres()
    with lessonbank.connect(file, scope="acme", embedder="lexical", evidence=0.0) as bank:
        bank.learn(lessonbank.Trajectory(task="Cancel it", answer="done", error="locked"), outcome="failure")
        counts = bank.admin.counts()
    done = CliRunner().invoke(app, ["backup", address, "--bank", str(file)])
    assert (done.exit_code, done.stdout[:6]) == (0, "copied")
    with lessonbank.connect(address, scope="acme", evidence=0.0) as bank:
        assert bank.admin.counts() == counts
    told = CliRunner().invoke(app, ["doctor", "--bank", address, "--scope", "acme"])
    assert told.exit_code == 0
    assert "row-level security binds it" in told.stdout
    assert CliRunner().invoke(app, ["backup", address, "--bank", str(tmp_path / "none.db")]).exit_code == 2
