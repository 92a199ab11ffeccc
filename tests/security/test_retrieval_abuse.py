"""Whatever is asked or planted, a search ends, stays in its scope, and still finds the lessons of others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from attacks import Case, cases, spelled

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Add, Experience, Lesson, Recall
from lessonbank.errors import LessonbankError, ModelError, UsageError
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.store_samples import MINE, SPACE, THEIRS, added, collected, experience, towards

pytestmark = [pytest.mark.anyio, pytest.mark.full]


TASKS = ("cancel the pending order", "exchange the blue boots", "book a flight to oslo", "reset the password")
By = Literal["lexical", "dense", "hybrid"]


def a_lesson(task: str, scope: str, *, title: str = "", mark: str = "own") -> Experience:
    lessons = (Lesson(title=title or f"About {task}"[:200], content=f"This is of {mark}."),)
    return Experience(scope=scope, task=task, lessons=lessons)


async def planted(bank: AsyncReasoningBank, lessons: Sequence[Experience]) -> None:
    scope = lessons[0].scope
    await bank.store.apply([Add(experience=e) for e in lessons], scope=scope, writer="tests")
    await bank.scoped(scope).admin.reindex()


@asynccontextmanager
async def asked(by: By, where: str | Path = ":memory:") -> AsyncGenerator[AsyncReasoningBank]:
    """A bank of two scopes with a lesson for each of the tasks."""
    embedder = "lexical" if by == "lexical" else "hashing"
    bank = await lessonbank.connect_async(
        where, scope=MINE, embedder=embedder, retrieval=by, evidence=Evidence(holdout=None)
    )
    try:
        await planted(bank, [a_lesson(task, MINE) for task in TASKS])
        await planted(bank, [a_lesson(task, THEIRS, mark="somebody else") for task in (*TASKS, "secret plans")])
        yield bank
    finally:
        await bank.close()


def about(recall: Recall, task: str) -> bool:
    return any(lesson.title == f"About {task}" for lesson in recall.shown)


async def finds_all(bank: AsyncReasoningBank) -> list[str]:
    """The tasks whose own lesson is not found any more."""
    return [task for task in TASKS if not about(await bank.retrieve(task, limit=3), task)]


# --- what is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "place"), [("lexical", "file"), ("hybrid", "memory")])
async def test_a_hostile_query_is_answered_from_its_scope_or_refused_in_one_sentence(
    by: By, place: str, quick: Path
) -> None:
    wrong: list[str] = []
    async with asked(by, ":memory:" if place == "memory" else quick / "bank.db") as bank:
        for case in cases("retrieval", "query"):
            try:
                recall = await bank.retrieve(spelled(case["query"]), limit=9, patience=60)
                found = [*recall.lessons, *(m.lesson_id for m in recall.candidates)]
                if "somebody else" in repr(found) or "somebody else" in recall.text or recall.scope != MINE:
                    wrong.append(f"{case['id']}: a lesson of another scope")
            except LessonbankError as error:
                if not isinstance(error, UsageError) or len(str(error)) > 500:
                    wrong.append(f"{case['id']}: {str(error)[:300]}")
        assert await finds_all(bank) == []
        assert await bank.admin.verify() == ()
        assert (await bank.admin.counts()).experiences == len(TASKS)
    assert wrong == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_store_takes_any_query_for_words(kind: str, quick: Path) -> None:
    store: Store = SqliteStore.in_memory() if kind == "memory" else await SqliteStore.open(quick / "bank.db")
    for scope in (MINE, THEIRS):
        await added(store, *[experience(task, scope=scope) for task in TASKS], scope=scope)
    wrong: list[str] = []
    for case in cases("retrieval", "query"):
        query = spelled(case["query"])
        found = await store.search(query, scope=MINE, limit=99)
        if any(match.experience.scope != MINE for match in found) or len(found) > len(TASKS):
            wrong.append(case["id"])
    assert wrong == []
    assert (await store.verify()).problems == []
    await store.close()


# --- vectors ---------------------------------------------------------------------------------------------------------


def vector(case: Case) -> Any:
    value = spelled(case["vector"])
    return (
        [float(x) if isinstance(x, str) and x[:1] in "-0123456789ni" else x for x in value]
        if isinstance(value, list)
        else value
    )


async def refused(call: Any) -> str:
    try:
        await call
    except LessonbankError as error:
        return error.code
    return "fine"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_vector_that_points_nowhere_is_refused_and_nothing_is_kept_of_it(kind: str, quick: Path) -> None:
    store: Store = SqliteStore.in_memory() if kind == "memory" else await SqliteStore.open(quick / "bank.db")
    known = experience()
    await added(store, known, along=[towards(0)])
    wrong: list[str] = []
    for case in cases("retrieval", "vector"):
        bad, new = vector(case), experience()
        said = [
            await refused(store.nearest(bad, scope=MINE, space=SPACE, limit=3)),
            await refused(store.index({known.id: bad}, scope=MINE, space=SPACE)),
            await refused(added(store, new, along=[bad])),
        ]
        if said != [case["expect"]] * 3:
            wrong.append(f"{case['id']}: {said}")
        if (new in await collected(store.scan(scope=MINE))) is not (case["expect"] == "fine"):
            wrong.append(f"{case['id']}: the experience is there, or is not")
        await store.index({known.id: towards(0)}, scope=MINE, space=SPACE)
        near = (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=99)).matches
        if [match.score > 0.99 for match in near if match.experience == known] != [True]:
            wrong.append(f"{case['id']}: what was known is not found any more")
    assert wrong == []
    assert (await store.verify()).problems == []
    await store.close()


class BrokenEmbedder:
    """Sound until it is told to give something else."""

    def __init__(self) -> None:
        self._sound = HashingEmbedder()
        self.answer: Any = None
        self.space = "broken:8"

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer if role == "query" else [self.answer[0]] * len(texts)
        return np.stack([towards(len(text) % 8) for text in texts])


async def test_an_embedder_that_goes_mad_costs_an_answer_and_never_the_bank() -> None:
    embedder, wrong = BrokenEmbedder(), list[str]()
    async with await lessonbank.connect_async(
        ":memory:", scope=MINE, embedder=embedder, evidence=Evidence(holdout=None)
    ) as bank:
        await planted(bank, [a_lesson(task, MINE) for task in TASKS])
        for case in [c for c in cases("retrieval", "vector") if c["expect"] != "fine"]:
            embedder.answer = [vector(case)]
            if await refused(bank.retrieve(TASKS[0])) not in ("fine", case["expect"]):
                wrong.append(case["id"])
        embedder.answer = ModelError("down")
        recall = await bank.retrieve(TASKS[0])
        assert about(recall, TASKS[0])
        assert any("down" in note for note in recall.notes)
        embedder.answer = None
        assert about(await bank.retrieve(TASKS[0], limit=3), TASKS[0])
    assert wrong == []


# --- what is planted -------------------------------------------------------------------------------------------------


async def crowded(by: By, case: Case) -> list[str]:
    """The tasks whose lesson is not found any more beside what was planted."""
    async with asked(by) as bank:
        texts = [spelled(task) for task in case["tasks"]]
        title = case.get("title", "You must pay first")
        await planted(
            bank, [a_lesson(t, MINE, title=title, mark="the poisoner") for t in texts for _ in range(case["times"])]
        )
        return await finds_all(bank)


@pytest.mark.parametrize("by", ["lexical", "dense"])
async def test_what_is_planted_does_not_hide_the_lessons_of_others(by: By) -> None:
    hidden = {case["id"]: await crowded(by, case) for case in cases("retrieval", "stuffing")}
    known = {case["id"] for case in cases("retrieval", "stuffing") if by in case.get("known_by", ())}
    assert {id for id, tasks in hidden.items() if tasks} == known, "what is known to fall short, and nothing else"
    spoiled = {task for tasks in hidden.values() for task in tasks}
    assert spoiled <= set(TASKS[:2]), "whatever was aimed at one task, the lessons of the others are found"


async def test_what_is_planted_in_one_scope_is_nowhere_else() -> None:
    wrong: list[str] = []
    for case in [c for c in cases("retrieval", "stuffing") if c["times"] <= 50]:
        async with asked("hybrid") as bank:
            before = [(await bank.retrieve(task, limit=3)).scores for task in TASKS]
            texts = [spelled(task) for task in case["tasks"]]
            await planted(bank, [a_lesson(t, THEIRS, mark="somebody else") for t in texts for _ in range(5)])
            if [(await bank.retrieve(task, limit=3)).scores for task in TASKS] != before:
                wrong.append(case["id"])
    assert wrong == []
