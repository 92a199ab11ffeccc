"""An experiment with a language model behind it, over the wire: a loopback server acts, judges and distils by rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra models")

from lessonbank.demo.desk import CHOICES, SUBMIT
from lessonbank.demo.reading import opinion, read
from lessonbank.providers.models.pydantic_ai import PydanticAIModel
from lessonbank.testing.model_server import (
    Answer,
    ModelServer,
)
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.journal import read_rows
from lessonbank_bench.experiment.records import AttemptRow, Experiment, made
from lessonbank_bench.experiment.runner import Ran, run

MODEL = "openai:gpt-4o"
"""A name with a known price; nobody but the loopback server is asked."""
TOKENS = (100, 10)
ASKED: dict[str, Any] = {
    "model": MODEL,
    "judged": True,
    "share": False,
    "leave_out": [],
    "seeds": [5],
    "tasks": 4,
    "arms": [{"name": "none"}, {"name": "lessonbank"}, {"name": "synapse"}],
}


def asked(**more: Any) -> Experiment:
    return made({**ASKED, **more}, source="test")


# --- a model of simple rules, honest about what it was shown ----------------------------------------------------------


def acts(shown: str) -> str:
    """Presses what memory speaks for, else the first control it has not tried since the last that did something."""
    memory, _, page_of = shown.rpartition("Goal: ")
    goal, controls = page_of.split("\n", 1)[0], page_of.rpartition("Controls: ")[2].split(", ")
    log = [line.split(" -> ", 1) for line in page_of.split("\n") if " -> " in line]
    message = re.findall(r"^Message: (.*)$", page_of, re.MULTILINE)[-1]
    if not log:
        return f"Nothing is open yet.\n{controls[0]}"
    if message.endswith("chosen."):
        return SUBMIT
    worked = [label for label, said in log if "Nothing" not in said]
    rest = [c for c in controls[1:-1] if c not in {label for label, _ in log}]
    offered = [c for c in rest if c in CHOICES] or rest or [SUBMIT]
    said = read(memory, goal=goal)
    return max(offered, key=lambda c: round(opinion(said, c, step=len(worked) + 1, after=worked[-1]), 9))


def judges(shown: str) -> str:
    """Takes a form that was saved for done: it cannot see whether the choice was right, as no judge can."""
    check = re.search(r'"check": "([0-9a-f]{8})"', shown)
    saved = "\n| Saved." in shown
    told = {"reason": "The last step says so.", "outcome": "success" if saved else "failure", "confidence": 0.9}
    return json.dumps({"check": check[1] if check else "", **told})


def distils(shown: str) -> str:
    """One lesson: which presses did something, in their order."""
    place = re.search(r"On the \w+ site ([\w ]+), ([a-z ]+) for record", shown)
    steps = re.findall(r"\[step (\d+)\]\n(?:agent thinks:\n(?:\|.*\n)+)?agent:\n\| (.+)\nenvironment:\n\| (.+)", shown)
    worked = [(n, label) for n, label, said in steps if "accepted" in said or "chosen" in said]
    if place is None or not worked:
        return '{"items": []}'
    order = "; ".join(f"step {at}: `{label}`" for at, (_, label) in enumerate(worked, 2))
    lesson = {
        "evidence": [f"step {number}" for number, _ in worked],
        "cause": "these presses were accepted",
        "title": f"To {place[2]} on {place[1]}, press in this order",
        "description": f"When asked to {place[2]} on the site {place[1]}.",
        "content": f"On {place[1]}, to {place[2]}: {order}.",
    }
    return json.dumps({"items": [lesson]})


def admits(shown: str) -> str:
    """Keeps every lesson: what to press harms nobody."""
    lessons = {int(number) for number in re.findall(r"<<<lesson (\d+)", shown)} or {1}
    return json.dumps({"answers": [{"lesson": number, "answer": "keep"} for number in sorted(lessons)]})


ROLES: dict[str, tuple[str, Callable[[str], str]]] = {
    "admit": ("You guard the memory of an AI agent", admits),
    "act": ("You operate a web form", acts),
    "judge": ("You judge whether an AI agent did its task", judges),
    "distil": ("You write lessons for an AI agent", distils),
}


def role_of(body: dict[str, Any]) -> str:
    system = str(body["messages"][0]["content"])
    return next(name for name, (begins, _) in ROLES.items() if system.startswith(begins))


class Rules:
    """The server's answers, counted by role."""

    def __init__(self) -> None:
        self.asked = dict.fromkeys(ROLES, 0)

    def __call__(self, body: dict[str, Any]) -> Answer:
        role = role_of(body)
        self.asked[role] += 1
        return Answer(ROLES[role][1](str(body["messages"][-1]["content"])), tokens=TOKENS)


