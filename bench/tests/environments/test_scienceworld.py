"""ScienceWorld in Java: the gold path, a wanderer that reads commands, a model."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip(
    "scienceworld", reason="scienceworld is not installed: pip install 'lessonbank-bench[scienceworld]'"
)
if shutil.which("java") is None:
    pytest.skip("there is no Java", allow_module_level=True)

from lessonbank.errors import UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments.scienceworld import ScienceWorldEnvironment, Wanderer, chosen

TASK = "lifespan-longest-lived"


@pytest.fixture(scope="module")
def place() -> Iterator[ScienceWorldEnvironment]:
    one = ScienceWorldEnvironment(None, {"tasks": TASK, "max_steps": 12})
    yield one
    one.close()


def test_the_gold_path_succeeds_and_its_steps_are_counted(place: ScienceWorldEnvironment) -> None:
    job = place.tasks(1, 1)[0]
    done = place.attempt(job, place.agent(1, anew=False), "")
    assert done.success
    assert done.scores == {"score": 100.0, "steps": float(len(done.run.steps))}


def test_a_wanderer_with_the_right_commands_succeeds_and_without_them_counts_all_steps(
    place: ScienceWorldEnvironment,
) -> None:
    job = place.tasks(1, 1)[0]
    gold = place.attempt(job, place.agent(1, anew=False), "")
    memory = "\n".join(f"`{step.action.text}`" for step in gold.run.steps)
    assert place.attempt(job, Wanderer(random.Random(1)), memory).success
    lost = place.attempt(job, Wanderer(random.Random(1)), "")
    assert not lost.success
    assert lost.scores["steps"] == 12.0


def test_a_model_gives_the_command_on_its_last_line() -> None:
    model = ScriptedModel(["I look first.\n> look around", "wait"])
    place = ScienceWorldEnvironment(model, {"tasks": TASK, "max_steps": 2})
    try:
        job = place.tasks(1, 1)[0]
        done = place.attempt(job, place.agent(1, anew=False), "Doors are open.")
    finally:
        place.close()
    assert [step.action.text for step in done.run.steps] == ["look around", "wait"]
    assert "Doors are open." in model.calls[0].prompt


def test_an_unknown_task_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=f"no task 'juggle'; its tasks are called like .*{TASK}"):
        chosen("melt, juggle")
