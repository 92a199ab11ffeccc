"""Real git repositories whose reviewers have house rules: what a strong model cannot know, and a memory can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Observation, Trajectory
from lessonbank_bench.environments.interface import ANEW, Finished, Job, Settings
from lessonbank_bench.environments.memories import ArmMemories
from lessonbank_bench.environments.mini_loading import mini
from lessonbank_bench.environments.mini_model import Answers, MiniModel
from lessonbank_bench.environments.mini_runs import Prompts, episode, trajectory
from lessonbank_bench.environments.mini_shell import ScrubbedShell
from lessonbank_bench.environments.model_agent import Speaker
from lessonbank_bench.environments.repo_desk import check_machine
from lessonbank_bench.environments.repo_desk.repository import source
from lessonbank_bench.environments.settings import refuse_others, told

from .conventions import FOLDERS, LISTS, SCRIPTS
from .player import PLAYER_VERSION, PROMPT, Player
from .repository import lay_out, take
from .review import HAND_INS, MOST_RUNS, Review
from .world import Repository, Task, stream, truth

STEPS = 3
CHANGES_AT = 40
_SETTINGS = ("temperature", "max_steps", "isolated", "changes_at")


class HouseRulesEnvironment:
    """Three repositories of two organisations, three kinds of change, twelve kinds of convention; see `world`.

    Settings: `temperature` (0.0); `max_steps` (3 commands); `isolated` (true), as in `repo_desk`; `changes_at` (40):
    from this task of a stream on, one organisation wants something else (0: never).

    Raises:
        MissingExtra: mini-swe-agent is not installed.
        UsageError: git or bash is not, or commands cannot be isolated here.
    """

    name = "house-rules"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._steps = told(self.name, settings, "max_steps", STEPS)
        self._changes_at = changes_at = told(self.name, settings, "changes_at", CHANGES_AT)
        self._alone = model is not None and told(self.name, settings, "isolated", True)
        self._model, self._mini = model, mini()
        check_machine(self.name, alone=self._alone)
        who = f"agent {model.name}, temperature {self._temperature}" if model else f"scripted agent {PLAYER_VERSION}"
        self.version = f"house-rules, {who}, {self._steps} commands, changes at {changes_at}, mini {self._mini.version}"
        self.memories = ArmMemories(
            self.name, model, truth=lambda seed, goal: truth(seed, goal, changes_at), domain="code"
        )
        self._folder: TemporaryDirectory[str] | None = None
        self._ready = Lock()

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """`n` tasks; there are always more."""
        return [_job(self.name, seed, place, task) for place, task in enumerate(stream(seed, n, self._changes_at))]

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
        with TemporaryDirectory(prefix="house-rules-", ignore_cleanup_errors=True) as home:
            folder = Path(home) / "repository"
            take(ready, folder)
            review = Review(wanted, folder)
            shell = ReviewedShell(ScrubbedShell(self._mini, folder, home=Path(home), alone=self._alone), review)
            prompts = Prompts(
                PROMPT.format(steps=self._steps, hand_ins=HAND_INS, runs=MOST_RUNS), _instance(wanted.repository)
            )
            data = episode(self._mini, model, shell, prompts, task=task.goal, memory=memory, steps=self._steps)
        run = trajectory(data, model, task=task.goal, memory=memory)
        return Finished(_whole(run, shell.last), review.accepted, _scores(review))

    def close(self) -> None:
        """Takes the repositories away."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _laid_out(self, seed: int, repository: Repository) -> Path:
        """Attempts may be made side by side, and begin with the same repository."""
        with self._ready:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="house-rules-", ignore_cleanup_errors=True)
            path = Path(self._folder.name) / f"{seed}-{repository.name.replace(' ', '-').lower()}"
            if not path.exists():
                path.mkdir()
                lay_out(repository, path)
            return path


class ReviewedShell:
    """A shell whose output ends with what the reviewer says; a task that is closed ends the run."""

    def __init__(self, shell: ScrubbedShell, review: Review, /) -> None:
        self._shell, self._review = shell, review
        self.config = shell.config
        self.last = ""
        """The output that closed the task; mini-swe-agent does not keep it as an observation."""

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """What a command printed, and what the reviewer said to it."""
        output = self._shell.execute(action, cwd)
        said = self._review.after_command()
        if not said:
            return output
        shown = f"{output.get('output', '')}{said}\n"
        if not self._review.closed:
            return {**output, "output": shown}
        self.last = shown
        return self._shell.execute({**action, "command": _END}, cwd)

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """Nothing of this process."""
        return {}

    def serialize(self) -> dict[str, Any]:
        """What the record of a run says of it."""
        return self._shell.serialize()


_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def _whole(run: Trajectory, last: str) -> Trajectory:
    """With what the reviewer said at the end, which is the best part for whoever learns from it."""
    if not last or not run.steps:
        return run.model_copy(update={"answer": None})
    *others, final = run.steps
    seen = (*final.observations, Observation(text=last))
    return run.model_copy(update={"steps": (*others, final.model_copy(update={"observations": seen})), "answer": None})


def _scores(review: Review) -> dict[str, float]:
    return {
        "kept at first": review.shares[0] if review.shares else 0.0,
        "kept at last": review.shares[-1] if review.shares else 0.0,
        "handed in": float(len(review.shares)),
    }


def _instance(repository: Repository) -> str:
    """The task, and what everybody can see of the repository: looking costs no command."""
    tree = [f"docs/: {', '.join(FOLDERS)}", f"index/: {', '.join(f'{name}.txt' for name in LISTS)}"]
    tree.append(f"dev/: {', '.join(SCRIPTS)}, hand-in")
    listed = "\n".join(tree)
    code = source(repository.name, repository.code)
    return "{{ task }}\n\n{% raw %}The repository, on branch main:\n" + f"{listed}\n\ncore.py:\n{code}" + "{% endraw %}"


def _job(name: str, seed: int, place: int, task: Task) -> Job:
    repository = task.repository
    return Job(
        f"{name}/{seed}/{place}", seed, task.goal, f"{repository.name}: {task.kind}", repository.organisation, task
    )
