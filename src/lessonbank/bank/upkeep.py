"""Lets lessons sleep that no run met for long, wakes them when one does, and keeps a scope to its number of lessons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Experience, Lesson, Restore, Retire
from lessonbank.contracts.records.ids import now
from lessonbank.errors import Conflict, LessonbankError, NotFound
from lessonbank.evidence.ledger import Met
from lessonbank.guard.quote import quoted
from lessonbank.search.trusted import task_words

from .retention import older_than
from .scoped_bank import ScopedBank

WRITER: Final = "upkeep"
_ALIKE: Final = 0.5
"""A task meets a sleeping lesson if the two tasks have this share of their words in common."""


@dataclass(frozen=True, slots=True)
class Use:
    """When a lesson was met last, and what is known of its effect."""

    lesson_id: str
    at: datetime
    does_nothing: bool = False


def sleepers(shown: Iterable[Use], /, *, before: datetime) -> tuple[str, ...]:
    """The lessons that no run met since `before`."""
    return tuple([use.lesson_id for use in shown if use.at < before])


def surplus(shown: Iterable[Use], /, *, count: int) -> tuple[str, ...]:
    """The `count` lessons that are needed least: first what does nothing, then what was not met for longest."""
    order = sorted(shown, key=lambda use: (not use.does_nothing, use.at, use.lesson_id))
    return tuple([use.lesson_id for use in order[: max(count, 0)]])


async def do_upkeep(bank: ScopedBank, tasks: Iterable[str], /) -> tuple[str, ...]:
    """Wake what the tasks of these runs meet; once a day put away what is not met, or is too much. Notes say it.

    Nothing here breaks a run that was learned: what goes wrong becomes a note.
    """
    options = bank.options
    if options.sleep_after is None and options.keep_lessons is None:
        return ()
    try:
        notes, today = (), now().date()
        if bank.state.upkeep.get(bank.scope, (None,))[0] != today:
            notes = await _put_away(bank)
        return (*await _wake(bank, tasks), *notes)
    except LessonbankError as error:
        return (f"lessons were not put to sleep or woken: {quoted(error)}",)


async def _put_away(bank: ScopedBank) -> tuple[str, ...]:
    options, today = bank.options, now().date()
    held = [experience async for experience in bank.store.scan(scope=bank.scope)]
    lessons = [lesson for experience in held for lesson in experience.lessons]
    shown = [lesson for lesson in lessons if not lesson.hidden]
    free = await _uses(bank, held, [lesson for lesson in shown if not lesson.approved])
    asleep, slept, removals, most = (), (), (), options.keep_lessons
    idle, room = f"no run met it for {options.sleep_after or 0:g} days", f"scope keeps {plural(most or 0, 'lesson')}"
    if options.sleep_after is not None:
        before, _ = await older_than(bank.store, options.sleep_after, scope=bank.scope)
        asleep = sleepers(free, before=before)
        slept = await _apply(bank, Retire(lesson_ids=asleep, reason=idle, asleep=True))
    if most is not None:
        left = [use for use in free if use.lesson_id not in asleep]
        removals = surplus(left, count=len(shown) - len(asleep) - most)
        removals = await _apply(bank, Retire(lesson_ids=removals, reason=f"to make room: the {room}"))
    sleeping = {*slept, *(lesson.id for lesson in lessons if lesson.asleep)}
    bank.state.upkeep[bank.scope] = today, _tasks_of(held, sleeping)
    notes = [f"{plural(len(slept), 'lesson was', 'lessons were')} put to sleep: {idle}"] if slept else []
    notes += [f"{plural(len(removals), 'lesson was', 'lessons were')} removed: this {room}"] if removals else []
    return tuple(notes)


async def _uses(bank: ScopedBank, held: Sequence[Experience], lessons: Sequence[Lesson]) -> list[Use]:
    """When runs met these lessons last: found for a task, taught, taught again, or woken."""
    met: Mapping[str, Met] = await bank.parts.ledger.met(scope=bank.scope)
    last = {lesson.id: lesson.created_at for lesson in lessons}

    def seen(id: str, at: datetime) -> None:
        if id in last:
            last[id] = max(last[id], at)

    for experience in held:
        for id in experience.repeats:
            seen(id, experience.created_at)
    for id, meeting in met.items():
        seen(id, meeting.at)
    async for entry in bank.store.journal(scope=bank.scope, kinds=("restore",)):
        for id in entry.entry.marks:
            seen(id, entry.at)
    return [Use(id, at, id in met and met[id].does_nothing) for id, at in last.items()]


def _tasks_of(held: Iterable[Experience], ids: set[str]) -> dict[str, list[frozenset[str]]]:
    """By lesson: the words of the tasks that taught it."""
    tasks: dict[str, list[frozenset[str]]] = {}
    for experience in held:
        for id in ids.intersection({*experience.repeats, *(lesson.id for lesson in experience.lessons)}):
            tasks.setdefault(id, []).append(task_words(experience.task))
    return tasks


async def _wake(bank: ScopedBank, tasks: Iterable[str]) -> tuple[str, ...]:
    asleep = bank.state.upkeep[bank.scope][1]
    asked = [task_words(task) for task in tasks] if asleep else []
    met = [id for id, own in asleep.items() if any(_is_alike(a, b) for a in asked for b in own)]
    there = await bank.lessons(met)  # others may have restored or retired one since
    still = tuple([id for id in met if id in there and there[id].asleep])
    woken = await _apply(bank, Restore(lesson_ids=still, reason="a run met it again"))
    for id in met:
        asleep.pop(id, None)
    return (f"{plural(len(woken), 'lesson')} woke up, because this run met it again",) if woken else ()


def _is_alike(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= _ALIKE * max(len(words | other), 1)


async def _apply(bank: ScopedBank, change: Retire | Restore) -> tuple[str, ...]:
    """Make the change, lesson by lesson where somebody else was quicker with one of them; the ids of those it did."""
    ids = change.lesson_ids
    if not ids:
        return ()
    try:
        await bank.store.apply([change], scope=bank.scope, writer=WRITER)
    except (Conflict, NotFound):
        alone = [change.model_copy(update={"lesson_ids": (id,)}) for id in ids] if len(ids) > 1 else []
        return tuple([id for single_change in alone for id in await _apply(bank, single_change)])
    return ids
