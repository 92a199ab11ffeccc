"""Whatever is wrong with a table is noticed, and what follows from the records is made anew."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from _trouble import opened

from lessonbank.contracts.records import Recall, Rejudge, Replace, Retire, Rollback, Verdict
from lessonbank.contracts.store_calls import count_records, every_recall, pending_runs, settled_runs, settlement_of
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_rewinding import present, wind
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    THEIRS,
    added,
    attempt,
    collected,
    experience,
    lesson,
    settlement,
    towards,
    trajectory,
)

pytestmark = pytest.mark.anyio

RUNS = [trajectory().model_copy(update={"id": f"run {n}"}) for n in range(9)]
BACK = 8
"""A moment that mended banks are taken back to."""

MENDED = {
    "lessons": "DELETE FROM lessons",
    "one lesson": "DELETE FROM lessons WHERE id = (SELECT min(id) FROM lessons)",
    "places of lessons": "UPDATE lessons SET place = place + 1",
    "retired lessons": "UPDATE lessons SET retired = 1 - retired",
    "owners of lessons": "UPDATE lessons SET experience = 1",
    "attempts": "DELETE FROM attempts",
    "waiting attempts": "UPDATE attempts SET waiting = 1 - waiting",
    "what may be shown": "UPDATE experiences SET active = 0",
    "times": "UPDATE experiences SET created_at = 5",
    "lengths": "UPDATE experiences SET words = words + 1",
    "ids": "UPDATE experiences SET id = 'x' || number",
    "tasks": "DELETE FROM tasks",
    "texts of tasks": "UPDATE tasks SET task = 'nonsense'",
    "whole entries": "UPDATE journal SET whole = NULL",
    "partial entries": "UPDATE journal SET part = NULL",
    "kinds of entries": "UPDATE journal SET kind = 'add' WHERE kind = 'rollback'",
    "sums": "UPDATE scopes SET documents = 0",
    "pending marks": "UPDATE trajectories SET pending = 1 - pending",
    "settlements": "DELETE FROM settlements",
    "entries of settlements": "UPDATE settlements SET entry = entry - 1",
    "words": "INSERT INTO word_index (word_index) VALUES ('delete-all')",
    "a length in the index": "INSERT INTO word_index (rowid, words) VALUES (4096 + 9, '1xorder')",
    "words of lessons": "INSERT INTO lesson_index (lesson_index) VALUES ('delete-all')",
    "words twice": "UPDATE indexed SET upto = 0",
    "how far words go": "DELETE FROM indexed",
}
"""Damage to what follows from the records: a rebuild undoes it."""

VECTORS = {
    "a short row": "UPDATE vectors SET vector = x'00'",
    "a row of nothing": "UPDATE vectors SET key = key + 40960000",
    "a row of no lesson": "UPDATE vectors SET key = key + 7",
    "no space": "DELETE FROM spaces",
    "no dimensions": "UPDATE spaces SET dimensions = NULL",
}
"""Damage to vectors: a rebuild drops them, so that they can be made again."""

LOST = {
    "an experience": "DELETE FROM experiences WHERE number = 2",
    "scope of an experience": "UPDATE experiences SET scope = 2 WHERE number = 1",
    "which entry wrote it": "UPDATE experiences SET entry = entry + 1",
    "an entry cut off": "UPDATE journal SET entry = substr(entry, 1, 20) WHERE kind = 'retire'",
    "an entry gone": "DELETE FROM journal WHERE kind = 'retire'",
    "the last entry": "DELETE FROM journal WHERE number = (SELECT max(number) FROM journal)",
    "a sequence": "UPDATE scopes SET sequence = sequence - 1",
    "names of scopes": "UPDATE scopes SET name = 'z' || name",
    "a run cut off": "UPDATE trajectories SET record = substr(record, 1, 20)",
    "ids of runs": "UPDATE trajectories SET id = 'x' || number",
    "a record without its checksum": "UPDATE experiences SET record_sum = NULL WHERE record IS NOT NULL",
    "a record out of nothing": "UPDATE experiences SET record = 'x' WHERE record IS NULL",
    "a receipt cut off": "UPDATE recalls SET record = substr(record, 1, 20)",
    "ids of receipts": "UPDATE recalls SET id = 'x' || number",
    "receipts": "DELETE FROM recalls",
}
"""Damage to the records themselves: only a backup helps, and no rebuild makes it look sound."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with something in every table."""
    path = tmp_path_factory.mktemp("sound") / "bank.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lessonbank.stores.sqlite._derived.TAIL", 3)
        asyncio.run(fill(path))
    return path


