"""Another process that has the same bank open, and does what it is told, one line of JSON for each line of orders."""

from __future__ import annotations

import asyncio
import json
import sys

from lessonbank.errors import LessonbankError
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, collected, experience, lesson


async def obey(store: SqliteStore, order: str, number: int) -> list[str]:
    """The ids of what was added, or of everything there is."""
    if order == "look":
        return [e.id for e in await collected(store.scan(scope=MINE))]
    new = [experience(lessons=[lesson() for _ in range(20)] if number > 1 else None) for _ in range(number)]
    await added(store, *new)
    return [e.id for e in new]


async def main(path: str, busy_timeout: float) -> None:
    """Say that the bank is open, then obey until there are no more orders."""
    store = await SqliteStore.open(path, busy_timeout=busy_timeout)
    print(json.dumps(await obey(store, "look", 0)), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        order, number = line.split()
        try:
            answer: object = await obey(store, order, int(number))
        except LessonbankError as error:
            answer = {"error": error.code, "says": str(error)}
        print(json.dumps(answer), flush=True)


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
