"""Searching the lessons themselves: one match a lesson, beside what guards and the loop make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from listed import SCOPE

import lessonbank
from lessonbank import Lesson, Retrieval, Step, Trajectory
from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Add, Experience, Found, Retire
from lessonbank.contracts.store_calls import get_experience, purge_one
from lessonbank.errors import ModelError, UsageError
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.search import (
    DenseRetriever,
    Floor,
    HybridRetriever,
    LessonRetriever,
    LexicalRetriever,
)
from lessonbank.search.dense import CATCH_UP
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.settings import grouped

pytestmark = [pytest.mark.anyio, pytest.mark.full]
OPTIONS: dict[str, Any] = {"scope": "t", "holdout": None, "embedder": "hashing", "admission": None}


class Failing(HashingEmbedder):
    """An embedder whose service can go down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Vectors:
        if self.down:
            raise ModelError("embedding service down")
        return await super().embed(texts, role=role)


def taught(task: str, *contents: str, **fields: Any) -> Experience:
    """An experience of `task` with one lesson for each content."""
    return Experience(
        scope=SCOPE, task=task, lessons=tuple(Lesson(title="L", content=text) for text in contents), **fields
    )


KNOWN = (
    taught("order boots", "press save twice", "the map is on the left"),
    taught("book a flight", "press save once", "seats are chosen on the last page"),
    taught("water the plants", "the can is in the shed"),
)


async def searching(*known: Experience) -> tuple[LessonRetriever, SqliteStore]:
    """A retriever of lessons over a store that holds these, without vectors yet."""
    store = SqliteStore.in_memory()
    await store.apply([Add(experience=e) for e in known or KNOWN], scope=SCOPE, writer="test")
    return LessonRetriever(store, HashingEmbedder()), store


def contents(found: Found) -> list[str]:
    """What the matched lessons say."""
    return [i.content for m in found.matches for i in m.experience.lessons if i.id == m.lesson_id]


async def test_what_a_lesson_says_is_found_whatever_its_task_was() -> None:
    search, store = await searching()
    found = await search("where is the watering can? in the shed?", scope=SCOPE, limit=1)
    assert contents(found) == ["the can is in the shed"]
    found = await search("press save", scope=SCOPE, limit=2)
    assert set(contents(found)) == {"press save once", "press save twice"}
    assert [m.experience for m in found.matches] == [
        await get_experience(store, m.experience.id, scope=SCOPE) for m in found.matches
    ]
    assert found.notes == ()


async def test_a_limit_counts_lessons_and_two_of_one_experience_are_two_matches() -> None:
    search, _ = await searching()
    found = await search("press save", scope=SCOPE, limit=4)
    assert len(found.matches) == len({m.lesson_id for m in found.matches}) == 4
    assert len({m.experience.id for m in found.matches}) < 4
    assert [m.score for m in found.matches] == sorted((m.score for m in found.matches), reverse=True)


async def test_a_retired_lesson_is_neither_embedded_nor_found() -> None:
    search, store = await searching()
    gone = KNOWN[0].lessons[0]
    await store.apply([Retire(lesson_ids=(gone.id,), reason="wrong")], scope=SCOPE, writer="test")
    assert await search.catch_up(scope=SCOPE, most=99) == 4
    assert gone.id not in await search.index([await get_experience(store, KNOWN[0].id, scope=SCOPE)])
    assert "press save twice" not in contents(await search("press save twice", scope=SCOPE, limit=9))


async def test_new_lessons_are_embedded_with_their_experience() -> None:
    search, store = await searching()
    vectors = await search.index(KNOWN)
    assert set(vectors) == {i.id for e in KNOWN for i in e.lessons}
    await store.index(vectors, scope=SCOPE, space=str(search.space))
    assert await search.catch_up(scope=SCOPE, most=9) == 0
    assert await search.index([]) == await search.index([taught("nothing learned")]) == {}


async def test_lessons_and_tasks_have_spaces_of_their_own() -> None:
    search, store = await searching()
    tasks = DenseRetriever(store, HashingEmbedder())
    assert search.space == f"{tasks.space}#lessons"
    assert contents(await search("press save twice", scope=SCOPE, limit=1)) == ["press save twice"]
    (match,) = (await tasks("press save twice", scope=SCOPE, limit=1)).matches
    assert match.lesson_id is None
    assert await tasks.catch_up(scope=SCOPE, most=9) == await search.catch_up(scope=SCOPE, most=9) == 0


