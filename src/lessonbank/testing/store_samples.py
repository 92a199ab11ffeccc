"""Small records for the store contract, and the two lines every one of its tests needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np

from lessonbank.contracts.ports import Store, Vectors
from lessonbank.contracts.records import (
    Add,
    Experience,
    Lesson,
    Match,
    Outcome,
    Recall,
    Run,
    RunRef,
    Settlement,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.records.repeats import shown_with
from lessonbank.contracts.store_calls import care_of
from lessonbank.errors import LessonbankError, NotSupported
from lessonbank.text.bm25 import scores, words

T = TypeVar("T")

MINE = "acme/support"
THEIRS = "acme/sales"
SPACE = "sample:8"
_CLOSE = 2.5e-5
"""By so much a cosine may differ from the exact one: a store may pack its vectors."""
START = datetime(2026, 1, 1, tzinfo=UTC)


class StoreTests:
    """What the parts of the contract share: a way to make a store."""

    async def make(self) -> Store:
        """A fresh, empty store; the contract closes it."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Store]:
        """A fresh store for one test."""
        store = await self.make()
        try:
            yield store
        finally:
            await store.close()


async def check_sound(store: Store, /) -> None:
    """A store that its owner can verify finds nothing wrong with itself."""
    with suppress(NotSupported):
        assert list((await care_of(store).verify()).problems) == []


async def rebuild(store: Store, /) -> None:
    """Rebuild what follows from the records, where the store can."""
    with suppress(NotSupported):
        await care_of(store).rebuild()


@contextmanager
def refused(kind: type[LessonbankError], /) -> Generator[None]:
    """Expects an error of exactly this kind, with its code and a sentence."""
    seen: LessonbankError | None = None
    try:
        yield
    except LessonbankError as error:
        seen = error
    assert seen is not None, f"expected {kind.__name__}, but nothing was raised"
    assert type(seen) is kind, f"expected {kind.__name__}, got {seen!r}"
    assert seen.code == kind.code
    assert str(seen)


async def collected(records: AsyncIterator[T], /) -> list[T]:
    """Everything an iterator gives."""
    return [record async for record in records]


def lesson(title: str = "Check the status first", *, retired: bool = False) -> Lesson:
    """One lesson."""
    return Lesson(title=title, description="When an order is changed.", content="Read it, then act.", retired=retired)


def experience(
    task: str = "Cancel the pending order",
    *,
    scope: str = MINE,
    lessons: Sequence[Lesson] | None = None,
    minute: int = 0,
    attempts: Sequence[RunRef] = (),
    pending: bool = False,
) -> Experience:
    """An experience with one active lesson, `minute` minutes after the start."""
    return Experience(
        scope=scope,
        task=task,
        lessons=(lesson(),) if lessons is None else tuple(lessons),
        attempts=tuple(attempts),
        created_at=START + timedelta(minutes=minute),
        pending=pending,
    )


def trajectory(task: str = "Cancel the pending order", *, answer: str = "done") -> Trajectory:
    """A run without steps."""
    return Trajectory(task=task, answer=answer)


def attempt(run: Trajectory, outcome: Outcome, /) -> RunRef:
    """The run with a verdict, as an experience keeps it."""
    judged = Run(trajectory=run, verdict=Verdict(outcome=outcome))
    return RunRef(trajectory_id=run.id, verdict=judged.verdict, n_steps=len(run.steps))


def settlement(recall: Recall, *, outcome: Outcome = "success", scope: str = MINE) -> Settlement:
    """What became of a recall."""
    return Settlement(recall_id=recall.id, scope=scope, outcome=outcome)


def towards(axis: int, /, *, tilt: float = 0.0) -> Vectors:
    """A unit vector along one of eight axes, tilted towards the next one."""
    row = np.zeros(8, dtype=np.float32)
    row[axis], row[(axis + 1) % 8] = 1.0, tilt
    return row / np.float32(np.linalg.norm(row))


async def added(store: Store, *experiences: Experience, scope: str = MINE, along: Sequence[Vectors] = ()) -> None:
    """Add experiences, with a vector each where `along` has one."""
    vectors = {e.id: vector for e, vector in zip(experiences, along, strict=False)}
    changes = [Add(experience=e) for e in experiences]
    await store.apply(changes, scope=scope, writer="tests", vectors=vectors, space=SPACE if vectors else None)


def assert_ranked(matches: Sequence[Match], rows: Mapping[str, Vectors], query: Vectors, /, *, limit: int) -> None:
    """What was found by vector is what plain arithmetic finds in `rows` (lesson or experience id to vector)."""
    exact = {id: float(row @ query / np.linalg.norm(row) / np.linalg.norm(query)) for id, row in rows.items()}
    named = [match.lesson_id or match.experience.id for match in matches]
    assert len(set(named)) == len(named) == min(limit, len(rows))
    assert all(abs(match.score - exact[id]) < _CLOSE for match, id in zip(matches, named, strict=True))
    assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
    assert all(score < matches[-1].score + _CLOSE for id, score in exact.items() if id not in named)


def ranked_by_words(present: Sequence[Experience], query: str, /) -> list[tuple[Experience, float]]:
    """What a search for `query` finds among these, oldest first: as if every task were read."""
    held = {e.id: Counter(words(e.task)) for e in present}
    asked, lengths = words(query), {id: counts.total() for id, counts in held.items()}
    postings = {word: {id: counts[word] for id, counts in held.items() if word in counts} for word in asked}
    points = scores(asked, postings, lengths, documents=len(held), total=sum(lengths.values()))
    lessons = {lesson.id: lesson for e in present for lesson in e.lessons}
    whole = (shown_with(e, lessons) for e in reversed(present))
    usable = [e for e in whole if e.id in points and e.active_lessons]
    return sorted(((e, points[e.id]) for e in usable), key=lambda pair: -pair[1])
