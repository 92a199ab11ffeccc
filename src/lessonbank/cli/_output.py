"""How commands print: results on stdout, progress on stderr, strangers' text made inert first."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lessonbank.contracts.records import Record
from lessonbank.errors import printable
from lessonbank.guard import clean, one_line

from ._ids import short

if TYPE_CHECKING:
    from rich.progress import Progress

_PIPED = 1000
"""Columns of an output that is no terminal: one lesson stays on one line, for `grep` and `wc`."""
GAP = 2
"""Columns between two cells."""
_LAST = 20
"""Columns the last cell of a table has at least; where there is less room, rows are written as lists."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has left (`| head`): the rest goes nowhere, and the exit code stays the command's own."""
        to_nowhere()


def _made() -> _Console:
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Console(highlight=False, width=None if fixed else _PIPED)


console = _made()
progress_console = Console(stderr=True, highlight=False)


def progress_bar() -> Progress:
    """What is done so far, on stderr, where it is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    hidden = not progress_console.is_terminal
    return Progress(SpinnerColumn(), *columns, console=progress_console, transient=True, disable=hidden)


def replace_unknown_letters() -> None:
    """A terminal of another alphabet shows `?` for what it lacks, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def show_json(value: Any, /) -> None:
    """One JSON document of records and plain values on stdout, ASCII only: nothing in it can drive a terminal."""
    try:
        json.dump(value, sys.stdout, indent=2, ensure_ascii=True, default=_plain)
        sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere()


def _plain(value: object) -> object:
    """What JSON has no form for: a record is its fields, anything else what it calls itself."""
    return value.model_dump(mode="json") if isinstance(value, Record) else str(value)


def to_nowhere() -> None:
    """Send what is still to be printed nowhere: its reader has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], /, *, to: Console = console
) -> None:
    """A table of plain text cells; the last column takes what room there is. Where there is little, a list."""
    to.print(Text(clean(title), style="bold"), soft_wrap=True)
    cells = [[one_line(str(cell), limit=500) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(widths[:-1]) + GAP * len(widths) + min(widths[-1], _LAST) > to.width:
        _show_list(columns, cells, to)
        return
    table = Table(box=None, pad_edge=False)
    for column, *below in zip(columns, *cells, strict=True):
        right = bool(below) and all(map(str.isdecimal, below))
        table.add_column(column, overflow="fold", no_wrap=column != columns[-1], justify="right" if right else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    to.print(table)


def _show_list(columns: Sequence[str], rows: Iterable[Sequence[str]], to: Console) -> None:
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            to.print(Text(f"{column}: {cell}"), soft_wrap=True)
        to.print()


def warn_of_more(ids: Sequence[str], limit: int, /) -> None:
    """Say that a list ended at its limit, and how to go on."""
    if len(ids) >= limit:
        warn(f"the list ends at its limit of {limit}: --after {short(ids[-1])} goes on, --limit lists more")


def show_text(text: str, /) -> None:
    """Several lines of strangers' text, without markup or control characters."""
    console.print(Text(clean(text)), soft_wrap=True)


def say(sentence: str, /, *, to: Console | None = None) -> None:
    """One line; control characters of names in it are escaped."""
    (to or console).print(Text(printable(sentence, most=2000)), soft_wrap=True)


def warn_of_skipped(lines: Sequence[str], most: int, /) -> None:
    """Warn of lines that were left out: of the first `most` each, of the others how many there are."""
    for line in lines[:most]:
        warn(f"skipped {line}")
    if len(lines) > most:
        warn(f"and {len(lines) - most} more skipped: --json lists them all")


def warn(sentence: str, /) -> None:
    """One line on stderr."""
    progress_console.print(Text(printable(sentence, most=1000)), style="yellow", soft_wrap=True)
