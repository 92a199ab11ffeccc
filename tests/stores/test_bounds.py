"""Ids, names, numbers and sizes that nobody would choose: kept as they are, or refused in one sentence."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _trouble import opened, sentence

from lessonbank.contracts.records import Recall, Replace, Retire, Rollback
from lessonbank.contracts.store_calls import (
    care_of,
    count_records,
    experience_of_lesson,
    experience_of_runs,
    get_experience,
    get_trajectory,
    list_scopes,
    purge_one,
    settled_runs,
)
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite._purge import purge_scope
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    THEIRS,
    added,
    attempt,
    collected,
    experience,
    lesson,
    towards,
    trajectory,
)

pytestmark = [pytest.mark.anyio, pytest.mark.full]

IDS = {
    "nul": "a\x00b",
    "only nul": "\x00",
    "escape": "\x01a\x01b\x00",
    "quotes": "'\"`--;\\",
    "lines": "a\nb\r\n\u2028",
    "many planes": "é注🂡\U0010ffff",
    "long": "x" * 10_000,
    "a number": "1",
    "json": '["a",{}]',
    "wild": "%_*?",
}


@pytest.mark.parametrize("name", IDS)
async def test_every_id_finds_its_own_record_and_no_other(path: Path, name: str) -> None:
    id = IDS[name]
    near_misses = [id.split("\x00")[0] + "!", id + "\x00", id[:-1] + "\x7f"]
    async with opened(path) as store:
        run = trajectory().model_copy(update={"id": id})
        await store.save_runs([run], scope=MINE)
        known_lesson = lesson().model_copy(update={"id": id})
        known = experience(lessons=(known_lesson, lesson()), attempts=[attempt(run, "success")]).model_copy(
            update={"id": id}
        )
        other = experience(minute=1)
        await added(store, known, other, along=[towards(0), towards(1)])
        assert await settled_runs(store, [id, *near_misses], scope=MINE) == {id}
        assert (
            await experience_of_runs(store, [id], scope=MINE)
            == await experience_of_lesson(store, id, scope=MINE)
            == known
        )
        assert await experience_of_runs(store, near_misses, scope=MINE) is None
        await store.index({id: towards(2)}, scope=MINE, space=SPACE)
        await store.apply([Retire(lesson_ids=(id,), reason="test")], scope=MINE, writer="tests")
        await store.apply([Replace(experience=known)], scope=MINE, writer="tests")
        found = (await store.nearest(towards(2), scope=MINE, space=SPACE, limit=9)).matches
        assert [m.experience for m in found] == [known, other]
        assert await store.experiences("id", near_misses, scope=MINE) == []
        await store.apply([Rollback(to=0, reason="test")], scope=MINE, writer="tests")
        await added(store, known)
        assert await get_experience(store, id, scope=MINE) == known
        await purge_one(store, "lesson", id, scope=MINE, writer="tests", reason="test")
        assert [i.id for i in (await get_experience(store, id, scope=MINE)).lessons] == [known.lessons[1].id]
        assert (await care_of(store).verify()).problems == []


SCOPES = ("a", "A", "a/b", "a/B", "a.b", "a_b", "a+", "é", "è", "注/意", "1", "x" * 199, "x" * 200)


async def test_every_scope_name_is_a_scope_of_its_own(path: Path) -> None:
    async with opened(path) as store:
        for scope in SCOPES:
            await added(store, experience(scope=scope), scope=scope, along=[towards(0)])
            await store.save_recall(Recall(scope=scope, task="t"))
        for scope in SCOPES:
            assert [m.experience.scope for m in await store.search("cancel", scope=scope, limit=9)] == [scope]
            near = (await store.nearest(towards(0), scope=scope, space=SPACE, limit=9)).matches
            assert [m.experience.scope for m in near] == [scope]
        assert await list_scopes(store) == sorted(SCOPES)


@pytest.mark.parametrize("since", [-1, -(2**32), -(2**63), -(2**70), 2**32, 2**63, 2**70])
async def test_a_journal_begins_within_its_own_scope(path: Path, since: int) -> None:
    async with opened(path) as store:
        for scope in (THEIRS, MINE, "third"):
            await added(store, experience(scope=scope), experience(scope=scope), scope=scope)
        entries = await collected(store.journal(scope=MINE, since=since))
        assert [e.sequence for e in entries] == ([1, 2] if since < 0 else [])
        assert all(e.entry.experience.scope == MINE for e in entries)  # type: ignore[union-attr]


async def test_a_record_of_megabytes_is_kept_found_and_purged(path: Path) -> None:
    chance = random.Random(1)
    text = " ".join(f"{chance.getrandbits(40):x}" for _ in range(150_000))
    async with opened(path) as store:
        run = trajectory(answer=text)
        await store.save_runs([run], scope=MINE)
        known = experience("Cancel " + text[:1_000_000], lessons=(lesson(text),), attempts=[attempt(run, "success")])
        await added(store, known, experience("Cancel"))
        assert await get_experience(store, known.id, scope=MINE) == known
        assert await get_trajectory(store, run.id, scope=MINE) == run
        assert {m.experience.id for m in await store.search(text[:200], scope=MINE, limit=9)} == {known.id}
        await purge_one(store, "trajectory", run.id, scope=MINE, writer="tests", reason="test")
        assert (await count_records(store, scope=MINE)).experiences == 1


@pytest.mark.parametrize("dimensions", [1, 2, 5000])
async def test_a_space_may_have_few_or_many_dimensions(path: Path, dimensions: int) -> None:
    async with opened(path) as store:
        one, other = experience(), experience(minute=1)
        row = np.ones(dimensions, dtype=np.float32)
        await added(store, one, other, along=[row, -row])
        found = (await store.nearest(row, scope=MINE, space=SPACE, limit=9)).matches
        assert [(m.experience.id, m.score) for m in found] == [(one.id, 1.0), (other.id, -1.0)]


async def test_a_purge_does_not_call_the_bytes_of_another_one_gone(path: Path) -> None:
    async with opened(path) as store, opened(path) as other:
        for scope in (MINE, THEIRS):
            await added(store, experience(scope=scope), scope=scope)
        compacting = store._database.compact

        def then_another_purge_begins() -> object:
            done = compacting()
            done.result(20)
            other._database.write(lambda file: purge_scope(file, THEIRS, "tests", "test")).result(20)
            return done

        store._database.compact = then_another_purge_begins  # type: ignore[method-assign,assignment]
        await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="test")
        assert any("purge was interrupted" in problem for problem in (await other.verify()).problems)
        await other.rebuild()
        assert (await other.verify()).problems == []


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 31), reason="no limit can be set")
async def test_without_memory_a_read_says_what_failed_and_others_go_on(path: Path) -> None:
    script = """
