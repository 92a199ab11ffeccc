"""`diff`: which lessons differ between two banks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from lessonbank.contracts.records import Lesson

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import lessons_of, short
from ._output import console, show_json, show_table


@dataclass(frozen=True)
class Difference:
    """What two banks do not have in common. Lessons are the same by id, or where they say the same words."""

    only_a: tuple[Lesson, ...]
    only_b: tuple[Lesson, ...]
    changed: tuple[tuple[Lesson, Lesson], ...]


def diff(
    a: Annotated[str, typer.Argument(metavar="A.db", help="A bank.")],
    b: Annotated[str, typer.Argument(metavar="B.db", help="Another bank.")],
    scope: options.Scope,
    other_scope: Annotated[
        str | None, typer.Option("--other-scope", help="The scope in B, where it has another name.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show which lessons differ between two banks: only in A, only in B, or changed.

    `lessonbank history diff` compares two moments of one bank.
    """
    with opened(a, scope) as one, opened(b, other_scope or scope) as other:
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
