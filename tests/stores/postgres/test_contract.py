"""The store on PostgreSQL keeps every promise of the port."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Trajectory
from lessonbank.errors import UsageError
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing import CareContract, QueueContract, StoreContract
from lessonbank.testing.store_samples import MINE

pytestmark = pytest.mark.full


@pytest.mark.anyio
class TestPostgresStore(StoreContract, QueueContract, CareContract):
    @pytest.fixture(autouse=True)
    def _place(self, postgres_bank: Callable[..., str]) -> None:
        self.address = postgres_bank(2)

    async def make(self) -> Store:
        return await PostgresStore.open(self.address, partitions=2)

    async def lose_what_can_be_rebuilt(self, store: Store) -> None:
        with psycopg.connect(self.address) as raw:
            raw.execute("SELECT set_config('lessonbank.scope', '*', true)")
            for (scope,) in raw.execute("SELECT scope FROM lessonbank.scopes").fetchall():
                raw.execute("SELECT set_config('lessonbank.scope', %s, true)", (scope,))
                for table in ("vectors", "lessons", "attempts", "terms"):
                    raw.execute(f"DELETE FROM lessonbank.{table}".encode())
                raw.execute("UPDATE lessonbank.journal SET whole = '{}', part = '{}'")
                raw.execute("UPDATE lessonbank.scopes SET documents = 0, words = 0")

    async def test_an_id_that_no_index_takes_is_refused_for_good(self) -> None:
        async with self.opened() as store:
            long = "".join(chr(0x4E00 + n) for n in range(3000))
            with pytest.raises(UsageError, match="longer than PostgreSQL keeps"):
                await store.save_runs([Trajectory(id=long, task="t")], scope=MINE)
