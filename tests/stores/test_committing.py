"""Writes that share a commit share nothing else: not their failures, not their cancelling, not their waiting."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from _trouble import opened

from lessonbank.errors import Conflict, StoreUnavailable
from lessonbank.stores.sqlite._committing import Committer
from lessonbank.testing._store_samples import MINE, added, attempt, collected, experience, trajectory
from lessonbank.types import Add

Work = Callable[[sqlite3.Connection], Any]


class Desk:
    """A committer on a small database, which can be held up: until it may go on, everything waits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.05)
        self.connection.execute("CREATE TABLE kept (name UNIQUE)")
        self.turns = 0
        self.committer = Committer(self.turn, patience=0.05)

    @contextmanager
    def turn(self) -> Generator[sqlite3.Connection]:
        """The connection."""
        self.turns += 1
        try:
            yield self.connection
        except sqlite3.Error as error:
            raise StoreUnavailable(str(error)) from error

    @contextmanager
    def held_up(self) -> Generator[None]:
        """Whatever is handed in waits until the end of this."""
        begun, go_on = threading.Event(), threading.Event()

        def hold(connection: sqlite3.Connection) -> None:
            begun.set()
            go_on.wait(10)
            self.turns = 0

        held = self.committer.submit(hold, bare=True)
        begun.wait(10)
        try:
            yield
        finally:
            go_on.set()
            held.result(10)

    def hand_in(self, *works: Work) -> list[Future[Any]]:
        """All of these, before the first of them is done."""
        with self.held_up():
            return [self.committer.submit(work) for work in works]

    def kept(self) -> set[str]:
        """What another connection sees."""
        other = sqlite3.connect(self.path)
        names = {name for (name,) in other.execute("SELECT name FROM kept")}
        other.close()
        return names


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    made = Desk(tmp_path / "desk.db")
    yield made
    made.committer.stop()
    made.connection.close()


def keep(name: str) -> Work:
    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO kept VALUES (?)", (name,))
        return name

    return work


def fail(name: str, error: Exception, *, end: bool = False) -> Work:
    """Writes, and fails; with `end`, after its transaction was ended, as SQLite does when a disk is full."""

    def work(connection: sqlite3.Connection) -> None:
        keep(name)(connection)
        if end:
            connection.execute("ROLLBACK")
        raise error

    return work


def outcomes(futures: Sequence[Future[Any]]) -> list[Any]:
    return [future.exception(10) or future.result() for future in futures]


def test_writes_that_wait_share_one_commit(desk: Desk) -> None:
    futures = desk.hand_in(*(keep(str(n)) for n in range(50)))
    assert outcomes(futures) == [str(n) for n in range(50)]
    assert desk.turns == 1
    assert len(desk.kept()) == 50


def test_more_than_a_commit_holds_go_into_the_next(desk: Desk) -> None:
    outcomes(desk.hand_in(*(keep(str(n)) for n in range(150))))
    assert desk.turns == 3
    assert len(desk.kept()) == 150


@pytest.mark.parametrize(
    "wrong",
    [
        fail("half", Conflict("no")),
        fail("half", MemoryError()),
        fail("half", sqlite3.OperationalError("disk I/O error")),
        fail("half", sqlite3.OperationalError("database or disk is full"), end=True),
        fail("half", MemoryError(), end=True),
        keep("one"),
    ],
    ids=["refused", "no memory", "error", "full", "no memory, ended", "constraint"],
)
def test_a_write_that_fails_takes_nothing_with_it(desk: Desk, wrong: Work) -> None:
    one, bad, other = outcomes(desk.hand_in(keep("one"), wrong, keep("other")))
    assert (one, other) == ("one", "other")
    assert isinstance(bad, Exception)
    assert desk.kept() == {"one", "other"}
    assert not desk.connection.in_transaction


def test_a_write_sees_those_before_it_and_not_those_that_failed(desk: Desk) -> None:
    def look(connection: sqlite3.Connection) -> list[str]:
        return [name for (name,) in connection.execute("SELECT name FROM kept ORDER BY name")]

    seen = outcomes(desk.hand_in(keep("a"), fail("b", Conflict("no")), look, keep("c"), look))
    assert seen[2] == ["a"]
    assert seen[4] == ["a", "c"]


def test_a_write_cancelled_while_it_waits_is_not_done(desk: Desk) -> None:
    with desk.held_up():
        futures = [desk.committer.submit(keep(str(n))) for n in range(3)]
        assert futures[1].cancel()
    assert [future.result(10) for future in (futures[0], futures[2])] == ["0", "2"]
    assert desk.kept() == {"0", "2"}


