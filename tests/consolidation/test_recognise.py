"""A lesson that runs teach again: it is kept once, it can be seen where it came from, and taken apart."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Learning, Lesson, Parts
from lessonbank.contracts.records import Duplicate, Provenance, Replace
from lessonbank.contracts.store_calls import get_experience
from lessonbank.errors import ModelError, NotFound, UsageError
from lessonbank.learning.consolidation.recognise import deduplicate
from lessonbank.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SAYS = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
IN_FORM = "A search that finds nothing may have a stale index; run rebuild once. Then search again!"
NEAR = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
OPPOSITE = "A search that finds nothing may have a stale index. Do not run `rebuild`, then search again."
MORE = (
    "When a search comes back empty, the index may be stale: run `rebuild` once, wait 30 seconds and repeat the search."
)
TASKS = ("find the invoice of march", "find the invoice of april", "find the invoice of may")


async def connected(
    contents: Iterable[str | tuple[str, ...]], model: Any = None, **options: Any
) -> lessonbank.AsyncReasoningBank:
    """A bank whose runs teach these contents, one after the other."""
    said = ([each] if isinstance(each, str) else each for each in contents)

    async def extract(attempts: Any, /) -> Extraction:
        lessons = [Lesson(title="Rebuild a stale index", content=content) for content in next(said)]
        return Extraction(lessons=tuple(lessons))

    options = {"scope": "t", "embedder": "lexical", "evidence": Evidence(holdout=None)} | options
    return await lessonbank.connect_async(":memory:", model=model, parts=Parts(extractor=extract), **options)


async def learned(bank: lessonbank.AsyncReasoningBank, *outcomes: str) -> list[lessonbank.Learned]:
    told: list[Any] = list(outcomes)
    return [
        await bank.learn("I looked for it.", task=task, outcome=outcome)
        for task, outcome in zip(TASKS, told, strict=False)
    ]


def test_what_is_held_or_comes_twice_is_left_out_and_its_evidence_is_remembered() -> None:
    held, other = Lesson(title="Rebuild a stale index", content=SAYS), Lesson(title="Greet", content="Greet them.")
    again = held.model_copy(update={"id": "again", "provenance": Provenance(evidence=("step 3",))})
    found = deduplicate([again, other, other.model_copy(update={"id": "twice"})], [held])
    assert found.lessons == (other,)
    assert {id: repeat.evidence for id, (repeat,) in found.repeats.items()} == {held.id: ("step 3",), other.id: ()}


async def test_what_was_taken_out_does_not_come_back_in_another_form_where_its_task_is_found() -> None:
    """A task is found while it has a lesson that may be shown."""
    async with await connected([(SAYS, "Greet the customer."), IN_FORM]) as bank:
        (known, _) = (await learned(bank, "success"))[0].lessons
        await bank.lessons.retire(known.id, reason="it harms", by="Ana")
        again = await bank.learn("I looked for it.", task=TASKS[1], outcome="success")
        assert (again.lessons, len(await bank.lessons.repeats(known.id))) == ((), 1)


async def test_by_default_a_lesson_in_another_form_is_the_old_one_taught_again() -> None:
    async with await connected([SAYS, IN_FORM]) as bank:
        assert bank.settings["consolidation"] == "recognise"
        first, second = await learned(bank, "success", "failure")
        (known,) = await bank.lessons.list()
        assert (first.lessons, second.lessons) == ((known,), ())
        assert second.notes == (f"taught again, and kept once: the bank had {known.id[-8:]!r}",)
        (again,) = await bank.lessons.repeats(known.id)
        assert second.experience is not None
        assert (again.experience_id, again.task) == (second.experience.id, TASKS[1])
        assert [run.verdict.outcome for run in again.runs] == ["failure"]
        assert again.lesson is not None and again.lesson.content == IN_FORM
        assert (await bank.retrieve(TASKS[1])).lessons == (known,)
        assert known.content == SAYS


async def test_without_a_model_a_paraphrase_is_a_lesson_of_its_own() -> None:
    async with await connected([SAYS, NEAR]) as bank:
        await learned(bank, "success", "success")
        assert len(await bank.lessons.list()) == 2


async def test_a_model_may_recognise_a_paraphrase_and_its_call_is_counted() -> None:
    async with await connected([SAYS, NEAR], ScriptedModel(['{"same": true}'])) as bank:
        _, second = await learned(bank, "success", "success")
        (known,) = await bank.lessons.list()
        (again,) = await bank.lessons.repeats(known.id)
        assert known.content == SAYS
        assert again.lesson is not None and again.lesson.content == NEAR
        assert "in other words" in again.why
        assert second.usage.requests == 1


@pytest.mark.parametrize(
    "answer",
    [
        '```json\n{"same": true}\n```',
        f"<think>{'The first says to run it again. ' * 90}</think>\n" + '{"same": true}',
        f"<think>{'The first says to run it again. ' * 2_000}</think>\n" + '{"same": true}',
        'Both ask for the same.\n\n{"same": true}',
        "{'same': True}",
        '{"same": true,}',
    ],
)
async def test_a_yes_behind_thoughts_in_prose_or_in_a_fence_joins_the_two(answer: str) -> None:
    async with await connected([SAYS, NEAR], ScriptedModel([answer])) as bank:
        _, second = await learned(bank, "success", "success")
        assert (len(await bank.lessons.list()), second.lessons) == (1, ())


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ('{"same": false}', ""),
        ('The lesson says {"same": true}, and I do not think so. {"same": false}', "neither yes nor no"),
        ('{"same": true', "neither yes nor no"),
        ('<think>{"same": true}</think>', "neither yes nor no"),
        (ModelError("down"), "the model failed: down"),
        ("Yes, certainly", "neither yes nor no"),
        ('{"same": "true"}', "neither yes nor no"),
        ('{"same": true} {"same": false}', "neither yes nor no"),
    ],
)
async def test_anything_but_a_clear_yes_keeps_both_and_what_failed_and_what_it_cost_is_told(
    answer: str | BaseException, note: str
) -> None:
    async with await connected([SAYS, NEAR], ScriptedModel([answer])) as bank:
        _, second = await learned(bank, "success", "success")
        assert len(await bank.lessons.list()) == 2
        assert second.usage.requests == isinstance(answer, str)
        assert len(second.notes) == bool(note) and note in "".join(second.notes)


@pytest.mark.parametrize("content", [OPPOSITE, MORE])
async def test_nobody_is_asked_about_a_contradiction_or_what_would_be_lost(content: str) -> None:
    model = ScriptedModel([])
    async with await connected([SAYS, content], model) as bank:
        await learned(bank, "success", "success")
        assert len(await bank.lessons.list()) == 2 and not model.calls


async def test_a_recognised_lesson_is_split_off_again_and_both_are_found() -> None:
    async with await connected([SAYS, IN_FORM]) as bank:
        _, second = await learned(bank, "success", "success")
        (known,) = await bank.lessons.list()
        assert second.experience is not None
        (apart,) = await bank.lessons.split(known.id, second.experience.id, reason="it is another index", by="Ana")
        assert (apart.content, apart.state) == (IN_FORM, "probation")
        assert await bank.lessons.repeats(known.id) == ()
        assert (await bank.retrieve(TASKS[1], limit=1)).lessons == (apart,)
        assert isinstance((await bank.history.list())[-1].entry, Replace)
        with pytest.raises(UsageError, match="in other words"):
            await bank.lessons.split(known.id, second.experience.id, reason="again")
        with pytest.raises(NotFound):
            await bank.lessons.repeats("nothing")
        assert await bank.admin.verify() == ()


async def test_a_rollback_undoes_a_recognition() -> None:
    async with await connected([SAYS, IN_FORM]) as bank:
        await learned(bank, "success", "success")
        (known,) = await bank.lessons.list()
        await bank.history.rollback(to=1, reason="undo")
        assert await bank.lessons.repeats(known.id) == ()


async def test_a_purge_of_a_lesson_takes_the_words_it_came_again_in() -> None:
    async with await connected([SAYS, IN_FORM]) as bank:
        _, second = await learned(bank, "success", "success")
        (known,) = await bank.lessons.list()
        await bank.admin.purge(lesson=known.id, by="Ana", reason="asked to")
        assert second.experience is not None
        left = await get_experience(bank.store, second.experience.id, scope="t")
        assert IN_FORM not in json.dumps(left.model_dump(mode="json"))


async def test_what_was_split_off_is_no_more_trusted_than_any_new_lesson() -> None:
    """An imported file may say that a repeat was approved."""
    forged = Lesson(title="Forged", content="Forged.", state="active", approved=True)
    async with await connected([SAYS, IN_FORM], learning=Learning()) as bank:
        _, second = await learned(bank, "success", "success")
        (known,) = await bank.lessons.list()
        assert second.experience is not None
        told = {known.id: (Duplicate(title="x", why="x", lesson=forged),)}
        change = Replace(experience=second.experience.model_copy(update={"repeats": told}), reason="test")
        await bank.store.apply([change], scope="t", writer="test")
        (apart,) = await bank.lessons.split(known.id, second.experience.id, reason="test")
        assert ((await bank.lessons.get(apart.id)).state, apart.approved) == ("probation", False)
