"""What an environment has to offer to be part of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from lessonbank.contracts.records import Trajectory
from lessonbank.errors import ModelError
from lessonbank_bench.arms import Memory

Settings: TypeAlias = Mapping[str, str | int | float | bool]
"""What an experiment tells its environment: `[settings]` of its file."""
ANEW = 1_000_003
"""Added to the seed of an agent whose chance is drawn anew."""


@dataclass(frozen=True, slots=True)
class Job:
    """A task of an experiment: what is shared by all arms."""

    id: str
    seed: int
    goal: str
    """The task as the agent is asked it, and as a memory is."""
    family: str
    """Its template: tasks of one family are not independent."""
    group: str
    """What transfer goes from and to: a site, a vendor, a repository."""
    content: Any
    """The environment's own task."""


class Finished(NamedTuple):
    """A task done."""

    run: Trajectory
    """The run as a memory may see it."""
    success: bool | None
    """The verifier's word; `None` where only somebody else can tell, later."""
    scores: Mapping[str, float] = MappingProxyType({})
    """What else the verifier measured, each a number by name."""


class Memories(Protocol):
    """Where an environment's memories come from."""

    live: bool
    """False while a memory is rebuilt: no model may be asked then, what it answered before is on file."""
    failure: ModelError | None
    """What last broke when a memory asked its model. A bank goes on without; an experiment has to know."""

    def make(self, name: str, seed: int, /, *, limit: int, answers: Path | None = None) -> Memory:
        """An empty memory. `answers`: the file for what its model answers, so that it can be rebuilt without asking.

        Raises:
            UsageError: none has this name.
        """
        ...


class Environment(Protocol):
    """A supply of tasks, a way to attempt them, and a verifier that knows how they went."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Names everything that decides what an attempt comes to; attempts of two versions are never compared."""
        ...

    @property
    def memories(self) -> Memories: ...

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """The first `n` tasks of a seed, or as many as there are; more of them begin with the same."""
        ...

    def agent(self, seed: int, /, *, anew: bool) -> Any:
        """Somebody to do one task; equal seeds are equal agents, and `anew` is another draw of the same."""
        ...

    def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
        """One task done.

        Whatever it raises counts as a failure of infrastructure; an agent that fails is a run without success.
        """
        ...

    def close(self) -> None:
        """Ends what it started: a browser, a server. Closing twice is fine."""
        ...
