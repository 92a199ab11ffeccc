"""A lesson that comes again in the same words is one lesson: its evidence is never split over copies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, Safety
from lessonbank.errors import Conflict
from lessonbank.guard.wording import wording_of
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, experience, refused
from lessonbank.types import Add

pytestmark = pytest.mark.anyio

SAYS = "If the page is empty, reload it once."


def teaching(content: str = SAYS, title: str = "Reload an empty page") -> Parts:
    async def extract(attempts: Any, /) -> Extraction:
        return Extraction(lessons=(Lesson(title=title, content=content),))

    return Parts(extractor=extract)


async def connected(where: str | Path, parts: Parts, **more: Any) -> lessonbank.AsyncReasoningBank:
    options: dict[str, Any] = {"scope": "t", "embedder": "lexical", "evidence": Evidence(holdout=None)} | more
    return await lessonbank.connect_async(where, parts=parts, **options)


async def taught(bank: lessonbank.AsyncReasoningBank, task: str) -> lessonbank.Learned:
    return await bank.learn("I reloaded it.", task=task, outcome="success")


@pytest.mark.parametrize(
    "again",
    [
        SAYS,
        SAYS.upper(),
        SAYS.rstrip("."),
        f"  {SAYS}\n",
        SAYS.replace(" ", "\u00a0"),
        SAYS.replace("page", "pa\u200bge"),
        SAYS.replace("page", "ｐａｇｅ"),
        f"“{SAYS}”".replace("“", '"').replace("”", '"'),
    ],
)
def test_case_blanks_invisible_signs_and_punctuation_at_the_ends_make_no_other_wording(again: str) -> None:
    assert wording_of(Lesson(title="reload", content=again)) == wording_of(Lesson(title="Reload.", content=SAYS))


@pytest.mark.parametrize("other", [SAYS.replace("once", "twice"), SAYS.replace("once", "not once"), SAYS + " Wait."])
def test_another_word_makes_another_wording(other: str) -> None:
    assert wording_of(Lesson(title="Reload", content=other)) != wording_of(Lesson(title="Reload", content=SAYS))


async def test_a_lesson_that_every_run_teaches_is_kept_once_and_told_of() -> None:
    async with await connected(":memory:", teaching()) as bank:
        for n in range(6):
            await taught(bank, f"find the invoice number {n}")
        (lesson,) = await bank.lessons.list()
        kept = [e async for e in bank.store.scan(scope="t")]
        assert [list(e.metadata.get("repeats") or ()) for e in kept] == [[], *[[lesson.id]] * 5]


async def test_the_published_method_keeps_every_copy() -> None:
    async with await connected(":memory:", teaching(), profile="paper") as bank:
        for n in range(3):
            await taught(bank, f"find the invoice number {n}")
        assert len(await bank.lessons.list()) == 3


@pytest.mark.parametrize("consolidation", ["append", "skip_duplicates"])
async def test_two_connections_that_teach_the_same_at_once_leave_one_lesson(tmp_path: Path, consolidation: Any) -> None:
    learning = lessonbank.Learning(consolidation=consolidation)
    for n in range(5):
        path = tmp_path / f"{n}.db"
        banks = [await connected(path, teaching(), learning=learning) for _ in range(2)]
        await asyncio.gather(*(taught(bank, f"task number {i}") for i, bank in enumerate(banks)))
        assert len(await banks[0].lessons.list(retired=True)) == 1
        assert (await banks[0].admin.counts()).experiences == 2
        assert await banks[0].admin.verify() == ()
        for bank in banks:
            await bank.close()


async def test_the_store_refuses_a_copy_that_came_meanwhile_only_where_it_is_asked_to() -> None:
    store = SqliteStore.in_memory()
    one, other = Add(experience=experience("one")), Add(experience=experience("other"))
    await store.apply([one], scope=MINE, writer="tests", one_wording=True)
    with refused(Conflict):
        await store.apply([other], scope=MINE, writer="tests", one_wording=True)
    (owner,) = await store.worded([wording_of(other.experience.lessons[0])], scope=MINE)
    assert owner == one.experience
    await store.apply([other], scope=MINE, writer="tests")
    assert await store.worded([], scope=MINE) == []
    await store.close()


async def test_what_was_retired_does_not_come_back_as_a_copy() -> None:
    async with await connected(":memory:", teaching()) as bank:
        await taught(bank, "find the invoice")
        (lesson,) = await bank.lessons.list()
        await bank.lessons.retire(lesson.id, reason="it harms", by="ann")
        await taught(bank, "pay the bill")
        assert [i.id for i in await bank.lessons.list(retired=True)] == [lesson.id]
        assert (await bank.retrieve("pay the bill")).lessons == ()
        await bank.lessons.restore(lesson.id, by="ann", reason="it helps")
        assert [i.id for i in (await bank.retrieve("find the invoice")).lessons] == [lesson.id]


async def test_an_independent_run_that_teaches_the_same_far_away_corroborates_it() -> None:
    async with await connected(":memory:", teaching(), safety=Safety(trust="corroborated")) as bank:
        await taught(bank, "find the invoice of march")
        for n in range(3):
            await bank.learn("I did nothing.", task=f"unlike {n}", outcome="success")
        await taught(bank, "zebra crossing paint")
        (lesson,) = await bank.lessons.list(state="active")
        assert lesson.content == SAYS


@pytest.mark.full
async def test_a_harmful_lesson_that_every_run_teaches_is_one_lesson_and_is_retired() -> None:
    async with await connected(":memory:", teaching(), evidence=Evidence()) as bank:
        for n in range(1200):
            task = f"open the invoice number {n}"
            recall = await bank.retrieve(task)
            harmed = "Reload an empty page" in recall.text and n % 10 < 6
            await bank.learn("I reloaded it.", task=task, recall=recall, reward=float(not harmed))
            (known,) = await bank.lessons.list(retired=True)
            if known.retired:
                return
        raise AssertionError("it is still shown")
