"""`reviewers`: keys for those who decide which lessons are shown."""

from __future__ import annotations

from typing import Annotated

import typer

from lessonbank._base.plural import counted

from . import _options as options
from ._bank import opened
from ._output import console, say, show_json, show_table
from ._reviewing import UNPROTECTED, KeyFile, Reviewer, owning, show_key

app = typer.Typer(help="Let only people with a key decide what is shown.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The person's name, as in --by.")]


@app.command()
def add(
    name: Name, bank: options.Bank, by: Reviewer = None, key_file: KeyFile = None, as_json: options.Json = False
) -> None:
    """Print a new key for a person. Only now can it be read. Keep it where no agent can read it.

    From the first reviewer on, whatever decides what is shown, erases, or hands out or ends keys asks for such a key.
    """
    with opened(bank, "default") as memory:
        key = owning(memory, by, key_file).admin.add_reviewer(name)
    show_key("reviewer", name, key, as_json=as_json)


@app.command()
def remove(name: Name, bank: options.Bank, by: Reviewer = None, key_file: KeyFile = None) -> None:
    """End the key of a person. What that person decided stays."""
    with opened(bank, "default") as memory:
        owning(memory, by, key_file).admin.remove_reviewer(name)
    console.print(f"removed: {name}", markup=False)


@app.command("list")
def list_(bank: options.Bank, as_json: options.Json = False) -> None:
    """List the people who decide what is shown."""
    with opened(bank, "default") as memory:
        found = memory.admin.reviewers()
    if as_json:
        show_json(list(found))
    elif found:
        show_table(counted(len(found), "reviewer"), ("name",), [(name,) for name in found])
    else:
        say(UNPROTECTED)
