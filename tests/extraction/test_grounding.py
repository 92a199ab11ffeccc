"""Evidence is checked against the run that was shown."""

from __future__ import annotations

import pytest

from lessonbank.learning.extraction._grounding import bind, grounded, shown_steps
from lessonbank.learning.extraction.parsing import Draft

ONE = [frozenset(range(1, 10))]
TWO = [frozenset({1, 2, 3}), frozenset({1, 2, 3, 4, 5})]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("step 7", ("step 7",)),
        ("[step 7]", ("step 7",)),
        ("Steps 2, 3 and 5", ("step 2", "step 3", "step 5")),
        ("steps 3-5", ("step 3", "step 5")),
        ("step 4: the tool said 500", ("step 4",)),
        ("7", ("step 7",)),
        ("run 1, step 2", ("step 2",)),
        ("the answer", ()),
        ("step 99", ()),
        ("step 0", ()),
        ("5 of the rows", ()),
    ],
)
def test_a_step_is_recognised_however_it_is_named(text: str, named: tuple[str, ...]) -> None:
    assert bind([text], ONE)[0] == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("run 2, step 3", ("run 2, step 3",)),
        ("step 3 of run 2", ("run 2, step 3",)),
        ("run 1 step 2, run 2 steps 4 and 5", ("run 1, step 2", "run 2, step 4", "run 2, step 5")),
        ("run 1, step 4", ()),
        ("run 3, step 1", ()),
        ("step 1", ()),
    ],
)
def test_with_several_runs_a_step_needs_its_run(text: str, named: tuple[str, ...]) -> None:
    assert bind([text], TWO)[0] == named


def test_only_headings_of_our_own_count_as_shown_steps() -> None:
    rendered = "[task]\n| x\n\n[step 1]\n| [step 8]\n\n[steps 2–3 left out]\n\n[step 4, in brief]\n| y"
    assert shown_steps(rendered) == {1, 4}


def test_a_lesson_without_existing_evidence_is_dropped_with_a_note() -> None:
    drafts = [Draft("Good", "", "Do it.", evidence=("step 2", "step 40")), Draft("Guess", "", "Do it.", evidence=())]
    kept, notes = grounded(drafts, shown=ONE, instructions="")
    assert [(draft.title, draft.evidence) for draft in kept] == [("Good", ("step 2",))]
    assert notes == [
        "'Good' cites what the run does not show: step 40",
        "'Guess' was dropped: no step of the run is evidence for it",
    ]


def test_a_lesson_that_repeats_the_instructions_is_dropped() -> None:
    rules = "Be kind. Before cancelling a booking, list the details and obtain explicit confirmation from the user."
    said = Draft(
        "Confirm",
        "",
        "Before cancelling a booking, list the details and obtain explicit confirmation.",
        None,
        ("step 1",),
    )
    new = Draft(
        "Count bags", "", "Gold members have two free bags: read the level in the profile first.", None, ("step 1",)
    )
    kept, notes = grounded([said, new], shown=ONE, instructions=rules)
    assert kept == [new]
    assert "repeats the agent's instructions" in notes[0]
