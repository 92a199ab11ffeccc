"""How commands print: results on stdout, progress on stderr, strangers' text made inert first."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lessonbank.guard import clean, one_line

console = Console(highlight=False)
progress_console = Console(stderr=True, highlight=False)


def show_json(value: Any, /) -> None:
    """One JSON document on stdout, ASCII only: nothing in it can drive a terminal."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=True, default=str)
    sys.stdout.write("\n")


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], /) -> None:
    """A table of plain text cells; the last column takes what room there is."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column != columns[-1])
    for row in rows:
        table.add_row(*(Text(one_line(str(cell), limit=500)) for cell in row))
    console.print(table)


def show_text(text: str, /) -> None:
    """Several lines of strangers' text, without markup or control characters."""
    console.print(Text(clean(text)), soft_wrap=True)


def warn(sentence: str, /) -> None:
    """One line on stderr."""
    progress_console.print(Text(one_line(sentence, limit=1000)), style="yellow", soft_wrap=True)
