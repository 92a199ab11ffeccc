"""ScienceWorld: errands of a school's science lessons in a simulated house, where the number of steps is the figure."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol, cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Step, Trajectory, Usage
from lessonbank.errors import UsageError
from lessonbank.guard import clean
from lessonbank_bench.extras import missing_extra

from .interface import ANEW, Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told
from .tool_calls import SEEN, Caller

TASKS = (
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "lifespan-longest-lived",
    "power-component",
    "test-conductivity",
    "use-thermometer",
)
"""Those of an experiment that names none: the quickest to load."""
PLAYER_VERSION = "1"
"""Names the scripts' skill. Numbers of two versions are never compared."""
PLAYERS = ("gold", "wanders")
_SETTINGS = ("tasks", "player", "simplifications", "max_steps", "temperature")
_DONE = 100
_RULES = """You act in a simulated house, one command a turn. Commands have these forms (OBJ is something you see):
{commands}
Think if you like; the last line of your reply is the command, alone and without marks.
"focus on" is for what the task tells you to focus on, and a wrong one ends it."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One task in one arrangement of the house."""

    task: str
    number: int


class ScienceWorldEnvironment:
    """Tasks drawn evenly from a list of ScienceWorld's thirty, each in a variation of its own.

    Settings: `tasks` ("find-plant, melt", or "all"), `player` of the script ("gold" or "wanders"), `simplifications`
    ("easy"), `max_steps` (60), `temperature` (0.0).

    Raises:
        MissingExtra: scienceworld is not installed.
        UsageError: there is no Java.
    """

    name = "scienceworld"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        if find_spec("scienceworld") is None:
            raise missing_extra("environment 'scienceworld'", extra="scienceworld")
        if shutil.which("java") is None:
            raise UsageError("environment 'scienceworld' needs Java: install a Java runtime, such as openjdk-17")
        self._tasks = chosen(told(self.name, settings, "tasks", ""))
        self._player = told(self.name, settings, "player", "gold")
        if self._player not in PLAYERS:
            raise UsageError(f"environment 'scienceworld' has no player {self._player!r}: set {' or '.join(PLAYERS)}")
        self._ease = told(self.name, settings, "simplifications", "easy")
        self._most = told(self.name, settings, "max_steps", 60)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._model = model
        who = f"agent {model.name} at {self._temperature}" if model else f"{self._player}, version {PLAYER_VERSION}"
        self.version = f"scienceworld {version('scienceworld')}, {self._ease or 'as it is'}, {self._most} steps, {who}"
        self.memories = ArmMemories(self.name, model)
        self._goals: dict[Variation, str] = {}
        self._house: Any = None
        self._one = Lock()

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """A family and a group are one of ScienceWorld's tasks; the house alone knows the words, half a second each."""
        draw, drawn = random.Random(f"scienceworld {seed}"), dict[Variation, None]()
        with self._one:
            sizes = {task: self._open().get_max_variations(task) for task in self._tasks} if n else {}
            while len(drawn) < min(n, sum(sizes.values())):
                task = draw.choice(self._tasks)
                drawn[Variation(task, draw.randrange(sizes[task]))] = None
            return [
                Job(f"scienceworld/{seed}/{one.task}/{one.number}", seed, self._goal(one), one.task, one.task, one)
                for one in drawn
            ]

    def agent(self, seed: int, /, *, anew: bool) -> Player:
        """The model, the gold path, or a wanderer."""
        if self._model is not None:
            return Asker(self._model, self._temperature)
        return Gold() if self._player == "gold" else Wanderer(random.Random(seed + ANEW if anew else seed))

    def attempt(self, task: Job, agent: Player, memory: str, /) -> Finished:
        """A tenth of a second a step; success is a score of 100, and a run that failed counts all its steps."""
        with self._one:
            house = self._load(cast("Variation", task.content), gold=isinstance(agent, Gold))
            seen, info = house.reset()
            agent.start(house, task.goal, memory)
            steps, score, over = list[Step](), int(info["score"]), False
            while not over and len(steps) < self._most and (command := agent.act(seen, info["valid"])):
                seen, _, over, info = house.step(command)
                seen, score = clean(str(seen), limit=SEEN), int(info["score"])
                steps.append(Step(action=command, observation=seen))
        run = Trajectory(task=task.goal, steps=tuple(steps), usage=agent.usage, metadata={"template": task.family})
        won = score >= _DONE
        return Finished(run, won, {"score": float(score), "steps": float(len(steps) if won else self._most)})

    def close(self) -> None:
        """Ends Java."""
        with self._one:
            if self._house is not None:
                # Its own close() leaves these open, which only private names reach.
                process = self._house._gateway.java_process
                self._house._obj_tree_tempdir.cleanup()
                self._house.close()
                process.wait(timeout=10)
                process.stdin.close()
                process.stdout.close()
                self._house = None

    def _open(self) -> Any:
        if self._house is None:
            # It ends a run that takes more steps than its own limit; the limit here is `max_steps`.
            self._house = import_module("scienceworld").ScienceWorldEnv("", envStepLimit=self._most + 1)
        return self._house

    def _load(self, one: Variation, *, gold: bool = False) -> Any:
        house = self._open()
        house.load(one.task, one.number, self._ease, generateGoldPath=gold)
        return house

    def _goal(self, one: Variation) -> str:
        if one not in self._goals:
            self._goals[one] = clean(self._load(one).get_task_description(), limit=4000).strip()
        return self._goals[one]