async def test_a_bank_far_behind_says_so_and_catches_up() -> None:
    search, _ = await searching(*(taught(f"task {n}", f"lesson {n}") for n in range(CATCH_UP + 1)))
    assert (await search("lesson", scope=SCOPE, limit=1)).notes == (
        "not every lesson has a vector in 'hashing-v1-512#lessons' yet: call `reindex`",
    )
    assert (await search("lesson", scope=SCOPE, limit=1)).notes == ()


async def test_when_the_embedder_fails_lessons_of_like_tasks_are_found_and_a_note_says_why() -> None:
    _, store = await searching()
    embedder = Failing()
    search = LessonRetriever(store, embedder)
    embedder.down = True
    found = await search("order boots for me", scope=SCOPE, limit=1)
    assert contents(found) == ["press save twice"]
    assert found.notes == (
        "searched by the words of the tasks only, because the embedder failed: embedding service down",
    )
    assert contents(await search("order boots", scope=SCOPE, limit=3)) == ["press save twice", "the map is on the left"]


async def test_what_is_taken_out_while_it_is_embedded_stops_no_search() -> None:
    class Quick(HashingEmbedder):
        async def embed(self, texts: Sequence[str], /, *, role: Any) -> Vectors:
            if role == "document" and len(texts) == 5:
                await purge_one(store, "lesson", KNOWN[0].lessons[0].id, scope=SCOPE, writer="test", reason="private")
            return await super().embed(texts, role=role)

    _, store = await searching()
    search = LessonRetriever(store, Quick())
    assert contents(await search("press save", scope=SCOPE, limit=9)) == []
    assert contents(await search("press save", scope=SCOPE, limit=1)) == ["press save once"]


# --- with guards around ----------------------------------------------------------------------------------------------


async def test_a_floor_is_for_each_lesson() -> None:
    search, _ = await searching()
    every = await search("press save twice", scope=SCOPE, limit=9)
    least = every.matches[1].score
    kept = await Floor(search, least)("press save twice", scope=SCOPE, limit=9)
    assert kept.matches == every.matches[:2]
    found = await Floor(search, 0.99)("press save", scope=SCOPE, limit=9)
    assert found.empty.startswith("nothing reached the floor of 0.99: the closest past task has 0.")


async def test_beside_words_a_retriever_of_lessons_gives_each_experience_the_place_of_its_best() -> None:
    search, store = await searching()
    hybrid = HybridRetriever(search, LexicalRetriever(store))
    assert hybrid.name == "experience/hybrid(lesson/dense, lexical)"
    found = await hybrid("press save twice and water the plants", scope=SCOPE, limit=9)
    assert sorted(m.experience.task for m in found.matches) == sorted(e.task for e in KNOWN)
    assert {m.lesson_id for m in found.matches} == {None}


# --- in a bank -------------------------------------------------------------------------------------------------------


def run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="save", observation="saved"),), answer=task)


async def told(attempts: Any) -> lessonbank.Extraction:
    """Lessons are what the task says after its colon."""
    _, _, lessons = attempts[0].trajectory.task.partition(": ")
    return lessonbank.Extraction(lessons=tuple(Lesson(title="L", content=text) for text in lessons.split("; ")))


TOLD = (
    "order boots: press save twice; the map is on the left",
    "book a flight: press save once; seats are chosen on the last page",
    "water the plants: the can is in the shed",
)


def filled(**options: Any) -> lessonbank.ReasoningBank:
    bank = lessonbank.connect(
        ":memory:", **grouped(extractor=told, **{**OPTIONS, "retrieval": Retrieval(level="lesson"), **options})
    )
    for task in TOLD:
        bank.learn(run(task), outcome="success")
    return bank


