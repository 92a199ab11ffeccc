"""A group of lessons that is shown to harm is taken back as one change, and only where nothing speaks against it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Lesson
from lessonbank.contracts.records import Add, Candidate, Experience, GroupDraw, Recall, Retire, Settlement

pytestmark = [pytest.mark.anyio, pytest.mark.full]

T = "acme/desk"
WIDE, TOPIC = "source/guardrail", "topic/refunds"
IDS = tuple(f"refund-{n}" for n in range(8))


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    async with await lessonbank.connect_async(":memory:", scope=T, embedder="lexical") as made:
        await keep(made, *IDS)
        yield made


async def keep(bank: AsyncReasoningBank, *ids: str) -> None:
    lessons = tuple(Lesson(id=id, title=f"Title of {id}", content=f"Content of {id}.") for id in ids)
    await bank.store.apply(
        [Add(experience=Experience(scope=T, task="Refund it", lessons=lessons))], scope=T, writer="tests"
    )


async def found(bank: AsyncReasoningBank, id: str, number: int, *, helps: bool, withheld: bool, **more: Any) -> None:
    """One recall of one lesson: its topic was withheld or not, and its task ended as that says."""
    candidate = Candidate(lesson_id=id, experience_id="e", score=1.0, rank=1, shown=not withheld, groups=(WIDE, TOPIC))
    draw = GroupDraw(group=TOPIC, withheld=withheld, probability=0.5)
    wide = GroupDraw(group=WIDE, withheld=False, probability=0.0)
    recall = Recall(id=f"{id} {number}", scope=T, task="Refund it", candidates=(candidate,), groups=(wide, draw))
    await bank.store.save_recall(recall)
    told = {"source": "ground_truth"} | more
    settled = Settlement(recall_id=recall.id, scope=T, outcome="success" if helps != withheld else "failure", **told)
    await bank.store.apply([], scope=T, writer="tests", settlement=settled)


async def played(
    bank: AsyncReasoningBank, ids: tuple[str, ...], *, n: int = 96, helps: bool = False, **more: Any
) -> None:
    """Every recall is of the next lesson, and every other round is withheld."""
    for number in range(n):
        id = ids[number % len(ids)]
        await found(bank, id, number, helps=helps, withheld=bool(number // len(ids) % 2), **more)


async def acted(bank: AsyncReasoningBank) -> list[Any]:
    return list((await bank.parts.ledger.on_outcome(scope=T)).changes)


async def shown(bank: AsyncReasoningBank) -> set[str]:
    return {lesson.id for lesson in await bank.lessons.list(limit=100)}


async def test_it_is_taken_back_as_one_change_that_one_rollback_undoes(bank: AsyncReasoningBank) -> None:
    await keep(bank, "other")
    await played(bank, IDS)
    (change,) = await acted(bank)
    assert isinstance(change, Retire)
    assert (set(change.lesson_ids), change.group) == (set(IDS), TOPIC)
    assert "shown to harm: success -" in change.reason
    assert await shown(bank) == {"other"}
    last = max(entry.sequence for entry in await bank.history.list())
    await bank.history.rollback(to=last - 1, reason="I know better", by="Ana")
    assert await shown(bank) == {*IDS, "other"}
    await played(bank, ("other",), n=40, helps=True)
    assert await shown(bank) == {*IDS, "other"}


async def test_no_single_lesson_could_be_judged_by_so_few_recalls(bank: AsyncReasoningBank) -> None:
    await played(bank, IDS)
    lift = await bank.lift()
    assert [one.standing for one in lift.groups] == ["harms"] * 2
    assert {one.standing for one in lift.lessons} == {"no evidence yet"}


async def test_what_a_person_approved_stays_and_is_proposed(bank: AsyncReasoningBank) -> None:
    await bank.lessons.approve(IDS[0], by="Ana")
    await played(bank, IDS)
    (change,) = await acted(bank)
    assert set(change.lesson_ids) == set(IDS[1:])
    assert await shown(bank) == {IDS[0]}
    assert [one.lesson.id for one in await bank.lessons.proposals()] == [IDS[0]]


async def test_it_stays_while_one_of_its_lessons_seems_to_help(bank: AsyncReasoningBank) -> None:
    await played(bank, IDS[1:], n=168)
    chance = random.Random(1)
    for number in range(40):
        await found(bank, IDS[0], number, helps=True, withheld=chance.random() < 0.5)
    assert not [change for change in await acted(bank) if isinstance(change, Retire)]
    assert await shown(bank) == set(IDS)
    lift = await bank.lift()
    assert {one.lesson_id: one.standing for one in lift.lessons}[IDS[0]] in ("helps", "likely helps")
    assert {one.standing for one in lift.groups} == {"harms"}


async def test_a_lesson_that_comes_later_is_not_taken_back_for_what_the_others_did(bank: AsyncReasoningBank) -> None:
    await played(bank, IDS)
    assert len(await acted(bank)) == 1
    await keep(bank, "newcomer")
    await played(bank, ("newcomer",), n=24, helps=True)
    assert await acted(bank) == []
    assert await shown(bank) == {"newcomer"}


async def test_the_word_of_a_judge_takes_nothing_back(bank: AsyncReasoningBank) -> None:
    await played(bank, IDS, source="judge", judge="j")
    assert await acted(bank) == []
    assert await shown(bank) == set(IDS)
    lift = await bank.lift()
    assert (lift.groups[0].standing, lift.groups[0].success.basis) == ("harms", "judge")
    assert "Does memory help? No, by the judge: " in str(lift)


async def test_a_restored_group_is_not_taken_back_a_second_time(bank: AsyncReasoningBank) -> None:
    await played(bank, IDS)
    assert len(await acted(bank)) == 1
    await bank.lessons.restore(*IDS, reason="I know better", by="Ana")
    await played(bank, tuple(IDS[::-1]), n=192)
    assert await acted(bank) == []
    assert await shown(bank) == set(IDS)
