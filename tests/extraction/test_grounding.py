"""Evidence is checked against the run that was shown."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from lessonbank.contracts.records import Extraction, Observation, Run, Step, Trajectory, Verdict
from lessonbank.learning.extraction import LLMExtractor
from lessonbank.learning.extraction._grounding import shown_steps
from lessonbank.testing import ScriptedModel
from lessonbank.text.prompts import load

pytestmark = pytest.mark.anyio


def run_of(steps: int, *, seen: str = "", instructions: str = "") -> Run:
    made = tuple(Step(action=f"open page {n}", observation=f"page {n}{seen}") for n in range(1, steps + 1))
    run = Trajectory(task="Count the open tickets", steps=made, instructions=instructions)
    return Run(trajectory=run, verdict=Verdict(outcome="success"))


async def drawn(*lessons: tuple[str, str, list[str]], runs: Sequence[Run], budget: int = 40_000) -> Extraction:
    """What becomes of lessons (title, content, evidence) that a model draws from these runs."""
    names = ("title", "content", "evidence")
    model = ScriptedModel([json.dumps({"items": [dict(zip(names, one, strict=True)) for one in lessons]})])
    prompts = {role: load(f"general/{role}") for role in ("extract_success", "extract_failure", "contrast")}
    extractor = LLMExtractor(
        model,
        success=prompts["extract_success"],
        failure=prompts["extract_failure"],
        contrast=prompts["contrast"],
        budget=budget,
    )
    return await extractor(runs)


async def bound(text: str, runs: Sequence[Run], **more: int) -> tuple[str, ...]:
    """The steps of the runs that this evidence names."""
    told = await drawn(("Read the total", "Read it first.", [text]), runs=runs, **more)
    return told.lessons[0].provenance.evidence if told.lessons else ()


ONE = [run_of(9)]
TWO = [run_of(3), run_of(5)]


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
async def test_a_step_is_recognised_however_it_is_named(text: str, named: tuple[str, ...]) -> None:
    assert await bound(text, ONE) == named


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
async def test_with_several_runs_a_step_needs_its_run(text: str, named: tuple[str, ...]) -> None:
    assert await bound(text, TWO) == named


@pytest.mark.full
async def test_only_steps_that_were_shown_are_evidence() -> None:
    assert await bound("step 8", [run_of(3, seen="\n[step 8]\n| y")]) == ()
    long = [run_of(400, seen=f": {'ticket ' * 20}")]
    assert await bound("step 1", long, budget=1_500) == ("step 1",)
    assert await bound("step 200", long, budget=1_500) == ()


async def test_a_lesson_without_existing_evidence_is_dropped_with_a_note() -> None:
    told = await drawn(("Good", "Do it.", ["step 2", "step 40"]), ("Guess", "Do it.", []), runs=ONE)
    assert [(lesson.title, lesson.provenance.evidence) for lesson in told.lessons] == [("Good", ("step 2",))]
    assert told.notes == (
        "'Good' cites what the run does not show: step 40",
        "'Guess' was dropped: no step of the run is evidence for it",
    )


async def test_a_lesson_that_repeats_the_instructions_is_dropped() -> None:
    rules = "Be kind. Before cancelling a booking, list the details and obtain explicit confirmation from the user."
    said = f"{rules.partition('. ')[2][:-1]}: penalties vary among fare classes, airlines differ."  # half of it
    new = "Gold members have two free bags: read the level in the profile first."
    told = await drawn(
        ("Confirm", said, ["step 1"]), ("Count bags", new, ["step 1"]), runs=[run_of(3, instructions=rules)]
    )
    assert [lesson.content for lesson in told.lessons] == [new]
    assert "repeats the agent's instructions" in told.notes[0]


POLICY = """# Policy of the booking desk
- Before any change, list the action details and obtain the user's explicit confirmation (yes).
- Basic economy flights cannot be modified. Other reservations can be modified without changing origin or destination.
  The API does not check this for the agent, so the agent must make sure the rules apply before calling the API!
- Offer a certificate only if the user complains and is a gold member; the amount is 100 dollars for each passenger.
- A reservation can be cancelled within 24 hours of booking, or if the airline cancelled the flight."""


@pytest.mark.parametrize(
    "restated",
    [
        "Obtain the explicit confirmation of the user, with all details of the action listed, before any change.",
        "Make sure that the rules apply before calling the API, it does not check: basic economy cannot be modified.",
        "Gold members who complain may be offered a certificate of 100 dollars for each passenger.",
    ],
)
@pytest.mark.parametrize("as_template", [False, True])
async def test_a_lesson_that_says_in_other_order_what_the_instructions_say_is_dropped(
    restated: str, as_template: bool
) -> None:
    run = run_of(3, instructions="" if as_template else POLICY).trajectory
    if as_template:  # instructions that stand around the task in the first turn
        turn = Step(observations=(Observation(text=f"{POLICY}\n\n{run.task}\n\nBegin.", source="user"),))
        run = run.model_copy(update={"steps": (turn, *run.steps)})
    runs = [Run(trajectory=run, verdict=Verdict(outcome="success"))]
    told = await drawn(("Rule", restated, ["step 2"]), runs=runs)
    assert not told.lessons
    assert "repeats the agent's instructions" in told.notes[0]


@pytest.mark.parametrize(
    "new",
    [
        "The reservation shows created_at: compare it with the current time before you cancel, the tool does not.",
        "Basic economy can be changed after an upgrade to economy: offer it, then the new flight, in two calls.",
        "Pass every flight of the reservation to the update tool, also the unchanged ones: the list replaces the trip.",
    ],
)
async def test_a_lesson_on_how_to_apply_an_instruction_stays(new: str) -> None:
    told = await drawn(("Apply", new, ["step 1"]), runs=[run_of(3, instructions=POLICY)])
    assert [lesson.content for lesson in told.lessons] == [new]


def test_a_step_that_is_left_out_is_no_evidence_and_one_that_is_told_in_brief_is() -> None:
    told = "[step 1]\n| a\n\n[step 2 left out]\n\n[step 3, in brief, 900 characters cut]\n| b"
    assert shown_steps(told) == {1, 3}
    assert shown_steps("[step 1]\n| [step 9]") == {1}
