"""What each policy decides, on paper: nothing here changes a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Add, Change, Found, Match, Provenance, Restore, Retire
from lessonbank.errors import UsageError
from lessonbank.learning.consolidation import Recognise, unmerge
from lessonbank.learning.consolidation.lineage import merging

pytestmark = [pytest.mark.anyio, pytest.mark.full]

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
NEAR = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
BOTH = "If a search finds nothing, the index may be stale. Run `rebuild` once, then search again."


def lesson(content: str = OLD, title: str = "Rebuild a stale index", *, day: int = 0, **more: Any) -> Lesson:
    return Lesson(title=title, content=content, created_at=START + timedelta(days=day), **more)


def experience(*lessons: Lesson, task: str = "find the invoice") -> Experience:
    return Experience(scope="t", task=task, lessons=lessons)


@dataclass
class Shelf:
    """A retriever that holds what it is given."""

    held: Sequence[Experience]
    name: str = "shelf"
    space: str | None = None
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        self.asked.append((task, scope, limit))
        return Found(matches=tuple(Match(experience=e, score=1.0) for e in self.held[:limit]))

    async def index(self, experiences: Sequence[Experience], /) -> dict[str, Any]:
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        return 0


def added(changes: Sequence[Change]) -> Experience:
    assert isinstance(changes[0], Add)
    return changes[0].experience


async def test_what_is_held_already_is_left_out_and_remembered() -> None:
    held = experience(lesson())
    again = lesson(OLD.upper().replace("`", ""), provenance=Provenance(evidence=("step 3",)))
    kept = added(await Recognise(Shelf([held]))(experience(again, lesson("Greet the customer."))))
    assert [i.content for i in kept.lessons] == ["Greet the customer."]
    assert list(kept.repeats) == [held.lessons[0].id]
    assert kept.repeats[held.lessons[0].id][0].evidence == ("step 3",)


async def test_a_lesson_twice_in_one_experience_is_kept_once() -> None:
    kept = added(await Recognise(Shelf([]))(experience(lesson(), lesson())))
    assert len(kept.lessons) == 1


async def test_what_was_taken_out_does_not_come_back_in_other_words() -> None:
    held = experience(lesson(retired=True))
    kept = added(await Recognise(Shelf([held]))(experience(lesson(OLD.upper()))))
    assert kept.lessons == () and list(kept.repeats) == [held.lessons[0].id]


def test_what_was_not_merged_cannot_be_unmerged() -> None:
    with pytest.raises(UsageError, match="not made by a merge"):
        unmerge(experience(lesson()))


async def test_undoing_twice_is_refused() -> None:
    one, other = experience(lesson()), experience(lesson(NEAR))
    sources = [(one.lessons[0], one), (other.lessons[0], other)]
    merge = merging(lesson(BOTH), sources, reason="one lesson for two")
    made = merge.experience
    retire, restore = unmerge(made)
    assert isinstance(retire, Retire) and isinstance(restore, Restore)
    assert restore.lesson_ids == merge.source_lesson_ids
    gone = made.model_copy(update={"lessons": tuple(i.model_copy(update={"retired": True}) for i in made.lessons)})
    with pytest.raises(UsageError, match="is retired"):
        unmerge(gone)
