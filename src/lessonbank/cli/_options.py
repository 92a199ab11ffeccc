"""The options several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lessonbank.errors import UsageError

MOMENT = "A change's number (0: before the first), or a time such as 2026-03-01T12:00+01:00."

Bank: TypeAlias = Annotated[Path, typer.Option("--bank", help="The bank's file.", show_default=False)]
Scope: TypeAlias = Annotated[str, typer.Option("--scope", help="Whose memory: a path such as acme/support.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", help="Why; kept in the journal.", show_default=False)]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", help="Who judges and extracts: provider:model. Without: ground truth only.")
]
BaseUrl: TypeAlias = Annotated[
    str | None, typer.Option("--base-url", help="An OpenAI-compatible server that offers --model.")
]
Domain: TypeAlias = Annotated[str, typer.Option("--domain", help="Which prompts: general, web or code.")]
Profile: TypeAlias = Annotated[str, typer.Option("--profile", help="default, or paper (the published method).")]
Embedder: TypeAlias = Annotated[
    str | None, typer.Option("--embedder", help="lexical, hashing, fastembed:NAME, provider:NAME. Default: the bank's.")
]


def moment(text: str, /) -> int | datetime:
    """What `MOMENT` describes.

    Raises:
        UsageError: it is neither.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no moment: give a change's number, or a time with its zone") from None
