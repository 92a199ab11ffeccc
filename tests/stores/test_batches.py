"""A long batch is refused, and kept, as each of its changes would be by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lessonbank.contracts.ports import Imported, LessonFilter
from lessonbank.contracts.records import (
    Add,
    Change,
    Edit,
    Experience,
    Merge,
    Rejudge,
    Replace,
    Retire,
    Rollback,
    Verdict,
)
from lessonbank.contracts.store_calls import count_records, get_experience, purge_one
from lessonbank.errors import Conflict
from lessonbank.guard.wording import wording_of
from lessonbank.stores.sqlite import SqliteStore, _derived
from lessonbank.testing.store_samples import (
    MINE,
    added,
    attempt,
    collected,
    experience,
    lesson,
    trajectory,
)

pytestmark = pytest.mark.anyio


async def test_a_batch_with_one_known_experience_or_lesson_or_one_of_them_twice_writes_nothing(path: Path) -> None:
    store = await SqliteStore.open(path)
    await added(store, known := experience("known"))
    await added(store, elsewhere := experience("known elsewhere", scope="other"), scope="other")
    twice, shared = experience("twice"), lesson()
    for odd in (
        [known],
        [experience("takes a lesson", lessons=known.lessons)],
        [twice, twice],
        [experience("one", lessons=(shared,)), experience("two", lessons=(shared,))],
    ):
        others = [experience(f"new {n}") for n in range(20)]
        with pytest.raises(Conflict):
            await added(store, *others[:10], *odd, *others[10:])
    assert await collected(store.scan(scope=MINE)) == [known]
    free = elsewhere.model_copy(update={"scope": MINE})  # ids are a scope's own
    await added(store, *(experience(f"new {n}") for n in range(20)), free)
    assert (await count_records(store, scope=MINE)).experiences == 22
    await store.close()


async def test_the_store_refuses_a_copy_that_came_meanwhile_only_where_it_is_asked_to() -> None:
    store = SqliteStore.in_memory()
    one, other = Add(experience=experience("one")), Add(experience=experience("other"))
    await store.apply([one], scope=MINE, writer="tests", unique_wording=True)
    with pytest.raises(Conflict):
        await store.apply([other], scope=MINE, writer="tests", unique_wording=True)
    (owner,) = await store.experiences("wording", [wording_of(other.experience.lessons[0])], scope=MINE)
    assert owner == one.experience
    await store.apply([other], scope=MINE, writer="tests")
    assert await store.experiences("wording", [], scope=MINE) == []
    await store.close()


ODD_IDS = ("", "\0", "a\0b", "a", "A", "ä", "\uffff", "\U0001f600", "zz", "\x01a")


@pytest.mark.full
@pytest.mark.parametrize("known", ODD_IDS)
async def test_an_id_that_is_known_is_found_wherever_it_stands_among_those_of_a_batch(path: Path, known: str) -> None:
    """Ids need not be of this library, nor begin with a time."""
    store = await SqliteStore.open(path)
    await added(store, experience("known").model_copy(update={"id": known}), experience("another"))
    for all_new in ([id for id in ODD_IDS if id != known], ODD_IDS):
        batch = [experience(f"task {n}").model_copy(update={"id": id}) for n, id in enumerate(all_new)]
        if known in all_new:
            with pytest.raises(Conflict, match="is in this scope already"):
                await added(store, *batch)
        else:
            await added(store, *batch)
    for id in ODD_IDS:
        assert (await get_experience(store, id, scope=MINE)).id == id
    await store.close()


async def test_words_that_waited_are_indexed_with_those_of_a_batch_whatever_became_of_their_tasks(path: Path) -> None:
    store = await SqliteStore.open(path)
    await added(store, experience("amber waits elsewhere", scope="other"), scope="other")
    await added(store, waiting := experience("amber waits"), experience("amber goes"))
    await store.apply([Replace(experience=waiting.model_copy(update={"task": "amber stays"}))], scope=MINE, writer="t")
    await added(store, back := experience("amber comes back"))
    await store.apply([Rollback(to=3, reason="test")], scope=MINE, writer="tests")
    await added(store, *(experience(f"amber number {n}") for n in range(100)))
    await added(store, back)

    async def told() -> list[tuple[str, float]]:
        asked = [("amber stays", MINE), ("comes back", MINE), ("waits", MINE), ("waits", "other"), ("number 7", MINE)]
        found = [await store.search(query, scope=scope, limit=200) for query, scope in asked]
        return [(match.experience.id, match.score) for matches in found for match in matches]

    before = await told()
    await store.rebuild()
    assert await told() == before
    assert (await store.verify()).problems == []
    await store.close()


def changed(known: Experience) -> dict[str, list[Change]]:
    """Every way to write an experience that is there, or one that takes from it."""
    reworded = known.model_copy(update={"task": "amber changed", "lessons": (*known.lessons, lesson("cobalt"))})
    named = known.lessons[0].id
    run = known.attempts[0].trajectory_id
    edit = Edit(lesson_id=named, title="cobalt", description="", content="Ask.", by="Ana", reason="test")
    return {
        "replace": [Replace(experience=reworded)],
        "replace twice": [Replace(experience=known.model_copy(update={"task": "x"})), Replace(experience=reworded)],
        "replace and retire": [Replace(experience=reworded), Retire(lesson_ids=(named,), reason="test")],
        "retire and replace": [Retire(lesson_ids=(named,), reason="test"), Replace(experience=reworded)],
        "edit": [edit],
        "rejudge": [Rejudge(experience_id=known.id, trajectory_id=run, verdict=Verdict(outcome="failure"))],
        "merge": [Merge(experience=experience("amber merged"), source_lesson_ids=(named,), reason="test")],
    }


RUN = trajectory()
WAYS = tuple(changed(experience(attempts=[attempt(RUN, "success")])))


async def check_words(store: SqliteStore, path: Path) -> None:
    """What words find is what a rebuild finds, in a bank that takes writes and is sound when it is opened again."""

    async def told(bank: SqliteStore) -> list[object]:
        matches = await bank.search("amber changed again", scope=MINE, limit=99)
        lessons = [await bank.lessons(LessonFilter(text=text, limit=99), scope=MINE) for text in ("cobalt", "status")]
        return [[(match.experience.id, match.score) for match in matches], *map(list, lessons)]

    await added(store, experience("amber again"))
    found = await told(store)
    assert (await store.verify()).problems == []
    await store.close()
    again = await SqliteStore.open(path)
    await again.rebuild()
    assert await told(again) == found
    await again.close()


@pytest.mark.parametrize("tail", [pytest.param(1, marks=pytest.mark.full), 2, pytest.param(4, marks=pytest.mark.full)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("way", WAYS)
async def test_an_experience_whose_words_wait_is_changed_in_the_batch_that_has_them_indexed(
    path: Path, monkeypatch: pytest.MonkeyPatch, way: str, last: bool, tail: int
) -> None:
    monkeypatch.setattr(_derived, "TAIL", 99)
    store = await SqliteStore.open(path)
    await added(store, known := experience("amber waits", attempts=[attempt(RUN, "success")]), experience("amber"))
    monkeypatch.setattr(_derived, "TAIL", tail)
    adds: Sequence[Change] = [Add(experience=experience(f"amber {n}")) for n in range(3)]
    batch = [*adds, *changed(known)[way]] if last else [*changed(known)[way], *adds]
    await store.apply(batch, scope=MINE, writer="tests")
    await check_words(store, path)


@pytest.mark.parametrize("imported", [False, True])
async def test_an_experience_that_a_rollback_took_out_comes_back_in_the_batch_that_has_its_words_indexed(
    path: Path, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    monkeypatch.setattr(_derived, "TAIL", 3)
    store = await SqliteStore.open(path)
    await added(store, known := experience("amber waits"))
    await store.apply([Rollback(to=0, reason="test")], scope=MINE, writer="tests")
    batch = [known.model_copy(update={"task": "amber changed"}), *(experience(f"amber {n}") for n in range(3))]
    if imported:
        await store.import_records(lambda: [Imported(experiences=batch)], scope=MINE, writer="tests")
    else:
        await added(store, *batch)
    assert (await get_experience(store, known.id, scope=MINE)).task == "amber changed"
    await check_words(store, path)


@pytest.mark.parametrize("purged", [False, True])
async def test_a_rollback_and_a_purge_read_what_waits_for_the_index_as_it_is_then(
    path: Path, monkeypatch: pytest.MonkeyPatch, purged: bool
) -> None:
    store = await SqliteStore.open(path)
    await added(store, known := experience("amber waits", lessons=(lesson(), lesson("cobalt"))), experience("amber"))
    await store.apply([Replace(experience=known.model_copy(update={"task": "x"}))], scope=MINE, writer="tests")
    monkeypatch.setattr(_derived, "TAIL", 1)
    if purged:
        await purge_one(store, "lesson", known.lessons[1].id, scope=MINE, writer="tests", reason="asked")
    else:
        await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
        assert await get_experience(store, known.id, scope=MINE) == known
    await check_words(store, path)


async def test_a_batch_keeps_its_order_and_tells_of_its_entries_what_the_journal_says(path: Path) -> None:
    store = await SqliteStore.open(path)
    new = [experience(f"task {n}", minute=n) for n in range(333)]
    entries = await store.apply([Add(experience=each) for each in new], scope=MINE, writer="tests")
    assert [entry.entry for entry in entries] == [Add(experience=each) for each in new]
    kept = await collected(store.journal(scope=MINE))
    assert (list(entries), entries[0], entries[-1], entries[1:3]) == (kept, kept[0], kept[-1], kept[1:3])
    with pytest.raises(IndexError):
        entries[333]
    assert await collected(store.scan(scope=MINE)) == new
    await store.close()
