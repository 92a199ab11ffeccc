"""`recalls`: what was shown for which task, and to whom a lesson was shown."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import counted
from lessonbank.contracts.records import Lesson, Recall
from lessonbank.errors import NotFound
from lessonbank.evidence.groups import named, topic_names

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import lesson_id, recall_id, short
from ._output import show_json, show_table, show_text, warn_of_more

if TYPE_CHECKING:
    from lessonbank import ReasoningBank

app = typer.Typer(help="List recalls and show what one of them held.", no_args_is_help=True)


@app.command("list")
def list_(
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
    """List the recalls of a scope, newest first; with --lesson, who was shown a lesson."""
    with opened(bank, scope) as memory:
        found = memory.recalls.list(
            lesson=lesson_id(memory, lesson) if lesson else None,
            text=text,
            metadata=options.pairs(metadata),
            settled=settled,
            limit=limit,
            after=recall_id(memory, after) if after else None,
        )
        if not found and not as_json:
            warn_where_empty(memory)
    if as_json:
        show_json(found)
        return
    rows = [(short(r.id), _when(r), _shown(r), r.task) for r in found]
    show_table(f"{counted(len(found), 'recall')} in {scope}", ("id", "when", "lessons", "task"), rows)
    warn_of_more([recall.id for recall in found], limit)


@app.command()
def show(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="A recall's id; 4 characters of its beginning or end will do.")
    ],
    bank: options.Bank,
    scope: options.Scope,
    as_json: options.Json = False,
) -> None:
    """Show one recall: the text the agent got, and what was found for it. `explain` says why."""
    with opened(bank, scope) as memory:
        recall = memory.recalls.get(recall_id(memory, id))
        withheld = "" if as_json else _withheld(recall, memory)
    if as_json:
        show_json(recall)
        return
    show_text(f"task: {recall.task}\n\n{recall.text or '(no lesson was shown)'}")
    if recall.candidates:
        rows = [
            (c.rank, f"{c.score:.3f}", "yes" if c.shown else "no", short(c.lesson_id), c.why) for c in recall.candidates
        ]
        show_table("\nFound", ("#", "score", "shown", "lesson", "why"), rows)
    rows = (
        ("id", recall.id),
        ("when", _when(recall)),
        ("made", "elsewhere: an import brought it, and it is no evidence here" if recall.imported else "here"),
        ("search", recall.retriever),
        ("withheld", withheld),
        ("metadata", json.dumps(recall.metadata)),
        ("notes", "; ".join(recall.notes) or "none"),
    )
    show_table("\nWhat is known of it", ("field", "value"), rows)


def _withheld(recall: Recall, bank: ReasoningBank) -> str:
    if recall.control:
        return "all of it, to compare with"
    gone, known = {draw.group for draw in recall.groups if draw.withheld}, list[Lesson]()
    for candidate in recall.candidates:
        if not gone.isdisjoint(candidate.groups):
            with suppress(NotFound):  # erased since
                known.append(bank.lessons.get(candidate.lesson_id))
    groups = [named(group, topic_names(known)) for group in sorted(gone)]
    return f"as a group: {'; '.join(groups)}" if groups else "none or single lessons, as above"


def _when(recall: Recall) -> str:
    return recall.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(recall: Recall) -> str:
    shown = sum(candidate.shown for candidate in recall.candidates)
    told = "withheld" if recall.control else f"{shown} of {len(recall.candidates)}"
    return f"{told} (imported)" if recall.imported else told
