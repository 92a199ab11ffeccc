"""`formats`: which recorded runs `learn` can read."""

from __future__ import annotations

from lessonbank.importers import FORMATS

from . import _options as options
from ._output import show_json, show_table


def formats(as_json: options.Json = False) -> None:
    """List the formats of recorded runs that `learn` reads."""
    if as_json:
        show_json([{"name": name, "what": what} for name, what in FORMATS])
    else:
        show_table("Formats", ("name", "what"), [(name, what.replace("`", "")) for name, what in FORMATS])
