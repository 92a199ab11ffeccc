"""Say why a recall shows nothing: an empty text without a reason looks like a defect."""

from __future__ import annotations

from collections import Counter
from typing import Final

from lessonbank.contracts.ports import LessonFilter, Store
from lessonbank.contracts.records import Counts, Found, Lesson, Recall, notes_of
from lessonbank.contracts.store_calls import count_records

from .fit import none_kept
from .floor import UNREACHED, WORDS_FLOOR, overlap

_LOOKED_AT: Final = 50
"""The newest retired lessons, and as many quarantined ones, whose tasks are compared."""


async def with_reason(recall: Recall, retrieval: Found, store: Store, /) -> Recall:
    """`recall`, with a note on why its text is empty, where it is."""
    if recall.text:
        return recall
    why = _left_out(recall) if recall.candidates else retrieval.empty
    if not why or why.startswith(UNREACHED):
        counts = await count_records(store, scope=recall.scope)
        hidden = counts.retired + counts.quarantined
        held = await _held_back(recall, store) if 0 < hidden < counts.lessons else ""
        why = held or why or _nothing_there(counts, recall.scope)
    return recall.model_copy(update={"notes": (*recall.notes, *notes_of(why))})


def _left_out(recall: Recall) -> str:
    """Why none of the lessons that were found is shown."""
    if not any(candidate.placed for candidate in recall.candidates):
        return f"no lesson that was found fits the budget ({len(recall.candidates)} found): raise budget="
    if recall.fit and recall.fit.is_applied:
        return none_kept(recall)
    if recall.control:
        odds = recall.control_probability
        return f"all memory was withheld from this task at random (probability {odds:g}), to measure what it changes"
    if any(draw.withheld for draw in recall.groups):
        return "the lessons that were found were withheld at random as a group, to measure what it changes"
    return "each lesson that was found was withheld at random, to measure what it changes"


async def _held_back(recall: Recall, store: Store) -> str:
    """What was learned from tasks like this one and is shown to nobody; empty where that is nothing."""
    hidden = dict[str, Lesson]()
    for state in ("retired", "quarantined"):
        listed = await store.lessons(LessonFilter(state=state, limit=_LOOKED_AT), scope=recall.scope)
        hidden |= {lesson.id: lesson for lesson in listed}
    owners = await store.experiences("lesson", list(hidden), scope=recall.scope)
    alike = [owner for owner in owners if overlap(recall.task, owner.task) >= WORDS_FLOOR]
    counts = Counter(_state(lesson) for owner in alike for lesson in owner.lessons if lesson.id in hidden)
    summary = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"no lesson in scope {recall.scope!r} for a task like this one may be shown: {summary}" if summary else ""


def _state(lesson: Lesson) -> str:
    if lesson.retired:
        return "asleep" if lesson.asleep else "retired"
    return lesson.state


def _nothing_there(counts: Counts, scope: str) -> str:
    """Why nothing was found."""
    if not counts.lessons:
        return f"there is no lesson in scope {scope!r} yet"
    if counts.retired + counts.quarantined >= counts.lessons:
        summary = f"{counts.retired} retired, {counts.quarantined} quarantined"
        return f"no lesson in scope {scope!r} may be shown: {summary}"
    return f"no past task in scope {scope!r} is like this one"
