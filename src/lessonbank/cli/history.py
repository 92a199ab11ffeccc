"""`history`: what changed a bank, the way back, and which change broke something."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import counted
from lessonbank.contracts.records import JournalEntry, Rollback
from lessonbank.guard import one_line

from . import _options as options
from ._bank import needs_bank, opened, warn_where_empty
from ._bisect import find_first_failing
from ._difference import show_difference
from ._ids import experience_id, lesson_id, short
from ._output import console, show_json, show_table, warn
from ._reviewing import KeyFile, reviewing

if TYPE_CHECKING:
    from lessonbank.contracts.records.timeline import Diff

app = typer.Typer(help="List changes, compare moments, go back.", no_args_is_help=True)

_COLUMNS = ("#", "when", "writer", "change", "what")


@app.command("list")
def list_(
    bank: options.Bank,
    scope: options.Scope,
    lesson: Annotated[str | None, typer.Option("--lesson", help="Only changes of this lesson.")] = None,
    experience: Annotated[str | None, typer.Option("--experience", help="Only changes of this experience.")] = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only changes after this one.")] = 0,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="List at most this many.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the changes of a scope, oldest first: number, time, writer, what was done."""
    with opened(bank, scope) as memory:
        entries = memory.history.list(
            lesson=lesson_id(memory, lesson) if lesson else None,
            experience=experience_id(memory, experience) if experience else None,
            after=after,
            limit=limit,
        )
        if not entries and not as_json:
            warn_where_empty(memory)
    if as_json:
        show_json(entries)
        return
    show_table(f"{counted(len(entries), 'change')} of {scope}", _COLUMNS, map(_row, entries))


@app.command()
def diff(
    bank: options.Bank,
    scope: options.Scope,
    a: Annotated[str | None, typer.Argument(help=options.MOMENT)] = None,
    b: Annotated[str | None, typer.Argument(help="The same: what B has that A had not, and the reverse.")] = None,
    check: Annotated[
        str | None,
        typer.Option("--check", help="A command: find the change between A and B after which it fails.", metavar="CMD"),
    ] = None,
    other_bank: Annotated[
        str | None, typer.Option("--other-bank", help="In place of A and B: the lessons of another bank.")
    ] = None,
    other_scope: Annotated[
        str | None, typer.Option("--other-scope", help="The scope in that bank, where it has another name.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what is different between two moments of a scope, or between two banks.

    With --check, A is the number of a change after which the command passes (exit code 0) and B of one after which it
    fails. It gets the path of a private copy of the bank, as of a change, in LESSONBANK_BANK.
    """
    options.needs_words({"--other-bank": other_bank, "--other-scope": other_scope})
    if other_bank:
        if a or check is not None:
            raise typer.BadParameter("it compares what the banks hold now: leave out A, B and --check", param_hint="A")
        needs_bank(other_bank, option="--other-bank")
        show_difference(bank, other_bank, scope, other_scope or scope, as_json=as_json)
        return
    if other_scope:
        raise typer.BadParameter("it is a scope of another bank: give --other-bank, too", param_hint="--other-scope")
    if a is None or b is None:
        raise typer.BadParameter("give two moments, or another bank with --other-bank", param_hint="A B")
    if check is not None:
        _show_first_failing(bank, scope, a, b, check, as_json=as_json)
        return
    with opened(bank, scope) as memory:
        found = memory.history.diff(options.moment(a), options.moment(b))
    if as_json:
        show_json(found)
    elif found.empty:
        console.print("no difference")
    else:
        show_table(f"{scope}, from {a} to {b}", ("what", "id", "text"), _rows(found))


def _show_first_failing(bank: str, scope: str, a: str, b: str, check: str, *, as_json: bool) -> None:
    if not (a.isdecimal() and b.isdecimal() and int(a) < int(b)):
        raise typer.BadParameter("with --check A and B are numbers of changes, the smaller one first", param_hint="A B")
    entry, runs = find_first_failing(bank, scope, int(a), int(b), check)
    if as_json:
        tried = [{"change": change, "passed": passed} for change, passed in runs.items()]
        show_json({"first_bad": entry.sequence, "entry": entry, "runs": tried})
        return
    rows = [(change, "passed" if passed else "failed") for change, passed in sorted(runs.items())]
    show_table(f"{counted(len(rows), 'run')} of the check", ("after change", "result"), rows)
    show_table("\nIt fails since", _COLUMNS, [_row(entry)])
    if not any(runs.values()):
        warn(f"the check failed every time: whether it passes after change {min(runs) - 1} (A) was not tried")


@app.command()
def rollback(
    to: Annotated[str, typer.Argument(help=options.MOMENT)],
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Make the experiences and lessons of a scope what they were. A change itself: another rollback undoes it."""
    with opened(bank, scope) as memory:
        entry = reviewing(memory, by, key_file).history.rollback(to=options.moment(to), reason=reason, by=by)
        counts = memory.admin.counts()
    if as_json:
        show_json({"entry": entry, "counts": counts})
        return
    console.print(
        f"{scope} is as it was after change {entry.entry.to if isinstance(entry.entry, Rollback) else to}: "
        f"{counted(counts.experiences, 'experience')}, {counted(counts.lessons, 'lesson')} ({counts.retired} retired). "
        f"This is change {entry.sequence}; a rollback to {entry.sequence - 1} undoes it",
        markup=False,
    )


def _row(entry: JournalEntry) -> tuple[object, ...]:
    when = entry.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return entry.sequence, when, one_line(entry.writer, limit=12), entry.entry.kind, _what(entry)


def _what(entry: JournalEntry) -> str:
    """One change in a few words."""
    said = entry.entry.sentence()
    subjects = (said.experience,) if said.experience else said.lessons or filter(None, (said.run,))
    ids = ", ".join(map(short, subjects))
    return ": ".join(filter(None, (said.text, ids, said.reason)))


def _rows(found: Diff) -> list[tuple[str, str, str]]:
    pairs = [(name, e.id, e.task) for name in ("added", "removed") for e in getattr(found, name)]
    pairs += [("replaced", r.after.id, r.after.task) for r in found.replaced]
    lessons = {"lessons_added": "lesson added", "lessons_removed": "lesson removed"}
    lessons |= {name: name for name in ("retired", "restored", "trusted", "edited")}
    pairs += [(name, i.id, i.title) for field, name in lessons.items() for i in getattr(found, field)]
    return [(name, short(id), text) for name, id, text in pairs]
