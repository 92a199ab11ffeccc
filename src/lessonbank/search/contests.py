"""Shows one side of lessons that compete: what is meant to take the place of others is drawn against them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from lessonbank._base.aio import if_there
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Found, Lesson, Match
from lessonbank.contracts.records.settings import CONTESTS
from lessonbank.contracts.store_calls import experience_of_lesson, get_setting
from lessonbank.contracts.withholding import Assignment
from lessonbank.evidence.draws import uniform

from ._wrapper import Around, lessons_of, with_lessons

_REREAD: Final = 20
"""Searches after which a process looks whether another one began a contest."""
_MOST, _EACH = 2_000, 4
"""Older lessons whose contests are remembered, and the newer ones of each."""
ODDS: Final = 0.5
"""The probability with which a recall shows the lessons that were there before."""


@dataclass(frozen=True, slots=True)
class Contested(Around):
    """Finds with a lesson those that it competes with, so that either side can be shown."""

    store: Store
    _kept: dict[str, tuple[int, Mapping[str, Sequence[str]]]] = field(default_factory=dict[str, Any])
    """By scope: how often it was used, and which newer lessons compete with an older one."""

    @property
    def name(self) -> str:
        """The inner name."""
        return self.inner.name

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds. Behind each lesson stand those that compete with it, in the same place."""
        found = await self.inner(task, scope=scope, limit=limit)
        newer = await self._newer(scope)
        if not any(_rivals(match, newer) for match in found.matches):
            return found
        known = {lesson.id for match in found.matches for lesson in match.experience.lessons}
        matches = [await self._completed(match, newer, known, scope) for match in found.matches]
        return found.model_copy(update={"matches": tuple(matches)})

    async def _newer(self, scope: str) -> Mapping[str, Sequence[str]]:
        used, newer = self._kept.get(scope, (0, {}))
        if used % _REREAD == 0:
            newer = _read(await get_setting(self.store, CONTESTS.of(scope)))
        self._kept[scope] = used + 1, newer
        return newer

    async def _completed(self, match: Match, newer: Mapping[str, Sequence[str]], known: set[str], scope: str) -> Match:
        missing = [id for id in dict.fromkeys(_rivals(match, newer)) if id not in known]
        owners = [await if_there(experience_of_lesson(self.store, id, scope=scope)) for id in missing]
        there = {lesson.id: lesson for owner in owners if owner for lesson in owner.active_lessons}
        added = tuple(there[id] for id in missing if id in there)
        known.update(lesson.id for lesson in added)
        return with_lessons(match, (*match.experience.lessons, *added))


def _rivals(match: Match, newer: Mapping[str, Sequence[str]]) -> list[str]:
    if match.lesson_id is not None:  # of such a match one lesson is shown
        return []
    active = match.experience.active_lessons
    named = [id for one in active for id in newer.get(one.id, ())] if newer else []
    # A general lesson competes with those that the task finds: the others would not have been shown.
    competing = [one.against for one in active if one.against and one.against.stand != "general"]
    return [*named, *(id for against in competing for id in against.lesson_ids)]


async def remember(store: Store, lessons: Iterable[Lesson], /, *, scope: str) -> None:
    """Keep which older lessons the newer ones compete with, so that a search for the older finds the newer.

    A hint, and no record: without it a contest takes place only where the newer lesson itself is found.
    """
    competing = [lesson for lesson in lessons if lesson.against]
    if not competing:
        return
    newer = {id: list(told) for id, told in _read(await get_setting(store, CONTESTS.of(scope))).items()}
    for lesson in competing:
        for id in lesson.against.lesson_ids if lesson.against else ():
            newer[id] = [*newer.get(id, []), lesson.id][-_EACH:]
    await store.put_setting(CONTESTS.of(scope), json.dumps(dict(list(newer.items())[-_MOST:])))


def _read(told: str | None) -> Mapping[str, Sequence[str]]:
    try:
        kept = cast("dict[str, list[str]]", json.loads(told or "{}"))
        return {str(id): [str(one) for one in newer] for id, newer in kept.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


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
    lessons = {lesson.id: lesson for match in found.matches for lesson in lessons_of(match)}
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


def _without(found: Found, gone: set[str]) -> Found:
    if not gone:
        return found
    matches: list[Match] = []
    for match in found.matches:
        lessons = tuple(lesson for lesson in match.experience.lessons if lesson.id not in gone)
        if match.lesson_id not in gone and lessons:
            matches.append(with_lessons(match, lessons))
    return found.model_copy(update={"matches": tuple(matches)})
