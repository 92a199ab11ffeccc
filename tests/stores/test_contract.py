"""Every store keeps every promise of the port."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessonbank.protocols import Store
from lessonbank.stores.memory import MemoryStore
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import StoreContract


@pytest.mark.anyio
class TestMemoryStore(StoreContract):
    async def make(self) -> Store:
        return MemoryStore()


@pytest.mark.anyio
class TestSqliteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "bank.db"

    async def make(self) -> Store:
        return await SqliteStore.open(self.path)
