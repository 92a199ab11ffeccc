"""`lift` and `explain`: what memory changed, overall and lesson by lesson, and why a recall was what it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.atomic_write import put, spare
from lessonbank._base.checks import named
from lessonbank.guard import one_line

from . import _options as options
from ._bank import opened, path_of, warn_where_empty
from ._ids import recall_id, short
from ._output import console, progress_console, say, show_json, show_table, show_text, warn

if TYPE_CHECKING:
    from lessonbank.evidence.explanation import Explained, Explanation


def lift(
    bank: options.Bank,
    scope: options.Scope,
    level: Annotated[float, typer.Option("--level", help="How sure intervals are: from 0.5 to below 1.")] = 0.95,
    lessons: Annotated[
        int,
        typer.Option("--lessons", min=0, help="How many lessons to print, and half as many groups; JSON has them all."),
    ] = 6,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with plots to this file; it opens offline.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say whether memory helps, by how much and what to do next; then what each group and each lesson changes.

    Recalls are compared with recalls that were withheld at random, so it takes some that were.
    """
    from lessonbank.evidence.lift import in_words

    if html is not None:
        spare(html, what="page")
    with opened(bank, scope) as memory:
        told = memory.lift(level=level)
        if not told.recalls:
            warn_where_empty(memory)
    if html is not None:
        from lessonbank.pages.reports.lift_page import page

        put(html, page(told), what="page", like=path_of(bank))  # it names lessons: as private as the bank
    if as_json:
        show_json(told)
    else:
        show_text(in_words(told, most=lessons))
    if html is not None:
        out = progress_console if as_json else console
        say(f"the page is in {named(html)}", to=out)


def explain(
    recall: Annotated[
        str, typer.Argument(metavar="RECALL_ID", help="A recall's id; 4 characters of its beginning or end will do.")
    ],
    bank: options.Bank,
    scope: options.Scope,
    as_json: options.Json = False,
) -> None:
    """Say why a recall showed what it showed: what was found, drawn and nearly found, and what the evidence says."""
    with opened(bank, scope) as memory:
        told = memory.recalls.explain(recall_id(memory, recall))
    if as_json:
        show_json(told)
        return
    for note in told.notes:
        warn(note)
    show_text(_ended(told))
    columns = ("#", "score", "shown", "id", "lesson")
    if told.lessons:
        show_table("\nFound", columns, map(_row, told.lessons))
    if told.losers:
        show_table("\nNot found then, nearest now", columns, map(_row, told.losers))


def _ended(told: Explanation) -> str:
    ended = f"its task ended as a {told.outcome}" if told.outcome else "its outcome is not known"
    whole = "; memory was withheld whole, to compare with" if told.control else ""
    nothing = "" if told.lessons else "\nNothing was found for it."
    return f"recall {one_line(told.recall_id)}: {ended}{whole}\ntask: {one_line(told.task, limit=300)}{nothing}"


def _row(one: Explained) -> tuple[object, ...]:
    from lessonbank.evidence.lift import points, said_of

    evidence = "no evidence yet"
    if one.lift is not None:
        effect = "" if one.lift.success.value is None else f", success {points(one.lift.success)}"
        evidence = f"{said_of(one.lift)}{effect}"
    place = "" if one.rank is None else one.rank
    title = one.title or "(no longer in the bank)"
    said = f"{title}: {one.why}. Evidence: {evidence}"
    return place, f"{one.score:.3f}", "yes" if one.shown else "no", short(one.lesson_id), said
