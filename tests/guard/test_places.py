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
