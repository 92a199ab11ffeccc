"""Search by words in a file reads as little as it can and answers as if it had read everything."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Add, Experience, Lesson, Replace, Retire, Rollback
from lessonbank.stores import _words as shared
from lessonbank.stores.sqlite import SqliteStore, _derived
from lessonbank.stores.sqlite import _words as by_words
from lessonbank.stores.sqlite._rows import SHOWS
from lessonbank.testing.store_samples import collected, ranked_by_words

pytestmark = pytest.mark.anyio
LESSON = {"title": "t", "content": "c"}
WORD = st.sampled_from(["order", "order", "cancel", "refund", "seven", "blue", "gate", "rare1", "rare2", "rare3", "x"])
TASK = st.lists(WORD, min_size=1, max_size=7).map(" ".join)


def experiences(tasks: list[str]) -> list[Experience]:
    return [Experience(scope="s", task=task, lessons=(Lesson.model_validate(LESSON),)) for task in tasks]


@pytest.mark.full
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tasks=st.lists(TASK, min_size=1, max_size=25), query=TASK, limit=st.integers(1, 6), data=st.data())
async def test_what_is_left_unread_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[str], query: str, limit: int, data: st.DataObject
) -> None:
    monkeypatch.setattr("lessonbank.stores._words._MORE", data.draw(st.integers(0, 3)))
    monkeypatch.setattr(_derived, "TAIL", data.draw(st.sampled_from([1, 4, 64])))
    kept = experiences(tasks)
    gone = [e.lessons[0].id for e in data.draw(st.lists(st.sampled_from(kept), max_size=3, unique_by=lambda e: e.id))]
    changed = data.draw(st.dictionaries(st.sampled_from([e.id for e in kept]), TASK, max_size=3))
    store = await SqliteStore.open(tmp_path / f"{kept[0].id}.db")
    for some in batches(kept, size=data.draw(st.sampled_from([3, 25]))):
        await store.apply([Add(experience=e) for e in some], scope="s", writer="w")
        stranger = experiences([tasks[0]])[0].model_copy(update={"scope": "another"})
        await store.apply([Add(experience=stranger)], scope="another", writer="w")
    changes = [Replace(experience=e.model_copy(update={"task": changed[e.id]})) for e in kept if e.id in changed]
    changes += [Retire(lesson_ids=tuple(gone), reason="r")] if gone else []
    if changes:
        await store.apply(changes, scope="s", writer="w")
    to = data.draw(st.integers(0, len(kept) + len(changes)))
    await store.apply([Rollback(to=to, reason="r")] if data.draw(st.booleans()) else [], scope="s", writer="w")
    if data.draw(st.booleans()):
        await store.rebuild()
    found = await store.search(query, scope="s", limit=limit)
    every = ranked_by_words(await collected(store.scan(scope="s")), query)
    wrong = (await store.verify()).problems
    await store.close()
    assert [(m.experience, m.score) for m in found] == every[:limit]
    assert wrong == []


@pytest.mark.full
async def test_two_thousand_tasks_are_ranked_as_if_every_one_were_read(tmp_path: Path) -> None:
    vocabulary = np.random.default_rng(5)
    drawn = [vocabulary.zipf(1.3, vocabulary.integers(4, 30)) % 2_000 for _ in range(2_000)]
    kept = experiences([" ".join(f"w{word}" for word in words) for words in drawn])
    store = await SqliteStore.open(tmp_path / "bank.db")
    for some in batches(kept, size=500):
        await store.apply([Add(experience=e) for e in some], scope="s", writer="w")
    for query in [kept[9].task, "w1", "w1 w2", "w1 w1 w1 w4999", *(f"{kept[n].task} w{n}" for n in range(8))]:
        found = await store.search(query, scope="s", limit=5)
        assert [(m.experience, m.score) for m in found] == ranked_by_words(kept, query)[:5]
    await store.close()


@pytest.mark.full
async def test_of_very_many_equal_tasks_those_that_came_last_are_found_and_few_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(tmp_path / "bank.db")
    kept = experiences(["cancel the pending order"] * 400)
    await store.apply([Add(experience=e) for e in kept], scope="s", writer="w")
    await store.rebuild()
    read, scored = list[int](), shared.scores
    monkeypatch.setattr(shared, "scores", lambda *a, **k: read.append(len(a[2])) or scored(*a, **k))
    found = await store.search("cancel order", scope="s", limit=5)
    await store.close()
    assert [m.experience.id for m in found] == [e.id for e in reversed(kept)][:5]
    assert sum(read) < 100, "not one for each task that ties"


async def test_the_length_of_a_task_beyond_those_that_the_index_tells_apart_counts(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "bank.db")
    fillings = [f"{'filling ' * (4_000 + 3_000 * (n % 5))} number{n}" for n in range(15)]
    kept = experiences([f"cancel order {filling}" for filling in fillings] + ["unlike"] * 5)
    await store.apply([Add(experience=e) for e in kept], scope="s", writer="w")
    await store.rebuild()
    for limit in (1, 3, 20):
        found = await store.search("cancel order", scope="s", limit=limit)
        assert [(m.experience, m.score) for m in found] == ranked_by_words(kept, "cancel order")[:limit]
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_word_said_ten_thousand_times_is_counted_with_one_more_entry_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    store = await SqliteStore.open(path)
    kept = experiences(["order " * 10_000, "order order gate", "order gate gate", "gate"])
    await store.apply([Add(experience=e) for e in kept], scope="s", writer="w")
    await store.rebuild()
    found = await store.search("order gate", scope="s", limit=9)
    await store.close()
    with closing(sqlite3.connect(path)) as raw:
        (terms,) = raw.execute("SELECT count(*) FROM word_places WHERE doc / 4096 = 1").fetchone()
    assert [(m.experience, m.score) for m in found] == ranked_by_words(kept, "order gate")
    assert terms == 2


@pytest.mark.full
async def test_tasks_without_a_word_of_the_question_cost_nearly_nothing(tmp_path: Path) -> None:
    taken: list[int] = []
    for size in (1_000, 4_000):
        path = tmp_path / f"{size}.db"
        store = await SqliteStore.open(path)
        tasks = [f"{'cancel' if n < 600 else 'book'}{f' number{n}' * (1 + n % 60)}" for n in range(size)]
        await store.apply([Add(experience=e) for e in experiences(tasks)], scope="s", writer="w")
        await store.close()
        with closing(sqlite3.connect(path)) as connection:
            steps = iter(range(10_000_000))
            connection.set_progress_handler(lambda: next(steps) and 0, 1)  # noqa: B023 - used before the loop goes on
            found = by_words.search(connection, "cancel", scope="s", limit=5)
        taken.append(next(steps))
        assert [match.experience.task for match in found] == [f"cancel number{n}" for n in range(540, 299, -60)]
    assert taken[1] < 1.2 * taken[0], "no row is read of each task of the scope"


async def test_whether_a_task_can_be_shown_costs_the_same_however_many_lessons_there_are(tmp_path: Path) -> None:
    taken: list[int] = []
    for size in (30, 300):
        path = tmp_path / f"{size}.db"
        store = await SqliteStore.open(path)
        await store.apply([Add(experience=e) for e in experiences(["cancel order"] * size)], scope="s", writer="w")
        await store.close()
        connection, steps = sqlite3.connect(path), iter(range(1_000_000))
        connection.set_progress_handler(lambda: next(steps) and 0, 1)  # noqa: B023 - used before the loop goes on
        assert (
            connection.execute(f"SELECT {SHOWS} FROM experiences e ORDER BY number LIMIT 20").fetchall() == [(1,)] * 20
        )
        connection.close()
        taken.append(next(steps))
    assert taken[1] == taken[0]