def play(
    experiment: Experiment, folder: Path, server: ModelServer, *, resume: bool = False
) -> tuple[Ran, list[AttemptRow]]:
    place = DeskEnvironment(PydanticAIModel(experiment.model, base_url=server.base_url))
    ran = run(experiment, place, folder, resume=resume)
    return ran, read_rows(folder)[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rules, ModelServer, Ran, list[AttemptRow]]:
    """An experiment in which nothing breaks."""
    rules = Rules()
    with ModelServer(default=rules) as server:
        return rules, server, *play(asked(), tmp_path_factory.mktemp("whole"), server)


Whole = tuple[Rules, ModelServer, Ran, list[AttemptRow]]


def test_a_whole_experiment_runs_over_the_wire(whole: Whole) -> None:
    rules, _, ran, rows = whole
    assert (ran.complete, ran.errors, len(rows)) == (True, 0, 12)
    assert all(row.success is not None and row.steps >= 4 for row in rows)
    assert {row.verdict for row in rows if row.arm == "lessonbank"} == {"success", "failure"}
    assert all(row.told is None for row in rows), "verdicts were left to the judge"
    learned = [row for row in rows if row.arm == "lessonbank" and row.lessons]
    assert "press in this order" in learned[0].lessons[0].title
    assert any(row.shown for row in rows if row.arm == "lessonbank")
    judged = [row for row in rows if row.arm != "none" and row.run and not row.run.error]
    assert rules.asked["judge"] == len(judged) > 0, "a run that was stopped has failed, whatever a judge would say"
    assert rules.asked["distil"] == 4


def test_what_memory_says_reaches_the_acting_model_and_nothing_is_streamed(whole: Whole) -> None:
    _, server, _, rows = whole
    acting = [str(r.body["messages"][-1]["content"]) for r in server.requests if role_of(r.body) == "act"]
    for row in rows:
        if row.memory:
            assert sum(shown.startswith(row.memory) for shown in acting) >= row.steps
    assert not any(request.streams for request in server.requests)


def test_every_request_is_counted_with_its_tokens_and_its_price(whole: Whole) -> None:
    rules, server, ran, rows = whole
    assert sum(row.requests for row in rows) == len(server.requests) == sum(rules.asked.values())
    assert ran.tokens == sum(row.tokens for row in rows) == sum(TOKENS) * len(server.requests)
    prices = {round(row.cost / row.requests, 10) for row in rows if row.cost is not None and row.requests}
    assert len(prices) == 1
    assert ran.cost == pytest.approx(prices.pop() * len(server.requests))
    without = [row for row in rows if row.arm == "none"]
    assert all(row.requests == row.steps for row in without), "nothing is judged or distilled without memory"


def test_a_run_that_is_stopped_and_goes_on_elsewhere_ends_as_one_that_was_not(whole: Whole, tmp_path: Path) -> None:
    requests = 0
    for attempts in (4, 12):
        with ModelServer(default=Rules()) as server:  # another port each time, which is no other experiment
            ran, rows = play(asked(budget={"attempts": attempts}), tmp_path, server, resume=True)
            requests += len(server.requests)
    assert ran.complete
    assert [row.facts() for row in rows] == [row.facts() for row in whole[3]]
    assert requests == len(whole[1].requests), "what is known is asked nobody again"