class Player(Protocol):
    """Somebody who gives one command after the other."""

    @property
    def usage(self) -> Usage: ...

    def start(self, house: Any, goal: str, memory: str, /) -> None: ...

    def act(self, seen: str, valid: Sequence[str], /) -> str:
        """The next command; empty when there is none."""
        ...


@dataclass(slots=True)
class Gold:
    """Gives the commands that come with ScienceWorld, and takes nothing from memory."""

    usage: Usage = field(default_factory=Usage)
    path: list[str] = field(default_factory=list[str])

    def start(self, house: Any, goal: str, memory: str, /) -> None:
        self.path = [clean(str(one)) for one in house.get_gold_action_sequence()][::-1]

    def act(self, seen: str, valid: Sequence[str], /) -> str:
        return self.path.pop() if self.path else ""


@dataclass(slots=True)
class Wanderer:
    """Takes the commands that its memory names, in the memory's order, where they can be given; else any at random.

    It reads no meaning: a command that a lesson warns of is taken as well.
    """

    draw: random.Random
    usage: Usage = field(default_factory=Usage)
    memory: str = ""
    tried: set[str] = field(default_factory=set[str])

    def start(self, house: Any, goal: str, memory: str, /) -> None:
        self.memory, self.tried = memory, set[str]()

    def act(self, seen: str, valid: Sequence[str], /) -> str:
        named = {one: self.memory.find(f"`{one}`") for one in valid if one not in self.tried} if self.memory else {}
        known = [one for one, place in sorted(named.items(), key=lambda pair: pair[1]) if place >= 0]
        command = known[0] if known else self.draw.choice(sorted(valid)) if valid else ""
        self.tried.add(command)
        return command


class Asker:
    """A model that is told the forms of commands and what it sees."""

    def __init__(self, model: LanguageModel, temperature: float, /) -> None:
        self._agent = Caller(model, temperature=temperature)
        self._goal = ""

    @property
    def usage(self) -> Usage:
        return self._agent.usage

    def start(self, house: Any, goal: str, memory: str, /) -> None:
        commands = "\n".join(clean(str(one)) for one in house.get_possible_actions())
        self._agent.start(_RULES.format(commands=commands), memory)
        self._goal = f"{goal}\n\n"

    def act(self, seen: str, valid: Sequence[str], /) -> str:
        lines = self._agent.reply(f"{self._goal}{seen}").strip().splitlines()
        self._goal = ""
        return clean(lines[-1], limit=200).strip(" >`.") if lines else "look around"


def chosen(named: str, /) -> tuple[str, ...]:
    """The tasks of a comma list; every one for `all`, and `TASKS` for nothing.

    Raises:
        UsageError: there is no task of that name.
    """
    every = tuple(import_module("scienceworld.constants").ID2TASK.values())
    if named.strip() == "all":
        return every
    names = tuple(filter(None, (name.strip() for name in named.split(",")))) or TASKS
    unknown = next((name for name in names if name not in every), None)
    if unknown is not None:
        raise UsageError(
            f"environment 'scienceworld' has no task {unknown!r}; its tasks are called like {', '.join(TASKS)}"
        )
    return names
