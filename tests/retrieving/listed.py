"""A retriever that answers from a list, and experiences to put in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lessonbank.contracts.ports import Retriever, Vectors
from lessonbank.contracts.records import Add, Experience, Found, Lesson, Match, Step, Trajectory
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores.sqlite import SqliteStore

SCOPE = "acme"


def experience(task: str, *, content: str = "Look first.", **fields: Any) -> Experience:
    """An experience of `task` with one lesson."""
    return Experience(scope=SCOPE, task=task, lessons=(Lesson(title="A lesson", content=content),), **fields)


def run(task: str) -> Trajectory:
    """A short run of a task that failed once and then worked."""
    steps = (
        Step(action="save", observation="error: log in first"),
        Step(action="log in", observation="welcome"),
        Step(action="save", observation="saved"),
    )
    return Trajectory(task=task, steps=steps)


@dataclass
class Listed:
    """Finds the first of a fixed list, and remembers how many it was asked for."""

    matches: Sequence[Match]
    notes: tuple[str, ...] = ()
    name: str = "experience/listed"
    space: str | None = "listed-2"
    asked: list[int] = field(default_factory=list)

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        self.asked.append(limit)
        return Found(matches=tuple(self.matches[:limit]), notes=self.notes)

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        return {each.id: each.task for each in experiences}

    async def catch_up(self, *, scope: str, most: int) -> int:
        return most + 1


def listed(*pairs: tuple[str, float], notes: tuple[str, ...] = ()) -> Listed:
    """A retriever that finds these (task, score) in this order."""
    return Listed([Match(experience=experience(task), score=score) for task, score in pairs], notes)


def tasks(found: Found) -> list[str]:
    """The tasks found, in order."""
    return [match.experience.task for match in found.matches]


async def delegates(wrapper: Retriever) -> None:
    """A wrapper around a `Listed` leaves space, vectors and catching up to it."""
    new = experience("new")
    assert wrapper.space == "listed-2"
    assert await wrapper.index([new]) == {new.id: "new"}
    assert await wrapper.catch_up(scope=SCOPE, most=4) == 5


async def filled(*experiences: Experience, embedder: HashingEmbedder | None = None) -> SqliteStore:
    """A store that holds these, oldest first, with vectors where there is an embedder."""
    store = SqliteStore.in_memory()
    for each in experiences:
        rows = await embedder.embed([each.task], role="document") if embedder else None
        vectors = {each.id: rows[0]} if rows is not None else None
        space = embedder.space if embedder else None
        await store.apply([Add(experience=each)], scope=SCOPE, writer="test", vectors=vectors, space=space)
    return store
