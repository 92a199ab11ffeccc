"""Lays out what a tool returned as data, row by row: of a long list only some rows decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lessonbank.contracts.records import Json, Trajectory
from lessonbank.text.bounded_json import parse

from ._parts import as_json
from ._scenes import Block, Line, Rank, Scene

_ROWS = 4
_SHORT = 500
_COMPARED = ("price", "cost", "amount", "total", "fee", "score", "rating", "duration", "distance", "count", "balance")
_MORE = ("score", "rating", "balance", "count")
"""Of these one may look for the most."""
_FIELD = 160
_LEVELS = 4


def results(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """Long results in JSON: short fields on one line, then a row a line; the first and the best rows come first."""
    return [scene.seen(_laid_out) for scene in scenes]


def _laid_out(block: Block, /) -> Block:
    if block.source == "user" or not block.lines or block.lines[0].text[:1] not in ("{", "["):
        return block
    text = block.text
    if len(text) < _SHORT or any(line.hidden for line in block.lines):
        return block
    try:
        value = parse(text)
    except ValueError:
        return block
    near = min(line.rank for line in block.lines)
    return replace(block, lines=tuple(_rows(value, "", near, 0))) if isinstance(value, dict | list) else block


def _rows(value: Json, name: str, near: Rank, level: int, /) -> Iterator[Line]:
    """The lines of a value; `name` is ours to repeat before what belongs to it."""
    whole = as_json(value)
    if level >= _LEVELS or len(whole) < _SHORT or not isinstance(value, dict | list):
        yield from _cut(f"{name}{whole}", near)
    elif isinstance(value, dict):
        sizes = {key: len(as_json(part)) for key, part in value.items()}
        short = {key: part for key, part in value.items() if sizes[key] < _FIELD}
        long = {key: _announced(part, sizes[key]) for key, part in value.items() if key not in short}
        # What a record is: the fields that rules ask for are short; the lines of the long ones may be left out.
        yield from _cut(f"{name}{as_json({**short, **long})}", Rank.CHANGE)
        for key, part in value.items():
            if key not in short:
                yield from _rows(part, f"{name}{key}: ", near, level + 1)
    else:
        best = _best(value) if len(value) >= _ROWS else set[int]()
        yield Line(f"{name}{len(value)} rows", Rank.CONTEXT)
        for i, row in enumerate(value):
            rank = Rank.CONTEXT if i in best else max(near, Rank.SAID)
            yield from _cut(f"  {as_json(row)}", rank)


def _announced(value: Json, size: int, /) -> str:
    """What stands for a long field in its record, so that a reader misses it where its own lines are left out."""
    return f"… {len(value)} rows, {size:,} characters" if isinstance(value, list) else f"… {size:,} characters"


def _cut(text: str, rank: Rank, /) -> Iterator[Line]:
    for at in range(0, len(text), 2_000):
        yield Line(text[at : at + 2_000], rank, joined=at > 0)


def _best(rows: list[Json], /) -> set[int]:
    """The first row, which shows the fields, and those with the least of each field that one compares rows by."""
    columns: dict[str, list[tuple[float, int]]] = {}
    for i, row in enumerate(rows):
        for name, number in _numbers(row, "", 0):
            columns.setdefault(name, []).append((number, i))
    most = (max(column)[1] for name, column in columns.items() if any(word in name for word in _MORE))
    return {0, *(min(column)[1] for column in columns.values()), *most}


def _numbers(value: Json, name: str, level: int, /) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict) and level < _LEVELS:
        for key, part in value.items():
            yield from _numbers(part, f"{name}.{key.lower()}", level + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool) and any(word in name for word in _COMPARED):
        yield name, float(value)
