"""Every store keeps every promise of the port."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lessonbank.contracts.ports import Store
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import CareContract, QueueContract, StoreContract


@pytest.mark.full
@pytest.mark.anyio
class TestInMemory(QueueContract, CareContract):
    """Its records and index are held to the contract in test_two_ports.py."""

    async def make(self) -> Store:
        return SqliteStore.in_memory()


@pytest.mark.anyio
class TestSqliteStore(StoreContract, QueueContract, CareContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "bank.db"

    async def make(self) -> Store:
        return await SqliteStore.open(self.path)

    async def lose_what_can_be_rebuilt(self, store: Store) -> None:
        raw = sqlite3.connect(self.path, isolation_level=None)
        for table in ("vectors", "lessons", "attempts"):
            raw.execute(f"DELETE FROM {table}")
        raw.execute("UPDATE journal SET whole = NULL, part = NULL")
        raw.execute("INSERT INTO word_index (word_index) VALUES ('delete-all')")
        raw.execute("UPDATE indexed SET upto = (SELECT max(number) FROM experiences)")
        raw.execute("UPDATE scopes SET documents = 0, words = 0")
        raw.execute("UPDATE spaces SET epoch = epoch + 1")
        raw.close()
