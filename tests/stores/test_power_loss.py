"""What was acknowledged outlives a power cut, also one that loses or tears everything that was not synced."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from _power import images, noted

from lessonbank.bank.spool import Spool
from lessonbank.contracts.ports import RunFilter
from lessonbank.contracts.records import Experience
from lessonbank.contracts.store_calls import every_recall
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, collected

pytestmark = [
    pytest.mark.full,
    pytest.mark.anyio,
    pytest.mark.skipif(
        shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs a C compiler, and Linux"
    ),
]


async def everything(store: SqliteStore) -> dict[str, dict[str, Any]]:
    """The records of a bank by kind and id."""
    return {
        "experience": {one.id: one for one in await collected(store.scan(scope=MINE))},
        "recall": {one.id: one async for one in every_recall(store, scope=MINE)},
        "run": {one.trajectory.id: one.trajectory for one in await store.runs(RunFilter(limit=10_000), scope=MINE)},
    }


def spooled(place: Path) -> list[str]:
    """What waits, in its order."""
    spool, number, found = Spool(place / "runs.spool"), 0, list[str]()
    while spool.path.exists() and (one := spool.next(number)):
        number = one[0]
        assert one[1], "half of a run waits"
        found.append(one[1].runs[0].id)
    return found


def as_added(one: Experience) -> Experience:
    """An experience as it was added: that its lesson is retired is another change."""
    lessons = tuple(each.model_copy(update={"retired": False}) for each in one.lessons)
    return one.model_copy(update={"lessons": lessons})


async def trouble_of(place: Path, said: list[dict[str, Any]], last: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a bank lacks of what was acknowledged, and what it holds beside that is not whole."""
    ids = {what: [one["id"] for one in said if one["what"] == what] for what in WORDS}
    erased, erasing = set(ids["purged"]), set(ids["purging"])
    store, found = await SqliteStore.open(place / "bank.db"), list[str]()
    try:
        here = await everything(store)
        problems = (await store.verify()).problems
        if erasing > erased:  # a purge was under way: it can be finished
            await store.rebuild()
            problems = (await store.verify()).problems
    finally:
        await store.close()
    found += [f"verify: {one}" for one in problems]
    for kind in ("experience", "recall", "run"):
        found += [f"{kind} {id} is lost" for id in ids[kind] if id not in here[kind] and id not in erasing]
    found += [f"run {id} is back" for id in erased & here["run"].keys()]
    whole = {id: as_added(one) for id, one in last["experience"].items()}
    found += [f"{id} is not whole" for id, one in here["experience"].items() if whole.get(id) != as_added(one)]
    found += [f"{id} is not retired" for id in ids["retired"] if (e := here["experience"].get(id)) and e.active_lessons]
    waits, done = spooled(place), ids["handed"]
    found += [f"{id} waits no more" for id in ids["spooled"] if id not in {*waits, *ids["handing"]}]
    found += [f"{id} waits again" for id in waits if id in done]
    return found


WORDS = ("run", "experience", "recall", "retired", "purging", "purged", "spooled", "handing", "handed")


async def check(folder: Path, *, rounds: int, states: int) -> None:
    """Cut the power that often, and look."""
    steps = noted(Path(__file__).with_name("power_writer.py"), folder, str(rounds))
    store = await SqliteStore.open(folder / "place" / "bank.db")
    last = await everything(store)
    await store.close()
    acks, told = 0, list[str]()
    for place, said in images(steps, states, 36, folder):
        acks += len(said)
        told += [f"after {len(said)}: {one}" for one in await trouble_of(place, said, last)]
    print(f"{states} states of {len(steps)} steps, {acks} words of a writer: {len(told)} in trouble")
    assert not told, "\n".join(told[:40])


async def test_nothing_acknowledged_is_lost_with_the_power_in_forty_states(tmp_path: Path) -> None:
    await check(tmp_path, rounds=24, states=40)


@pytest.mark.release
async def test_nothing_acknowledged_is_lost_with_the_power_in_a_thousand_states(tmp_path: Path) -> None:
    await check(tmp_path, rounds=40, states=1000)
