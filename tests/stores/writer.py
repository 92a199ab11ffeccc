"""A process that adds experiences and says which were acknowledged; run by the tests of the file store."""

from __future__ import annotations

import asyncio
import sys

from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import added, experience, towards


async def main(path: str, name: str, count: int) -> None:
    """Add one after another."""
    store = await SqliteStore.open(path)
    for number in range(count):
        new = experience(f"Task {number} of {name}", minute=number)
        await added(store, new, along=[towards(0)])
        print(new.id, flush=True)
    await store.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