async def fill(path: Path) -> None:
    async with opened(path) as store:
        await store.save_runs(RUNS[:3], scope=MINE)
        known = [
            experience(
                f"Cancel order {n}",
                minute=n,
                lessons=(lesson(), lesson("b", retired=n % 2 == 0)),
                attempts=[attempt(RUNS[n], "success" if n % 3 else "unknown")],
            )
            for n in range(7)
        ]
        await added(store, *known, along=[towards(n) for n in range(7)])
        await store.index({i.id: towards(0) for e in known for i in e.lessons}, scope=MINE, space="lessons")
        theirs = experience(scope=THEIRS, attempts=[attempt(RUNS[8], "failure")])
        await added(store, theirs, scope=THEIRS, along=[towards(1)])
        late = Retire(lesson_ids=(known[1].lessons[0].id, known[1].lessons[1].id), reason="test")
        verdict = Rejudge(experience_id=known[2].id, trajectory_id=RUNS[2].id, verdict=Verdict(outcome="failure"))
        await store.apply([late], scope=MINE, writer="tests")
        await store.apply([verdict], scope=MINE, writer="tests")
        await added(store, experience("late"), along=[towards(2)])
        await wind(store, 9)
        await added(store, experience("later"), along=[towards(3)])
        receipt = Recall(scope=MINE, task="t")
        await store.save_recall(receipt)
        await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipt))


def damaged(sound: Path, path: Path, sql: str) -> None:
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        assert raw.execute(sql).rowcount


async def seen(store: SqliteStore) -> list[Any]:
    found: list[Any] = []
    for scope in (MINE, THEIRS):
        receipts = await collected(every_recall(store, scope=scope))
        found += [
            await present(store, scope=scope),
            await collected(store.journal(scope=scope)),
            receipts,
            [await settlement_of(store, receipt.id, scope=scope) for receipt in receipts],
            await pending_runs(store, scope=scope),
            await count_records(store, scope=scope),
            await settled_runs(store, [run.id for run in RUNS], scope=scope),
            list(await store.unindexed(scope=scope, space=SPACE, limit=99)),
            list((await store.nearest(towards(0), scope=scope, space="lessons", limit=99)).matches),
        ]
    return found


async def test_a_sound_bank_has_no_problems(sound: Path) -> None:
    async with opened(sound) as store:
        assert (await store.verify()).problems == []


@pytest.mark.full
@pytest.mark.parametrize("what", MENDED)
async def test_what_follows_from_the_records_is_checked_and_made_anew(sound: Path, path: Path, what: str) -> None:
    shutil.copy(sound, path)
    async with opened(path) as store:
        before = await seen(store)
        await wind(store, BACK)
        then = await present(store)
    damaged(sound, path, MENDED[what])
    async with opened(path) as store:
        assert (await store.verify()).problems
        await store.rebuild()
        assert (await store.verify()).problems == []
        assert await seen(store) == before
        await wind(store, BACK)
        assert await present(store) == then
        assert (await store.verify()).problems == []


@pytest.mark.full
@pytest.mark.parametrize("what", VECTORS)
async def test_damaged_vectors_are_named_and_dropped_to_be_made_again(sound: Path, path: Path, what: str) -> None:
    damaged(sound, path, VECTORS[what])
    async with opened(path) as store:
        assert "vectors" in " ".join((await store.verify()).problems)
        await store.rebuild()
        assert (await store.verify()).problems == []
        missing = await store.unindexed(scope=MINE, space=SPACE, limit=99)
        await store.index({id: towards(5) for id, _ in missing}, scope=MINE, space=SPACE)
        assert len((await store.nearest(towards(5), scope=MINE, space=SPACE, limit=99)).matches) == 7
        assert list(await store.unindexed(scope=MINE, space=SPACE, limit=99)) == []
        await store.nearest(towards(5), scope=MINE, space="lessons", limit=99)


@pytest.mark.full
@pytest.mark.parametrize("what", LOST)
async def test_what_cannot_be_mended_is_not_covered_up(sound: Path, path: Path, what: str) -> None:
    damaged(sound, path, LOST[what])
    async with opened(path) as store:
        assert (await store.verify()).problems
        try:
            await store.rebuild()
        except StoreUnavailable:
            return
        assert (await store.verify()).problems


async def test_a_rebuild_knows_who_held_an_lesson_when_it_was_retired(path: Path) -> None:
    moved = lesson("moved")
    async with opened(path) as store:
        await added(store, experience("first", lessons=(moved,)))
        await wind(store, 0)
        await added(store, experience("second", lessons=(moved,)))
        await wind(store, 1)
        await store.apply([Retire(lesson_ids=(moved.id,), reason="test")], scope=MINE, writer="tests")
        await store.rebuild()
        assert (await store.verify()).problems == []
        for to, retired in ((4, False), (5, True), (3, False), (5, True)):
            await wind(store, to)
            (only,) = await collected(store.scan(scope=MINE))
            assert [i.retired for i in only.lessons] == [retired]


async def test_a_rollback_right_after_a_rebuild_brings_back_verdicts_and_versions(path: Path) -> None:
    known = experience("Cancel it", attempts=[attempt(RUNS[0], "success")])
    changed = known.model_copy(update={"task": "Cancel them", "metadata": {"n": 1}})
    verdict = Rejudge(experience_id=known.id, trajectory_id=RUNS[0].id, verdict=Verdict(outcome="failure"))
    steps: Sequence[Any] = (verdict, Replace(experience=changed), verdict, Rollback(to=2, reason="test"), verdict)
    async with opened(path) as store:
        await added(store, known)
        states = [[], await present(store)]
        for step in steps:
            await store.apply([step], scope=MINE, writer="tests")
            states.append(await present(store))
        for to in (1, 4, 3, 6, 2, 5, 1):
            await store.rebuild()
            await wind(store, to)
            assert await present(store) == states[to]
            assert (await store.verify()).problems == []
