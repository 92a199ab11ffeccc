"""The worlds in which pieces of retrieval are compared: who does the tasks, and which tasks are of one kind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast

from lessonbank.contracts.ports import Completion, Message
from lessonbank.demo.agents import ScriptedAgent
from lessonbank.demo.desk import View
from lessonbank.demo.reading import read
from lessonbank.text.messages import trajectory_from
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.interface import Environment, Finished, Job
from lessonbank_bench.environments.miniwob import MiniwobEnvironment
from lessonbank_bench.environments.repo_desk import RepoDeskEnvironment
from lessonbank_bench.environments.repo_desk.player import Player
from lessonbank_bench.measure.retrieval import labels

Look = Callable[[str, str], str]
"""What the bank says in the middle of a run, for what came back and what was done."""
_NOTHING = re.compile(r"\bnothing\b", re.IGNORECASE)
_COMMAND = re.compile(r"```mswea_bash_command\n(.*?)\n```", re.DOTALL)


class World(Protocol):
    """A stream of tasks, and somebody to do them."""

    acts: bool
    """Whether what memory says can change what is done."""

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]: ...

    def attempt(self, task: Job, memory: str, look: Look | None, /) -> Finished:
        """One task done. With `look`, the agent looks again where a step came to nothing."""
        ...

    def close(self) -> None: ...


class Played:
    """A world of an experiment, with its scripted agent."""

    acts = True

    def __init__(self, environment: Environment, looking: Callable[[int, Look], Any], /) -> None:
        self._world, self._looking = environment, looking

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        return self._world.tasks(seed, n)

    def attempt(self, task: Job, memory: str, look: Look | None, /) -> Finished:
        agent = self._looking(task.seed, look) if look else self._world.agent(task.seed, anew=False)
        return self._world.attempt(task, agent, memory)

    def close(self) -> None:
        self._world.close()


class Deaf:
    """A world whose scripted agent takes nothing from memory: each task is done once, whatever is shown."""

    acts = False

    def __init__(self, environment: Environment, /) -> None:
        self._world, self._done = environment, dict[str, Finished]()

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        return self._world.tasks(seed, n)

    def attempt(self, task: Job, memory: str, look: Look | None, /) -> Finished:
        if task.id not in self._done:
            self._done[task.id] = self._world.attempt(task, self._world.agent(task.seed, anew=False), "")
        return self._done[task.id]

    def close(self) -> None:
        self._world.close()


class Recorded:
    """Runs of public agents in an order drawn from the seed: nobody acts, so nothing is said of success."""

    acts = False

    def __init__(self, folder: Path, /) -> None:
        self._folder = folder

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """Runs of different tasks. The group is the domain."""
        rows = random.Random(f"recorded {seed}").sample(_runs(self._folder), n)
        return [
            Job(f"{seed}/{place}", seed, row["task"], kind, domain, row)
            for place, (domain, kind, row) in enumerate(rows)
        ]

    def attempt(self, task: Job, memory: str, look: Look | None, /) -> Finished:
        row = cast("Mapping[str, Any]", task.content)
        return Finished(trajectory_from(row["messages"], task=task.goal), bool(row["success"]))

    def close(self) -> None:
        return


class LookingAgent(ScriptedAgent):
    """The scripted agent of the desk, which reads what a second look says, too."""

    def __init__(self, seed: int, look: Look, /) -> None:
        super().__init__(seed)
        self._look = look

    def act(self, view: View, /) -> str:
        pressed = self._pressed
        control = super().act(view)
        if pressed is None or not _NOTHING.search(view.message) or not (text := self._look(view.message, pressed)):
            return control
        self._statements = (*(self._statements or ()), *read(text, goal=view.goal))
        self._pressed = control = self._choose(view)
        return control


class LookingPlayer(Player):
    """The scripted agent of repo-desk, which reads what a second look says, too."""

    def __init__(self, seed: int, look: Look, /) -> None:
        super().__init__(seed)
        self._look, self._read = look, list[str]()

    def __call__(self, messages: Sequence[Message], /) -> Completion:
        first, last = messages[0], messages[-1].content
        if len(messages) > 3 and _NOTHING.search(last):
            self._read.append(self._look(last, _COMMAND.findall(messages[-2].content)[-1]))
        told = "\n\n".join([first.content, *filter(None, self._read)])
        return super().__call__([first.model_copy(update={"content": told}), *messages[1:]])


def worlds(data: Path, /) -> Mapping[str, Callable[[], World]]:
    """Every world by its name; each is made when it is needed."""
    return {
        "desk": lambda: Played(DeskEnvironment(), LookingAgent),
        "repo-desk": lambda: Played(RepoDeskEnvironment(), LookingPlayer),
        "miniwob": lambda: Deaf(MiniwobEnvironment()),
        "recorded": lambda: Recorded(data),
    }


@lru_cache(maxsize=1)
def _runs(folder: Path) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The first run of each distinct task, with its domain and its kind (none: the task alone is of it)."""
    files: list[tuple[str, str, Callable[[Mapping[str, Any]], str | None]]] = [
        ("web", "browsergym_web", labels.template),
        ("flights", "tau_bench_airline", labels.change),
        ("repos", "swe_bench_mini_swe_agent", labels.repository),
        ("questions", "hotpotqa_react", lambda row: None),
        ("telephones", "tau2_telecom", lambda row: None),
    ]
    return [
        (domain, f"{domain}: {kind_of(row) or row['task'][:80]}", row)
        for domain, name, kind_of in files
        for row in {row["task"]: row for row in reversed(labels.read(folder, name))}.values()
    ]
