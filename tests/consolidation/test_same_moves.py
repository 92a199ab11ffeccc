"""Lessons that were drawn by form: the same moves for a task in other words are one, for another task they are two."""

from __future__ import annotations

import pytest

import lessonbank
from lessonbank import Action, Evidence, Lesson, Observation, Step, ToolCall, Trajectory
from lessonbank.contracts.records import Kind, Provenance
from lessonbank.guard.gate import EXTRACTIVE
from lessonbank.learning.consolidation.recognise import deduplicate

WORKED = 'This order worked (what was seen in brackets): step 1: `find` ("{seen}"); step 2: `{tool}`.'
FAILED = 'The run ended when `{tool}` failed ("{seen}"); do not end on it like this.'


def drawn(task: str, content: str, kind: Kind = "strategy", method: str = EXTRACTIVE) -> Lesson:
    return Lesson(
        title=f"What worked: {task}",
        description=f"For a task like: {task}",
        content=content,
        kind=kind,
        provenance=Provenance(method=method),
    )


def worked(task: str, tool: str = "cancel", seen: str = "returned: id") -> Lesson:
    return drawn(task, WORKED.format(tool=tool, seen=seen))


def failed(task: str, seen: str = "denied") -> Lesson:
    return drawn(task, FAILED.format(tool="cancel", seen=seen), "guardrail")


def same_moves(new: Lesson, known: Lesson) -> bool:
    """Whether `known` stands for `new` by its moves alone, and not by its words."""
    found = deduplicate([new], [known]).repeats
    return "the same moves, for a task in other words" in str(found)


KNOWN = "For the billing desk, cancel case <case>."


@pytest.mark.parametrize(
    "task",
    ["Please cancel case <case>, which is with the billing desk.", "The billing desk asks you to cancel case <case>."],
)
def test_the_same_moves_for_a_task_in_other_words_are_one_lesson(task: str) -> None:
    assert same_moves(worked(task), worked(KNOWN))
    assert same_moves(worked(task, seen="returned: id, name"), worked(KNOWN))
    assert same_moves(failed(task), failed(KNOWN))
    assert same_moves(worked(KNOWN), worked(task)), "asking words name no target"


@pytest.mark.parametrize(
    "new",
    [
        worked("For the travel desk, cancel case <case>."),
        worked("For the billing desk, close case <case>."),
        worked("For the billing desk, do not cancel case <case>."),
        worked("For the billing desk, cancel only case <case>."),
        worked("For the billing desk, cancel 2 of case <case>."),
        worked(KNOWN, tool="close"),
        failed(KNOWN),
        drawn(KNOWN, WORKED.format(tool="cancel", seen="returned: id"), method="llm"),
    ],
    ids=lambda lesson: lesson.description[:60],
)
def test_another_target_an_opposite_and_other_moves_are_two_lessons(new: Lesson) -> None:
    assert not same_moves(new, worked(KNOWN))


def test_an_error_that_says_something_else_is_another_lesson() -> None:
    assert not same_moves(failed(KNOWN, seen="not found"), failed(KNOWN))


def test_a_lesson_that_says_more_of_its_task_does_not_stand_for_one_that_says_less() -> None:
    """Else whoever words a task with further targets could keep the lessons of others out."""
    more = worked("For the billing desk, cancel case <case> and tell the warehouse.")
    assert not same_moves(worked(KNOWN), more)
    assert same_moves(more, worked(KNOWN))


def test_without_a_model_runs_of_a_task_in_other_words_teach_one_lesson() -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        for task in ("For the billing desk, cancel case A-1234.", "The billing desk asks you to cancel case B-2345."):
            bank.learn(ran(task), outcome="success")
        (known,) = bank.lessons.list()
        (again,) = bank.lessons.repeats(known.id)
        assert again.why == "the same words"
        assert bank.retrieve("The billing desk asks you to cancel case C-3456.").lessons == (known,)


def ran(task: str) -> Trajectory:
    case = task.rstrip(".").rsplit(" ", 1)[1]
    calls = [(name, ToolCall(id=name, name=name, arguments={"case": case})) for name in ("find_case", "cancel")]
    return Trajectory(
        task=task,
        steps=tuple(
            Step(action=Action(calls=(call,)), observations=(Observation(text=f'{{"{name}": "yes"}}', call_id=name),))
            for name, call in calls
        ),
        answer="Done.",
    )
