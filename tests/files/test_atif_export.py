"""Runs as ATIF: whoever reads them gets every step, call, result and word, and this package reads them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lessonbank
from lessonbank import importers
from lessonbank.cli import app
from lessonbank.contracts.records import Action, Observation, Run, Step, ToolCall, Trajectory, Verdict
from lessonbank.errors import UsageError
from lessonbank.files.atif import document

SUCCESS = Verdict(outcome="success", reward=1.0, source="ground_truth", reason="tests")


def call(id: str | None, name: str = "look", **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, id=id)


RUNS = {
    "two calls, results in another order": (
        Step(observations=(Observation(text="Find the lamp", source="user"),)),
        Step(
            thought="Two places.",
            action=Action(text="I look.", calls=(call("a", place="shelf"), call("b", place="floor"))),
            observations=(
                Observation(text="here", source="tool", call_id="b", is_success=True),
                Observation(text="no shelf", source="tool", call_id="a", is_error=True),
                Observation(text="And now?", source="user"),
            ),
        ),
        Step(action="It is on the floor."),
    ),
    "text actions": (
        Step(observations=(Observation(text="Find the lamp", source="user"),)),
        Step(action="ls", observation="lamp"),
        Step(thought="Found.", action="submit", observations=(Observation(text="bye"), Observation(text="0"))),
    ),
    "a result that comes steps later": (
        Step(observations=(Observation(text="Find the lamp", source="user"),)),
        Step(action=Action(calls=(call("a"),))),
        Step(action=Action(text="Waiting."), observations=(Observation(text="ok", source="tool", call_id="a"),)),
    ),
}


def made(steps: tuple[Step, ...], **fields: Any) -> Run:
    return Run(trajectory=Trajectory(task="Find the lamp", steps=steps, **fields), verdict=SUCCESS)


def back(run: Run, folder: Path) -> importers.Imported:
    (folder / "run.json").write_text(json.dumps(document(run)), encoding="utf-8")
    (found,) = importers.read(folder / "run.json")
    assert isinstance(found, importers.Imported)
    return found


def told(run: Trajectory) -> list[Any]:
    calls = [(one.name, one.arguments) for step in run.steps for one in step.action.calls]
    seen = [(one.text, one.source, one.is_error, one.is_success) for step in run.steps for one in step.observations]
    return [calls, sorted(seen), [(step.thought, step.action.text) for step in run.steps]]


@pytest.mark.parametrize("name", RUNS)
def test_what_was_written_is_read_back(name: str, tmp_path: Path) -> None:
    run = made(RUNS[name], instructions="Be kind.", answer="On the floor.", error="stopped")
    found = back(run, tmp_path)
    assert told(found.trajectory) == told(run.trajectory)
    assert found.account.left == ()
    kept = found.trajectory
    assert (kept.task, kept.instructions, kept.answer, kept.error) == (
        ("Find the lamp", "Be kind.", "On the floor.", "stopped")
    )
    assert found.verdict == SUCCESS


@pytest.mark.parametrize("name", RUNS)
def test_steps_keep_the_rules_of_atif(name: str) -> None:
    steps: Any = document(made(RUNS[name]))["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        assert step["source"] in ("system", "user", "agent")
        own = {one["tool_call_id"] for one in step.get("tool_calls", ())}
        assert not own or step["source"] == "agent"
        named = {one.get("source_call_id") for one in step.get("observation", {}).get("results", ())}
        assert named - {None} <= own


def test_a_task_that_nobody_says_is_the_first_words_of_the_user() -> None:
    steps: Any = document(made((Step(action="ls", observation="lamp"),)))["steps"]
    assert steps[0] == {"step_id": 1, "source": "user", "message": "Find the lamp"}


def test_a_models_opinion_is_written_and_is_no_truth_when_it_is_read(tmp_path: Path) -> None:
    opinion = Verdict(outcome="success", source="judge")
    found = back(made(RUNS["text actions"]).model_copy(update={"verdict": opinion}), tmp_path)
    assert found.verdict is None
    assert "extra.lessonbank.success" in found.account.left[0]


def test_a_bank_writes_each_kept_run_to_a_file_of_its_own(tmp_path: Path) -> None:
    bank = lessonbank.connect(tmp_path / "bank.db", scope="a", embedder="lexical")
    for number in range(3):
        run = Trajectory(
            id=f"../run {number}" if number else "one", task=f"Find lamp {number}", steps=(Step(action="ls"),)
        )
        bank.learn(run, outcome="success")
    assert bank.admin.export(tmp_path / "runs", format="atif") == 3
    bank.close()
    assert len(list((tmp_path / "runs").iterdir())) == 3
    assert (tmp_path / "runs" / "one.json").exists()
    found = list(importers.read(tmp_path / "runs"))
    assert {run.trajectory.task for run in found if isinstance(run, importers.Imported)} == {
        f"Find lamp {number}" for number in range(3)
    }


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine", encoding="utf-8")
    bank = lessonbank.connect(tmp_path / "bank.db", scope="a", embedder="lexical")
    with bank, pytest.raises(UsageError, match="name a folder for the runs"):
        bank.admin.export(tmp_path / "runs", format="atif")
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "mine"


def test_the_command_says_how_many_runs_it_wrote(tmp_path: Path) -> None:
    path = str(tmp_path / "bank.db")
    with lessonbank.connect(path, scope="a", embedder="lexical") as bank:
        bank.learn(made(RUNS["text actions"]).trajectory, outcome="success")
    told = CliRunner().invoke(
        app, ["export", str(tmp_path / "runs"), "--bank", path, "--scope", "a", "--format", "atif"]
    )
    assert told.exit_code == 0, told.output
    assert "1 runs of a are in" in told.output
