"""Take lessons back by hand and bring them back, vouch for them and set them apart."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as options
from ._output import console
from .carry import needs_bank

Lessons = Annotated[list[str], typer.Argument(help="Ids of lessons, as `lessonbank lessons` lists them.")]


def retire(lessons: Lessons, bank: options.Bank, scope: options.Scope, reason: options.Reason) -> None:
    """Stop showing lessons. They stay, and `restore` brings them back."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.retire(*lessons, reason=reason)
    console.print(f"retired: {len(lessons)}", markup=False)


def restore(lessons: Lessons, bank: options.Bank, scope: options.Scope, reason: options.Reason) -> None:
    """Show retired lessons again."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.restore(*lessons, reason=reason)
    console.print(f"restored: {len(lessons)}", markup=False)


def approve(
    lessons: Lessons,
    bank: options.Bank,
    scope: options.Scope,
    by: Annotated[str, typer.Option("--by", help="Your name; kept in the journal.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the journal.")] = "",
) -> None:
    """Vouch for lessons, as a person: they are trusted from now on, quarantined ones too."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.approve(*lessons, by=by, reason=reason)
    console.print(f"approved: {len(lessons)}", markup=False)


def quarantine(lessons: Lessons, bank: options.Bank, scope: options.Scope, reason: options.Reason) -> None:
    """Show lessons to nobody until a person approves them."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        memory.quarantine(*lessons, reason=reason)
    console.print(f"quarantined: {len(lessons)}", markup=False)
