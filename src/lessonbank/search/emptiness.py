"""Say why a recall shows nothing: an empty text without a reason looks like a defect."""

from __future__ import annotations

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Counts, Found, Recall, notes_of
from lessonbank.contracts.store_calls import count_records

from .fit import none_kept


async def with_reason(recall: Recall, found: Found, store: Store, /) -> Recall:
    """`recall`, with a note on why its text is empty, where it is."""
    if recall.text:
        return recall
    why = _left_out(recall) if recall.candidates else found.empty
    why = why or _nothing_there(await count_records(store, scope=recall.scope), recall.scope)
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


def _nothing_there(counts: Counts, scope: str) -> str:
    """Why nothing was found."""
    if not counts.lessons:
        return f"there is no lesson in scope {scope!r} yet"
    if counts.retired + counts.quarantined >= counts.lessons:
        told = f"{counts.retired} retired, {counts.quarantined} quarantined"
        return f"no lesson in scope {scope!r} may be shown: {told}"
    return f"no past task in scope {scope!r} is like this one"
