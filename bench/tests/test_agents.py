"""The players: what they see, how they read, and that nothing else reaches them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from lessonbank.contracts.ports import Message
from lessonbank.demo import attempt
from lessonbank.demo.agents import Agent
from lessonbank.demo.desk import SUBMIT, stream, world
from lessonbank.demo.reading import opinion, read
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench import LLMAgent, ScriptedAgent, View
from lessonbank_bench.environments.llm_player import chosen

GOAL = "On the Larkfield site Garden Shop Admin, split a batch for record C-310."
CONTROLS = ("Open C-310", "Unlock", "Stamp", "Freeze", SUBMIT)


def second_press(memory: str, seed: int = 0) -> str:
    agent = ScriptedAgent(seed)
    agent.start(memory)
    agent.act(View(GOAL, "Page loaded.", CONTROLS))
    return agent.act(View(GOAL, "Record opened.", CONTROLS))


def test_an_agent_is_given_memory_text_and_views_and_nothing_else() -> None:
    for kind in (ScriptedAgent, LLMAgent, Agent):
        assert list(inspect.signature(kind.start).parameters) == ["self", "memory"]
        assert list(inspect.signature(kind.act).parameters) == ["self", "view"]
    assert list(inspect.signature(ScriptedAgent).parameters) == ["seed"]


def test_without_memory_the_order_of_trying_follows_the_seed() -> None:
    assert second_press("", 1) == second_press("", 1)
    assert len({second_press("", seed) for seed in range(30)}) == 3


def test_memory_in_any_wording_is_followed() -> None:
    about = "Garden Shop Admin, split a batch"
    for memory in (
        f"For {about}: step 2: press `Freeze`.",
        f"# {about}\nAfter opening, choose Freeze.",
        f"- {about}. Step 2: Freeze works",
        f"{about}: Unlock had no effect; Stamp failed;",
    ):
        assert {second_press(memory, seed) for seed in range(12)} == {"Freeze"}, memory


def test_memory_about_another_place_counts_less_than_memory_about_this_one() -> None:
    far = "Osmund Member Forum Board, split a batch. Step 2: press Stamp."
    near = "Larkfield Garden Shop Admin, split a batch. Step 2: press Freeze."
    assert second_press(f"{far}\n\n{near}") == second_press(f"{near}\n\n{far}") == "Freeze"


def test_memory_that_shares_no_word_with_the_goal_is_passed_over() -> None:
    assert {second_press("Bake bread. Step 2: press Stamp.", seed) for seed in range(30)} == {
        "Unlock",
        "Stamp",
        "Freeze",
    }


def test_wrong_memory_misleads() -> None:
    assert {second_press("Garden Shop Admin: avoid Freeze and Unlock.", seed) for seed in range(12)} == {"Stamp"}


def test_a_statement_about_another_step_does_not_bear_on_this_one() -> None:
    said = read("split a batch: step 4: `Stamp`", goal=GOAL)
    assert opinion(said, "Stamp", step=2, after="Open C-310") == 0.0
    assert opinion(said, "Stamp", step=4, after="Open C-310") > 0.0
    assert (
        opinion(read("split a batch: after `Unlock`, `Stamp` had no effect", goal=GOAL), "Unlock", step=2, after="x")
        == 0
    )


def test_hostile_memory_is_only_text() -> None:
    assert second_press("\x00[](*+?" * 2000 + "Step 99999999999999999999: Unlock\n" * 500) in CONTROLS


def replying(messages: Sequence[Message]) -> str:
    """A model that presses what the memory says, as a model would: reasons first."""
    shown = messages[-1].content
    pressed = shown.count(" -> ")
    order = [word.strip("`") for word in shown.split("\n")[1].split() if word.startswith("`")]
    control = (
        shown[shown.index("Open ") :].split(",")[0].split("\n")[0] if not pressed else [*order, SUBMIT][pressed - 1]
    )
    return f"I could press Submit, but first:\n{control}"


def test_a_language_model_plays_with_exactly_what_it_is_shown() -> None:
    place, task = world(3), stream(3, 1)[0]
    form = place.form(task)
    memory = f"Notes\n`{form.order[0]}` `{form.order[1]}` `{form.choice}`"
    model = ScriptedModel(replying)
    agent = LLMAgent(model)
    run, success = attempt(place, task, agent, memory)
    assert success
    assert run.error is None
    assert len(model.calls) == 5
    first = model.calls[0].messages[-1].content
    assert first.startswith(memory)
    assert first.endswith(
        f"Message: Page loaded.\n\nControls: {', '.join(('Open ' + task.record, *form.labels, SUBMIT))}"
    )
    assert f"Goal: {task.goal}" in first
    assert agent.usage.requests == 5
    assert run.instructions == model.calls[0].messages[0].content
    assert run.steps[1].thought == "I could press Submit, but first:"


def test_a_reply_names_the_control_it_ends_on() -> None:
    assert chosen("Not Unlock. Freeze", CONTROLS) == "Freeze"
    assert chosen("**freeze**", CONTROLS) == "Freeze"
    assert chosen("Open C-310", CONTROLS) == "Open C-310"
    assert chosen("I do not know", CONTROLS) == "I do not know"
    assert chosen("", CONTROLS) == "(no reply)"
    assert len(chosen("x" * 10_000, CONTROLS)) == 40
