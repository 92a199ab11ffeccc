"""A lesson that comes again in the same words is one lesson: its evidence is never split over copies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, Safety
from lessonbank.contracts.records import Add, Change, Experience, Retire
from lessonbank.errors import Conflict
from lessonbank.guard.wording import wording_of

pytestmark = [pytest.mark.anyio, pytest.mark.full]

SEARCHES: list[dict[str, Any]] = [
    {},
    {"embedder": "hashing"},
    {"embedder": "hashing", "retrieval": lessonbank.Retrieval("hybrid")},
    {"embedder": "hashing", "retrieval": lessonbank.Retrieval(level="lesson")},
]
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
        recall = await bank.retrieve("find the invoice number 4", limit=6)
        assert [one.id for one in recall.lessons] == [lesson.id]
        assert recall.candidates[0].score == pytest.approx(1.0)
        assert (await taught(bank, "pay it")).notes == (
            f"taught again, and kept once: the bank had {lesson.id[-8:]!r}",
        )
        assert [again.lesson for again in await bank.lessons.repeats(lesson.id)] == [None] * 6, "and no copy is held"
        await bank.history.rollback(to=6, reason="test")
        kept = [e async for e in bank.store.scan(scope="t")]
        assert [list(e.repeats) for e in kept] == [[], *[[lesson.id]] * 5]


@pytest.mark.parametrize("consolidation", ["append", "recognise"])
async def test_two_connections_that_teach_the_same_at_once_leave_one_lesson(tmp_path: Path, consolidation: Any) -> None:
    learning = lessonbank.Learning(consolidation=consolidation)
    for n in range(3):
        path = tmp_path / f"{n}.db"
        banks = [await connected(path, teaching(), learning=learning) for _ in range(2)]
        await asyncio.gather(*(taught(bank, f"task number {i}") for i, bank in enumerate(banks)))
        assert len(await banks[0].lessons.list(retired=True)) == 1
        assert (await banks[0].admin.counts()).experiences == 2
        assert await banks[0].admin.verify() == ()
        for bank in banks:
            await bank.close()


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


async def test_what_was_retired_does_not_come_back_in_another_form_of_the_same_words() -> None:
    said = "the table, open the page settings and choose landscape, because wide columns are cut off otherwise."
    async with await connected(":memory:", teaching()) as bank:
        for begins in ("Before you export", "Before exporting"):  # the search finds no task of which nothing is shown
            lesson = Lesson(title="Choose landscape", content=f"{begins} {said}")
            await bank.consolidate(Experience(scope="t", task="Export the table of tickets", lessons=(lesson,)))
            for shown in await bank.lessons.list():
                await bank.lessons.retire(shown.id, reason="it harms", by="ann")
        (kept,) = await bank.lessons.list(retired=True)
        assert kept.content.startswith("Before you export")


async def test_an_independent_run_that_teaches_the_same_far_away_corroborates_it() -> None:
    async with await connected(":memory:", teaching(), safety=Safety(trust="corroborated")) as bank:
        await taught(bank, "find the invoice of march")
        for n in range(3):
            await bank.learn("I did nothing.", task=f"unlike {n}", outcome="success")
        await taught(bank, "zebra crossing paint")
        (lesson,) = await bank.lessons.list(state="active")
        assert lesson.content == SAYS


@pytest.mark.parametrize("options", SEARCHES, ids=str)
async def test_a_task_that_taught_a_known_lesson_is_found_and_shows_it_once(options: dict[str, Any]) -> None:
    async with await connected(":memory:", teaching(), **options) as bank:
        for task in ("find the invoice of march", "zebra crossing paint"):
            await taught(bank, task)
        (lesson,) = await bank.lessons.list()
        recall = await bank.retrieve("zebra crossing paint", limit=2)
        assert ([one.id for one in recall.lessons], [c.lesson_id for c in recall.candidates]) == ([lesson.id],) * 2
        if "retrieval" not in options:
            assert recall.candidates[0].score == pytest.approx(1.0, abs=1e-4)
            at = (await bank.history.list())[-1].sequence
            (match, *_) = (await bank.history.retrieve("zebra crossing paint", at=at)).matches
            assert match.experience.lessons == (lesson,)
            assert (await bank.history.retrieve("zebra crossing paint", at=1)).matches == ()
        about = await bank.recalls.explain((await bank.retrieve("violin strings")).id)
        assert len({one.lesson_id for one in about.losers}) == len(about.losers)
        await bank.lessons.edit(lesson.id, content="Reload it after a minute.", by="ana")
        assert "after a minute" in (await bank.retrieve("zebra crossing paint")).text
        await bank.lessons.retire(lesson.id, reason="it harms", by="ana")
        assert (await bank.retrieve("zebra crossing paint")).lessons == ()
        assert await bank.admin.verify() == ()


async def test_a_lesson_that_another_connection_retires_is_found_by_none_of_its_tasks(tmp_path: Path) -> None:
    one, two = [await connected(tmp_path / "bank.db", teaching(), embedder="hashing") for _ in range(2)]
    for task in ("find the invoice of march", "zebra crossing paint"):
        await taught(one, task)
    for again in (False, True):
        (lesson,) = (await one.retrieve("zebra crossing paint")).lessons
        await two.lessons.retire(lesson.id, reason="it harms", by="ana")
        assert (await one.retrieve("zebra crossing paint")).lessons == ()
        if not again:
            await two.lessons.restore(lesson.id, reason="it helps", by="ana")
    await one.close()
    await two.close()


async def test_near_words_that_are_left_out_keep_their_task_in_the_search_too() -> None:
    said = iter([SAYS, SAYS.replace("page is", "pages are").replace("If the", "If")])

    async def extract(attempts: Any, /) -> Extraction:
        return Extraction(lessons=(Lesson(title="Reload an empty page", content=next(said)),))

    learning = lessonbank.Learning(consolidation="recognise")
    async with await connected(":memory:", Parts(extractor=extract), learning=learning) as bank:
        await taught(bank, "find the invoice of march")
        learned = await taught(bank, "find the invoice of april")
        assert (len(learned.lessons), len(learned.notes)) == (0, 1)
        assert (await bank.retrieve("find the invoice of april")).candidates[0].score == pytest.approx(1.0)


async def test_a_person_is_told_which_lesson_has_the_words_already() -> None:
    async with await connected(":memory:", teaching()) as bank:
        await taught(bank, "find the invoice")
        (lesson,) = await bank.lessons.list()
        with pytest.raises(Conflict, match=f"{lesson.id}' says this in the same words"):
            await bank.lessons.add(title="Reload an empty page", content=SAYS.upper(), task="pay", by="ana")
        other = await bank.lessons.add(title="Wait", content="Wait a minute.", task="pay", by="ana")
        with pytest.raises(Conflict, match=lesson.id):
            await bank.lessons.edit(other.id, title="Reload an empty page", content=SAYS, by="ana")
        await bank.lessons.edit(other.id, content="Wait a minute!", by="ana")
        assert len(await bank.lessons.list(retired=True)) == 2


async def test_an_import_brings_a_known_wording_in_as_taught_again(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    async with await connected(":memory:", teaching(), profile="paper") as source:
        for task in ("zebra crossing paint", "violin strings"):
            await taught(source, task)
        assert await source.admin.export(path)
    async with await connected(":memory:", teaching()) as bank:
        await taught(bank, "find the invoice")
        (lesson,) = await bank.lessons.list()
        await bank.admin.import_(path)
        assert [one.id for one in await bank.lessons.list(retired=True)] == [lesson.id]
        for task in ("zebra crossing paint", "violin strings"):
            assert [one.id for one in (await bank.retrieve(task)).lessons] == [lesson.id]
        assert await bank.admin.export(path)
    async with await connected(":memory:", teaching()) as third, await connected(":memory:", teaching()) as fourth:
        await third.admin.import_(path)
        assert [one.id for one in (await third.retrieve("violin strings")).lessons] == [lesson.id]
        await taught(fourth, "boil an egg")
        await fourth.admin.import_(path)
        (own,) = await fourth.lessons.list()
        assert [one.id for one in (await fourth.retrieve("violin strings")).lessons] == [own.id]
        assert [await b.admin.verify() for b in (third, fourth)] == [(), ()]


async def test_a_policy_that_is_refused_again_and_again_leaves_no_copy_either() -> None:
    async def stubborn(new: Experience, /) -> Sequence[Change]:
        return Add(experience=new), Retire(lesson_ids=("gone",), reason="as a policy that looks at an old bank")

    async with await connected(":memory:", Parts(extractor=teaching().extractor, consolidator=stubborn)) as bank:
        for task in ("find the invoice", "pay the bill"):
            learned = await taught(bank, task)
            assert any("appended without consolidation" in note for note in learned.notes)
        assert len(await bank.lessons.list()) == 1


async def test_an_imported_lesson_that_a_run_taught_again_vouches_for_none(tmp_path: Path) -> None:
    """The run that taught it again is no owner of it: else an import would corroborate what is like it."""
    said = iter([SAYS, SAYS, SAYS.replace("page is", "pages are").replace("If the", "If")])

    async def extract(attempts: Any, /) -> Extraction:
        return Extraction(lessons=(Lesson(title="Reload an empty page", content=next(said)),))

    async with await connected(":memory:", Parts(extractor=extract)) as source:
        await taught(source, "find the invoice of march")
        await source.admin.export(tmp_path / "bank.jsonl")
    safety = Safety(trust="corroborated")
    async with await connected(":memory:", Parts(extractor=extract), safety=safety) as bank:
        await bank.admin.import_(tmp_path / "bank.jsonl")
        for task in ("zebra crossing paint", "zebra crossing paints"):
            await taught(bank, task)
        assert {one.state for one in await bank.lessons.list()} == {"probation"}
        assert len(await bank.lessons.list()) == 2


@pytest.mark.full
async def test_a_harmful_lesson_that_every_run_teaches_is_one_lesson_and_is_retired() -> None:
    async with await connected(":memory:", teaching(), evidence=Evidence()) as bank:
        for n in range(1200):
            task = f"open the invoice number {n}"
            recall = await bank.retrieve(task)
            harmed = "Reload an empty page" in recall.text and n % 10 < 9
            await bank.learn("I reloaded it.", task=task, recall=recall, reward=float(not harmed))
            (known,) = await bank.lessons.list(retired=True)
            if known.retired:
                return
        raise AssertionError("it is still shown")
