"""A process that learns into a bank until it is killed, and says each id once it is kept."""

from __future__ import annotations

import asyncio
import sys

from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, attempt, experience, towards, trajectory


async def main(address: str) -> None:
    store = await PostgresStore.open(address, partitions=2)
    while True:
        run = trajectory()
        await store.save_runs([run], scope=MINE)
        new = experience(attempts=[attempt(run, "success")])
        await added(store, new, along=[towards(0)])
        print(new.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
