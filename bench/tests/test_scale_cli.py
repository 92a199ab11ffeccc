"""`bench scale` and `bench table` over the wire: a scripted server acts, judges, contrasts and chooses."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("pydantic_ai", reason="needs the extra models")

from lessonbank.providers.models.pydantic_ai import PydanticAIModel
from lessonbank.testing.model_server import Answer, ModelServer
from lessonbank_bench.cli import bench
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.journal import read_rows
from lessonbank_bench.experiment.records import made
from lessonbank_bench.experiment.request import asked
from lessonbank_bench.experiment.runner import run
from lessonbank_bench.experiment.spreading import Spread
from lessonbank_bench.experiment.table import figures

from .test_fair_arms import LESSON, WORKFLOW, without_memory
from .test_llm_path import acts

MODEL = "openai:gpt-4o"
CHECK = re.compile(r'"check": "([0-9a-f]{8})"')
PAPER = """
name = "a small table"
environment = "desk"
model = "openai:gpt-4o"
judged = true
shuffle = false
share = false
leave_out = []
seeds = [5]
tasks = 2
[[arms]]
name = "none"
[[arms]]
name = "synapse"
memory = "synapse:profile=paper"
limit = 1
[[arms]]
name = "awm"
memory = "awm:profile=paper"
limit = 1
[[arms]]
name = "reasoningbank-paper"
limit = 1
"""


class Server:
    """Acts by rules; calls a run a success that was saved, always writes the same lesson, and chooses the first run."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.asked = Counter[str]()
        self.lenient = True

    def __call__(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        system, shown = (str(body["messages"][at]["content"]) for at in (0, -1))
        role, text = self.said(system, shown)
        self.asked[role] += 1
        return Answer(text)

    def said(self, system: str, shown: str) -> tuple[str, str]:
        if system.startswith("You operate a web form"):
            return "act", acts(shown)
        if system.startswith("You evaluate agents"):
            status = "success" if self.lenient and "Saved." in shown else "failure"
            return "judge", f'Thoughts: it says so.\nStatus: "{status}"'
        if codes := CHECK.findall(shown):
            return "choose", json.dumps({"check": codes[-1], "analysis": "the first", "index": [1]})
        if system.startswith("You attempted a task"):
            return "reflect", "I pressed the wrong control first."
        return (
            "contrast" if "Compare and contrast" in system else "distil"
        ), WORKFLOW if "workflow" in system else LESSON


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    told = Server()
    with ModelServer(default=told) as running:
        yield told, running.base_url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(PAPER, encoding="utf-8")
    return tmp_path


def scaled(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(bench, ["scale", "small.toml", "--anyway", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_scaling_prints_and_gives_the_figures_of_every_arm(server: tuple[Server, str], folder: Path) -> None:
    told, url = server
    found = json.loads(scaled("--out", "out", "-k", "1", "-k", "2", "--base-url", url, "--json").stdout)
    arms = {one["arm"]: one for one in found["arms"]}
    assert list(arms) == [
        f"{name}, {way}"
        for name in ("none", "synapse", "awm", "reasoningbank-paper")
        for way in ("k=1", "parallel, k=2")
    ]
    for name, one in arms.items():
        assert one["steps"] > 0
        parts = [one[f"tokens_{part}"] for part in ("acting", "judging", "distilling")]
        assert one["tokens"] == pytest.approx(sum(parts))
        assert parts[0] > 0
        assert (parts[1] > 0) is not name.startswith("none")
        assert len(one["pass_at_k"]) == (2 if "k=2" in name else 1)
        assert 0.0 <= one["interval"]["low"] <= one["success"] <= one["interval"]["high"] <= 1.0
        assert one["judged"] == (0 if name.startswith("none") else 2 * one["runs"])
    assert told.asked["contrast"] == 2, "one contrast a task, of the ReasoningBank arm with two runs"
    assert told.asked["choose"] == 8, "all arms choose by the same model"
    text = CliRunner().invoke(bench, ["table", "out"]).output
    assert "out, 95 % over tasks" in text
    assert re.search(r"^reasoningbank-paper, parallel, k=2 +2 +[\d.]+ \[[\d.]+, [\d.]+\] +[\d.]+", text, re.M)
    before = figures([("out", *read_rows(folder / "out"))])
    for path in (folder / "out" / "banks").iterdir():
        path.unlink()
    assert figures([("out", *read_rows(folder / "out"))]) == before, "a table needs nothing but the journal"


@pytest.mark.full
@pytest.mark.parametrize("mode", ["parallel", "sequential", "vanilla"])
def test_requests_of_all_arms_are_equal_but_for_the_block_of_lessons(
    mode: str, server: tuple[Server, str], folder: Path
) -> None:
    told, url = server
    seen = dict[str, list[str]]()
    arms: list[dict[str, Any]] = tomllib.loads(PAPER)["arms"]
    for arm in arms:
        told.bodies = []
        several = {**arm, "memory": arm.get("memory", arm["name"]), "name": "several", "runs": {"k": 2, "mode": mode}}
        beside = {"name": "one", "memory": "reasoningbank-paper", "limit": 1, "runs": {"k": 1}}
        experiment = made({**tomllib.loads(PAPER), "tasks": 1, "arms": [several, beside]}, source="test")
        run(experiment, DeskEnvironment(PydanticAIModel(MODEL, base_url=url)), folder / arm["name"])
        first = [body for body in told.bodies if "You operate" in str(body["messages"][0]["content"])]
        chosen = [body for body in told.bodies if CHECK.search(str(body["messages"][-1]["content"]))]
        seen[arm["name"]] = [repr(without_memory([body])) for body in (*first[:3], *chosen[:1])]
        assert len(chosen) == (0 if mode == "sequential" else 1)
    assert seen["none"] == seen["synapse"] == seen["awm"] == seen["reasoningbank-paper"]


def test_retries_are_none_naive_and_with_a_reflection(server: tuple[Server, str], folder: Path) -> None:
    told, url = server
    told.lenient = False
    words = ["-k", "1", "-k", "3", "--mode", "retry", "--mode", "reflect", "--tasks", "1", "--base-url", url]
    scaled("--out", "out", "--arm", "none", "--arm", "reasoningbank-paper", *words)
    experiment, rows = read_rows(folder / "out")
    assert [arm.name for arm in experiment.arms][:3] == ["none, k=1", "none, retry, k=3", "none, reflect, k=3"]
    assert told.asked["reflect"] == sum(max(len(row.runs) - 1, 0) for row in rows if "reflect" in row.arm) > 0
    shown = {row.arm: "I pressed the wrong" in row.memory for row in rows if len(row.runs) > 1 and "none" in row.arm}
    assert shown == {"none, retry, k=3": False, "none, reflect, k=3": True}
    judged = [
        one.verdict for row in rows if row.arm == "none, retry, k=3" for one in row.runs if not one.trajectory.error
    ]
    assert judged
    assert None not in judged, "where nobody is told the truth it is the judge who ends a retry"


def test_the_embedder_is_a_switch(server: tuple[Server, str], folder: Path) -> None:
    url = server[1]
    words = ["--arm", "none", "--arm", "reasoningbank-paper", "-k", "2", "--base-url", url, "--embedder", "hashing"]
    scaled("--out", "out", *words)
    experiment, rows = read_rows(folder / "out")
    assert [arm.memory for arm in experiment.arms] == ["none", "reasoningbank-paper:embedder=hashing,retrieval=dense"]
    assert any(row.memory for row in rows)


def test_sites_are_pooled_into_overall_and_the_judge_is_held_against_the_verifier(
    server: tuple[Server, str], folder: Path
) -> None:
    for site, tasks in (("one", "1"), ("two", "2")):
        scaled("--out", site, "--arm", "none", "--arm", "awm", "-k", "2", "--tasks", tasks, "--base-url", server[1])
    told = json.loads(CliRunner().invoke(bench, ["table", "one", "two", "--json"]).output)
    assert [(one["where"], one["arm"]) for one in told] == [
        (where, arm) for where in ("one", "two", "Overall") for arm in ("none, parallel, k=2", "awm, parallel, k=2")
    ]
    first, second, overall = (
        next(t for t in told if t["where"] == w and "awm" in t["arm"]) for w in ("one", "two", "Overall")
    )
    assert overall["tasks"] == first["tasks"] + second["tasks"] == 3
    for name in ("success", "best_of_n", "steps", "tokens"):
        assert overall[name] == pytest.approx((first[name] + 2 * second[name]) / 3), name
    runs = [
        run for name in ("one", "two") for row in read_rows(folder / name)[1] if "awm" in row.arm for run in row.runs
    ]
    right = [(run.verdict == "success") is run.success for run in runs]
    assert overall["judged"] == len(right) == 6
    assert overall["judge_right"] == pytest.approx(sum(right) / 6)
    text = CliRunner().invoke(bench, ["table", "one", "two"]).output
    assert "Overall, 95 % over tasks" in text
    same = CliRunner().invoke(bench, ["table", "one", "./one"])
    assert "two folders have one name" in str(same.exception)


@pytest.mark.parametrize(
    ("spread", "names"),
    [
        ({"ks": (1, 5)}, ["none, k=1", "none, parallel, k=5", "awm, k=1", "awm, parallel, k=5"]),
        ({"modes": ("parallel", "vanilla")}, ["none, parallel, k=5", "awm, parallel, k=5", "awm, vanilla, k=5"]),
        (
            {"ks": (2,), "modes": ("retry",), "banks": ("shared", "instance")},
            ["none, retry, k=2", "awm, retry, k=2", "awm, retry, k=2, bank per task"],
        ),
    ],
)
def test_ways_that_are_one_are_played_once(spread: dict[str, Any], names: Sequence[str], folder: Path) -> None:
    experiment = asked(folder / "small.toml", spread=Spread(arms=("none", "awm"), **spread))
    assert [arm.name for arm in experiment.arms] == list(names)


def test_ways_that_there_are_not_are_refused_in_a_sentence(folder: Path) -> None:
    for words, why in (
        (["--mode", "telepathy"], "there is no mode 'telepathy'"),
        (["--bank", "mine"], "no bank 'mine'"),
    ):
        done = CliRunner().invoke(bench, ["scale", "small.toml", "--out", "out", *words])
        assert done.exit_code != 0
        assert why in str(done.exception)
    assert not (folder / "out").exists()
