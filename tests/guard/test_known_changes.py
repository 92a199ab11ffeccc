"""What a consolidator was given is redacted already; what it wrote itself is redacted, wherever it puts it."""

from __future__ import annotations

from typing import Any

import pytest

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Add, Change, Duplicate, Neighbour, Replace, RunRef, Verdict
from lessonbank.contracts.records.repeats import taught_again
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting

pytestmark = pytest.mark.anyio
SECRET = "ask jane.doe@example.com"
FIRST, SECOND = Lesson(title="Check it", content="Read it twice."), Lesson(title="Save it", content="Press save.")
GIVEN = Experience(
    scope="s",
    task="Order 7",
    lessons=(FIRST, SECOND),
    attempts=(RunRef(trajectory_id="r", verdict=Verdict(outcome="success"), n_steps=1),),
    template="Order",
    metadata={"user": "u"},
)


def repeating(told: dict[str, tuple[Duplicate, ...]]) -> Experience:
    return GIVEN.model_copy(update={"lessons": (FIRST,), "repeats": told})


REPEATED = repeating({"held": (taught_again(SECOND, "the same words", words=True),)})


async def redacted(change: Change) -> tuple[Change, list[str]]:
    """The change, and the texts that the redactor was asked to read."""
    read: list[str] = []
    plain = Redacting()

    def redactor(text: str, /) -> str:
        read.append(text)
        return plain(text)

    (told,) = await IntakeFilter(redactor).changes([change], given=GIVEN)
    return told, read


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        (GIVEN, []),
        (GIVEN.model_copy(update={"lessons": (FIRST.model_copy(update={"near": "held"}), SECOND)}), []),
        (GIVEN.model_copy(update={"lessons": ()}), []),
        (REPEATED, ["held"]),
        (repeating({"held": (taught_again(SECOND, "why", words=False),)}), ["held", "why"]),
    ],
)
async def test_what_is_only_left_out_is_not_redacted_again(kept: Experience, read: list[str]) -> None:
    change = Add(experience=kept)
    assert await redacted(change) == (change, read)


def with_entry(**more: Any) -> Experience:
    return repeating({"held": (taught_again(SECOND, "the same words", words=True).model_copy(update=more),)})


@pytest.mark.parametrize(
    "kept",
    [
        GIVEN.model_copy(update={"task": SECRET}),
        GIVEN.model_copy(update={"lessons": (FIRST.model_copy(update={"content": SECRET}), SECOND)}),
        GIVEN.model_copy(update={"lessons": (FIRST, SECOND, Lesson(title="New", content=SECRET))}),
        GIVEN.model_copy(update={"metadata": {"user": "u", "more": SECRET}}),
        GIVEN.model_copy(update={"metadata": {"user": SECRET}}),
        GIVEN.model_copy(update={"metadata": {"user": "u", "repeats": SECRET}}),
        GIVEN.model_copy(update={"template": SECRET}),
        GIVEN.model_copy(update={"not_recognised": {FIRST.id: Neighbour(lesson_id="held", why=SECRET)}}),
        GIVEN.model_copy(update={"not_merged": {FIRST.id: Neighbour(lesson_id="held", why=SECRET)}}),
        repeating({SECRET: ()}),
        repeating({SECRET: (taught_again(SECOND, "why", words=True),)}),
        repeating({"held": (taught_again(SECOND, SECRET, words=True),)}),
        repeating({"held": (taught_again(FIRST.model_copy(update={"content": SECRET}), "why", words=True),)}),
        with_entry(title=SECRET),
        with_entry(evidence=(SECRET,)),
        with_entry(lesson=SECOND.model_copy(update={"place": SECRET})),
    ],
)
async def test_what_a_consolidator_wrote_itself_is_redacted(kept: Experience) -> None:
    told, _ = await redacted(Add(experience=kept))
    assert "jane.doe" not in told.model_dump_json()
    assert "[e-mail 1]" in told.model_dump_json()


async def test_what_comes_in_the_place_of_another_is_redacted_with_its_reason() -> None:
    told, _ = await redacted(Replace(experience=GIVEN, reason=SECRET))
    assert told == Replace(experience=GIVEN, reason="ask [e-mail 1]")


async def test_an_answer_without_a_reason_holds_nothing_to_redact() -> None:
    read: list[str] = []

    def redactor(text: str, /) -> str:
        read.append(text)
        return text

    intake = IntakeFilter(redactor)
    assert await intake.reply(Verdict(outcome="success")) == Verdict(outcome="success")
    assert not read
    assert (await intake.reply(Verdict(outcome="success", reason="done"))).reason == "done"
    assert read == ["done"]
