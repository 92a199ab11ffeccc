"""A lesson that helps with some tasks is kept for these; a person decides it, and can take it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Lesson
from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio
REFUND, REBOOK = "Refund the ticket 17", "Rebook the ticket 18"


by_tasks_and_by_lessons = pytest.mark.parametrize("bank", ["tasks", "lessons"], indirect=True)


@pytest.fixture
async def bank(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncReasoningBank]:
    told: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None, "floor": 0}
    if getattr(request, "param", "tasks") == "lessons":
        told |= {"embedder": "hashing", "level": "lesson"}
    async with await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**told)) as opened:
        yield opened


async def taught(bank: AsyncReasoningBank) -> Lesson:
    return await bank.lessons.add(title="Ticket", content="Ask for the ticket's number.", task=REFUND, by="Ana")


async def shown(bank: AsyncReasoningBank, task: str) -> list[str]:
    return [lesson.title for lesson in (await bank.retrieve(task)).shown]


@by_tasks_and_by_lessons
async def test_a_lesson_is_shown_only_for_the_tasks_it_is_kept_for(bank: AsyncReasoningBank) -> None:
    lesson = await taught(bank)
    assert await shown(bank, REBOOK) == ["Ticket"]
    narrowed = await bank.lessons.narrow(lesson.id, to=["REFUND ticket", "pay back"], by="Ana", reason="harms others")
    assert narrowed.only_for_tasks == ("REFUND ticket", "pay back")
    assert (narrowed.content, narrowed.approved, narrowed.state) == (lesson.content, True, "active")
    assert await shown(bank, REFUND) == await shown(bank, "Pay the ticket back to Ana") == ["Ticket"]
    assert await shown(bank, REBOOK) == []
    assert "kept for other tasks" in " ".join((await bank.retrieve(REBOOK)).notes)


@by_tasks_and_by_lessons
async def test_another_lesson_takes_the_place_of_one_that_is_kept_for_other_tasks(bank: AsyncReasoningBank) -> None:
    lesson = await taught(bank)
    await bank.lessons.add(title="Other", content="Look at the ticket's fare rules.", task="Change a ticket", by="Ana")
    await bank.lessons.narrow(lesson.id, to="refund", by="Ana")
    assert await shown(bank, REBOOK) == ["Other"]


@by_tasks_and_by_lessons
async def test_it_is_undone_by_narrowing_to_nothing_and_by_a_rollback(bank: AsyncReasoningBank) -> None:
    lesson = await taught(bank)
    at = (await bank.history.list())[0].sequence
    await bank.lessons.narrow(lesson.id, to="refund", by="Ana")
    await bank.lessons.narrow(lesson.id, to=(), by="Ana")
    assert await shown(bank, REBOOK) == ["Ticket"]
    await bank.lessons.narrow(lesson.id, to="refund", by="Ana")
    await bank.history.rollback(to=max(at, 2), reason="undo")
    assert await shown(bank, REBOOK) == ["Ticket"]
    assert await bank.admin.verify() == ()


async def test_an_edit_leaves_what_it_is_kept_for_and_both_are_in_the_journal(bank: AsyncReasoningBank) -> None:
    lesson = await taught(bank)
    await bank.lessons.narrow(lesson.id, to="refund", by="Ana")
    edited = await bank.lessons.edit(lesson.id, content="Ask for the number, then wait.", by="Ana")
    assert (edited.only_for_tasks, edited.version) == (("refund",), 3)
    assert await bank.admin.verify() == ()
    sequence = max(entry.sequence for entry in await bank.history.list())
    assert (await bank.history.state(sequence)).get(lesson.id).only_for_tasks == ("refund",)


@pytest.mark.parametrize("to", ["17", ["refund", " # "], 3, [4]])
async def test_words_that_name_no_task_are_refused(bank: AsyncReasoningBank, to: Any) -> None:
    lesson = await taught(bank)
    with pytest.raises(UsageError, match="to="):
        await bank.lessons.narrow(lesson.id, to=to, by="Ana")
    assert (await bank.lessons.get(lesson.id)).only_for_tasks == ()


async def test_what_changes_nothing_or_names_no_lesson_is_refused(bank: AsyncReasoningBank) -> None:
    lesson = await taught(bank)
    with pytest.raises(Conflict):
        await bank.lessons.narrow(lesson.id, to=(), by="Ana")
    with pytest.raises(NotFound):
        await bank.lessons.narrow("nobody", to="refund", by="Ana")
    with pytest.raises(UsageError):
        await bank.lessons.narrow(lesson.id, to="refund", by=" ")


async def test_a_purge_takes_what_a_lesson_was_kept_for_out_of_the_file(
    bank: AsyncReasoningBank, tmp_path: Path
) -> None:
    lesson = await taught(bank)
    await bank.lessons.narrow(lesson.id, to="zebracrossing", by="Ana")
    await bank.admin.purge(lesson=lesson.id, by="Ana", reason="erasure request")
    await bank.close()
    assert not any(b"zebracrossing" in file.read_bytes() for file in tmp_path.glob("bank.db*"))


async def test_an_export_carries_what_a_lesson_is_kept_for(bank: AsyncReasoningBank, tmp_path: Path) -> None:
    lesson = await taught(bank)
    await bank.lessons.narrow(lesson.id, to="refund", by="Ana")
    await bank.admin.export(tmp_path / "export.jsonl")
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as other:
        await other.admin.import_(tmp_path / "export.jsonl")
        assert (await other.lessons.get(lesson.id)).only_for_tasks == ("refund",)
