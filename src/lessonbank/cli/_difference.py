"""Which lessons differ between two banks, for `history diff --other-bank`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lessonbank.contracts.records import Lesson

from ._bank import opened, warn_where_empty
from ._ids import lessons_of, short
from ._output import console, show_json, show_table


@dataclass(frozen=True)
class Difference:
    """What two banks do not have in common. Lessons are the same by id, or where they say the same words."""

    only_a: tuple[Lesson, ...]
    only_b: tuple[Lesson, ...]
    changed: tuple[tuple[Lesson, Lesson], ...]


def show_difference(a: str, b: str, scope: str, other_scope: str, /, *, as_json: bool) -> None:
    """Lessons that are only in the bank `a`, only in the bank `b`, or changed."""
    with opened(a, scope) as one, opened(b, other_scope) as other:
        found = difference(list(lessons_of(one)), list(lessons_of(other)))
        warn_where_empty(one)
        warn_where_empty(other)
    if as_json:
        show_json(_as_dict(found))
    elif rows := list(_rows(found)):
        show_table(f"{a} and {b}", ("what", "id", "title"), rows)
    else:
        console.print("no difference")


def difference(a: Sequence[Lesson], b: Sequence[Lesson], /) -> Difference:
    """What is only in one of two lists of lessons, and what is in both and differs."""
    by_id, words_a, words_b = {one.id: one for one in b}, {one.wording for one in a}, {one.wording for one in b}
    ids_a = {one.id for one in a}
    return Difference(
        only_a=tuple(one for one in a if one.id not in by_id and one.wording not in words_b),
        only_b=tuple(one for one in b if one.id not in ids_a and one.wording not in words_a),
        changed=tuple((one, by_id[one.id]) for one in a if one.id in by_id and _changes(one, by_id[one.id])),
    )


def _changes(a: Lesson, b: Lesson) -> list[str]:
    """What is not the same of one lesson."""
    parts = ("title", "description", "content", "state", "retired")
    named = {"description": "when"}
    return [named.get(part, part) for part in parts if getattr(a, part) != getattr(b, part)]


def _rows(found: Difference) -> Iterable[tuple[str, str, str]]:
    yield from (("only in A", short(one.id), one.title) for one in found.only_a)
    yield from (("only in B", short(one.id), one.title) for one in found.only_b)
    yield from ((f"changed: {', '.join(_changes(a, b))}", short(b.id), b.title) for a, b in found.changed)


def _as_dict(found: Difference) -> dict[str, object]:
    return {
        "only_in_a": found.only_a,
        "only_in_b": found.only_b,
        "changed": [{"a": a, "b": b} for a, b in found.changed],
    }
