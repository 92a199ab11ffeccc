"""What other distributions bring along, by name: each is imported when it is asked for, and not before."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any


def extension(group: str, name: str, /) -> Any:
    """What the entry point `name` of a group stands for; `None` where nothing that is installed has one.

    What goes wrong while it is imported reaches the caller: that distribution is broken.
    """
    entry_point = next(iter(entry_points(group=group, name=name)), None)
    return None if entry_point is None else entry_point.load()


def extension_names(group: str, /) -> list[str]:
    """The names that installed distributions have in a group, sorted. Imports none of them."""
    return sorted({point.name for point in entry_points(group=group)})
