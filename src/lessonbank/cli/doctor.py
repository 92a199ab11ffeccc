"""`doctor`: what is active, what fell back, how much there is, and whether the file is sound."""

from __future__ import annotations

import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from lessonbank.types import Counts

from . import _options as options
from ._output import progress_console, show_json, show_table
from .carry import needs_bank

if TYPE_CHECKING:
    from lessonbank import ReasoningBank


def doctor(
    bank: options.Bank,
    scope: Annotated[str, typer.Option("--scope", help="Connect as this scope; all are counted.")] = "default",
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    embedder: options.Embedder = None,
    reindex: Annotated[bool, typer.Option("--reindex", help="Embed what has no vector yet, in every scope.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also compare every record with what the journal makes of it.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="First make anew what follows from the records: lessons, word index, sums."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Say what is active: store, embedder, model, fallbacks, counts, versions."""
    import lessonbank

    needs_bank(bank)
    if embedder and not reindex:
        raise typer.BadParameter("changing the embedder goes with --reindex", param_hint="--embedder")
    with lessonbank.connect(bank, scope=scope, model=model, base_url=base_url, embedder=embedder) as memory:
        if rebuild:
            memory.rebuild()
        scopes = memory.scopes()
        done = {s: _reindex(memory, s) for s in scopes} if reindex else {}
        counts = {s: memory.counts(scope=s) for s in scopes}
        problems = memory.verify(journal=verify)
        parts = memory.parts
    if as_json:
        counted = {s: c.model_dump() for s, c in counts.items()}
        show_json(
            {
                "parts": parts,
                "versions": _versions(),
                "scopes": counted,
                "reindexed": done,
                "journal_compared": verify,
                "problems": list(problems),
            }
        )
    else:
        show_table("Active", ("part", "what"), parts.items())
        show_table(
            "\nScopes", ("scope", *Counts.model_fields), [(s, *c.model_dump().values()) for s, c in counts.items()]
        )
        show_table("\nVersions", ("package", "version"), _versions().items())
        sound = "sound; every record agrees with the journal" if verify else "sound (--verify reads the journal, too)"
        show_table("\nFile", ("check", "result"), [("verify", p) for p in problems] or [("verify", sound)])
    if problems:
        raise typer.Exit(1)


def _reindex(memory: ReasoningBank, scope: str) -> int:
    total = memory.counts(scope=scope).experiences
    with Progress(console=progress_console, transient=True, disable=not progress_console.is_terminal) as bar:
        row = bar.add_task(f"embedding {scope}", total=total)
        return memory.reindex(scope=scope, progress=lambda done: bar.update(row, completed=done))


def _versions() -> dict[str, str]:
    extras = ("pydantic_ai", "openai", "anthropic", "fastembed", "sentence_transformers")
    found = {name: _version(name) for name in extras if find_spec(name)}
    missing = [name for name in extras if name not in found]
    return {
        "lessonbank": _version("lessonbank"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **found,
        "not installed": ", ".join(missing) or "-",
    }


def _version(module: str) -> str:
    names = {"pydantic_ai": "pydantic-ai-slim", "sentence_transformers": "sentence-transformers"}
    try:
        return version(names.get(module, module))
    except PackageNotFoundError:
        return "unknown"
