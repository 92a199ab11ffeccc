"""`history`: what changed a bank, the way back, and which change broke something."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import counted
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.records import (
    JournalEntry,
    Rollback,
)
from lessonbank.errors import NotFound, UsageError
from lessonbank.guard import one_line

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import experience_id, lesson_id, short
from ._output import console, show_json, show_table, warn
from ._reviewing import KeyFile, reviewing

if TYPE_CHECKING:
    from lessonbank.contracts.records.timeline import Diff

app = typer.Typer(help="List changes, compare moments, go back.", no_args_is_help=True)

_COLUMNS = ("#", "when", "writer", "change", "what")
_NOT_RUN = (126, 127)
"""What a shell exits with when it could not run the command."""


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


@app.command("diff")
def diff(
    a: Annotated[str, typer.Argument(help=options.MOMENT)],
    b: Annotated[str, typer.Argument(help="The same: what B has that A had not, and the reverse.")],
    bank: options.Bank,
    scope: options.Scope,
    as_json: options.Json = False,
) -> None:
    """Show what is different between two moments of a scope."""
    with opened(bank, scope) as memory:
        found = memory.history.diff(options.moment(a), options.moment(b))
    if as_json:
        show_json(found)
    elif found.empty:
        console.print("no difference")
    else:
        show_table(f"{scope}, from {a} to {b}", ("what", "id", "text"), _rows(found))


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


@app.command()
def bisect(
    command: Annotated[list[str], typer.Argument(help="The check, after --: exit code 0 when all is well.")],
    bank: options.Bank,
    scope: options.Scope,
    good: Annotated[int, typer.Option("--good", min=0, help="A change after which the check passed; 0: none yet.")],
    bad: Annotated[int, typer.Option("--bad", min=1, help="A later change after which it fails.")],
    as_json: options.Json = False,
) -> None:
    """Find the change after which a check of yours fails.

    The check gets the path of a private copy of the bank, as of a change, in LESSONBANK_BANK.
    """
    if good >= bad:
        raise typer.BadParameter("it must be a change before --bad", param_hint="--good")
    runs: dict[int, bool] = {}
    with tempfile.TemporaryDirectory(prefix="lessonbank-bisect-") as folder:
        origin = Path(folder) / "origin.db"
        with opened(bank, scope) as memory:
            run_sync(memory.aio.store.backup(origin))  # no act of administration: the bank stays as it is
            entries = memory.history.list(after=good)
        if not entries or entries[-1].sequence < bad:
            raise NotFound(f"there is no change {bad} in {scope}: the last one is {good + len(entries)}")

        def passes(change: int) -> bool:
            runs[change] = _passes(command, origin, scope=scope, change=change)
            return runs[change]

        first = first_failing(good, bad, passes)
    _report(entries[first - good - 1], runs, as_json=as_json)


def first_failing(good: int, bad: int, passes: Callable[[int], bool], /) -> int:
    """The change after which a check that `passes` after `good` fails, in at most ⌈log2(bad - good)⌉ + 1 calls.

    Raises:
        UsageError: it does not fail after `bad`.
    """
    if passes(bad):
        raise UsageError(f"the check passes after change {bad}: name a change after which it fails as --bad")
    while bad - good > 1:
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return bad


def _passes(command: list[str], origin: Path, *, scope: str, change: int) -> bool:
    import lessonbank

    with tempfile.TemporaryDirectory(dir=origin.parent) as folder:
        copy = Path(folder) / "bank.db"
        shutil.copyfile(origin, copy)
        with lessonbank.connect(copy, scope=scope) as memory:
            memory.history.rollback(to=change, reason="bisect")
        try:
            done = subprocess.run(
                command, env={**os.environ, "LESSONBANK_BANK": str(copy)}, stdout=sys.stderr, check=False
            )
        except OSError as error:
            raise UsageError(f"the check {command[0]!r} cannot be run: {error.strerror or error}") from error
    if done.returncode < 0 or done.returncode in _NOT_RUN:
        how = f"was ended by signal {-done.returncode}" if done.returncode < 0 else "could not be run by its shell"
        raise UsageError(f"the check {how} after change {change}, which says nothing about the bank: mend it first")
    return done.returncode == 0


def _report(entry: JournalEntry, runs: dict[int, bool], *, as_json: bool) -> None:
    if as_json:
        tried = [{"change": change, "passed": passed} for change, passed in runs.items()]
        show_json({"first_bad": entry.sequence, "entry": entry, "runs": tried})
        return
    rows = [(change, "passed" if passed else "failed") for change, passed in sorted(runs.items())]
    show_table(f"{counted(len(rows), 'run')} of the check", ("after change", "result"), rows)
    show_table("\nIt fails since", _COLUMNS, [_row(entry)])
    if not any(runs.values()):
        warn(f"the check failed every time: whether it passes after change {min(runs) - 1} (--good) was not tried")


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