def test_what_goes_alone_goes_alone_and_in_its_turn(desk: Desk) -> None:
    def look(connection: sqlite3.Connection) -> tuple[bool, set[str]]:
        connection.execute("VACUUM")
        return connection.in_transaction, desk.kept()

    with desk.held_up():
        before = desk.committer.submit(keep("before"))
        alone = [desk.committer.submit(look, bare=True) for _ in range(2)]
        after = desk.committer.submit(keep("after"))
    assert outcomes([before, *alone, after]) == [
        "before",
        (False, {"before"}),
        (False, {"before"}),
        "after",
    ]


def test_when_somebody_else_holds_the_lock_all_fail_after_one_wait(desk: Desk) -> None:
    other = sqlite3.connect(desk.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    futures = desk.hand_in(*(keep(str(n)) for n in range(20)))
    assert all("locked" in str(outcome) for outcome in outcomes(futures))
    assert desk.turns == 1
    other.execute("ROLLBACK")
    other.close()
    assert desk.committer.submit(keep("later")).result(10) == "later"


def test_stopping_waits_for_what_was_handed_in_and_takes_no_more(desk: Desk) -> None:
    stopping = threading.Thread(target=desk.committer.stop)
    with desk.held_up():
        futures = [desk.committer.submit(keep(str(n))) for n in range(5)]
        stopping.start()
    stopping.join(10)
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError):
        desk.committer.submit(keep("late"))
    assert desk.kept() == {str(n) for n in range(5)}


def test_where_no_thread_can_be_started_nothing_waits_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            desk.committer.submit(keep("never"))
    assert desk.committer.submit(keep("later")).result(10) == "later"
    assert desk.kept() == {"later"}


@pytest.mark.anyio
async def test_a_store_that_gets_no_thread_says_so_and_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(StoreUnavailable, match="no thread can be started"):
                await added(store, experience())
        await added(store, experience())
        assert (await store.counts(scope=MINE)).experiences == 1


@pytest.mark.anyio
async def test_of_writes_decided_upon_the_same_state_one_is_done(path: Path) -> None:
    run = trajectory()
    async with opened(path) as store:
        await store.keep([run], scope=MINE)
        answers = await asyncio.gather(
            *(
                store.apply(
                    [Add(experience=experience(attempts=[attempt(run, "success")]))],
                    scope=MINE,
                    writer="tests",
                    unlearned=[run.id],
                )
                for _ in range(20)
            ),
            return_exceptions=True,
        )
        assert [type(a) for a in answers].count(Conflict) == 19
        assert (await store.counts(scope=MINE)).experiences == 1
        assert await store.verify() == []


@pytest.mark.anyio
async def test_of_cancelled_writes_each_is_whole_or_absent(path: Path) -> None:
    async with opened(path) as store:
        known = [experience(minute=n) for n in range(60)]
        tasks = [asyncio.create_task(added(store, e)) for e in known]
        for _ in range(3):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        there = {e.id for e in await collected(store.scan(scope=MINE))}
        done = {e.id for e, answer in zip(known, answers, strict=True) if answer is None}
        assert {e.id for e in known[1::2]} <= done <= there
        assert [e.sequence for e in await collected(store.journal(scope=MINE))] == list(range(1, len(there) + 1))
        assert await store.verify() == []


@pytest.mark.anyio
async def test_a_process_may_end_while_writes_wait(path: Path) -> None:
    script = """
import asyncio, sys
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing._store_samples import added, experience

async def main():
    store = await SqliteStore.open(sys.argv[1])
    first = experience()
    await added(store, first)
    print(first.id)
    for _ in range(300):
        store._database.writing(lambda file: file.execute("SELECT 1"))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    async with opened(path) as store:
        assert [e.id for e in await collected(store.scan(scope=MINE))] == done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.anyio
async def test_writes_that_wait_through_a_fork_are_done_once_and_by_the_parent(path: Path) -> None:
    async with opened(path) as store:
        known = [experience(minute=n) for n in range(40)]
        waiting = [asyncio.create_task(added(store, e)) for e in known]
        await asyncio.sleep(0)
        child = os.fork()
        if not child:
            # What waited is the parent's; the child begins with nothing.
            try:
                os._exit(0 if store._database.writing(lambda file: "done").result(20) == "done" else 1)
            finally:
                os._exit(2)
        await asyncio.gather(*waiting)
        assert os.waitpid(child, 0)[1] == 0
        assert await collected(store.scan(scope=MINE)) == known
        assert await store.verify() == []
