"""In a preset of the paper, arms differ in what they keep: what they are asked, told and judged by is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra models")

from lessonbank.providers.models.pydantic_ai import PydanticAIModel
from lessonbank.testing.model_server import Answer, ModelServer
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.fairness import differences
from lessonbank_bench.experiment.records import Experiment, made
from lessonbank_bench.experiment.request import preset_values, presets
from lessonbank_bench.experiment.runner import run

from .test_llm_path import acts

PAPER = [name for name in presets() if name.startswith("paper-")]
BLOCK = re.compile(r"(What follows are memory items[^<]*)<<<lessons .*<<<end lessons \w+>>>\s*", re.DOTALL)
"""How lessons are introduced, and the lessons."""
NONCE = re.compile(r"\b[0-9a-f]{8}\b")
SMALL: dict[str, Any] = {"environment": "desk", "seeds": [1], "tasks": 3, "leave_out": []}
LESSON = (
    "# Memory Item 1\n## Title A way through\n## Description For forms.\n## Content Press what was accepted before."
)
WORKFLOW = "## Filling a form\nstep 1: press {control}\nstep 2: submit"


class Writer:
    """A model that acts by rules and not by memory, calls each run a success, and always writes the same lesson."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        system, shown = (str(body["messages"][at]["content"]) for at in (0, -1))
        if system.startswith("You operate a web form"):
            return Answer(acts("Goal: " + shown.rpartition("Goal: ")[2]))
        if system.startswith("You evaluate agents"):
            return Answer('Thoughts: the form was saved.\nStatus: "success"')
        return Answer(WORKFLOW if "workflow" in system else LESSON)

    def asked(self, begins: str) -> list[dict[str, Any]]:
        return [body for body in self.bodies if str(body["messages"][0]["content"]).startswith(begins)]


def played(preset: str, arm: dict[str, Any]) -> Writer:
    """What a model is asked while one arm of a preset plays two tasks of the desk, beside an arm without memory."""
    named = {**arm, "memory": arm.get("memory", arm["name"]), "name": "played"}
    return _played(json.dumps(named, sort_keys=True), judged=preset_values(preset)["judged"])


@cache
def _played(arm: str, *, judged: bool) -> Writer:
    """Several presets have an arm in common: it is played once."""
    chosen: dict[str, Any] = {"judged": judged, "share": False, "leave_out": [], "seeds": [5]}
    arms = [{"name": "beside", "memory": "none"}, json.loads(arm)]
    asked = {**chosen, "model": "openai:gpt-4o", "tasks": 2, "arms": arms, "baseline": "beside"}
    experiment: Experiment = made(asked, source="test")
    writer = Writer()
    with ModelServer(default=writer) as server, TemporaryDirectory() as folder:
        model = PydanticAIModel(experiment.model, base_url=server.base_url)
        run(experiment, DeskEnvironment(model), Path(folder) / "out")
    return writer


def without_memory(bodies: Sequence[dict[str, Any]]) -> list[str]:
    """Requests without the block of lessons and the codes that differ in each request, in order of their bytes."""
    cut = [[{**one, "content": BLOCK.sub("", str(one["content"]))} for one in body["messages"]] for body in bodies]
    whole = [{**body, "messages": messages} for body, messages in zip(bodies, cut, strict=True)]
    return sorted(NONCE.sub("", json.dumps(body, sort_keys=True)) for body in whole)


def introductions(bodies: Sequence[dict[str, Any]]) -> set[str]:
    """How lessons are introduced wherever there are some."""
    found = (BLOCK.search(str(one["content"])) for body in bodies for one in body["messages"])
    return {block[1] for block in found if block}


@pytest.mark.full
@pytest.mark.parametrize("preset", PAPER)
def test_requests_of_all_arms_are_equal_but_for_the_block_of_lessons(preset: str) -> None:
    writers = {arm["name"]: played(preset, arm) for arm in preset_values(preset)["arms"]}
    banks = [writer for name, writer in writers.items() if name != "none"]
    assert len(banks) >= 2
    introduced = set[str]().union(*(introductions(writer.asked("You operate")) for writer in banks))
    assert len(introduced) == 1, "no lesson was shown, or not always in the same words"
    acting = [without_memory(writer.asked("You operate")) for writer in writers.values()]
    judging = [without_memory(writer.asked("You evaluate")) for writer in banks]
    assert len(acting[0]) > 6
    assert all(asked == acting[0] for asked in acting)
    assert all(asked == judging[0] for asked in judging)
    assert bool(judging[0]) is preset_values(preset)["judged"]


@pytest.mark.full
def test_an_arm_that_introduces_lessons_in_other_words_is_seen() -> None:
    arms = [{"name": memory, "memory": memory, "limit": 1} for memory in ("synapse", "synapse:profile=paper")]
    here, there = (played("paper-webarena", arm).bodies for arm in arms)
    assert introductions(here) != introductions(there)
    assert without_memory(here) != without_memory(there)


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
