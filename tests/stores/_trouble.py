"""What the tests of trouble share: every kind of call, what an error must look like, and another process."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records import Recall
from lessonbank.contracts.store_calls import count_records, every_recall, get_setting, list_scopes, pending_runs
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, SPACE, added, collected, experience, towards, trajectory

Fill = Callable[[Path], Awaitable[SqliteStore]]
Call = Callable[[SqliteStore], Awaitable[Any]]

COMPANION = Path(__file__).with_name("_companion.py")
BIG = f"{random.Random(0).getrandbits(4_000_000):x}"
"""A megabyte that do not compress well."""


def sentence(error: pytest.ExceptionInfo[Any] | BaseException) -> str:
    """What the error says, in one line that fits a terminal."""
    text = str(error.value if isinstance(error, pytest.ExceptionInfo) else error)
    assert text
    assert "\n" not in text
    assert len(text) < 300
    return text


LOOKS: dict[str, Call] = {
    "scan": lambda store: collected(store.scan(scope=MINE)),
    "journal": lambda store: collected(store.journal(scope=MINE)),
    "receipts": lambda store: collected(every_recall(store, scope=MINE)),
    "pending": lambda store: pending_runs(store, scope=MINE),
    "counts": lambda store: count_records(store, scope=MINE),
    "scopes": lambda store: list_scopes(store),
    "setting": lambda store: get_setting(store, "embedder"),
    "search": lambda store: store.search("cancel the order or book boots", scope=MINE, limit=9),
    "nearest": lambda store: store.nearest(towards(0, tilt=0.4), scope=MINE, space=SPACE, limit=9),
    "unindexed": lambda store: store.unindexed(scope=MINE, space="another", limit=9),
}

TOUCHES: dict[str, Call] = {
    **LOOKS,
    "keep": lambda store: store.save_runs([trajectory()], scope=MINE),
    "apply": lambda store: added(store, experience()),
    "record": lambda store: store.save_recall(Recall(scope=MINE, task="t")),
    "set_setting": lambda store: store.put_setting("embedder", "other"),
    "verify": lambda store: store.verify(),
    "rebuild": lambda store: store.rebuild(),
}
"""Every kind of call."""


async def looks(store: SqliteStore) -> dict[str, Any]:
    """What every kind of reading gives."""
    return {name: await look(store) for name, look in LOOKS.items()}


async def right_or_refused(store: SqliteStore, before: dict[str, Any]) -> set[str]:
    """Look at everything; nothing may differ from what is known to be right. Which looks were refused."""
    refused: set[str] = set()
    for name, look in LOOKS.items():
        try:
            assert await look(store) == before[name], name
        except StoreUnavailable as error:
            sentence(error)
            refused.add(name)
    return refused


@asynccontextmanager
async def opened(path: Path, **options: float) -> AsyncGenerator[SqliteStore]:
    """A store that is closed at the end."""
    store = await SqliteStore.open(path, **options)
    try:
        yield store
    finally:
        await store.close()


class Companion:
    """Another process with the same bank open."""

    def __init__(self, path: Path, *, busy_timeout: float = 30.0) -> None:
        command = [sys.executable, str(COMPANION), str(path), str(busy_timeout)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard()

    def heard(self) -> Any:
        """The answer to the oldest order without one."""
        assert self.process.stdout
        assert self.answered(within=60), "it hangs"
        return json.loads(self.process.stdout.readline())

    def tell(self, order: str, number: int = 1) -> None:
        """Give an order."""
        assert self.process.stdin
        self.process.stdin.write(f"{order} {number}\n")
        self.process.stdin.flush()

    def ask(self, order: str, number: int = 1) -> Any:
        """Give an order and wait for the answer."""
        self.tell(order, number)
        return self.heard()

    def answered(self, *, within: float = 0) -> bool:
        """Whether an answer can be heard."""
        return bool(select.select([self.process.stdout], [], [], within)[0])

    def end(self) -> None:
        """Kill it, whatever it does."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe else None


@contextmanager
def companion(path: Path, *, busy_timeout: float = 30.0) -> Generator[Companion]:
    """Another process, until the end of the test."""
    other = Companion(path, busy_timeout=busy_timeout)
    try:
        yield other
    finally:
        other.end()


@contextmanager
def quick_folder() -> Generator[Path]:
    """A folder in memory, where there is one with room: it outlives a killed process as a disk does, and does not
    make a test wait for what others write."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 29
    with tempfile.TemporaryDirectory(dir=memory if roomy else None) as folder:
        yield Path(folder)


def files(path: Path) -> list[Path]:
    """The bank and what SQLite keeps beside it."""
    return sorted(path.parent.glob(f"{path.name}*"))
