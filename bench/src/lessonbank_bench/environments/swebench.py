"""SWE-bench by mini-swe-agent, wherever the user has the instances and a container engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import LessonbankError, UsageError

from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .mini_loading import alone, mini
from .mini_model import MiniModel
from .mini_runs import Prompts, episode, submitted, trajectory
from .model_agent import Speaker
from .settings import refuse_others, told
from .swebench_data import Instance, fingerprint, instances
from .swebench_grading import Harness, prediction

Start: TypeAlias = Callable[[Mapping[str, Any], Instance], Any]
"""Makes an environment of mini-swe-agent for an instance, from its configuration."""
_SETTINGS = (
    "dataset",
    "split",
    "repo",
    "out",
    "config",
    "engine",
    "temperature",
    "max_steps",
    "max_cost",
    "grade",
    "grade_seconds",
    "grade_python",
)
_PRINTED = 2_000_000
"""Characters of an output that its template gets to shorten."""
_PULL = 3_600
"""Seconds for fetching an image: they have gigabytes."""
_PATIENCE = 30.0
UNGRADED = "not graded"
"""The score of an attempt whose grading broke: `harness.log` beside its files says how."""


class SweBenchEnvironment:
    """The issues of a SWE-bench set in ascending order, one container each.

    Settings: see docs/environments/swebench.md.

    Args:
        model: who acts, judges and distils.
        settings: `dataset` at least.
        start: in place of the container of mini-swe-agent's configuration.

    Raises:
        MissingExtra: mini-swe-agent is not installed.
        UsageError: no model, no dataset, no container engine, no harness: the sentence says what to do.
    """

    name = "swebench"

    def __init__(
        self, model: LanguageModel | None = None, settings: Settings | None = None, /, *, start: Start | None = None
    ) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        if model is None:
            raise UsageError("environment 'swebench' needs a model: name one in the experiment, as provider:model")
        dataset = told(self.name, settings, "dataset", "")
        if not dataset:
            raise UsageError(
                "environment 'swebench' needs dataset under [settings]: a .json or .jsonl file of instances in the "
                "published format, or 'verified' or 'lite'"
            )
        self._model, self._mini = model, mini()
        split = told(self.name, settings, "split", "test")
        self._instances = instances(dataset, split=split, repo=told(self.name, settings, "repo", ""))
        path = told(self.name, settings, "config", "")
        config = self._mini.config(Path(path) if path else None)
        agent, self._shown, self._config = _part(config, "agent"), _part(config, "model"), config
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._steps = told(self.name, settings, "max_steps", int(agent.get("step_limit", 250)))
        self._cost = told(self.name, settings, "max_cost", float(agent.get("cost_limit", 3.0)))
        self._prompts = Prompts(str(agent["system_template"]).rstrip(), str(agent["instance_template"]))
        self._start = start or _engine(told(self.name, settings, "engine", "docker"))
        self._out = Path(told(self.name, settings, "out", "swebench-runs"))
        self._harness = _harness(settings, dataset, split)
        self.version = (
            f"swebench {fingerprint(self._instances)}, mini-swe-agent {self._mini.version} "
            f"{digest(json.dumps(config, sort_keys=True, default=str))[:8]}, agent {model.name}, "
            f"temperature {self._temperature}, {self._steps} steps"
        )
        self.memories = ArmMemories(self.name, model, domain="code")

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """The first `n` instances, the same for every seed."""
        return [
            Job(f"{self.name}/{one.id}", seed, one.statement, one.repo, one.repo, one) for one in self._instances[:n]
        ]

    def agent(self, seed: int, /, *, anew: bool) -> Speaker:
        """The model; two agents differ by its own chance alone."""
        return Speaker(self._model, temperature=self._temperature)

    def attempt(self, task: Job, agent: Speaker, memory: str, /) -> Finished:
        """Minutes, nearly all of them the model's."""
        instance = cast("Instance", task.content)
        model = MiniModel(
            self._mini,
            self._model.name,
            agent,
            observed=str(self._shown["observation_template"]),
            malformed=str(self._shown["format_error_template"]),
            most=_PRINTED,
        )
        shell = self._start(self._config, instance)
        try:
            data = episode(
                self._mini,
                model,
                shell,
                self._prompts,
                task=task.goal,
                memory=memory,
                steps=self._steps,
                cost=self._cost,
            )
        finally:
            _end(shell)
        run = trajectory(data, model, task=task.goal, memory=memory)
        made = prediction(instance.id, str(data["info"]["submission"]), model=self._model.name)
        success, broken = self._graded(self._kept(instance, data, made), made)
        return Finished(run, success, {"handed in": float(submitted(data)), "patch": float(bool(run.answer)), **broken})

    def close(self) -> None:
        """Each container ends with its task."""

    def _kept(self, instance: Instance, data: dict[str, Any], made: dict[str, str]) -> Path:
        """Writes the files of an attempt; the predictions among them."""
        folder = _next(self._out / instance.id)
        path = folder / f"{instance.id}.traj.json"
        path.write_text(json.dumps({**data, "instance_id": instance.id}, indent=2), encoding="utf-8")
        file = folder / "preds.json"
        file.write_text(json.dumps({instance.id: made}, indent=2), encoding="utf-8")
        return file

    def _graded(self, file: Path, made: dict[str, str]) -> tuple[bool | None, dict[str, float]]:
        """Where the harness breaks the run is kept, whose model was paid for: it can be graded later."""
        if self._harness is None:
            return None, {}
        try:
            return self._harness.resolved(file, made, f"lessonbank-{file.parent.name}"), {}
        except (RuntimeError, OSError, subprocess.SubprocessError, LessonbankError):
            return None, {UNGRADED: 1.0}


