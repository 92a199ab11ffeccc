"""An experiment with a language model behind it, over the wire: a loopback server acts, judges and distils by rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("openai", reason="the openai SDK is not installed")

from lessonbank.demo.desk import CHOICES, SUBMIT
from lessonbank.demo.reading import opinion, read
from lessonbank.providers.models.pydantic_ai import PydanticAIModel
from lessonbank.providers.models.wrappers import Retrying, TimeLimited
from lessonbank.testing.model_server import (
    Answer,
    Cut,
    Fault,
    ModelServer,
    cut_off,
    no_choice,
    not_json,
    rate_limited,
    refusal,
    server_error,
)
from lessonbank_bench.cli import bench
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.comparison import compare
from lessonbank_bench.experiment.journal import read_rows
from lessonbank_bench.experiment.records import AttemptRow, Experiment, made
from lessonbank_bench.experiment.report import page
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
Broken = Fault | Cut


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
    """The server's answers, but for the requests that a script says break: (role, which of that role) -> how."""

    def __init__(self, faults: dict[tuple[str, int], Broken] | None = None) -> None:
        self.faults = dict(faults or {})
        self.asked = dict.fromkeys(ROLES, 0)
        self.answered = dict.fromkeys(ROLES, 0)

    def __call__(self, body: dict[str, Any]) -> Answer | Broken:
        role = role_of(body)
        number, self.asked[role] = self.asked[role], self.asked[role] + 1
        if fault := self.faults.get((role, number)):
            return fault
        self.answered[role] += 1
        return Answer(ROLES[role][1](str(body["messages"][-1]["content"])), tokens=TOKENS)


