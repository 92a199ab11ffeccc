"""The options several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Bank: TypeAlias = Annotated[Path, typer.Option("--bank", help="The bank's file.", show_default=False)]
Scope: TypeAlias = Annotated[str, typer.Option("--scope", help="Whose memory: a path such as acme/support.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
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
