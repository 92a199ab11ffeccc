"""`backup`, `export` and `import`: copy a bank that is in use, carry a scope from one bank to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessonbank.arguments import named

from . import _options as options
from ._bank import opened
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
