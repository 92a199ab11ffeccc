"""Real git repositories with hidden conventions, worked on by the real mini-swe-agent: synthetic, small and fast."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.errors import UsageError
from lessonbank_bench.environments.interface import ANEW, Finished, Job, Settings
from lessonbank_bench.environments.memories import ArmMemories
from lessonbank_bench.environments.mini_loading import mini
from lessonbank_bench.environments.mini_model import Answers, MiniModel
from lessonbank_bench.environments.mini_runs import Prompts, episode, submitted, trajectory
from lessonbank_bench.environments.mini_shell import ScrubbedShell, can_be_alone
from lessonbank_bench.environments.model_agent import Speaker
from lessonbank_bench.environments.settings import refuse_others, told

from .player import PLAYER_VERSION, RULES, Player
from .repository import lay_out, take, verified
from .world import Repository, Task, stream, truth

STEPS = 9
_SETTINGS = ("temperature", "max_steps", "isolated")


class RepoDeskEnvironment:
    """Five repositories of two organisations, four kinds of change, three hidden conventions; see `world`.

    Settings: `temperature` (0.0) and `max_steps` (9 commands); `isolated` (true) keeps the commands of a model away
    from the network and from other processes, which takes Linux and `unshare`.

    Raises:
        MissingExtra: mini-swe-agent is not installed.
        UsageError: git or bash is not, or commands cannot be isolated here.
    """

    name = "repo-desk"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._steps = told(self.name, settings, "max_steps", STEPS)
        self._alone = model is not None and told(self.name, settings, "isolated", True)
        self._model, self._mini = model, mini()
        check_machine(self.name, alone=self._alone)
        who = f"agent {model.name}, temperature {self._temperature}" if model else f"scripted agent {PLAYER_VERSION}"
        self.version = f"repo-desk, {who}, {self._steps} commands, mini-swe-agent {self._mini.version}"
        self.memories = ArmMemories(self.name, model, truth=truth, domain="code")
        self._prompts = Prompts(RULES.format(steps=self._steps), "{{ task }}")
        self._folder: TemporaryDirectory[str] | None = None
        self._ready = Lock()

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """`n` tasks; there are always more."""
        return [_job(self.name, seed, place, task) for place, task in enumerate(stream(seed, n))]

    def agent(self, seed: int, /, *, anew: bool) -> Answers:
        """The model, or the script."""
        if self._model is not None:
            return Speaker(self._model, temperature=self._temperature)
        return Player(seed + ANEW if anew else seed)

    def attempt(self, task: Job, agent: Answers, memory: str, /) -> Finished:
        """Real commands in a copy of the repository, which is taken away afterwards."""
        wanted = cast("Task", task.content)
        ready = self._laid_out(task.seed, wanted.repository)
        model = MiniModel(self._mini, self._model.name if self._model else "script", agent)
        with TemporaryDirectory(prefix="repo-desk-", ignore_cleanup_errors=True) as home:
            folder = Path(home) / "repository"
            take(ready, wanted, folder)
            shell = ScrubbedShell(self._mini, folder, home=Path(home), alone=self._alone)
            data = episode(self._mini, model, shell, self._prompts, task=task.goal, memory=memory, steps=self._steps)
            scores = {**verified(wanted, folder), "handed in": float(submitted(data))}
        run = trajectory(data, model, task=task.goal, memory=memory)
        # What mini-swe-agent hands in is the output of the closing command, the same for all: no answer.
        return Finished(run.model_copy(update={"answer": None}), all(scores.values()), scores)

    def close(self) -> None:
        """Takes the repositories away."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _laid_out(self, seed: int, repository: Repository) -> Path:
        """Attempts may be made side by side, and begin with the same repository."""
        with self._ready:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="repo-desk-", ignore_cleanup_errors=True)
            path = Path(self._folder.name) / f"{seed}-{repository.name.replace(' ', '-').lower()}"
            if not path.exists():
                path.mkdir()
                lay_out(repository, path)
            return path


def _job(name: str, seed: int, place: int, task: Task) -> Job:
    repository = task.repository
    family = f"{repository.name}: {task.kind}"
    return Job(f"{name}/{seed}/{place}", seed, task.goal, family, repository.organisation, task)


def check_machine(name: str, /, *, alone: bool) -> None:
    """Raises:
    UsageError: git or bash is missing, or commands cannot be isolated here.
    """
    missing = next((program for program in ("git", "bash") if shutil.which(program) is None), None)
    if missing:
        raise UsageError(f"environment {name!r} needs {missing}: install it with your system's package manager")
    if alone and not can_be_alone():
        raise UsageError(
            f"environment {name!r} cannot keep a model's commands off the network here (it takes Linux and unshare): "
            "run it in a container, with isolated = false under [settings]"
        )
