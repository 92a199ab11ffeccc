"""`writers`: keys for those whose outcomes and lessons are to count as their own."""

from __future__ import annotations

from typing import Annotated

import typer

from lessonbank._base.plural import counted

from . import _options as options
from ._bank import opened
from ._output import console, show_json, show_table
from ._reviewing import KeyFile, Reviewer, owning, show_key

app = typer.Typer(help="Give writers keys, so that what each tells counts as its own.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The writer's name, as in bank.scoped(writer=NAME, key=…).")]


@app.command()
def add(
    name: Name, bank: options.Bank, by: Reviewer = None, key_file: KeyFile = None, as_json: options.Json = False
) -> None:
    """Print a new key for a writer. Only now can it be read; an earlier key of the writer ends."""
    with opened(bank, "default") as memory:
        key = owning(memory, by, key_file).admin.add_writer(name)
    show_key("writer", name, key, as_json=as_json)


@app.command()
def remove(name: Name, bank: options.Bank, by: Reviewer = None, key_file: KeyFile = None) -> None:
    """End the key of a writer. What it told stays."""
    with opened(bank, "default") as memory:
        owning(memory, by, key_file).admin.remove_writer(name)
    console.print(f"removed: {name}", markup=False)


@app.command("list")
def list_(bank: options.Bank, as_json: options.Json = False) -> None:
    """List the writers that have a key."""
    with opened(bank, "default") as memory:
        found = memory.admin.writers()
    if as_json:
        show_json(list(found))
    else:
        show_table(f"{counted(len(found), 'writer')} with a key", ("name",), [(name,) for name in found])