def test_a_bank_shows_the_found_lessons_alone_and_its_receipt_names_them() -> None:
    with filled(limit=2) as bank:
        assert bank.settings["retriever"] == "lesson/dense"
        recall = bank.retrieve("press save")
        assert {i.content for i in recall.shown} == {"press save once", "press save twice"}
        assert "the map" not in recall.text
        assert [c.lesson_id for c in recall.candidates] == [i.id for i in recall.lessons]
        assert [c.rank for c in recall.candidates] == [1, 2]
        assert all(why.startswith("found with a score of 0.") for why in recall.why.values())
        assert recall.space == "hashing-v1-512#lessons"
        assert len(bank.retrieve("press save", limit=1).lessons) == 1
        assert bank.admin.reindex() == 0


def test_found_lessons_are_withheld_and_settled_as_any() -> None:
    with filled(limit=5, holdout=0.5) as bank:
        recalls = [bank.retrieve("press save") for _ in range(20)]
        held = [c for recall in recalls for c in recall.candidates if c.withheld]
        assert 20 < len(held) < 80
        for recall in recalls:
            assert {c.probability for c in recall.candidates} == {0.5}
            assert len(recall.candidates) == len(recall.shown) + len(recall.withheld) == 5
            assert not any(lesson.content in recall.text.splitlines() for lesson in recall.withheld)
        bank.learn(run("save the hat: press save again"), recall=recalls[0], outcome="success")
        assert bank.admin.counts().recalls_with_a_run == 1


def test_a_retired_lesson_is_gone_from_the_next_recall_and_a_restored_one_back() -> None:
    with filled(limit=1) as bank:
        (found,) = bank.retrieve("the can is in the shed").lessons
        bank.lessons.retire(found.id, reason="moved")
        assert bank.retrieve("the can is in the shed").lessons != (found,)
        bank.lessons.restore(found.id, reason="not so")
        assert bank.retrieve("the can is in the shed").lessons == (found,)


@pytest.mark.parametrize(
    ("settings", "name", "found"),
    [
        (Retrieval(level="lesson"), "lesson/dense", {"press save twice", "press save once", "the map is on the left"}),
        (Retrieval(level="lesson", floor=0.5), "lesson/dense+floor(0.5)", {"press save twice"}),
        (Retrieval("dense", level="lesson", floor=1.0), "lesson/dense+floor(1)", set[str]()),
    ],
)
def test_settings_compose_as_they_do_for_experiences(settings: Retrieval, name: str, found: set[str]) -> None:
    with filled(retrieval=settings, limit=3) as bank:
        recall = bank.retrieve("press save twice on the left for boots")
        assert recall.retriever == name
        assert {i.content for i in recall.lessons} == found


def test_duplicates_are_still_found_by_their_tasks() -> None:
    with filled(consolidation="recognise") as bank:
        before = len(bank.lessons.list(limit=10_000)[::-1])
        again = bank.learn(run("order boots: press save twice; ask for the bill first"), outcome="success")
        assert [i.content for i in again.lessons] == ["ask for the bill first"]
        assert len(bank.lessons.list(limit=10_000)[::-1]) == before + 1


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"level": "lesson"}, {"embedder": "lexical"}, r"level='lesson'\) needs an embedder"),
        ({"level": "lesson", "by": "hybrid"}, {}, "'dense' only"),
        ({"level": "lesson", "by": "lexical"}, {}, "'dense' only"),
        ({"level": "word"}, {}, "'experience' or 'lesson'"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lessonbank.connect(":memory:", **grouped(retrieval=Retrieval(**settings), **{**OPTIONS, **options}))


def test_a_bank_searched_by_tasks_so_far_is_embedded_when_it_turns_to_lessons(tmp_path: Any) -> None:
    options = {**OPTIONS, "extractor": told, "limit": 1}
    with lessonbank.connect(tmp_path / "bank.db", **grouped(**options)) as bank:
        for task in TOLD:
            bank.learn(run(task), outcome="success")
    with lessonbank.connect(tmp_path / "bank.db", **grouped(retrieval=Retrieval(level="lesson"), **options)) as bank:
        assert bank.admin.reindex() == 5
        assert [i.content for i in bank.retrieve("where is the can in the shed").lessons] == ["the can is in the shed"]
    with lessonbank.connect(tmp_path / "bank.db", **grouped(**options)) as bank:
        assert bank.admin.reindex() == 0
        assert len(bank.retrieve("order boots").lessons) == 2
