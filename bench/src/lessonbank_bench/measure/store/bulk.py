"""Many records at once: batches of 1,000 with their vectors, and a bank's own export read back."""

from __future__ import annotations

import json
from pathlib import Path

import lessonbank

from .banks import Built, Part, experience, portions
from .clock import Stopwatch
from .figures import Figure, Target
from .retrieving import Asking, prepared
from .workload import SCOPE, Queries
from .writing import raw_file

_MOST = 10_000
"""Lessons that the raw insert and the export are measured with."""
BATCHED = "insert of the same bytes (record as JSON, vector as float32), 1,000 to a FULL commit"
_GOAL = Target(20_000, least=True)


def importing(bank: Built, folder: Path) -> Figure:
    """How fast `bank` was made: the store's own calls only, texts and vectors were ready."""
    raw = _raw_rate(folder / f"raw-bulk-{bank.lessons}.db", min(bank.lessons, _MOST))
    spent = f"{bank.cpu / bank.lessons * 1e6:.0f} µs CPU a lesson"
    rate = bank.lessons / bank.wall
    return Figure(
        "bulk import, batches of 1,000", bank.lessons, rate, "/s", raw=raw, under=BATCHED, target=_GOAL, note=spent
    )


def _raw_rate(path: Path, lessons: int) -> float:
    raw, watch = raw_file(path), Stopwatch()
    for said, vectors in portions(Part(lessons, start=30_000_000)):
        made = [experience(text) for text in said]
        lines = [(e.id, e.model_dump_json().encode(), vectors[i].tobytes()) for i, e in enumerate(made)]
        with watch:
            raw.execute("begin immediate")
            raw.executemany("insert into raw values (?, ?, ?)", lines)
            raw.execute("commit")
    raw.close()
    return lessons / watch.wall


async def carrying(path: Path, lessons: int, folder: Path) -> list[Figure]:
    """Export of a bank and import into a new one, up to 10,000 records; vectors do not travel."""
    out, new = folder / "export.jsonl", folder / "imported.db"
    asking = await Asking.of(path, Queries(), ready=prepared(1))  # it is asked nothing
    writing, reading, parsing = Stopwatch(), Stopwatch(), Stopwatch()
    async with asking.bank:
        with writing:
            written = await asking.bank.admin.export(out)
    with parsing:
        for line in out.read_text(encoding="utf-8").splitlines():
            json.loads(line)
    async with await lessonbank.connect_async(new, scope=SCOPE, embedder="lexical") as bank:
        with reading:
            added = await bank.admin.import_(out)
    under, size = "json.loads of each line", f"{out.stat().st_size / written / 1024:.2f} KB a line"
    parsed, note = written / parsing.wall, f"{reading.cpu / added * 1e6:.0f} µs CPU a lesson; vectors not included"
    return [
        Figure("bank.export", lessons, written / writing.wall, "/s", raw=parsed, under=under, note=size),
        Figure(
            "bank.import_ of it", lessons, added / reading.wall, "/s", raw=parsed, under=under, target=_GOAL, note=note
        ),
    ]


def carried(bank: Built) -> bool:
    """Whether `bank` is small enough for export and import to be measured with."""
    return bank.lessons <= _MOST
