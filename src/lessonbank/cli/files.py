"""`backup`, `restore`, `salvage`: copy a bank and bring it back; `export` and `import`: carry a scope to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessonbank.arguments import named
from lessonbank.types import FileState, Lost

from . import _options as options
from ._bank import opened, path_of
from ._output import progress_console, say, show_json


def backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes; an earlier backup there is replaced.")],
    bank: options.Bank,
    as_json: options.Json = False,
) -> None:
    """Copy the whole bank as it is now, while others may write to it. The copy is a bank."""
    with opened(bank, "default") as memory, progress_console.status("copying the bank"):
        memory.admin.backup(file)
    size = file.expanduser().stat().st_size
    _report(
        as_json,
        {"bytes": size, "file": str(file)},
        f"{named(bank)} is copied to {named(file)}: {size:,} bytes, checked",
    )


def restore(
    backup: Annotated[Path, typer.Argument(help="A file that `lessonbank backup` wrote.")],
    bank: Annotated[str, typer.Argument(help="The bank's file. What is there is kept under another name.")],
    as_json: options.Json = False,
) -> None:
    """Put a copy of a backup in the place of a bank. The backup is checked first; nobody may have the bank open."""
    import lessonbank

    with progress_console.status(f"checking {backup}"):
        done = lessonbank.restore(backup, path_of(bank))
    sentence = f"{bank} is now what {backup} holds: {_holds(done.now)}"
    if done.before:
        sentence += f"\nbefore: {_holds(done.before)}\nit is kept as {done.kept}: delete it when you do not need it"
    _report(as_json, done.model_dump(mode="json"), sentence)


def salvage(
    bank: Annotated[str, typer.Argument(help="The damaged bank's file. It is only read.")],
    new: Annotated[Path, typer.Argument(help="The new bank's file, which must not be there yet.")],
    as_json: options.Json = False,
) -> None:
    """Bring what can be read of a damaged bank into a new one, and list what is lost. Nobody may have the bank open.

    Exit code 3: something is lost.
    """
    import lessonbank

    with progress_console.status(f"reading {bank}"):
        done = lessonbank.salvage(path_of(bank), new)
    held = done.counts
    lines = [f"{new} holds {held.lessons} lessons, {held.trajectories} runs and {held.recalls} recalls of {bank}"]
    lines += [
        f"lost in {lost.scope}: {what}: {', '.join(map(str, ids))}" for lost in done.lost for what, ids in _ids(lost)
    ]
    lines += done.notes or ()
    _report(as_json, done.model_dump(mode="json"), "\n".join(lines if done.lost else [*lines, "nothing is lost"]))
    if done.lost:
        raise typer.Exit(3)


def _ids(lost: Lost) -> list[tuple[str, tuple[object, ...]]]:
    return [(what, ids) for what, ids in lost if what != "scope" and ids]


def _holds(state: FileState) -> str:
    size = f"{state.bytes:,} bytes"
    if state.counts is None:
        return f"{size}, which cannot be read: {state.problem}"
    last = f", last changed {state.last_change:%Y-%m-%dT%H:%M:%SZ}" if state.last_change else ""
    return f"{state.counts.lessons} lessons, {state.counts.trajectories} runs, {size}{last}"


def export(
    file: Annotated[Path, typer.Argument(help="Where to write the JSON lines.")],
    bank: options.Bank,
    scope: options.Scope,
    as_json: options.Json = False,
) -> None:
    """Write everything a scope holds to a file: runs, experiences, recalls, outcomes."""
    with opened(bank, scope) as memory, progress_console.status(f"exporting {scope}"):
        written = memory.admin.export(file)
    _report(as_json, {"records": written, "file": str(file)}, f"{written} records of {scope} are in {named(file)}")


def import_(
    file: Annotated[Path, typer.Argument(help="A file that `lessonbank export` wrote.")],
    bank: options.Bank,
    scope: options.Scope,
    approved_by: Annotated[
        str | None, typer.Option("--approved-by", help="Your name: you vouch for what was trusted in the file.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Add what an export holds and the scope does not have yet. Recorded runs go through `learn` instead."""
    if not file.expanduser().is_file():
        raise typer.BadParameter(f"there is no file {named(file)}", param_hint="FILE")
    with opened(bank, scope, make=True) as memory, progress_console.status("importing"):
        added = memory.admin.import_(file, approved_by=approved_by)
    _report(as_json, {"added": added, "file": str(file)}, f"{added} new records in {scope}")


def _report(as_json: bool, value: dict[str, object], sentence: str) -> None:
    if as_json:
        show_json(value)
    else:
        say(sentence)