def _part(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    needed = {
        "agent": ("system_template", "instance_template"),
        "model": ("observation_template", "format_error_template"),
    }
    part = config.get(key)
    if not isinstance(part, dict) or any(name not in part for name in needed[key]):
        raise UsageError(f"environment 'swebench': the configuration has no {' and '.join(needed[key])} under {key}")
    return cast("dict[str, Any]", part)


def _harness(settings: Settings | None, dataset: str, split: str) -> Harness | None:
    grade = told("swebench", settings, "grade", "")
    seconds = told("swebench", settings, "grade_seconds", 1_800)
    python = told("swebench", settings, "grade_python", "")
    if grade not in ("", "official"):
        raise UsageError(f"environment 'swebench': grade is 'official' or left out; got {grade!r}")
    return Harness(dataset, split=split, seconds=seconds, python=python) if grade else None


def _engine(name: str) -> Start:
    """What starts containers.

    Raises:
        UsageError: it is not installed, or does not answer.
    """
    program = os.environ.get("MSWEA_DOCKER_EXECUTABLE", "docker") if name == "docker" else name
    if name not in ("docker", "singularity"):
        raise UsageError(f"environment 'swebench': engine is 'docker' or 'singularity'; got {name!r}")
    if shutil.which(program) is None:
        raise UsageError(f"environment 'swebench' needs {program}: install it, or run where it is")
    if name == "docker" and not _answers([program, "version"]):
        raise UsageError(
            f"environment 'swebench' needs a running {program}: `{program} version` reaches no server here"
        )
    with alone():
        make = import_module("minisweagent.run.benchmarks.swebench").get_sb_environment

    def start(config: Mapping[str, Any], instance: Instance) -> Any:
        part = {"pull_timeout": _PULL, **config.get("environment", {}), "environment_class": name}
        return make({**config, "environment": part}, dict(instance.data))

    return start


def _end(shell: Any) -> None:
    """Ends a container before the next one begins; mini-swe-agent's own way leaves that to a process behind."""
    container = getattr(shell, "container_id", None)
    if container is None:
        getattr(shell, "cleanup", lambda: None)()
        return
    shell.container_id = None
    subprocess.run([shell.config.executable, "rm", "--force", container], capture_output=True, check=False)


def _answers(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _next(folder: Path) -> Path:
    """A new folder for one more attempt at an instance."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, 1_000_000):
        with suppress(FileExistsError):
            made = folder / f"{number:03d}"
            made.mkdir()
            return made
    raise OSError(f"too many attempts in {folder}")
