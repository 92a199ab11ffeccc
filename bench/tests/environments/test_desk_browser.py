"""The closed world in real Chromium is the closed world: same rewards, same steps, same runs."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from lessonbank.contracts.records import Usage
from lessonbank.demo import desk
from lessonbank.demo.agents import Agent
from lessonbank.errors import UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments import Finished, Job
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.desk_browser import PAGE, DeskBrowserEnvironment, what_the_page_is_told
from lessonbank_bench.environments.llm_player import LLMAgent

SEED = 3
INSTALLED = find_spec("browsergym") is not None


@pytest.fixture(scope="module")
def browser() -> Iterator[DeskBrowserEnvironment]:
    if not INSTALLED:
        pytest.skip("BrowserGym is not installed: pip install browsergym-core")
    try:
        place = DeskBrowserEnvironment()
    except UsageError as error:
        pytest.skip(str(error))
    yield place
    place.close()


class Obedient:
    """Presses what it was told to, in that order."""

    instructions = thought = ""
    usage = Usage()

    def __init__(self, *presses: str) -> None:
        self._presses = iter(presses)

    def start(self, memory: str, /) -> None:
        """It has its orders."""

    def act(self, view: desk.View, /) -> str:
        return next(self._presses)


def facts(finished: Finished) -> tuple[dict[str, Any], bool | None]:
    return finished.run.model_dump(exclude={"id"}), finished.success


def both(browser: DeskBrowserEnvironment, place: int, memory: str, agents: tuple[Agent, Agent]) -> list[Any]:
    pure = DeskEnvironment()
    tasks: list[Job] = [environment.tasks(SEED, place + 1)[place] for environment in (browser, pure)]
    return [
        facts(environment.attempt(task, agent, memory))
        for environment, task, agent in zip((browser, pure), tasks, agents, strict=True)
    ]


@pytest.mark.parametrize(("place", "known"), [(0, True), (1, False)])
def test_the_scripted_agent_makes_the_same_run_in_the_browser(
    browser: DeskBrowserEnvironment, place: int, known: bool
) -> None:
    goal = desk.stream(SEED, place + 1)[place].goal
    memory = desk.truth(desk.world(SEED), goal) if known else ""
    agents = tuple(environment.agent(SEED, anew=False) for environment in (browser, DeskEnvironment()))
    in_browser, pure = both(browser, place, memory, agents)  # type: ignore[arg-type]
    assert in_browser == pure
    assert pure[1] is known


def test_every_press_has_the_same_answer_and_what_is_no_control_costs_one_too(browser: DeskBrowserEnvironment) -> None:
    task = desk.stream(SEED, 1)[0]
    first, second = desk.world(SEED).form(task).order
    presses = (desk.SUBMIT, "no such control", f"Open {task.record}", second, first, "Fly", second, "Standard")
    in_browser, pure = both(browser, 0, "", (Obedient(*presses), Obedient(*presses)))
    assert in_browser == pure
    assert len(pure[0]["steps"]) == 1 + len(presses)


def test_a_language_model_plays_the_same_in_the_browser(browser: DeskBrowserEnvironment) -> None:
    task = desk.stream(SEED, 1)[0]
    form = desk.world(SEED).form(task)
    presses = (f"Open {task.record}", *form.order, form.choice, desk.SUBMIT)
    replies = [f"That is next.\n{press}" for press in presses]
    models = ScriptedModel(replies), ScriptedModel(replies)
    in_browser, pure = both(browser, 0, "", (LLMAgent(models[0]), LLMAgent(models[1])))
    assert in_browser == pure
    assert pure[1] is True
    assert [call.prompt for call in models[0].calls] == [call.prompt for call in models[1].calls]


def test_closed_twice_it_starts_anew_and_leaves_no_event_loop_in_the_callers_thread(
    browser: DeskBrowserEnvironment,
) -> None:
    browser.close()
    browser.close()
    task = browser.tasks(SEED, 1)[0]
    finished = browser.attempt(task, Obedient(f"Open {task.content.record}", desk.SUBMIT), "")
    assert finished.success is False
    assert asyncio.run(asyncio.sleep(0, "free")) == "free"


def test_the_page_is_never_told_which_choice_is_right() -> None:
    task = desk.stream(SEED, 1)[0]
    form = desk.world(SEED).form(task)
    told = [what_the_page_is_told(task, dataclasses.replace(form, choice=choice)) for choice in desk.CHOICES]
    assert told[0] == told[1] == told[2]
    assert all(label not in PAGE.read_text(encoding="utf-8") for label in (*desk.CHOICES, *desk.LABELS))
