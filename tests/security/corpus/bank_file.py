"""Reads all that a bank's file holds, so that a test can look for what must not be there."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def everything_in(path: Path) -> str:
    """Every byte of the files, and every cell of every table."""
    told = [place.read_bytes().decode("latin-1") for place in path.parent.iterdir() if place.is_file()]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
        tables = [
            name
            for (name,) in file.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
        ]
        for table in tables:
            for row in file.execute(f'SELECT * FROM "{table}"'):
                told.extend(_told(cell) for cell in row)
    file.close()
    return "\n".join(told)


def _told(cell: object) -> str:
    return cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
