"""`retire` and `restore`: take lessons back by hand, and bring them back."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as options
from ._output import console
from .carry import needs_bank

Items = Annotated[list[str], typer.Argument(help="Ids of items, as `lessonbank items` lists them.")]


def retire(items: Items, bank: options.Bank, scope: options.Scope, reason: options.Reason) -> None:
    """Stop showing lessons. They stay, and `restore` brings them back."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.retire(*items, reason=reason)
    console.print(f"retired: {len(items)}", markup=False)


def restore(items: Items, bank: options.Bank, scope: options.Scope, reason: options.Reason) -> None:
    """Show retired lessons again."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.restore(*items, reason=reason)
    console.print(f"restored: {len(items)}", markup=False)
