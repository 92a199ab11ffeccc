"""A walk through everything a store can be asked to do: two stores on one file, and one in memory to compare with."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lessonbank.bank.views.journal_check import differences
from lessonbank.contracts.ports import Store, Vectors
from lessonbank.contracts.records import (
    Add,
    Change,
    Experience,
    Lesson,
    Merge,
    Provenance,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    RunRef,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.store_calls import (
    care_of,
    count_records,
    drop_index,
    every_recall,
    experience_of_runs,
    pending_runs,
    purge_one,
    settled_runs,
)
from lessonbank.errors import LessonbankError
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_rewinding import some_trust
from lessonbank.testing.store_samples import (
    MINE,
    THEIRS,
    attempt,
    collected,
    experience,
    lesson,
    ranked_by_words,
    settlement,
    trajectory,
)

R = TypeVar("R", Experience, Lesson, Trajectory)
Call = Callable[[Store], Awaitable[Any]]

TASKS, LESSONS = "tasks", "lessons"
_WORDS = ("cancel", "order", "boots", "oslo", "注", "42", "under_score", "the")


def towards(chance: random.Random, dimensions: int) -> Vectors:
    """A vector whose products with others are exact sums of two numbers: equal scores are equal in every bit."""
    row = np.zeros(dimensions, dtype=np.float32)
    at = chance.randrange(dimensions)
    row[at], row[(at + 1) % dimensions] = 1.0, chance.choice((0.0, 0.0, 0.5, 1.0))
    return row


class Walk:
    """Three stores that must always give the same answers; whatever is done is done to the file by one of its two.

    The third reads its vectors anew for every question, and what it holds is what its journal tells.
    """

    def __init__(self, path: Path, ours: SqliteStore, theirs: SqliteStore) -> None:
        self.path = path
        self.stores = [ours, theirs]
        self.reference = SqliteStore.in_memory()
        self.ever: dict[str, dict[str, Experience]] = {MINE: {}, THEIRS: {}}
        self.runs: dict[str, list[Trajectory]] = {MINE: [], THEIRS: []}
        self.dimensions: dict[tuple[str, str], int] = {}
        self.scope = MINE
        self.present: list[Experience] = []

    @classmethod
    async def begin(cls, path: Path) -> Walk:
        """Two stores on one file."""
        return cls(path, await SqliteStore.open(path), await SqliteStore.open(path))

    async def end(self) -> None:
        """Close them."""
        for store in self.stores:
            await store.close()

    async def step(self, move: str, number: int) -> None:
        """One move, its details drawn from `number`; then whoever looks must see what the reference sees."""
        chance = random.Random(number)
        self.scope = THEIRS if chance.random() < 0.2 else MINE
        self.present = await collected(self.reference.scan(scope=self.scope))
        await getattr(self, move)(chance)
        await self.compare(self.stores[0], chance)
        if chance.random() < 0.5:
            await self.compare(self.stores[1], chance)

    async def both(self, chance: random.Random, call: Call) -> None:
        """The same call to one store of the file and to the reference: it succeeds in both, or is refused by both."""
        said: list[type[LessonbankError] | None] = []
        for store in (chance.choice(self.stores), self.reference):
            try:
                await call(store)
                said.append(None)
            except LessonbankError as error:
                said.append(type(error))
        assert said[0] is said[1], said

    async def apply(self, chance: random.Random, changes: Sequence[Change], **more: Any) -> None:
        await self.both(chance, lambda s: s.apply(changes, scope=self.scope, writer="walk", **more))
        self.ever[self.scope].update((c.experience.id, c.experience) for c in changes if isinstance(c, Add | Merge))

    # -- what can be done

    async def add(self, chance: random.Random) -> None:
        await self.add_some(chance, [self.experience(chance) for _ in range(chance.choice((1, 1, 1, 2, 9)))])

    async def add_again(self, chance: random.Random) -> None:
        there = {e.id for e in self.present}
        gone = [e for id, e in self.ever[self.scope].items() if id not in there]
        for known in gone and [chance.choice(gone)]:
            same = chance.random() < 0.4
            new = known if same else known.model_copy(update={"task": self.task(chance)})
            await self.add_some(chance, [new])

    async def add_some(self, chance: random.Random, new: Sequence[Experience]) -> None:
        changes = [Add(experience=e) for e in new]
        if chance.random() < 0.3:
            await self.apply(chance, changes)
        else:
            vectors = {e.id: self.vector(chance, TASKS) for e in new if chance.random() < 0.8}
            await self.apply(chance, changes, vectors=vectors, space=TASKS if vectors else None)

    async def replace(self, chance: random.Random) -> None:
        for known in self.some(chance, self.present, 2):
            lessons = list(known.lessons[chance.randrange(2) :])
            if chance.random() < 0.3:
                lessons.reverse()
            update: dict[str, Any] = {"lessons": (*lessons, lesson("Later", retired=chance.random() < 0.3))}
            if chance.random() < 0.5:
                update = {"task": self.task(chance), **(update if chance.random() < 0.5 else {})}
            if chance.random() < 0.2:
                update |= {"pending": chance.random() < 0.5, "metadata": {"seen": chance.randrange(3)}}
            await self.apply(chance, [Replace(experience=known.model_copy(update=update))])

    async def flip(self, chance: random.Random) -> None:
        retired = chance.random() < 0.4
        ids = [i.id for i in self.some(chance, [i for e in self.present for i in e.lessons if i.retired is retired], 4)]
        kind = Restore if retired else Retire
        if ids:
            await self.apply(chance, [kind(lesson_ids=tuple(ids), reason="walk")])

    async def trust(self, chance: random.Random) -> None:
        """A move of lessons that fits them all, or for some of them does not: then nothing is to move."""
        known = self.some(chance, [i for e in self.present for i in e.lessons], chance.choice((1, 1, 3)))
        for first in known[:1]:
            move = some_trust(first, chance)
            await self.apply(chance, [move.model_copy(update={"lesson_ids": tuple(i.id for i in known)})])

    async def merge(self, chance: random.Random) -> None:
        shown = [i.id for e in self.present for i in e.active_lessons]
        sources = tuple(self.some(chance, shown, 2))
        if sources:
            new = self.experience(chance)
            await self.apply(chance, [Merge(experience=new, source_lesson_ids=sources, reason="walk")])

    async def rejudge(self, chance: random.Random) -> None:
        tried = [(e.id, a.trajectory_id) for e in self.present for a in e.attempts]
        for id, run in self.some(chance, tried, 1):
            verdict = Verdict(outcome=chance.choice(("success", "failure", "unknown")))
            await self.apply(chance, [Rejudge(experience_id=id, trajectory_id=run, verdict=verdict)])

    async def refuse(self, chance: random.Random) -> None:
        """Batches that must leave no trace: the second change does not fit."""
        shown = [i.id for e in self.present for i in e.active_lessons]
        wrong: list[Change] = [Retire(lesson_ids=("nothing",), reason="walk")]
        wrong += [Restore(lesson_ids=(id,), reason="walk") for id in shown[:1]]
        wrong += [Add(experience=e) for e in self.present[:1]]
        wrong += [Add(experience=self.trusted(chance))]
        await self.apply(chance, [Add(experience=self.experience(chance)), chance.choice(wrong)])

    async def index(self, chance: random.Random) -> None:
        space = chance.choice((TASKS, LESSONS))
        ids = [e.id for e in self.present] if space == TASKS else [i.id for e in self.present for i in e.lessons]
        vectors = {id: self.vector(chance, space) for id in self.some(chance, ids, chance.choice((1, 3, 99)))}
        if vectors:
            await self.both(chance, lambda s: s.index(vectors, scope=self.scope, space=space))

    async def drop_index(self, chance: random.Random) -> None:
        space = chance.choice((TASKS, LESSONS))
        await self.both(chance, lambda s: drop_index(s, scope=self.scope, space=space))
        self.dimensions[self.scope, space] = chance.choice((1, 3, 8))

    async def roll_back(self, chance: random.Random) -> None:
        last = len(await collected(self.reference.journal(scope=self.scope)))
        to = max(last - chance.choice((0, 1, 2, 5)), 0) if chance.random() < 0.6 else chance.randint(0, last)
        await self.apply(chance, [Rollback(to=to, reason="walk")])

    async def keep(self, chance: random.Random) -> None:
        runs = [named(trajectory(self.task(chance)), chance) for _ in range(chance.choice((1, 2)))]
        self.runs[self.scope] += runs
        await self.both(chance, lambda s: s.save_runs(runs, scope=self.scope))

    async def settle(self, chance: random.Random) -> None:
        recall = Recall(scope=self.scope, task=self.task(chance))
        await self.both(chance, lambda s: s.save_recall(recall))
        await self.apply(chance, [], settlement=settlement(recall, scope=self.scope))

    async def purge(self, chance: random.Random) -> None:
        what = chance.choice(("lesson", "lesson", "trajectory", "trajectory", "scope"))
        known = {
            "lesson": [i.id for e in (*self.present, *self.ever[self.scope].values()) for i in e.lessons],
            "trajectory": [run.id for run in self.runs[self.scope]],
            "scope": [""],
        }[what]
        for id in self.some(chance, known, 1):
            await self.both(
                chance, lambda s, id=id: purge_one(s, what, id, scope=self.scope, writer="walk", reason="walk")
            )
        if what == "scope":
            self.dimensions = {key: d for key, d in self.dimensions.items() if key[0] != self.scope}

    async def rebuild(self, chance: random.Random) -> None:
        await self.both(chance, lambda s: care_of(s).rebuild())

    async def reopen(self, chance: random.Random) -> None:
        at = chance.randrange(2)
        await self.stores[at].close()
        self.stores[at] = await SqliteStore.open(self.path)

    # -- what it is done with

    def some(self, chance: random.Random, known: Sequence[Any], most: int) -> list[Any]:
        return chance.sample(known, min(most, len(known)))

    def task(self, chance: random.Random) -> str:
        return " ".join(chance.choices(_WORDS, k=chance.choice((1, 2, 3, 12))))

    def vector(self, chance: random.Random, space: str) -> Vectors:
        return towards(chance, self.dimensions.setdefault((self.scope, space), 8))

    def experience(self, chance: random.Random) -> Experience:
        runs = self.some(chance, self.runs[self.scope], chance.choice((0, 1, 1, 2)))
        made = experience(
            self.task(chance),
            scope=self.scope,
            lessons=[self.lesson(chance, runs) for _ in range(chance.choice((0, 1, 1, 2, 3)))],
            minute=chance.randrange(3),
            attempts=[self.attempt(chance, run) for run in runs],
        )
        return named(made, chance)

    def trusted(self, chance: random.Random) -> Experience:
        """An experience with a lesson that says of itself that it is trusted."""
        made = self.experience(chance)
        return made.model_copy(update={"lessons": (lesson().model_copy(update={"state": "active"}), *made.lessons)})

    def lesson(self, chance: random.Random, runs: Sequence[Trajectory]) -> Lesson:
        made = lesson(self.task(chance), retired=chance.random() < 0.2)
        provenance = Provenance(trajectory_ids=tuple(run.id for run in runs[: chance.randrange(2)]))
        told: dict[str, Any] = {
            "provenance": provenance,
            "state": "quarantined" if chance.random() < 0.15 else "probation",
        }
        return named(made.model_copy(update=told), chance)

    def attempt(self, chance: random.Random, run: Trajectory) -> RunRef:
        return attempt(run, chance.choice(("success", "failure", "unknown")))

    # -- what is seen

    async def compare(self, store: SqliteStore, chance: random.Random) -> None:
        questions = self.questions(chance)
        fresh = SqliteStore(self.reference._database)  # pyright: ignore[reportPrivateUsage]
        for name, question in questions.items():
            assert await question(store) == await question(fresh), name
        query = self.task(chance)
        every = ranked_by_words(await collected(fresh.scan(scope=self.scope)), query)
        found = await store.search(query, scope=self.scope, limit=99)
        assert [(match.experience, match.score) for match in found] == every[:99]
        if chance.random() < 0.2:
            assert (await store.verify()).problems == []
            assert await differences(fresh, scope=self.scope) == ()

    def questions(self, chance: random.Random) -> dict[str, Call]:
        scope = self.scope
        exclude = [e.id for e in self.some(chance, self.present, chance.choice((0, 0, 2)))]
        limit, query = chance.choice((1, 3, 99)), self.task(chance)
        vectors = {space: self.vector(chance, space) for space in (TASKS, LESSONS)}
        runs = [run.id for run in self.runs[scope]]

        async def journal(store: Store) -> Any:
            return [(e.sequence, e.writer, e.entry) for e in await collected(store.journal(scope=scope))]

        async def near(store: Store, space: str) -> Any:
            try:
                return list(
                    (
                        await store.nearest(vectors[space], scope=scope, space=space, limit=limit, exclude=exclude)
                    ).matches
                )
            except LessonbankError as error:
                return type(error)

        return {
            "scan": lambda s: collected(s.scan(scope=scope)),
            "journal": journal,
            "counts": lambda s: count_records(s, scope=scope),
            "nearest tasks": lambda s: near(s, TASKS),
            "nearest lessons": lambda s: near(s, LESSONS),
            "search": lambda s: listed(s.search(query, scope=scope, limit=limit, exclude=exclude)),
            "unindexed tasks": lambda s: listed(s.unindexed(scope=scope, space=TASKS, limit=limit)),
            "unindexed lessons": lambda s: listed(s.unindexed(scope=scope, space=LESSONS, limit=limit, lessons=True)),
            "pending": lambda s: listed(pending_runs(s, scope=scope)),
            "learned": lambda s: settled_runs(s, runs, scope=scope),
            "holding": lambda s: experience_of_runs(s, runs, scope=scope),
            "receipts": lambda s: collected(every_recall(s, scope=scope)),
        }


def named(record: R, chance: random.Random) -> R:
    """The record with an id that somebody may have thought of."""
    return record.model_copy(update={"id": chance.choice(("", "", "\0", "\1a\0b", "'\"\n\\", "注\u2028")) + record.id})


async def listed(answer: Awaitable[Sequence[Any]]) -> list[Any]:
    return list(await answer)


MOVES = (
    "add",
    "add",
    "add",
    "add",
    "add_again",
    "replace",
    "replace",
    "flip",
    "flip",
    "trust",
    "trust",
    "merge",
    "rejudge",
    "refuse",
    "index",
    "index",
    "index",
    "drop_index",
    "roll_back",
    "roll_back",
    "roll_back",
    "keep",
    "settle",
    "purge",
    "rebuild",
    "reopen",
)
