"""A lesson is an echo if a receipt says that memory showed it to the run, and not because a line looks so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import Extraction, Lesson, Recall, Rejected, Run, Step, Trajectory

pytestmark = pytest.mark.anyio

TASK = "Cancel the pending order of a customer"
KNOWN = "Read the status of the order before it is changed: a shipped order can be returned only, not cancelled."
NEW = "Ask for the reason of the cancellation first, because the form drops what was typed when it is reloaded."


class Drawn:
    """An extractor that draws the lesson it holds."""

    title, content = "Read the status first", KNOWN

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        return Extraction(lessons=(Lesson(title=self.title, content=self.content),))


async def bank_of(draws: Drawn) -> AsyncReasoningBank:
    bank = await lessonbank.connect_async(
        ":memory:",
        scope="acme/support",
        embedder="lexical",
        evidence=lessonbank.Evidence(holdout=None),
        learning=lessonbank.Learning(consolidation="append"),
        parts=lessonbank.Parts(extractor=draws),
    )
    await bank.learn(Trajectory(task=TASK, steps=(Step(action="cancel", observation="shipped"),)), outcome="success")
    return bank


async def learned(bank: AsyncReasoningBank, seen: str = "done", *, recall: Recall | None = None) -> list[Rejected]:
    """What was turned away of the lesson that is drawn from a run that saw a text."""
    run = Trajectory(task=f"{TASK} in {len(seen)} steps", steps=(Step(action="look", observation=seen),))
    told = await bank.learn(run, recall=recall, outcome="success")
    assert told.experience
    return list(told.experience.rejected)


LINES = {
    "a commit log": "$ git log --format='%h| %s'\ndeadbeef| {}\n0a1b2c3d| Fix the parser",
    "a table with eight digits": "12345678| {}\n12345679| ok",
    "a block of somebody else": "<<<lessons deadbeef>>>\n~~~\ndeadbeef| [1] strategy: Read\ndeadbeef|   {}\n~~~\n"
    "<<<end lessons deadbeef>>>",
}


@pytest.mark.parametrize("look", LINES)
@pytest.mark.parametrize("told", [True, False])
async def test_a_tool_output_that_looks_like_a_block_makes_no_echo(look: str, told: bool) -> None:
    draws = Drawn()
    async with await bank_of(draws) as bank:
        recall = await bank.retrieve(TASK) if told else None
        draws.title, draws.content = "Ask for the reason", NEW
        assert await learned(bank, LINES[look].format(NEW), recall=recall) == []


async def test_a_run_without_a_recall_has_no_echo() -> None:
    async with await bank_of(Drawn()) as bank:
        assert (await bank.retrieve(TASK)).text, "memory has shown it, but to another run"
        assert await learned(bank) == []


async def test_what_the_named_recall_showed_is_an_echo() -> None:
    draws = Drawn()
    async with await bank_of(draws) as bank:
        recall = await bank.retrieve(TASK)
        assert [one.rule for one in await learned(bank, recall=recall)] == ["echo"]
        code = recall.text.split("<<<lessons ")[1][:8]
        draws.title, draws.content = "What helped", f"{code}| [1] strategy: Status\n{code}|   {KNOWN}"
        assert [one.rule for one in await learned(bank, "again", recall=recall)] == ["echo"]


@pytest.mark.parametrize(
    ("content", "is_echo"),
    [
        (KNOWN.replace("before", "after"), False),
        (KNOWN.replace("order", "parcel"), False),
        (KNOWN.replace("only, not", "or"), False),
        (KNOWN.replace(": a", ", since one that is a"), True),
        (f"Read the state of an order before you change it. {KNOWN}", True),
    ],
    ids=["turned around", "of another thing", "without its denial", "an addition", "with a preface"],
)
async def test_what_turns_a_shown_lesson_around_is_no_echo(content: str, is_echo: bool) -> None:
    """A twisted lesson that is shown would keep the true one out."""
    draws = Drawn()
    async with await bank_of(draws) as bank:
        recall = await bank.retrieve(TASK)
        draws.content = content
        assert [one.rule for one in await learned(bank, recall=recall)] == ["echo"] * is_echo


async def test_an_echo_in_letters_of_another_alphabet_is_one() -> None:
    draws = Drawn()
    async with await bank_of(draws) as bank:
        recall = await bank.retrieve(TASK)
        draws.title, draws.content = "In other letters", KNOWN.translate(str.maketrans("aeocp", "аеоср"))
        assert [one.rule for one in await learned(bank, recall=recall)] == ["echo"]


@pytest.mark.parametrize("part", ["whole", "without its end", "without its beginning", "quoted"])
async def test_a_block_that_stands_in_a_run_is_known_by_its_receipt(part: str) -> None:
    async with await bank_of(Drawn()) as bank:
        text = (await bank.retrieve(TASK)).text
        opening = text.index("<<<lessons ")
        code = text[opening + 11 : opening + 19]
        shown = {
            "whole": text,
            "without its end": text[: text.index("~~~\n<<<end")],
            "without its beginning": text[text.index(f"{code}| ") :],
            "quoted": "\n".join(f"> {line}" for line in text.split("\n")),
        }[part]
        log = "\n".join(f"{number:08x}| Fix it" for number in range(100))
        assert [one.rule for one in await learned(bank, f"{log}\nmy notes:\n{shown}")] == ["echo"]


async def test_a_recall_that_showed_nothing_makes_no_echo() -> None:
    async with await bank_of(Drawn()) as bank:
        recall = await bank.retrieve("Repair the printer on the third floor")
        assert recall.text == ""
        assert await learned(bank, recall=recall) == []


async def test_a_receipt_of_another_scope_makes_no_echo() -> None:
    async with await bank_of(Drawn()) as bank:
        text = (await bank.retrieve(TASK)).text
        assert await learned(bank.scoped("acme/sales"), text) == []
