"""A process may fork whatever its bank is doing: neither side is ever told anything wrong."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from _trouble import opened

from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._database import Database
from lessonbank.stores.sqlite._read import SCAN
from lessonbank.stores.sqlite._wal_identity import WalIdentity
from lessonbank.testing.store_samples import MINE, SPACE, added, collected, experience, towards

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


class Interrupted(WalIdentity):
    """A look at a file, while which somebody takes its log away, or makes one."""

    def __init__(self, path: Path, meanwhile: Callable[[], object]) -> None:
        super().__init__(path)
        self.meanwhile = meanwhile

    def _checked(self) -> int | None:
        count = super()._checked()
        self.meanwhile()
        return count


async def test_a_log_that_comes_or_goes_while_its_file_is_looked_at_is_not_overlooked(path: Path) -> None:
    async with opened(path) as store:
        await filled(store)
        log = path.with_name(f"{path.name}-wal")
        held = log.read_bytes()
        assert Interrupted(path, lambda: None).check() == (log.stat().st_dev, log.stat().st_ino)
        assert Interrupted(path, log.unlink).check() is None
        made = Interrupted(path, lambda: log.write_bytes(held)).check()
        assert made == (log.stat().st_dev, log.stat().st_ino)
        log.unlink()


class Child:
    """A forked process that says one thing, waits to be told to go on, and says another."""

    def __init__(self, store: SqliteStore, first: Callable[[Database], object], then: Callable[[], object]) -> None:
        said, self._say = os.pipe()
        self._told, tell = os.pipe()
        self._pipes = (said, self._say, self._told, tell)
        self._said, self._tell = said, tell
        self.process = os.fork()
        if not self.process:
            self._live(store, first, then)

    def _live(self, store: SqliteStore, first: Callable[[Database], object], then: Callable[[], object]) -> None:
        try:
            os.write(self._say, str(first(store._database)).encode())
            os.read(self._told, 1)
            os.write(self._say, str(then()).encode())
        except BaseException as error:  # noqa: BLE001 - the parent compares it
            os.write(self._say, repr(error).encode())
        finally:
            os._exit(0)

    def heard(self) -> str:
        """What it said."""
        return os.read(self._said, 10_000).decode()

    def go_on(self) -> str:
        """What it says after it was told to go on, and ended."""
        os.write(self._tell, b"!")
        said = self.heard()
        os.waitpid(self.process, 0)
        for pipe in self._pipes:
            os.close(pipe)
        return said


async def filled(store: SqliteStore) -> None:
    await added(store, *[experience(f"Task {n}", minute=n) for n in range(500)])


async def test_a_child_holds_no_file_open_of_a_bank_that_was_idle(path: Path) -> None:
    """SQLite would give up the locks of the process that opened it, or take its log away."""
    async with opened(path) as store:
        await filled(store)
        names = {path.name, f"{path.name}-wal", f"{path.name}-shm"}
        whose = [(file.stat().st_dev, file.stat().st_ino) for file in map(path.with_name, names)]

        def held(_: Database) -> int:
            return sum(identity_of(number) in whose for number in range(256))

        assert held(store._database) > 0
        child = Child(store, held, lambda: "ended")
        assert (child.heard(), child.go_on()) == ("0", "ended")


def identity_of(number: int) -> tuple[int, int] | None:
    """What identifies the file that this process has open under a number."""
    try:
        known = os.fstat(number)
    except OSError:
        return None
    return known.st_dev, known.st_ino


async def test_a_snapshot_of_a_child_is_respected_though_its_parent_was_reading(path: Path) -> None:
    async with opened(path) as store:
        await filled(store)
        ours = store.scan(scope=MINE)
        await anext(ours)
        held: list[object] = []

        def look(database: Database) -> int:
            held.append(stream := database.stream(SCAN, (MINE,)))
            return len(stream.take(5))

        child = Child(store, look, lambda: len(held[0].take(10**6)))  # type: ignore[attr-defined]
        assert child.heard() == "5"
        await ours.aclose()
        await added(store, experience())
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0.05)) as raw:
            busy, *_ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 1, "what the child reads must not be overwritten"
        assert child.go_on() == "495"


async def test_a_reading_goes_on_on_both_sides_of_a_fork(path: Path) -> None:
    async with opened(path) as store:
        await filled(store)
        stream = store._database.stream(SCAN, (MINE,))
        first = stream.take(100)
        child = Child(store, lambda _: len(stream.take(150)), lambda: len(stream.take(10**6)))
        assert child.heard() == "150"
        await added(store, experience())
        assert child.go_on() == "250"
        assert len(first) + len(stream.take(10**6)) == 500
        store._database.done(stream)


async def test_a_child_that_is_forked_between_searches_under_way_searches_too(path: Path) -> None:
    async with opened(path) as store:
        await added(store, *[experience(f"Task {n}", minute=n) for n in range(50)], along=[towards(0)] * 50)
        find = partial(store._matrices.nearest, scope=MINE, space=SPACE, limit=3, lessons=False)
        searches = [store._database.read(find, towards(0)) for _ in range(20)]
        child = Child(store, lambda database: len(database.read(find, towards(0)).result(20).matches), lambda: "ended")
        assert (child.heard(), child.go_on()) == ("3", "ended")
        assert [len(search.result(20).matches) for search in searches] == [3] * 20


@pytest.mark.full
async def test_a_child_of_a_busy_parent_refuses_instead_of_guessing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lessonbank.stores.sqlite._forks.PATIENCE", 0.05)
    async with opened(path) as store:
        await filled(store)
        begun, end = threading.Event(), threading.Event()

        def long(connection: sqlite3.Connection) -> int:
            begun.set()
            end.wait(60)
            return int(connection.execute("SELECT count(*) FROM experiences").fetchone()[0])

        writing = store._database.write(long)
        begun.wait(60)

        def refused(database: Database) -> str:
            with pytest.raises(StoreUnavailable, match="forked while its parent was busy"):
                database.write(long).result(20)
            with pytest.raises(StoreUnavailable, match="forked while its parent was busy"):
                database.read(long).result(20)
            return "refused"

        child = Child(store, refused, lambda: "gone")
        assert child.heard() == "refused"
        end.set()
        assert writing.result(20) == 500
        assert child.go_on() == "gone"
        assert len(await collected(store.scan(scope=MINE))) == 500
        assert (await store.verify()).problems == []
