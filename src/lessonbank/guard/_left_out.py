"""Tells what a consolidator wrote itself from what it was given: that is redacted already."""

from __future__ import annotations

from operator import is_

from lessonbank.types import Change, Experience, Json, Lesson
from lessonbank.types.changes import Add
from lessonbank.types.repeats import REPEATS, repeats_of, taught_again

_OTHERWISE = {"near": None}
"""What may differ of a lesson: an id."""


def reasons(change: Change, given: Experience, /) -> list[str] | None:
    """Why `change` leaves out lessons of `given`, where it does nothing else than to add the others, and for which ids.

    A lesson that is left out is named as taught again, in its own words. `None`: the change says more. An id is what a
    consolidator says it is, so that it is read like a reason.
    """
    if not isinstance(change, Add):
        return None
    kept, first = vars(change.experience), vars(given)
    names = kept.keys() - {"lessons", "metadata"}
    if not all(map(is_, map(kept.get, names), map(first.get, names))):
        return None
    if not all(any(_is_one(lesson, one) for one in given.lessons) for lesson in change.experience.lessons):
        return None
    told, before = change.experience.metadata.get(REPEATS, {}), repeats_of(given)
    if _without_repeats(change.experience) != _without_repeats(given) or not isinstance(told, dict):
        return None
    new = [entry for id, entry in told.items() if before.get(id) != entry]
    whys = [_why(entry, given) for again in new for entry in (again if isinstance(again, list) else [again])]
    known = [why for why in whys if why is not None]
    return [*(told.keys() - before.keys()), *known] if len(known) == len(whys) else None


def _is_one(kept: Lesson, given: Lesson) -> bool:
    return kept is given or vars(kept) | _OTHERWISE == vars(given) | _OTHERWISE


def _without_repeats(experience: Experience) -> dict[str, Json]:
    return {key: value for key, value in experience.metadata.items() if key != REPEATS}


def _why(entry: Json, given: Experience) -> str | None:
    """Why a lesson of `given` is taken for another one, where that is all that the entry says beside its words."""
    why = entry.get("why") if isinstance(entry, dict) else None
    if not isinstance(why, str) or not isinstance(entry, dict):
        return None
    told = (taught_again(lesson, why, words="lesson" in entry) for lesson in given.lessons)
    return why if any(entry == one for one in told) else None
