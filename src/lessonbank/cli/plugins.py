"""Commands that other distributions bring along, found by entry point and imported only when they are called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from lessonbank.errors import UsageError

GROUP = "lessonbank.commands"
"""An entry point of this group has a command's name, and its value is a `typer.Typer` app."""
KNOWN: Mapping[str, tuple[str, str]] = {
    "bench": (
        "lessonbank-bench",
        "Experiments about memory (pip install lessonbank-bench).",
    ),
}
"""Commands named in `--help` even where their distribution is absent: the distribution and one line of help."""


class Commands(TyperGroup):
    """The commands of this package, then those of others. A help page only names them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which they are shown."""
        return [*super().list_commands(ctx), *sorted({*KNOWN, *_find_plugins()} - {*self.commands})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or for another distribution's a name with a line of help."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or (cmd_name not in KNOWN and cmd_name not in _find_plugins()):
            return own
        line = KNOWN[cmd_name][1] if cmd_name in KNOWN else ""
        return TyperCommand(cmd_name, help=line, rich_help_panel="Of other distributions")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called: now another distribution's is imported."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or name in self.commands:
            return name, command, rest
        return name, load(name), rest


def load(name: str, /) -> Any:
    """Another distribution's command.

    Raises:
        UsageError: the distribution is not installed.
    """
    plugin = _find_plugins().get(name)
    if plugin is None:
        raise UsageError(f"`lessonbank {name}` is not installed: pip install {KNOWN[name][0]}")
    app: typer.Typer = plugin.load()
    return typer.main.get_command(app)


def _find_plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
