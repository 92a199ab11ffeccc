"""MiniWoB++ in real Chromium: by the scripted agent, by a model, and as an experiment; the agent's skill without it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from lessonbank.contracts.ports import Message
from lessonbank.errors import UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments.browser_agent import NO_ACTION, Page
from lessonbank_bench.environments.miniwob import TASKS, MiniwobEnvironment, PlainReader, chosen, elements

INSTALLED = all(find_spec(name) is not None for name in ("browsergym", "miniwob"))
SIMPLE = "click-button, enter-text, click-link, focus-text, click-test"


def environment(model: ScriptedModel | None = None, **settings: str | int | float) -> MiniwobEnvironment:
    if not INSTALLED:
        pytest.skip("BrowserGym and MiniWoB++ are not installed: pip install browsergym-miniwob miniwob")
    try:
        return MiniwobEnvironment(model, {"tasks": SIMPLE, **settings})
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def place() -> Iterator[MiniwobEnvironment]:
    made_one = environment(max_steps=3)
    yield made_one
    made_one.close()


def page(goal: str, *lines: str) -> Page:
    return Page(goal, "\n".join(("RootWebArea 'Task', focused", *lines)))


@pytest.mark.parametrize(
    ("goal", "lines", "action"),
    [
        ("Click the button.", ["\t[13] button 'Click Me!'"], "click('13')"),
        ('Click on the "ok" button.', ["\t[1] button 'OK'", "\t[2] button 'ok'"], "click('2')"),
        ('Click on the "Ok" button.', ["\t[1] button 'OK'", "\t[2] button 'no'"], "click('1')"),
        ('Click on the link "sed".', ["\t[1] paragraph ''", "\t\t[9] clickable 'sed'"], "click('9')"),
        ("Focus into the textbox.", ["\t[12] textbox ''"], "focus('12')"),
        ('Enter "Ann" and press Submit.', ["\t[3] textbox ''", "\t[4] button 'Submit'"], "fill('3', 'Ann')"),
        ('Enter "Ann" and press Submit.', ["\t[3] textbox '' value='Ann'", "\t[4] button 'Submit'"], "click('4')"),
        ('Click on the "gone" button.', ["\t[1] button 'here'"], ""),
        ("Draw a circle.", [], ""),
    ],
)
def test_the_scripted_agent_does_what_a_goal_says_in_so_many_words(goal: str, lines: list[str], action: str) -> None:
    assert PlainReader().act(page(goal, *lines)) == action


def test_elements_are_read_off_the_lines_of_a_tree() -> None:
    tree = "RootWebArea 'T'\n\t[1] button \"it's\", clickable\n\tStaticText '[2] button'\n\t[a3] textbox '' value='x'"
    assert elements(tree) == [
        {"mark": "1", "role": "button", "name": "it's", "rest": ", clickable"},
        {"mark": "a3", "role": "textbox", "name": "", "rest": " value='x'"},
    ]


def test_tasks_are_named_by_a_comma_list_and_unknown_ones_refused(tmp_path: Path) -> None:
    for name in TASKS:
        (tmp_path / f"{name}.html").touch()
    assert chosen("", tmp_path) == TASKS
    assert chosen(" click-test,enter-text, ", tmp_path) == ("click-test", "enter-text")
    with pytest.raises(UsageError, match="'miniwob' has no task 'fly'; its tasks are called like choose-list"):
        chosen("click-test, fly", tmp_path)


def test_the_scripted_agent_does_the_simplest_tasks(place: MiniwobEnvironment) -> None:
    jobs = {job.family: job for job in place.tasks(76, 5)}
    assert set(jobs) == set(SIMPLE.split(", "))
    assert {job.group for job in jobs.values()} == {"click", "enter", "focus"}
    for name, job in jobs.items():
        done = place.attempt(job, place.agent(76, anew=False), "")
        assert done.success is True
        assert done.run.steps[0].observations[0].text.startswith(f"{name}.html\n")


def test_a_model_reads_the_page_meets_an_error_and_does_the_task() -> None:
    def reply(messages: Sequence[Message]) -> str:
        asked = messages[-1].content
        if "# What you did so far" not in asked:
            return "The button must be somewhere."
        if "there was no action" in asked:
            return "I try the first.\nclick('999')"
        goal = re.search(r'Click on the "(.+?)" button', asked)
        mark = re.search(rf"\[(\w+)\] button '{goal and goal[1]}'", asked)
        return f"There it is.\nclick('{mark and mark[1]}')"

    model = ScriptedModel(reply)
    place = environment(model, tasks="click-button", temperature=0.7)
    try:
        job = place.tasks(2, 1)[0]
        finished = place.attempt(job, place.agent(2, anew=False), "Buttons are small.")
    finally:
        place.close()
    assert finished.success is True
    actions = [step.action.text for step in finished.run.steps]
    assert actions[:3] == ["", NO_ACTION, "click('999')"]
    assert "Could not find element with bid" in finished.run.steps[2].observations[0].text
    assert "Could not find element with bid" in model.calls[2].prompt
    assert all(call.messages[0].content.endswith("Buttons are small.") for call in model.calls)
    assert {call.temperature for call in model.calls} == {0.7}
    assert finished.run.usage.requests == 3
    assert "upload_file" not in finished.run.instructions
    assert "goto(" not in finished.run.instructions
