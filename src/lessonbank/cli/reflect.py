"""`reflect`: look back over the runs of a topic, and draw what single lessons have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from lessonbank._base.plural import plural
from lessonbank.guard import one_line

from . import _options as options
from ._bank import is_server, opened
from ._ids import short
from ._output import say, show_json, warn


def reflect(
    bank: options.Bank,
    scope: options.Scope,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = 120.0,
    topic: Annotated[str | None, typer.Option("--topic", help="One topic, by name or id. Without: all.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=4, help="The latest runs of a topic that are compared.")] = 40,
    budget: Annotated[int, typer.Option("--budget", min=2_000, help="Tokens that the model is shown in all.")] = 20_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Draw only, and keep nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Draw general lessons from the runs of each topic.

    A general lesson is kept beside those it covers, and has evidence of its own.
    """
    if not is_server(bank):
        options.needs({"--model": model}, "general lessons are drawn by a model")
    with opened(bank, scope, model=options.model_of(model, base_url, timeout)) as memory:
        reflection = memory.reflect(topic=topic, runs=runs, budget=budget, dry_run=dry_run)
    if as_json:
        show_json(reflection)
        return
    for note in reflection.notes:
        warn(note)
    drawn = plural(len(reflection.lessons), "general lesson")
    say(f"{plural(len(reflection.topics), 'topic')} looked at, {drawn} drawn")
    for lesson in reflection.lessons:
        covers = ", ".join(map(short, lesson.relation.lesson_ids if lesson.relation else ()))
        say(f"{short(lesson.id)} {one_line(lesson.title, limit=80)} (covers {covers})")
