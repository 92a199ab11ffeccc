"""Shows one side of lessons that compete: what is meant to take the place of others is drawn against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lessonbank._concurrency import if_there
from lessonbank.evidence.draws import Assignment, uniform
from lessonbank.protocols import Store
from lessonbank.types import Found, Lesson, Match

from ._wrapper import Around

ODDS: Final = 0.5
"""The probability with which a recall shows the lessons that were there before."""


@dataclass(frozen=True, slots=True)
class Contested(Around):
    """Finds with a lesson those that it competes with, so that either side can be shown."""

    store: Store

    @property
    def name(self) -> str:
        """The inner name."""
        return self.inner.name

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds; behind a lesson with `against` stand the lessons that it names and nothing found."""
        found = await self.inner(task, scope=scope, limit=limit)
        if not any(_rivals(match) for match in found.matches):
            return found
        known = {lesson.id for match in found.matches for lesson in match.experience.lessons}
        matches = [await self._completed(match, known, scope) for match in found.matches]
        return found.model_copy(update={"matches": tuple(matches)})

    async def _completed(self, match: Match, known: set[str], scope: str) -> Match:
        missing = [id for id in _rivals(match) if id not in known]
        if not missing:
            return match
        owners = [await if_there(self.store.owner(id, scope=scope)) for id in missing]
        there = {lesson.id: lesson for owner in owners if owner for lesson in owner.active_lessons}
        added = tuple(there[id] for id in missing if id in there)
        known.update(lesson.id for lesson in added)
        lessons = (*match.experience.lessons, *added)
        return match.model_copy(update={"experience": match.experience.model_copy(update={"lessons": lessons})})


def _rivals(match: Match) -> list[str]:
    if match.lesson_id is not None:  # of such a match one lesson is shown
        return []
    return [id for one in match.experience.active_lessons if one.against for id in one.against.lesson_ids]


@dataclass(frozen=True, slots=True)
class Sides:
    """What a recall found, with one side of every contest."""

    found: Found
    out: frozenset[str] = frozenset()
    """Newer lessons that are left out for the side that was there before."""
    drawn: frozenset[str] = frozenset()
    """Newer lessons whose side was drawn, in or out."""
    kept: frozenset[str] = frozenset()
    """Lessons of the side that was there before, where it is shown: their own draw is that of the contest."""

    def assigned(self, made: Assignment, /) -> Assignment:
        """The draws `made` for this recall, with those of the contests in the place of the lessons' own."""
        if not self.drawn:
            return made
        withheld = made.withheld - self.drawn - self.kept | self.out
        odds = {**made.probability, **dict.fromkeys(self.kept, 0.0), **dict.fromkeys(self.drawn, ODDS)}
        return replace(made, withheld=withheld, probability=odds)


def one_side(found: Found, /, *, recall_id: str, drawn: bool) -> Sides:
    """Choose a side of every contest in `found`; the older side is found no more where the newer one is shown.

    `drawn`: whether sides are drawn, for the ledger to compare. Else the newer side is shown, but for one that denies
    the older. What a person approved is never denied, and what it denies is not shown.
    """
    lessons = {lesson.id: lesson for match in found.matches for lesson in _shown(match)}
    if not any(lesson.against for lesson in lessons.values()):
        return Sides(found)
    out, told, kept, gone = set[str](), set[str](), set[str](), set[str]()
    for lesson in sorted(lessons.values(), key=lambda one: (one.created_at, one.id), reverse=True):
        older = [] if lesson.id in gone else [id for id in _reached(lesson, lessons) if id not in gone]
        if not older:
            continue
        sure = _sure(lesson, [lessons[id] for id in older], drawn=drawn)
        if sure is None:
            told.add(lesson.id)
        if uniform("side", recall_id, lesson.id) < ODDS if sure is None else sure:
            out.add(lesson.id)
            kept.update(older if sure is None else ())
        else:
            gone.update(older)
    shown = _without(found, gone | (out - told))
    return Sides(shown, frozenset(out & told), frozenset(told - gone), frozenset(kept - gone - told))


def _sure(newer: Lesson, older: Sequence[Lesson], *, drawn: bool) -> bool | None:
    """Whether the newer side is out without a draw; `None` where a draw decides."""
    denies = newer.against is not None and newer.against.stand == "contradicts"
    approved = any(lesson.approved for lesson in older)
    if denies and approved != newer.approved:
        return approved
    return None if drawn else denies


def _reached(lesson: Lesson, lessons: Mapping[str, Lesson]) -> Iterator[str]:
    """What a lesson competes with, and what that competes with, as far as it was found."""
    todo, seen = list(lesson.against.lesson_ids if lesson.against else ()), {lesson.id}
    while todo:
        id = todo.pop(0)
        if id in lessons and id not in seen:
            seen.add(id)
            yield id
            against = lessons[id].against
            todo += against.lesson_ids if against else ()


def _shown(match: Match) -> tuple[Lesson, ...]:
    lessons, one = match.experience.active_lessons, match.lesson_id
    return lessons if one is None else tuple(lesson for lesson in lessons if lesson.id == one)


def _without(found: Found, gone: set[str]) -> Found:
    if not gone:
        return found
    matches: list[Match] = []
    for match in found.matches:
        lessons = tuple(lesson for lesson in match.experience.lessons if lesson.id not in gone)
        if match.lesson_id not in gone and lessons:
            matches.append(
                match.model_copy(update={"experience": match.experience.model_copy(update={"lessons": lessons})})
            )
    return found.model_copy(update={"matches": tuple(matches)})
