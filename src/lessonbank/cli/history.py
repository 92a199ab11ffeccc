"""`history`: what changed a bank, the way back, which change broke something, and how two banks differ."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import plural
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.records import JournalEntry, Lesson, Rollback
from lessonbank.contracts.store_calls import care_of
from lessonbank.errors import NotFound, UsageError
from lessonbank.guard import one_line

from . import _options as options
from ._bank import needs_bank, opened, warn_where_empty
from ._ids import experience_id, lesson_id, lessons_of, short
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
    show_table(f"{plural(len(entries), 'change')} of {scope}", _COLUMNS, map(_row, entries))


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
        changes = memory.history.diff(options.moment(a), options.moment(b))
    if as_json:
        show_json(changes)
    elif changes.empty:
        console.print("no difference")
    else:
        show_table(f"{scope}, from {a} to {b}", ("what", "id", "text"), _rows(changes))


def _show_first_failing(bank: str, scope: str, a: str, b: str, check: str, *, as_json: bool) -> None:
    if not (a.isdecimal() and b.isdecimal() and int(a) < int(b)):
        raise typer.BadParameter("with --check A and B are numbers of changes, the smaller one first", param_hint="A B")
    entry, runs = find_first_failing(bank, scope, int(a), int(b), check)
    if as_json:
        tried = [{"change": change, "passed": passed} for change, passed in runs.items()]
        show_json({"first_bad": entry.sequence, "entry": entry, "runs": tried})
        return
    rows = [(change, "passed" if passed else "failed") for change, passed in sorted(runs.items())]
    show_table(f"{plural(len(rows), 'run')} of the check", ("after change", "result"), rows)
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
        f"{plural(counts.experiences, 'experience')}, {plural(counts.lessons, 'lesson')} ({counts.retired} retired). "
        f"This is change {entry.sequence}; a rollback to {entry.sequence - 1} undoes it",
        markup=False,
    )


def _row(entry: JournalEntry) -> tuple[object, ...]:
    when = entry.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return entry.sequence, when, one_line(entry.writer, limit=12), entry.entry.kind, _what(entry)


def _what(entry: JournalEntry) -> str:
    """One change in a few words."""
    sentence = entry.entry.sentence()
    subjects = (sentence.experience,) if sentence.experience else sentence.lessons or filter(None, (sentence.run,))
    ids = ", ".join(map(short, subjects))
    return ": ".join(filter(None, (sentence.text, ids, sentence.reason)))


def _rows(changes: Diff) -> list[tuple[str, str, str]]:
    pairs = [(name, e.id, e.task) for name in ("added", "removed") for e in getattr(changes, name)]
    pairs += [("replaced", r.after.id, r.after.task) for r in changes.replaced]
    lessons = {"lessons_added": "lesson added", "lessons_removed": "lesson removed"}
    lessons |= {name: name for name in ("retired", "restored", "trusted", "edited")}
    pairs += [(name, i.id, i.title) for field, name in lessons.items() for i in getattr(changes, field)]
    return [(name, short(id), text) for name, id, text in pairs]


@dataclass(frozen=True)
class Difference:
    """What two banks do not have in common. Lessons are the same by id, or where they say the same words."""

    only_a: tuple[Lesson, ...]
    only_b: tuple[Lesson, ...]
    changed: tuple[tuple[Lesson, Lesson], ...]


def show_difference(a: str, b: str, scope: str, other_scope: str, /, *, as_json: bool) -> None:
    """Lessons that are only in the bank `a`, only in the bank `b`, or changed."""
    with opened(a, scope) as bank, opened(b, other_scope) as other:
        comparison = difference(list(lessons_of(bank)), list(lessons_of(other)))
        warn_where_empty(bank)
        warn_where_empty(other)
    if as_json:
        show_json(_as_dict(comparison))
    elif rows := list(_rows_of_banks(comparison)):
        show_table(f"{a} and {b}", ("what", "id", "title"), rows)
    else:
        console.print("no difference")


def difference(a: Sequence[Lesson], b: Sequence[Lesson], /) -> Difference:
    """What is only in one of two lists of lessons, and what is in both and differs."""
    by_id, ids_a = {lesson.id: lesson for lesson in b}, {lesson.id for lesson in a}
    words_a, words_b = {lesson.wording for lesson in a}, {lesson.wording for lesson in b}
    both = [(lesson, by_id[lesson.id]) for lesson in a if lesson.id in by_id]
    return Difference(
        only_a=tuple(lesson for lesson in a if lesson.id not in by_id and lesson.wording not in words_b),
        only_b=tuple(lesson for lesson in b if lesson.id not in ids_a and lesson.wording not in words_a),
        changed=tuple(pair for pair in both if _changes(*pair)),
    )


def _changes(a: Lesson, b: Lesson) -> list[str]:
    """What is not the same of one lesson."""
    parts = ("title", "description", "content", "state", "retired")
    named = {"description": "when"}
    return [named.get(part, part) for part in parts if getattr(a, part) != getattr(b, part)]


def _rows_of_banks(comparison: Difference) -> Iterable[tuple[str, str, str]]:
    yield from (("only in A", short(lesson.id), lesson.title) for lesson in comparison.only_a)
    yield from (("only in B", short(lesson.id), lesson.title) for lesson in comparison.only_b)
    yield from ((f"changed: {', '.join(_changes(a, b))}", short(b.id), b.title) for a, b in comparison.changed)


def _as_dict(comparison: Difference) -> dict[str, object]:
    return {
        "only_in_a": comparison.only_a,
        "only_in_b": comparison.only_b,
        "changed": [{"a": a, "b": b} for a, b in comparison.changed],
    }


def find_first_failing(
    bank: str, scope: str, good: int, bad: int, check: str, /
) -> tuple[JournalEntry, dict[int, bool]]:
    """The change after which the command `check` fails, and after which changes it was run and passed.

    Raises:
        UsageError: the command cannot be run, or passes after `bad`.
        NotFound: there is no change `bad`.
    """
    command, runs = _words(check), dict[int, bool]()
    with tempfile.TemporaryDirectory(prefix="lessonbank-bisect-") as folder:
        origin = Path(folder) / "origin.db"
        with opened(bank, scope) as memory:
            run_sync(care_of(memory.aio.store).backup(origin))  # no act of administration: the bank stays as it is
            entries = memory.history.list(after=good)
        if not entries or entries[-1].sequence < bad:
            raise NotFound(f"there is no change {bad} in {scope}: the last one is {good + len(entries)}")

        def passes(change: int) -> bool:
            runs[change] = _passes(command, origin, scope=scope, change=change)
            return runs[change]

        first = first_failing(good, bad, passes)
    return entries[first - good - 1], runs


def _words(check: str) -> list[str]:
    try:
        words = shlex.split(check)
    except ValueError as error:
        raise UsageError(f"the check {check[:80]!r} cannot be read: {error}") from None
    if not words:
        raise UsageError("the check is empty: give a command, as in --check 'python check.py'")
    return words


def first_failing(good: int, bad: int, passes: Callable[[int], bool], /) -> int:
    """The change after which a check that `passes` after `good` fails, in at most ⌈log2(bad - good)⌉ + 1 calls.

    Raises:
        UsageError: it does not fail after `bad`.
    """
    if passes(bad):
        raise UsageError(f"the check passes after change {bad}: name a change after which it fails as B")
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
