"""A process that uses a bank and its spool, and says what it begins and what was acknowledged; see `_power`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lessonbank.bank.spool import Spool, Spooled
from lessonbank.contracts.records import Recall, Retire
from lessonbank.contracts.store_calls import purge_one
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience, towards, trajectory


async def main(folder: Path, rounds: int) -> None:
    """Add, receive, retire, purge and spool, one after the other."""
    acks, at = os.open(folder / "acks", os.O_CREAT | os.O_WRONLY), 0

    def say(what: str, **told: Any) -> None:
        nonlocal at
        at += os.pwrite(acks, json.dumps({"what": what, **told}).encode(), at)

    store, spool = await SqliteStore.open(folder / "bank.db"), Spool(folder / "runs.spool")
    for number in range(rounds):
        run = trajectory(f"Task {number}", answer="It was done in this way. " * 40)
        await store.save_runs([run], scope=MINE)
        say("run", id=run.id)
        new = experience(f"Task {number}: {'step ' * 200}", minute=number)
        await added(store, new, along=[towards(number % 8, tilt=number / 1000)])
        say("experience", id=new.id)
        receipt = Recall(scope=MINE, task=f"Task {number}")
        await store.save_recall(receipt)
        say("recall", id=receipt.id)
        if number % 5 == 1:
            await store.apply([Retire(lesson_ids=(new.lessons[0].id,), reason="no use")], scope=MINE, writer="tests")
            say("retired", id=new.id)
        if number % 10 == 3:
            say("purging", id=run.id)
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="tests", reason="asked to")
            say("purged", id=run.id)
        told = {"scope": MINE, "writer": None, "recall": None, "ended_at": datetime.now(UTC)}
        assert spool.put(Spooled.model_validate({"call": "submit", "runs": (run,), **told}))
        say("spooled", id=run.id)
        if number % 3 == 2 and (found := spool.next(0)) and found[1]:
            say("handing", id=found[1].runs[0].id)
            spool.done(found[0])
            say("handed", id=found[1].runs[0].id)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
