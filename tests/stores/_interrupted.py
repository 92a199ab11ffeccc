"""A script that begins one call on a copy of a bank again and again, and kills it at a different moment each time.

    python _interrupted.py FOLDER CALL ROUNDS

FOLDER holds `bank.db`, unless CALL is to make it. Each round leaves a folder of its own with what the kill left.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lessonbank.contracts.records import Rollback
from lessonbank.contracts.store_calls import pending_runs, purge_one
from lessonbank.stores.sqlite import SqliteStore, _erased_bytes
from lessonbank.testing.store_samples import MINE

Begin = Callable[[], object]


async def make(path: Path, begin: Begin) -> None:
    """The first opening of a bank."""
    begin()
    await SqliteStore.open(path)


async def roll_back(path: Path, begin: Begin) -> None:
    """To the tenth change."""
    store = await SqliteStore.open(path)
    begin()
    await store.apply([Rollback(to=10, reason="test")], scope=MINE, writer="tests")


async def purge(path: Path, begin: Begin) -> None:
    """Of the oldest run."""
    store = await SqliteStore.open(path)
    run = (await pending_runs(store, scope=MINE))[0]
    begin()
    await purge_one(store, "trajectory", run.id, scope=MINE, writer="tests", reason="asked to")


async def overwrite(path: Path, begin: Begin) -> None:
    """What the purge of the oldest run leaves, by a process of its own, which a kill of this one does not end."""
    _erased_bytes._SMALL = _erased_bytes._SHARE = 0
    plain = _erased_bytes._overwrite

    def begin_and_overwrite(*told: Any) -> bool:
        begin()
        return plain(*told)

    _erased_bytes._overwrite = begin_and_overwrite
    await purge(path, lambda: None)


async def rebuild(path: Path, begin: Begin) -> None:
    """Of everything that follows from the records."""
    store = await SqliteStore.open(path)
    begin()
    await store.rebuild()


CALLS: dict[str, Callable[[Path, Begin], Awaitable[None]]] = {
    "make": make,
    "roll_back": roll_back,
    "purge": purge,
    "overwrite": overwrite,
    "rebuild": rebuild,
}


def copied(folder: Path, name: str, /) -> Path:
    """A folder of its own with everything that was prepared; the bank's place in it."""
    place = folder / name
    place.mkdir()
    for file in folder.glob("*.*"):
        shutil.copy(file, place)
    return place / "bank.db"


def begun(call: Callable[[Path, Begin], Awaitable[None]], path: Path, /) -> int:
    """Another process, just before the call."""
    hear, say = os.pipe()
    pid = os.fork()
    if pid:
        os.close(say)
        os.read(hear, 1)
        os.close(hear)
        return pid
    code = 1
    try:
        asyncio.run(call(path, lambda: os.write(say, b".")))
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    """One round to learn how long it takes, then as many as were asked for, each cut a little later."""
    folder, call, rounds = Path(sys.argv[1]), CALLS[sys.argv[2]], int(sys.argv[3])
    pid, start = begun(call, copied(folder, "whole")), time.perf_counter()
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{sys.argv[2]} failed")
    taken = time.perf_counter() - start
    for number in range(rounds):
        pid = begun(call, copied(folder, f"round-{number}"))
        time.sleep(taken * (number + 0.5) / rounds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


main()
