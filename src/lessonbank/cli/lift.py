"""`lift`: what memory changed, overall and lesson by lesson."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessonbank._base.atomic_write import put, spare
from lessonbank._base.checks import short_path

from . import _options as options
from ._bank import opened, path_of, warn_where_empty
from ._output import console, progress_console, say, show_json, show_text


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
        report = memory.lift(level=level)
        if not report.recalls:
            warn_where_empty(memory)
    if html is not None:
        from lessonbank.pages.reports.lift_page import page

        put(html, page(report), what="page", like=path_of(bank))  # it names lessons: as private as the bank
    if as_json:
        show_json(report)
    else:
        show_text(in_words(report, most=lessons))
    if html is not None:
        out = progress_console if as_json else console
        say(f"the page is in {short_path(html)}", to=out)
