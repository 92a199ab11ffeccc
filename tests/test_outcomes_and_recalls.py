"""An outcome counts once and for the recall that its run used; where that is not so, the bank says it by name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Recall
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.evidence import Holdout
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio
TASK = "Cancel the pending order"


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    told = grouped(scope="t", embedder="lexical", holdout=Holdout(0.2, 0.2, seed="s"))
    async with await lessonbank.connect_async(":memory:", **told) as opened:
        await opened.lessons.add(title="Ask first", content="Ask for the order's number.", task=TASK, by="Ana")
        yield opened


def run(task: str = TASK, **more: Any) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="cancel", observation="cancelled"),), answer="done", **more)


async def outcome_of(bank: AsyncReasoningBank, recall: Recall) -> str | None:
    settlement = await settlement_of(bank.store, recall.id, scope="t")
    return settlement and settlement.outcome


async def test_a_run_settles_one_recall_and_a_second_one_stays_open_with_a_note(bank: AsyncReasoningBank) -> None:
    first, second = await bank.retrieve(TASK), await bank.retrieve(TASK)
    one = run()
    await bank.learn(one, recall=first, outcome="success")
    told = await bank.learn(one, recall=second, outcome="success")
    assert await outcome_of(bank, second) is None
    assert [note for note in told.notes if note.startswith("settled before: ")]
    assert (await bank.lift()).settled == 1
    again = await bank.learn(one, recall=first, outcome="failure")
    assert not [note for note in again.notes if note.startswith("settled before: ")]
    assert await outcome_of(bank, first) == "failure"


async def test_a_run_that_was_learned_before_its_recall_was_told_settles_one_recall_too(
    bank: AsyncReasoningBank,
) -> None:
    first, second = await bank.retrieve(TASK), await bank.retrieve(TASK)
    one = run()
    await bank.learn(one, outcome="success")
    assert (await bank.learn(one, recall=first)).notes == ()
    told = await bank.learn(one, recall=second, outcome="failure")
    assert (await outcome_of(bank, first), await outcome_of(bank, second)) == ("failure", None)
    assert [note for note in told.notes if note.startswith("settled before: ")]


async def test_a_learned_run_that_joins_a_recall_which_another_settled_otherwise_is_named(
    bank: AsyncReasoningBank,
) -> None:
    recall, other, one = await bank.retrieve(TASK), run(), run()
    await bank.learn(other, recall=recall, outcome="failure")
    await bank.learn(one, outcome="success")
    told = await bank.learn(one, recall=recall)
    (note,) = [note for note in told.notes if note.startswith("settled again: ")]
    assert one.id[-8:] in note
    assert not re.search(r"[0-9a-f]{9}", note), "a part of an id is enough in a sentence"
    again = await bank.learn(one, recall=recall, outcome="failure")
    assert not [note for note in again.notes if note.startswith("settled again: ")]


async def test_a_pending_run_stays_with_the_recall_that_it_was_handed_in_with(bank: AsyncReasoningBank) -> None:
    first, second = await bank.retrieve(TASK), await bank.retrieve(TASK)
    one = run()
    await bank.learn(one, recall=first, outcome="unknown")
    told = await bank.learn(one, recall=second, outcome="success")
    assert (await outcome_of(bank, first), await outcome_of(bank, second)) == ("success", None)
    assert [note for note in told.notes if note.startswith("settled before: ")]


@pytest.mark.parametrize("known", [False, True])
async def test_a_run_of_another_task_is_named_when_it_is_learned_and_in_the_report(
    bank: AsyncReasoningBank, known: bool
) -> None:
    recall, other = await bank.retrieve(TASK), run("Book a table for two")
    if known:
        await bank.learn(other, outcome="success")
    told = await bank.learn(other, recall=recall, outcome="success")
    assert len([note for note in told.notes if note.startswith("another task: ")]) == 1
    assert "another task: 1 recall was settled by a run of another task" in " ".join((await bank.lift()).notes)


@pytest.mark.full
@pytest.mark.parametrize("task", [TASK, f"  {TASK.upper()}\n", f"{TASK}\nThe order is W1.", "the pending order"])
async def test_the_same_task_in_other_words_around_it_is_no_other_task(bank: AsyncReasoningBank, task: str) -> None:
    told = await bank.learn(run(task), recall=await bank.retrieve(TASK), outcome="success")
    assert not [note for note in told.notes if "another task" in note]
    assert not [note for note in (await bank.lift()).notes if "another task" in note]


async def test_a_task_with_a_secret_is_no_other_task(bank: AsyncReasoningBank) -> None:
    task = f"{TASK} of ana@example.com and bob@example.com"
    told = await bank.learn(run(task), recall=await bank.retrieve(task), outcome="success")
    assert not [note for note in told.notes if "another task" in note]