import asyncio, random, sqlite3, sys
from lessonbank.contracts.store_calls import get_experience
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience

async def main():
    known, big = experience(), experience(random.Random(1).randbytes(4_000_000).hex())
    store = await SqliteStore.open(sys.argv[1])
    await added(store, known, big)
    await store.close()
    store = await SqliteStore.open(sys.argv[1])
    sqlite3.connect(":memory:").execute("PRAGMA hard_heap_limit = 4000000").fetchone()
    try:
        await get_experience(store, big.id, scope=MINE)
    except MemoryError:
        print("no memory")
    assert await get_experience(store, known.id, scope=MINE) == known
    await added(store, experience())
    await store.close()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("no memory\n", "", 0)


async def test_a_read_that_begins_as_the_store_closes_is_refused_in_one_sentence(path: Path) -> None:
    async with opened(path) as store:
        store._database._reading.shutdown()
        with pytest.raises(StoreUnavailable) as caught:
            await count_records(store, scope=MINE)
        sentence(caught)


async def test_a_reading_given_up_as_it_begins_leaves_no_snapshot_open(path: Path) -> None:
    async with opened(path) as store:
        await added(store, experience())
        for turns in range(60):
            reading = store.scan(scope=MINE)
            first = asyncio.create_task(anext(reading))
            for _ in range(turns % 4):
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await reading.aclose()
        await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="test")  # a snapshot would be in its way
        assert not store._database._streams


async def test_a_reading_whose_first_rows_are_all_holds_no_snapshot_while_they_are_looked_at(path: Path) -> None:
    async with opened(path) as store:
        await added(store, experience())
        reading = store.journal(scope=MINE)
        await anext(reading)  # and it stays open
        await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="test")  # a snapshot would be in its way
