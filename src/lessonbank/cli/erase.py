"""`purge`: erase a run, a lesson or a whole scope for good, after asking."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lessonbank.errors import NotFound, UsageError
from lessonbank.guard import one_line

from . import _options as options
from ._output import console, show_json, warn
from .carry import needs_bank

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.types import JournalEntry, Purge


def purge(
    bank: options.Bank,
    scope: options.Scope,
    reason: options.Reason,
    trajectory: Annotated[str | None, typer.Option("--trajectory", help="Erase the run of this id.")] = None,
    lesson: Annotated[str | None, typer.Option("--lesson", help="Erase the lesson of this id.")] = None,
    whole_scope: Annotated[bool, typer.Option("--whole-scope", help="Erase everything the scope holds.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: options.Json = False,
) -> None:
    """Erase for good, with everything derived from it. Nothing brings it back; only counts and the reason remain.

    Backups and exports that were made earlier still hold it.
    """
    import lessonbank

    needs_bank(bank)
    if (trajectory is not None) + (lesson is not None) + whole_scope != 1:
        raise typer.BadParameter("say what to erase: one of --trajectory, --lesson and --whole-scope")
    if not yes and not sys.stdin.isatty():
        raise UsageError("a purge cannot be undone and there is no terminal to ask at: confirm it with --yes")
    with lessonbank.connect(bank, scope=scope) as memory:
        if not yes and not typer.confirm(f"Erase {_named(memory, trajectory, lesson)} for good?", err=True):
            warn("nothing was erased")
            raise typer.Exit(1)
        entry = memory.purge(trajectory=trajectory, lesson=lesson, scope_wide=whole_scope, reason=reason)
    if as_json:
        show_json(entry.model_dump(mode="json"))
    else:
        console.print(_told(entry), markup=False, soft_wrap=True)


def _named(memory: ReasoningBank, trajectory: str | None, lesson: str | None) -> str:
    """What the question is about, so that a wrong id is noticed before it is too late."""
    try:
        if trajectory is not None:
            task = memory.trajectory(trajectory).task
            return f"run {trajectory} ({one_line(task, limit=80)!r}) and everything derived from it"
        if lesson is not None:
            return f"lesson {lesson} ({one_line(memory.get(lesson).title, limit=80)!r}) and what was merged from it"
    except NotFound:  # only the past knows it; the purge finds out
        return f"{trajectory or lesson}, which only the past of {memory.scope} may hold,"
    counts = memory.counts()
    return (
        f"all of {memory.scope}: {counts.trajectories} runs, {counts.experiences} experiences, {counts.lessons} lessons"
    )


def _told(entry: JournalEntry) -> str:
    gone = cast("Purge", entry.entry)
    return (
        f"erased from {entry.scope}: runs {gone.trajectories}, experiences {gone.experiences}, lessons {gone.lessons}; "
        f"without their content: receipts {gone.recalls}, changes {gone.entries}. This is change {entry.sequence}; "
        "nothing brings it back. Backups and exports made earlier still hold it: remove those, too"
    )
