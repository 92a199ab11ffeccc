"""`recalls`: for which tasks something was shown, and to whom a lesson was shown."""

from __future__ import annotations

from typing import Annotated

import typer

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Recall

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import lesson_id, recall_id, short
from ._output import show_json, show_table, warn_of_more


def recalls(
    bank: options.Bank,
    scope: options.Scope,
    lesson: Annotated[str | None, typer.Option("--lesson", help="Only recalls that showed this lesson.")] = None,
    text: options.Text = None,
    metadata: options.Metadata = None,
    settled: Annotated[
        bool | None, typer.Option("--settled/--open", help="Only those whose outcome is known, or is not.")
    ] = None,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the recalls of a scope, newest first; with --lesson, who was shown a lesson. `explain` shows one of them."""
    with opened(bank, scope) as memory:
        recalls = memory.recalls.list(
            lesson=lesson_id(memory, lesson) if lesson else None,
            text=text,
            metadata=options.pairs(metadata),
            settled=settled,
            limit=limit,
            after=recall_id(memory, after) if after else None,
        )
        if not recalls and not as_json:
            warn_where_empty(memory)
    if as_json:
        show_json(recalls)
        return
    rows = [(short(r.id), f"{r.created_at:%Y-%m-%dT%H:%M:%SZ}", _shown_of_candidates(r), r.task) for r in recalls]
    show_table(f"{plural(len(recalls), 'recall')} in {scope}", ("id", "when", "lessons", "task"), rows)
    warn_of_more([recall.id for recall in recalls], limit)


def _shown_of_candidates(recall: Recall) -> str:
    shown = sum(candidate.shown for candidate in recall.candidates)
    text = "withheld" if recall.is_withheld else f"{shown} of {len(recall.candidates)}"
    return f"{text} (imported)" if recall.imported else text
