"""In a preset of the paper, arms differ in what they keep: what they are asked, told and judged by is the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="the openai SDK is not installed")

from lessonbank.providers.models.pydantic_ai import PydanticAIModel
from lessonbank.testing.model_server import Answer, ModelServer
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.fairness import differences
from lessonbank_bench.experiment.records import Experiment, made
from lessonbank_bench.experiment.request import preset_values, presets
from lessonbank_bench.experiment.runner import run

from .test_llm_path import acts

PAPER = [name for name in presets() if name.startswith("paper-")]
ARMS = ["paper-mind2web", "paper-swebench", "paper-webarena"]
BLOCK = re.compile(r"<<<lessons .*<<<end lessons \w+>>>", re.DOTALL)
NONCE = re.compile(r"\b[0-9a-f]{8}\b")
SMALL: dict[str, Any] = {"environment": "desk", "seeds": [1], "tasks": 3, "leave_out": []}
LESSON = (
    "# Memory Item 1\n## Title A way through\n## Description For forms.\n## Content Press what was accepted before."
)
WORKFLOW = "## Filling a form\nstep 1: press {control}\nstep 2: submit"


class Writer:
    """A model that acts by rules, calls every run a success, and always writes the same lesson."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        system, shown = (str(body["messages"][at]["content"]) for at in (0, -1))
        if system.startswith("You operate a web form"):
            return Answer(acts(shown))
        if system.startswith("You evaluate agents"):
            return Answer('Thoughts: the form was saved.\nStatus: "success"')
        return Answer(WORKFLOW if "workflow" in system else LESSON)

    def asked(self, begins: str) -> list[dict[str, Any]]:
        return [body for body in self.bodies if str(body["messages"][0]["content"]).startswith(begins)]


def played(arm: dict[str, Any], folder: Path) -> Writer:
    """What a model is asked while one arm plays three tasks of the desk beside an arm without memory."""
    chosen: dict[str, Any] = {"model": "openai:gpt-4o", "judged": True, "share": False, "leave_out": [], "seeds": [5]}
    experiment: Experiment = made({**chosen, "tasks": 3, "arms": [{"name": "none"}, arm]}, source="test")
    writer = Writer()
    with ModelServer(default=writer) as server:
        model = PydanticAIModel(experiment.model, base_url=server.base_url)
        run(experiment, DeskEnvironment(model), folder)
    return writer


def without_memory(body: dict[str, Any]) -> dict[str, Any]:
    """A request whose block of lessons, and the codes that differ in each request, are taken out."""
    told = [{**each, "content": NONCE.sub("", BLOCK.sub("", str(each["content"])))} for each in body["messages"]]
    return {**body, "messages": told}


@pytest.mark.full
@pytest.mark.parametrize("preset", ARMS)
def test_requests_of_all_arms_are_equal_but_for_the_block_of_lessons(preset: str, tmp_path: Path) -> None:
    arms = [arm for arm in preset_values(preset)["arms"] if arm["name"] != "none"]
    writers = {arm["name"]: played(arm, tmp_path / arm["name"]) for arm in arms}
    assert len(writers) == len(arms) >= 2
    seen = set[str]()
    for writer in writers.values():
        begun = [body for body in writer.asked("You operate") if " -> " not in str(body["messages"][-1]["content"])]
        judged = writer.asked("You evaluate")
        remembering = [body for body in begun if BLOCK.search(str(body))]
        assert remembering, "no lesson was shown"
        assert judged
        seen.add(repr((without_memory(begun[0]), without_memory(judged[0]), without_memory(remembering[0]))))
    assert len(seen) == 1


@pytest.mark.parametrize("preset", PAPER)
def test_no_two_arms_of_a_preset_differ_in_more_than_what_they_keep(preset: str) -> None:
    assert differences(made(preset_values(preset), source=preset)) == ()


def test_arms_with_another_judge_and_another_frame_are_named() -> None:
    arms = [{"name": "none"}, {"name": "synapse"}, {"name": "ours", "memory": "reasoningbank-paper", "limit": 2}]
    told = differences(made({**SMALL, "arms": arms}, source="test"))
    assert told == (
        "synapse and ours differ in more than what they keep: in profile, limit. Give both the same settings, or lay "
        "no difference between them to memory",
    )


def test_settings_that_an_arm_is_there_for_are_no_difference() -> None:
    few, many = ({"name": f"k={k}", "memory": "lessonbank", "limit": k} for k in (1, 2))
    assert differences(made({**SMALL, "arms": [few, many]}, source="test")) == ()
