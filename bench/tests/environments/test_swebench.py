"""SWE-bench as an environment, on instances made up here and without containers: data, prompts, files, grades."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lessonbank.errors import FormatError, MissingExtra, UsageError
from lessonbank.importers import Imported, read
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments import Finished, Job, environment
from lessonbank_bench.environments.mini_loading import mini
from lessonbank_bench.environments.mini_shell import ScrubbedShell
from lessonbank_bench.environments.swebench import SweBenchEnvironment
from lessonbank_bench.environments.swebench_data import Instance, fingerprint, instances
from lessonbank_bench.environments.swebench_grading import (
    MODULE,
    Harness,
    graded,
    instance_of,
    outcomes,
    predictions,
    read_report,
)
from lessonbank_bench.experiment.journal import read_rows
from lessonbank_bench.experiment.records import AttemptRow, made
from lessonbank_bench.experiment.runner import run

needs_mini = pytest.mark.skipif(find_spec("minisweagent") is None, reason="mini-swe-agent is not installed")
PATCH = "diff --git a/tool.py b/tool.py\n--- a/tool.py\n+++ b/tool.py\n@@ -1 +1 @@\n-late\n+soon\n"
IDS = ("gadget__tool-12", "gadget__tool-7", "widget__press-3")


def instance(id: str, **more: Any) -> dict[str, Any]:
    """An entry with every field of the published format, all made up."""
    repo = id.rsplit("-", 1)[0].replace("__", "/")
    return {
        "repo": repo,
        "instance_id": id,
        "base_commit": "0" * 40,
        "patch": PATCH,
        "test_patch": "",
        "problem_statement": f"The tool of {id} is late; it should be soon.",
        "hints_text": "",
        "created_at": "2026-01-01T00:00:00Z",
        "version": "1.0",
        "FAIL_TO_PASS": '["test_tool.py::test_soon"]',
        "PASS_TO_PASS": "[]",
        "environment_setup_commit": "0" * 40,
        "difficulty": "<15 min fix",
        **more,
    }


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(instance(id)) + "\n" for id in IDS))
    return path


def block(command: str) -> str:
    return f"THOUGHT: on with it.\n\n```mswea_bash_command\n{command}\n```"


def replies() -> list[str]:
    written = "cat > patch.txt <<'EOF'\n" + PATCH + "EOF"
    return [block("ls"), block(written), block("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt")]


def starting(folder: Path) -> tuple[Callable[[Mapping[str, Any], Instance], Any], list[Any]]:
    """In place of containers: a folder for each, and a note of which were ended."""
    ended: list[Any] = []

    class Shell(ScrubbedShell):
        def cleanup(self) -> None:
            ended.append(self)

    def start(config: Mapping[str, Any], instance: Instance) -> Any:
        assert config["environment"]["cwd"] == "/testbed"
        place = folder / "containers" / instance.id
        place.mkdir(parents=True, exist_ok=True)
        place.joinpath("tool.py").write_text("late\n")
        return Shell(mini(), place, home=place)

    return start, ended


def environment_of(tmp_path: Path, dataset: Path, model: Any, **more: Any) -> SweBenchEnvironment:
    start, _ = starting(tmp_path)
    told = {"dataset": str(dataset), "out": str(tmp_path / "runs"), **more}
    return SweBenchEnvironment(model, told, start=start)


def attempted(place: SweBenchEnvironment, job: Job, memory: str = "") -> Finished:
    return place.attempt(job, place.agent(1, anew=False), memory)


def test_instances_ascend_by_repository_and_number(dataset: Path) -> None:
    found = instances(str(dataset), split="test")
    assert [one.id for one in found] == ["gadget__tool-7", "gadget__tool-12", "widget__press-3"]
    assert [one.id for one in instances(str(dataset), split="test", repo="widget/press")] == ["widget__press-3"]


def test_json_and_lines_are_the_same_set(dataset: Path, tmp_path: Path) -> None:
    other = tmp_path / "set.json"
    other.write_text(json.dumps([instance(id) for id in reversed(IDS)], indent=1))
    assert fingerprint(instances(str(other), split="")) == fingerprint(instances(str(dataset), split=""))
    other.write_text(json.dumps([instance(id, problem_statement="Another.") for id in IDS]))
    assert fingerprint(instances(str(other), split="")) != fingerprint(instances(str(dataset), split=""))


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([], "no instance of any repository"),
        (["x"], "entry 1 of .* is no instance"),
        ([instance("a__b-1"), {"instance_id": "a__b-2"}], "entry 2 of .* has no repo"),
        ([instance("a__b-1", problem_statement=" ")], "entry 1 of .* has no problem_statement"),
        ([instance("a__b-1", instance_id="../up")], "entry 1 of .* an instance_id that is none"),
        ([instance("a__b-1"), instance("a__b-1")], "an instance is twice"),
    ],
)
def test_a_set_that_cannot_be_is_refused_in_one_sentence(entries: list[Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(entries))
    with pytest.raises(UsageError, match=says):
        instances(str(path), split="test")


@pytest.mark.parametrize("text", ["{", "3", "[" * 100_000])
def test_a_file_that_is_no_set_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no list of instances"):
        instances(str(path), split="test")


def test_an_absent_set_says_what_a_dataset_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read its dataset .*\.jsonl file of instances"):
        instances(str(tmp_path / "none.jsonl"), split="test")


def test_a_published_set_needs_the_datasets_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match="pip install datasets, or name a"):
        instances("verified", split="test")


def test_a_published_set_is_asked_for_by_its_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(name: str, *, split: str) -> list[dict[str, Any]]:
        if split == "dev":
            raise ConnectionError("no way\nto the hub")
        return [instance(id, asked=name) for id in IDS]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))  # type: ignore[arg-type]
    assert {one.data["asked"] for one in instances("lite", split="test")} == {"princeton-nlp/SWE-bench_Lite"}
    with pytest.raises(UsageError, match=r"SWE-bench_Lite \(dev\) cannot be loaded: no way to the hub"):
        instances("lite", split="dev")


def test_an_experiment_without_a_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="'swebench' needs dataset"):
        SweBenchEnvironment(ScriptedModel(["x"]))


def test_without_mini_swe_agent_one_sentence_says_what_to_install(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    mini.cache_clear()
    with pytest.raises(MissingExtra, match=r"lessonbank-bench\[mini\]"):
        environment("swebench", ScriptedModel(["x"]), {"dataset": str(dataset)})
    mini.cache_clear()


@needs_mini
def test_without_an_engine_or_its_server_one_sentence_says_so(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"dataset": str(dataset)}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="'swebench' needs docker: install it"):
        SweBenchEnvironment(ScriptedModel(["x"]), told)
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(UsageError, match="needs a running docker"):
        SweBenchEnvironment(ScriptedModel(["x"]), told)
    with pytest.raises(UsageError, match="engine is 'docker' or 'singularity'"):
        SweBenchEnvironment(ScriptedModel(["x"]), {**told, "engine": "podman"})


@needs_mini
def test_the_engine_is_given_the_image_of_the_instance(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, log = tmp_path / "docker", tmp_path / "log"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\n[ "$1" = exec ] && exec sh -c "echo seen"\necho an-id\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    model = ScriptedModel(lambda messages: block("true"))
    told = {"dataset": str(dataset), "out": str(tmp_path / "runs"), "max_steps": 1}
    place = SweBenchEnvironment(model, told)
    done = attempted(place, place.tasks(1, 1)[0])
    lines = log.read_text().splitlines()
    begun = next(line for line in lines if line.startswith("run "))
    assert "sweb.eval.x86_64.gadget_1776_tool-7:latest" in begun
    assert lines[-1] == "rm --force an-id"
    assert "seen" in done.run.steps[1].observations[0].text
    assert done.run.error == "LimitsExceeded"


@needs_mini
def test_an_issue_is_done_and_its_files_are_the_official_ones(dataset: Path, tmp_path: Path) -> None:
    model = ScriptedModel(replies())
    start, ended = starting(tmp_path)
    place = SweBenchEnvironment(model, {"dataset": str(dataset), "out": str(tmp_path / "runs")}, start=start)
    job = place.tasks(1, 5)[0]
    assert (job.id, job.group, job.family) == ("swebench/gadget__tool-7", "gadget/tool", "gadget/tool")
    done = attempted(place, job, "Mind the {{ braces }}.")
    assert done.success is None
    assert done.scores == {"handed in": 1.0, "patch": 1.0}
    assert (done.run.answer, done.run.task) == (PATCH, "The tool of gadget__tool-7 is late; it should be soon.")
    assert len(ended) == 1
    first = model.calls[0].messages
    assert first[0].content.endswith("\n\nMind the {{ braces }}.")
    assert done.run.task in first[1].content
    assert "Mind the" not in done.run.model_dump_json()
    folder = tmp_path / "runs" / "gadget__tool-7" / "001"
    entry = {"instance_id": "gadget__tool-7", "model_name_or_path": "scripted", "model_patch": PATCH}
    assert json.loads((folder / "preds.json").read_text()) == {"gadget__tool-7": entry}
    imported = next(read(folder / "gadget__tool-7.traj.json"))
    assert isinstance(imported, Imported)
    assert imported.trajectory.metadata["task_id"] == "gadget__tool-7"


@needs_mini
def test_settings_reach_the_agent_and_the_version(dataset: Path, tmp_path: Path) -> None:
    model = ScriptedModel(lambda messages: block("true"))
    place = environment_of(tmp_path, dataset, model, temperature=0.7, max_steps=2)
    done = attempted(place, place.tasks(1, 1)[0])
    assert {call.temperature for call in model.calls} == {0.7}
    assert (len(model.calls), done.run.error, done.run.answer) == (2, "LimitsExceeded", None)
    assert done.scores == {"handed in": 0.0, "patch": 0.0}
    other = environment_of(tmp_path, dataset, model, temperature=0.0)
    assert place.version != other.version
    assert "scripted" in place.version


@needs_mini
def test_a_configuration_of_ones_own_is_used(dataset: Path, tmp_path: Path) -> None:
    config = tmp_path / "own.yaml"
    config.write_text(
        json.dumps({**mini().config(), "agent": {"system_template": "Short.", "instance_template": "{{ task }}"}})
    )
    model = ScriptedModel(replies())
    place = environment_of(tmp_path, dataset, model, config=str(config))
    attempted(place, place.tasks(1, 1)[0])
    assert [message.content for message in model.calls[0].messages] == ["Short.", place.tasks(1, 1)[0].goal]
    config.write_text("agent: {system_template: x}\nmodel: {}\n")
    with pytest.raises(UsageError, match="has no system_template and instance_template under agent"):
        environment_of(tmp_path, dataset, model, config=str(config))


@pytest.fixture
def rows(dataset: Path, tmp_path: Path) -> list[AttemptRow]:
    if find_spec("minisweagent") is None:
        pytest.skip("mini-swe-agent is not installed")

    def answers(messages: Sequence[Any]) -> str:
        turn = sum(message.role == "assistant" for message in messages)
        return block("true") if "press" in messages[1].content else replies()[turn]

    arms = [{"name": "none"}, {"name": "lessonbank", "memory": "lessonbank:extractor=extractive"}]
    told = {"environment": "swebench", "seeds": [1], "tasks": 3, "arms": arms, "leave_out": [], "share": False}
    place = environment_of(tmp_path, dataset, ScriptedModel(answers), max_steps=4)
    run(made({**told, "judged": True, "model": "x:y"}, source="test"), place, tmp_path / "out")
    return read_rows(tmp_path / "out")[1]


def test_predictions_are_made_of_attempts(rows: list[AttemptRow]) -> None:
    entries = predictions(rows, arm="none", seed=1, model="m+none")
    assert sorted(entries) == sorted(IDS)
    assert entries["gadget__tool-7"]["model_patch"] == PATCH
    assert entries["widget__press-3"] == {
        "instance_id": "widget__press-3",
        "model_name_or_path": "m+none",
        "model_patch": "",
    }
    assert predictions(rows, arm="none", seed=2, model="m") == {}


def test_a_report_gives_attempts_of_its_arm_their_success(rows: list[AttemptRow]) -> None:
    assert {row.success for row in rows} == {None}
    report = {"resolved_ids": [IDS[0]], "unresolved_ids": [IDS[1]], "empty_patch_ids": [IDS[2]], "error_ids": []}
    told = graded(rows, report, arm="none", seed=1)
    assert {instance_of(row): row.success for row in told if row.arm == "none"} == {
        IDS[0]: True,
        IDS[1]: False,
        IDS[2]: False,
    }
    assert {row.success for row in told if row.arm == "lessonbank"} == {None}
    assert [row.model_copy(update={"success": None}) for row in told] == rows
    with pytest.raises(UsageError, match="no attempt of arm 'none', seed 2"):
        graded(rows, report, arm="none", seed=2)


def test_what_a_report_leaves_open_stays_open() -> None:
    run_report = {"resolved_ids": ["a__a-1"], "error_ids": ["a__a-2"], "incomplete_ids": ["a__a-3"]}
    assert outcomes(run_report) == {"a__a-1": True, "a__a-2": False}
    assert outcomes({"a__a-1": {"resolved": True, "patch_exists": True}}) == {"a__a-1": True}


@pytest.mark.parametrize("report", [{}, {"resolved_ids": 3}, {"a": 1}, {"a": {"resolved": True}, "b": {}}])
def test_what_is_no_report_is_refused(report: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="no report of the SWE-bench harness"):
        outcomes(report)


def test_a_report_file_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    with pytest.raises(UsageError, match="cannot read the report"):
        read_report(path)
    for text, says in (("{", "is no JSON"), ("[]", "is no report")):
        path.write_text(text)
        with pytest.raises(FormatError, match=says):
            read_report(path)
    path.write_text('{"resolved_ids": []}')
    assert read_report(path) == {"resolved_ids": []}


def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Harness:
    """The official command line over a stand-in that does `body` with `id` and `logs`."""
    package = tmp_path / "stand-in" / "swebench" / "harness"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        folder.joinpath("__init__.py").touch()
    head = (
        "import json, sys, pathlib\n"
        "told = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "made = json.loads(pathlib.Path(told['--predictions_path']).read_text())\n"
        "id = told['--instance_ids']; model = made[id]['model_name_or_path'].replace('/', '__')\n"
        "logs = pathlib.Path('logs', 'run_evaluation', told['--run_id'], model, id); logs.mkdir(parents=True)\n"
    )
    package.joinpath("run_evaluation.py").write_text(head + body)
    monkeypatch.setenv("PYTHONPATH", str(package.parents[1]))
    return Harness(str(tmp_path / "set.jsonl"), split="test", seconds=60)


REPORTED = (
    "logs.joinpath('report.json').write_text(json.dumps({id: {'resolved': made[id]['model_patch'] == 'good'}}))\n"
)


def grading(tmp_path: Path, official: Harness, patch: str) -> bool:
    entry = {"instance_id": "a__a-1", "model_name_or_path": "some/model", "model_patch": patch}
    folder = tmp_path / "attempt"
    folder.mkdir(exist_ok=True)
    file = folder / "preds.json"
    file.write_text(json.dumps({"a__a-1": entry}))
    return official.resolved(file, entry, f"run-{patch}")


def test_the_official_command_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    official = harness(tmp_path, monkeypatch, REPORTED)
    assert grading(tmp_path, official, "good")
    assert not grading(tmp_path, official, "bad")
    assert not grading(tmp_path, official, " ")
    told = official.command(Path("p.json"), "a__a-1", "r")
    assert told[:3] == [sys.executable, "-m", MODULE]
    assert told[told.index("--dataset_name") + 1] == str(tmp_path / "set.jsonl")


def test_a_patch_that_does_not_fit_is_the_agents_failure_and_a_broken_harness_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "fits = made[id]['model_patch'] != 'unfit'\n"
        "logs.joinpath('run_instance.log').write_text('' if fits else '>>>>> Patch Apply Failed')\n"
    )
    official = harness(tmp_path, monkeypatch, body)
    assert not grading(tmp_path, official, "unfit")
    with pytest.raises(RuntimeError, match=r"no report for a__a-1: see .*harness\.log"):
        grading(tmp_path, official, "good")


@needs_mini
def test_an_attempt_is_graded_at_once_where_that_is_wanted(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness(tmp_path, monkeypatch, REPORTED.replace("== 'good'", "!= ''"))
    place = environment_of(tmp_path, dataset, ScriptedModel(replies()), grade="official")
    assert attempted(place, place.tasks(1, 1)[0]).success is True
    with pytest.raises(UsageError, match="grade is 'official' or left out"):
        environment_of(tmp_path, dataset, ScriptedModel(["x"]), grade="mine")


@needs_mini
def test_an_attempt_whose_grading_breaks_is_kept_to_be_graded_later(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness(tmp_path, monkeypatch, "sys.exit('no docker')\n")
    place = environment_of(tmp_path, dataset, ScriptedModel(replies()), grade="official")
    done = attempted(place, place.tasks(1, 1)[0])
    assert (done.success, done.scores) == (None, {"handed in": 1.0, "patch": 1.0, "not graded": 1.0})
    assert done.run.answer
    assert done.run.usage.requests == 3


def test_without_the_harness_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    missing = tmp_path / "python"
    missing.write_text("#!/bin/sh\nexit 1\n")
    missing.chmod(0o755)
    for python in (str(missing), str(tmp_path / "none")):
        with pytest.raises(UsageError, match=r"needs the harness in .*: pip install swebench"):
            Harness("lite", split="test", seconds=1, python=python)
