"""A bank file with a bit of everything in it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lessonbank.contracts.records import Recall
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import (
    MINE,
    added,
    attempt,
    experience,
    lesson,
    settlement,
    towards,
    trajectory,
)

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bank.db"


async def _filled(path: Path) -> SqliteStore:
    """A bank with a bit of everything."""
    store = await SqliteStore.open(path)
    runs = [trajectory() for _ in range(3)]
    await store.save_runs(runs, scope=MINE)
    known = [
        experience("Cancel the pending order", minute=1, attempts=[attempt(runs[0], "failure")]),
        experience("Exchange the blue boots", minute=2, lessons=(lesson(), lesson(retired=True))),
        experience("Book a flight to Oslo", minute=3, attempts=[attempt(runs[1], "unknown")]),
    ]
    await added(store, *known, along=[towards(n) for n in range(3)])
    await added(store, experience(scope="other"), scope="other", along=[towards(0)])
    receipt = Recall(scope=MINE, task="Cancel it")
    await store.save_recall(receipt)
    await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipt))
    await store.put_setting("embedder", "hashing")
    return store


@pytest.fixture
def filled() -> Callable[[Path], Awaitable[SqliteStore]]:
    """Fills the bank at a path, and leaves it open."""
    return _filled
