"""Words that many tasks hold are packed, and every answer stays what it was."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from lessonbank.contracts.ports import LessonFilter, Store
from lessonbank.contracts.records import Retire, Rollback
from lessonbank.contracts.store_calls import purge_one
from lessonbank.stores._texts import checked
from lessonbank.stores.postgres import PostgresStore, _postings
from lessonbank.testing.store_ranking import RankingTests
from lessonbank.testing.store_samples import (
    MINE,
    StoreTests,
    added,
    collected,
    experience,
    lesson,
    ranked_by_words,
    towards,
)

pytestmark = [pytest.mark.full, pytest.mark.anyio]


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tasks are many, and three fill a list."""
    for name, value in {"_PACK": 2, "_FULL": 3, "_LOOK": 1}.items():
        monkeypatch.setattr(_postings, name, value)


@pytest.mark.usefixtures("packing")
class TestPackedWords(StoreTests):
    """What the contract asks of words, with lists of them."""

    test_ties = RankingTests.test_ties_are_given_newest_first
    test_another_crowd = RankingTests.test_a_crowd_in_another_scope_takes_no_place_of_mine
    test_other_tasks = RankingTests.test_the_tasks_of_another_scope_do_not_move_a_score
    test_hidden = RankingTests.test_an_experience_without_active_lessons_is_never_found
    test_a_new_task = RankingTests.test_a_new_task_makes_the_old_vector_and_words_invalid
    test_own_words = RankingTests.test_a_tasks_own_words_score_one
    test_no_word = RankingTests.test_without_a_common_word_nothing_is_found
    test_rank = RankingTests.test_words_are_ranked_as_if_every_task_were_read

    @pytest.fixture(autouse=True)
    def _place(self, postgres_bank: Callable[..., str]) -> None:
        self.address = postgres_bank(2)

    async def make(self) -> Store:
        return await PostgresStore.open(self.address, partitions=2)


@pytest.mark.usefixtures("packing")
async def test_what_is_added_purged_and_rolled_back_leaves_lists_that_agree_with_the_records(
    postgres_bank: Callable[..., str],
) -> None:
    address = postgres_bank(2)
    store = await PostgresStore.open(address, partitions=2)
    known = [experience(f"Cancel order {n % 3} of {n}", minute=n) for n in range(12)]
    for n in range(0, 12, 4):
        await added(store, *known[n : n + 4])
    await purge_one(store, "lesson", known[5].lessons[0].id, scope=MINE, writer="tests", reason="asked")
    await agrees(store, "cancel order 1 5")
    await store.apply([Rollback(to=6, reason="try")], scope=MINE, writer="tests")
    await agrees(store, "cancel order 1 5")
    await store.apply([Rollback(to=13, reason="back")], scope=MINE, writer="tests")
    await agrees(store, "cancel order 2")
    await store.rebuild()
    await agrees(store, "cancel order 2")
    with psycopg.connect(address) as raw:
        raw.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
        held = dict(raw.execute("SELECT word, sum(held) FROM lessonbank.postings GROUP BY word").fetchall())
        assert held["order"] >= 8
        raw.execute("UPDATE lessonbank.postings SET places = substr(places, 13) WHERE word = 'order' AND held > 1")
    assert "rows of terms that disagree" in " ".join((await store.verify()).problems)
    await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="asked")
    with psycopg.connect(address) as raw:
        raw.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
        assert raw.execute("SELECT word FROM lessonbank.postings").fetchall() == []
    await store.close()


async def test_marks_that_hide_an_experience_or_its_vector_from_searches_are_verified(
    postgres_bank: Callable[..., str],
) -> None:
    address = postgres_bank(2)
    store = await PostgresStore.open(address, partitions=2)
    one, other = (experience(f"Cancel order {n}", minute=n) for n in range(2))
    await added(store, one, other)
    await store.apply([Retire(lesson_ids=tuple(i.id for i in other.lessons), reason="old")], scope=MINE, writer="tests")
    await store.index({one.id: towards(0), other.id: towards(1)}, scope=MINE, space="s")
    assert (await store.verify()).problems == []
    for table in ("experiences", "vectors"):
        with psycopg.connect(address) as raw:
            raw.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
            changed = raw.execute(f"UPDATE lessonbank.{table} SET shown = NOT shown".encode()).rowcount
        assert f"{changed} {table} that searches find or miss" in " ".join((await store.verify()).problems)
        await store.rebuild()
        assert (await store.verify()).problems == []
    await store.close()


async def agrees(store: PostgresStore, query: str, /) -> None:
    """Searches as one that reads every task does, and finds nothing wrong with itself."""
    every = ranked_by_words(await collected(store.scan(scope=MINE)), query)
    found = await store.search(query, scope=MINE, limit=5)
    assert [(match.experience, match.score) for match in found] == every[:5]
    assert (await store.verify()).problems == []


async def test_lessons_with_a_rare_word_are_found_without_reading_the_others(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = await PostgresStore.open(postgres_bank(2), partitions=2), list[int]()
    every = [experience(f"Task {n}", lessons=(lesson(f"Lesson number{n}"),), minute=n) for n in range(400)]
    await added(store, *every)

    def counted(data: bytes, /) -> bytes:
        read.append(len(data))
        return checked(data)

    monkeypatch.setattr("lessonbank.stores.postgres._rows.checked", counted)
    found = await store.lessons(LessonFilter(text="lesson number17", limit=5), scope=MINE)
    assert [one.title for one in found] == ["Lesson number17"]
    assert await store.lessons(LessonFilter(text="lesson zanzibar", limit=5), scope=MINE) == []
    assert 0 < len(read) < 20, "some seem to hold the word"
    assert len(await store.lessons(LessonFilter(text="lesson", limit=50), scope=MINE)) == 50
    await store.close()