class Naps(list[float]):
    """Waits that are noted and not waited for."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def play(
    experiment: Experiment, folder: Path, server: ModelServer, *, naps: Naps | None = None, resume: bool = False
) -> tuple[Ran, list[AttemptRow]]:
    bare = TimeLimited(PydanticAIModel(experiment.model, base_url=server.base_url), seconds=0.5)
    place = DeskEnvironment(Retrying(bare, sleep=naps if naps is not None else Naps(), chance=lambda: 1.0))
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
    assert sum(row.requests for row in rows) == len(server.requests) == sum(rules.answered.values())
    assert ran.tokens == sum(row.tokens for row in rows) == sum(TOKENS) * len(server.requests)
    prices = {round(row.cost / row.requests, 10) for row in rows if row.cost is not None and row.requests}
    assert len(prices) == 1
    assert ran.cost == pytest.approx(prices.pop() * len(server.requests))
    without = [row for row in rows if row.arm == "none"]
    assert all(row.requests == row.steps for row in without), "nothing is judged or distilled without memory"


def test_the_page_shows_what_the_model_was_told_and_what_it_took(whole: Whole) -> None:
    *_, rows = whole
    text = page(asked(), rows, attempts=8)
    for told in ("US dollars for a task", "tokens for a task", "You operate a web form", "synthetic</span>"):
        assert told in text


def test_equal_first_attempts_are_asked_for_once_and_paid_for_once(tmp_path: Path) -> None:
    experiment = asked(
        share=True, seeds=[6], tasks=3, arms=[{"name": "none"}, {"name": "lessonbank"}, {"name": "synapse"}]
    )
    with ModelServer(default=Rules()) as server:
        ran, rows = play(experiment, tmp_path, server)
    shared = [row for row in rows if row.shared]
    assert shared
    acting = [request for request in server.requests if role_of(request.body) == "act"]
    assert len(acting) == sum(row.steps for row in rows if not row.shared)
    assert ran.tokens == sum(TOKENS) * len(server.requests)


PASSING: dict[tuple[str, int], Broken] = {
    ("act", 3): rate_limited(2),
    ("act", 9): server_error(503),
    ("act", 20): cut_off(),
    ("distil", 1): cut_off(),
    ("judge", 0): rate_limited(1),
}


def test_what_passes_is_tried_again_and_leaves_no_trace_in_the_rows(whole: Whole, tmp_path: Path) -> None:
    naps = Naps()
    with ModelServer(default=Rules(PASSING)) as server:
        ran, rows = play(asked(), tmp_path, server, naps=naps)
    assert (ran.complete, ran.errors) == (True, 0)
    assert sorted(naps) == [0.5, 0.5, 0.5, 1.0, 2.0]
    assert len(server.requests) == len(whole[1].requests) + 5
    assert [row.facts() for row in rows] == [row.facts() for row in whole[3]]


LASTING: dict[str, Broken] = {
    "model": not_json(),
    "no choice": no_choice(),
    "refused": refusal("the context is too long", status=400),
    "no money": refusal("pay first", status=429, code="insufficient_quota"),
}


@pytest.mark.parametrize("fault", LASTING.values(), ids=LASTING)
def test_what_does_not_pass_is_an_error_of_infrastructure_and_no_failure(fault: Broken, tmp_path: Path) -> None:
    rules = Rules({("act", 3): fault})
    with ModelServer(default=rules) as server:
        ran, rows = play(asked(tasks=2), tmp_path, server)
    (broken,) = [row for row in rows if row.error]
    assert (ran.complete, ran.errors) == (True, 1)
    assert broken.error is not None
    assert broken.error.stage == "attempt"
    assert broken.error.code == ("model_unavailable" if fault is LASTING["no money"] else "model")
    assert (broken.success, broken.run, broken.lessons) == (None, None, ())
    left_out = [one.left_out for one in compare(asked(), rows)]
    assert left_out.count(1) == (2 if broken.arm == "none" else 1)
    assert "Errors of infrastructure" in page(asked(), rows)


@pytest.mark.parametrize("role", ["judge", "distil"])
def test_a_judge_or_an_extractor_that_breaks_costs_no_attempt_its_outcome(role: str, tmp_path: Path) -> None:
    rules = Rules({(role, number): not_json() for number in range(100)})
    with ModelServer(default=rules) as server:
        ran, rows = play(asked(tasks=3), tmp_path, server)
    assert ran.complete
    assert all(row.success is not None and row.run is not None for row in rows)
    own = [row for row in rows if row.arm == "lessonbank" and row.run and not (role == "judge" and row.run.error)]
    assert rules.asked[role] >= len(own) > 0
    for row in own:
        assert not row.lessons
        assert "cannot be read" in " ".join([*row.notes, row.error.message if row.error else ""])


def dies_after(rules: Rules, number: int) -> Callable[[dict[str, Any]], Any]:
    """A server that answers no more after so many requests."""

    def reply(body: dict[str, Any]) -> Any:
        return rules(body) if sum(rules.asked.values()) < number else server_error(502)

    return reply


def test_a_dead_server_stops_the_run_and_a_new_one_goes_on_without_asking_again(tmp_path: Path) -> None:
    experiment, rules = asked(budget={"errors": 3}), Rules()
    with ModelServer(default=dies_after(rules, 17)) as server:
        ran, before = play(experiment, tmp_path, server)
    assert not ran.complete
    assert ran.stopped.startswith(
        "3 attempts in a row met an error of infrastructure, the last: openai:gpt-4o answered"
    )
    dead = [row for row in before if row.error]
    assert {row.error.code for row in dead if row.error} == {"model_transient"}
    assert before[-3:] == dead[-3:]
    with ModelServer() as gone:
        pass
    ran, before = play(experiment, tmp_path, gone, resume=True)
    assert before[-1].error is not None
    assert "could not be reached" in before[-1].error.message
    assert (ran.complete, ran.made) == (False, 4), "a task that was begun is done to its end"
    with ModelServer(default=Rules()) as server:
        ran, after = play(experiment, tmp_path, server, resume=True)
    assert ran.complete
    while before[-1].error is not None and before[-1].error.stage == "attempt":
        before.pop()
    assert not any(row.error for row in after[len(before) :])
    assert [row.facts() for row in after[: len(before)]] == [row.facts() for row in before]
    done = {row.task for row in before}
    goals = {goal for r in server.requests for goal in goals_of(r.body)}
    assert not goals & (done - {row.task for row in after[len(before) :]})


def test_the_command_line_plays_compares_and_reports_it_too(whole: Whole, tmp_path: Path) -> None:
    cli, what = CliRunner(), tmp_path / "desk.toml"
    out, html = str(tmp_path / "out"), tmp_path / "page.html"
    with ModelServer(default=Rules()) as server:
        arms = "".join(f'[[arms]]\nname = "{arm["name"]}"\n' for arm in ASKED["arms"])
        told = {**ASKED, "base_url": server.base_url}
        lines = [f"{key} = {json.dumps(value)}" for key, value in told.items() if key != "arms"]
        what.write_text("\n".join(lines) + f"\n{arms}", encoding="utf-8")
        ran = cli.invoke(bench, ["run", str(what), "--out", out, "--anyway", "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["tokens"] == whole[2].tokens
    assert "no difference shown" in cli.invoke(bench, ["compare", out]).stdout
    assert cli.invoke(bench, ["report", out, "--html", str(html)]).exit_code == 0
    assert "You operate a web form" in html.read_text(encoding="utf-8")


def goals_of(body: dict[str, Any]) -> Sequence[str]:
    return re.findall(r"^Goal: (.*)$", str(body["messages"][-1]["content"]), re.MULTILINE)


def test_a_run_that_is_stopped_and_goes_on_elsewhere_ends_as_one_that_was_not(whole: Whole, tmp_path: Path) -> None:
    for attempts in (4, 12):
        with ModelServer(default=Rules()) as server:  # another port each time, which is no other experiment
            ran, rows = play(asked(budget={"attempts": attempts}), tmp_path, server, resume=True)
            assert ran.made == 0 or server.requests
    assert ran.complete
    assert [row.facts() for row in rows] == [row.facts() for row in whole[3]]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ({"tokens": 3000}, "the budget of 3,000 tokens is used up"),
        ({"money": 0.02}, "the budget of 0.02 US dollars is used up"),
    ],
)
def test_a_budget_stops_at_the_end_of_a_task_and_can_be_raised(
    budget: dict[str, Any], told: str, whole: Whole, tmp_path: Path
) -> None:
    with ModelServer(default=Rules()) as server:
        ran, rows = play(asked(budget=budget), tmp_path, server)
        assert (ran.complete, ran.stopped) == (False, told)
        assert len(rows) % 3 == 0
        assert not any(row.error for row in rows)
        spent = ran.tokens if "tokens" in budget else ran.cost
        assert spent >= next(iter(budget.values()))
        ran, rows = play(asked(), tmp_path, server, resume=True)
    assert ran.complete
    assert [row.facts() for row in rows] == [row.facts() for row in whole[3]]
