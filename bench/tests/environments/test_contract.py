"""What every environment promises an experiment, asked of each that can be run where the tests run.

An environment that is not registered, or whose package, browser or data is not here, is skipped with its own sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from lessonbank.contracts.ports import LanguageModel
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments import ENVIRONMENTS, Environment, Finished, Job, Settings, environment
from lessonbank_bench.environments.settings import told

SCRIPTED = ("desk", "null", "repo-desk", "house-rules", "desk-browser", "miniwob", "agentdojo", "scienceworld")
"""Those with an agent of fixed skill: they run without a model."""
ASKING = ("desk", "repo-desk", "house-rules", "desk-browser", "miniwob", "agentdojo", "scienceworld")
"""Those that show a model what it acts on."""
SLOW = frozenset({"desk-browser", "miniwob", "scienceworld"})
"""Seconds an attempt, in a browser or in Java."""
MEMORY = "In the archive room, lamp 7 stands left of the blue door."
TELLS = re.compile(r"\b(install|set|needs|give|name one|choose|point|pass|run)\b")
SEED = 7


def made(name: str, model: LanguageModel | None = None, settings: Settings | None = None) -> Environment:
    if name not in ENVIRONMENTS:
        pytest.skip(f"{name} is not registered")
    try:
        return environment(name, model, settings)
    except LessonbankError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=SCRIPTED)
def place(request: pytest.FixtureRequest) -> Iterator[Environment]:
    one = made(request.param)
    yield one
    one.close()


@pytest.fixture(scope="module")
def played(place: Environment) -> tuple[Job, Finished, Finished]:
    """A task, attempted by two agents of one seed."""
    job = place.tasks(SEED, 1)[0]
    first = place.attempt(job, place.agent(SEED, anew=False), "")
    return job, first, place.attempt(job, place.agent(SEED, anew=False), "")


def few(place: Environment, usual: int) -> int:
    """So many tasks; of an environment that opens a page for each, a third."""
    return usual // 3 if place.name in SLOW else usual


def facts(jobs: Any) -> list[tuple[Any, ...]]:
    return [(job.id, job.seed, job.goal, job.family, job.group) for job in jobs]


def deeds(done: Finished) -> list[tuple[str, tuple[Any, ...]]]:
    return [(step.action.text, step.action.calls) for step in done.run.steps]


def test_one_seed_gives_the_same_tasks_in_the_same_order(place: Environment) -> None:
    number = few(place, 9)
    first = facts(place.tasks(SEED, number))
    assert facts(place.tasks(SEED, number)) == first
    again = made(place.name)
    assert facts(again.tasks(SEED, number)) == first
    again.close()


def test_more_tasks_begin_with_the_same(place: Environment) -> None:
    first, more = place.tasks(SEED, 2), place.tasks(SEED, few(place, 12))
    assert len(first) == 2
    assert facts(first) == facts(more)[:2]
    assert list(place.tasks(SEED, 0)) == []


def test_tasks_have_ids_of_their_own_a_goal_and_a_family(place: Environment) -> None:
    jobs = place.tasks(SEED, few(place, 24))
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(job.seed == SEED for job in jobs)
    assert all(job.goal.strip() and job.family for job in jobs)


def test_tasks_of_two_seeds_are_not_mistaken_for_one_another(place: Environment) -> None:
    number = few(place, 9)
    assert not {job.id for job in place.tasks(SEED, number)} & {job.id for job in place.tasks(SEED + 1, number)}


def test_agents_of_equal_seeds_attempt_equally(played: tuple[Job, Finished, Finished]) -> None:
    _, first, second = played
    assert first.success == second.success
    assert deeds(first) == deeds(second)


def test_a_run_is_of_its_task_and_says_what_was_done(played: tuple[Job, Finished, Finished]) -> None:
    job, done, _ = played
    assert done.run.task == job.goal
    assert done.success in (True, False, None)
    assert any(text or calls for text, calls in deeds(done))
    assert all(isinstance(number, int | float) and math.isfinite(number) for number in done.scores.values())


def test_a_run_and_its_scores_can_be_written_down(played: tuple[Job, Finished, Finished]) -> None:
    _, done, _ = played
    assert type(done.run).model_validate_json(done.run.model_dump_json()) == done.run


def test_another_draw_of_the_agent_is_still_an_agent(place: Environment) -> None:
    job = place.tasks(SEED, 1)[0]
    assert place.attempt(job, place.agent(SEED, anew=True), "").run.task == job.goal


def test_memory_of_any_content_is_borne(place: Environment) -> None:
    job = place.tasks(SEED, 1)[0]
    memories = ["\x1b[31m\x00\u202e</lessons>{}%s$(true)`", "never press this. " * 20_000]
    for memory in memories[:1] if place.name in SLOW else memories:
        assert place.attempt(job, place.agent(SEED, anew=False), memory).run.task == job.goal


def test_the_version_is_told_and_depends_on_who_acts(place: Environment) -> None:
    assert place.version.strip()
    assert "\n" not in place.version
    if place.name in ASKING:
        versions = [made(place.name, ScriptedModel([], name=name)).version for name in ("one", "two")]
        assert len({place.version, *versions}) == 3


def test_a_memory_is_made_by_name_and_an_unknown_name_is_refused(place: Environment) -> None:
    memory = place.memories.make("none", SEED, limit=3)
    assert memory.recall("anything") == ""
    memory.close()
    if place.name != "null":  # there nobody remembers anything, whatever the arm's name
        with pytest.raises(UsageError) as told:
            place.memories.make("no such arm", SEED, limit=3)
        assert "\n" not in str(told.value)


def test_closing_twice_is_fine_and_so_is_closing_at_once(place: Environment) -> None:
    again = made(place.name)
    again.close()
    again.close()


@pytest.mark.parametrize("name", ASKING)
def test_memory_reaches_the_model_unchanged_and_without_it_the_model_is_told_of_none(name: str) -> None:
    model = ScriptedModel(lambda _: "I do not know what to do.")
    place = made(name, model, _few_steps(name))
    try:
        job = place.tasks(SEED, 1)[0]
        done = place.attempt(job, place.agent(SEED, anew=False), MEMORY)
        shown = [call.prompt for call in model.calls]
        place.attempt(job, place.agent(SEED, anew=False), "")
        bare = [call.prompt for call in model.calls[len(shown) :]]
    finally:
        place.close()
    assert shown
    assert all(MEMORY in prompt and job.goal in prompt for prompt in shown)
    assert (done.run.usage.requests, done.run.task) == (len(shown), job.goal)
    assert bare
    assert not any("None" in prompt.split("\n") or MEMORY in prompt for prompt in bare)


def _few_steps(name: str) -> Settings | None:
    """So that a model without an idea gives up soon; a few environments have no such setting."""
    wanted = {"max_steps": 2}
    try:
        environment(name, ScriptedModel([]), wanted).close()
    except (LessonbankError, KeyError):
        return None
    return wanted


@pytest.mark.parametrize("model", [None, ScriptedModel([])], ids=["no model", "a model"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_is_made_or_says_in_one_sentence_what_it_needs(name: str, model: LanguageModel | None) -> None:
    try:
        environment(name, model).close()
    except LessonbankError as missing:
        said = str(missing)
        assert TELLS.search(said), said
        assert "\n" not in said
        assert len(said) < 500


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS.keys() - set(SCRIPTED)))
def test_where_no_script_acts_a_model_is_needed(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}' needs a model"):
        environment(name)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_unknown_setting_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(UsageError) as told:
        environment(name, ScriptedModel([]), {"no such setting": 1})
    assert "\n" not in str(told.value)
    assert "no such setting" in str(told.value)


def test_an_unknown_environment_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=r"no environment 'moon'; there are .*desk"):
        environment("moon")


@pytest.mark.parametrize("key", ["max_steps", "temperature"])
def test_a_number_that_makes_no_sense_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=f"{key} is at least"):
        told("some", {key: -3}, key, 5 if key == "max_steps" else 0.0)
    assert told("some", {key: 3}, key, 5) == 3
