"""The name of a place stays in a lesson that says it holds there; a person's name never does."""

from __future__ import annotations

import pytest

from lessonbank.contracts.records import AppliesTo, Extraction, Lesson, Reach, Run, Step, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate


def kept(name: str, task: str, reach: Reach = "place") -> str:
    """What the gate lets in of a lesson that names somebody or something; empty where it rejects it."""
    lesson = Lesson(
        title=f"Check the prefix for {name}",
        content=f"Before the commit for {name} read the message of the hook, which names the prefix it takes.",
        applies_to=AppliesTo(reach=reach, name=name),
    )
    run = Run(trajectory=Trajectory(task=task, steps=(Step(action="look"),)), verdict=Verdict(outcome="failure"))
    told = LessonGate()(Extraction(lessons=(lesson,)), [run], shown=())
    return told.lessons[0].text if told.lessons else ""


@pytest.mark.parametrize(
    ("name", "task", "reach"),
    [
        ("Orchard Pricing", "In Orchard Pricing, set the constant to another value", "place"),
        ("Orchard Pricing", "In Marlow's Orchard Pricing, set the constant", "place"),
        ("Marlow", "In Marlow's Orchard Pricing, set the constant", "organisation"),
        ("Tide Tables", "Rename a function in the repository Tide Tables, please", "place"),
    ],
)
def test_a_place_that_one_works_in_keeps_its_name(name: str, task: str, reach: Reach) -> None:
    assert name in kept(name, task, reach)


@pytest.mark.parametrize(
    ("name", "task", "reach"),
    [
        ("Jane Roe", "Refund the order of Jane Roe", "place"),
        ("Jane Roe", "Change the address in Jane Roe's account", "place"),
        ("Jane Roe", "In Jane Roe's account, change the address", "organisation"),
        ("Jane Roe", "Send the parcel to Jane Roe in Leeds", "place"),
        ("Jane Roe", "In Jane Roe, set the constant", "record"),
    ],
)
def test_a_person_is_no_place_whatever_the_lesson_says(name: str, task: str, reach: Reach) -> None:
    assert "Jane" not in kept(name, task, reach)
    assert "Roe" not in kept(name, task, reach)


def from_marlow(content: str, name: str, reach: Reach = "place") -> str:
    """What the gate lets in of a lesson of a task in Marlow's Tide Tables."""
    lesson = Lesson(title="A note before the hand-in", content=content, applies_to=AppliesTo(reach=reach, name=name))
    run = Run(
        trajectory=Trajectory(task="In Marlow's Tide Tables, set the constant", steps=(Step(action="look"),)),
        verdict=Verdict(outcome="success"),
    )
    told = LessonGate()(Extraction(lessons=(lesson,)), [run], shown=())
    return told.lessons[0].content if told.lessons else ""


def test_a_lesson_of_a_place_is_kept_without_the_name_of_the_places_owner() -> None:
    content = "In Marlow's Tide Tables the note has six lines. Other rooms of Marlow's take two; ask Marlow first."
    assert from_marlow(content, "Tide Tables") == (
        "In Tide Tables the note has six lines. Other rooms of <owner>'s take two; ask <owner> first."
    )


def test_a_lesson_of_an_organisation_may_name_the_place_in_which_it_was_met() -> None:
    content = "A note of Marlow has six lines; in Tide Tables the prefix was not faulted."
    assert from_marlow(content, "Marlow", "organisation") == content
