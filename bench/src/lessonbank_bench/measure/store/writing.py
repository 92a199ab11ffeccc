"""Writes: one durable change beside one full commit of the same bytes, and many writers at once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from lessonbank.contracts.records import Experience
from lessonbank.errors import LessonbankError
from lessonbank.stores.sqlite import SqliteStore

from . import processes
from .banks import Adding, experience
from .clock import WARM, Call, alternate
from .figures import Figure, Target
from .retrieving import timing
from .workload import rows, texts

_WRITERS = (1, 2, 4, 8)
_ROUNDS = 5
_SCALES = Target(2.0, "ratio", least=True)
"""What counts as group commit that scales: eight tasks write at least twice as much as one."""
COMMIT = "begin immediate, insert of the same bytes (record as JSON, vector as float32), commit; WAL, synchronous=FULL"


class New:
    """Experiences that no bank holds yet, with their vectors, made before the clock starts."""

    def __init__(self, start: int, size: int) -> None:
        made = [experience(text) for text in texts(start, size)]
        self._left: Iterator[tuple[Experience, np.ndarray]] = zip(made, rows(start, size)[:, None], strict=True)

    def take(self) -> tuple[Experience, np.ndarray]:
        """The next one, and its vector as one row."""
        return next(self._left)

    def ready(self, many: int) -> Iterator[Adding]:
        """The next so many, each to be added by a call of its own."""
        return iter([Adding.of([each], row) for each, row in islice(self._left, many)])


def raw_file(path: Path) -> sqlite3.Connection:
    """An empty database that makes every commit as durable as the store does."""
    raw = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=wal", "synchronous=full"):
        raw.execute(f"pragma {pragma}")
    raw.execute("create table raw (id text primary key, record blob, vector blob)")
    return raw


def committing(raw: sqlite3.Connection, start: int, size: int) -> Call:
    """One commit of one record, for up to `size` records."""
    new = New(start, size)
    given = [new.take() for _ in range(size)]
    left = iter([(each.id, each.model_dump_json().encode(), row.tobytes()) for each, row in given])

    def commit() -> None:
        raw.execute("begin immediate")
        raw.execute("insert into raw values (?, ?, ?)", next(left))
        raw.execute("commit")

    return commit


async def writing(path: Path, lessons: int, folder: Path, *, calls: int, seconds: float) -> list[Figure]:
    """Every figure of writes to the bank at `path`, which holds `lessons`."""
    raw = raw_file(folder / f"raw-{lessons}.db")
    store = await SqliteStore.open(path)
    new = New(10_000_000, calls + WARM).ready(calls + WARM)
    commit = committing(raw, 11_000_000, calls + WARM)

    async def apply() -> None:
        await next(new).into(store)

    timed = await alternate({"apply": apply, "raw": commit}, calls)
    single = timing("durable single write", lessons, timed["apply"], timed["raw"], Target(1.5, "ratio"), under=COMMIT)
    together = await _together(store, lessons, timed["raw"].wall, max(2, calls // 8))
    await store.close()
    raw.close()
    apart = [figure for many in (4, 8) for figure in await _apart(path, lessons, many, seconds)]
    return [single, *together, *apart]


async def _together(store: SqliteStore, lessons: int, commit: float, each: int) -> list[Figure]:
    """Writes a second of 1 to 8 tasks in one process, `each` by every task; medians of rounds, by turns.

    `commit`: milliseconds of a raw commit.
    """
    new = New(12_000_000, _ROUNDS * sum(_WRITERS) * each)
    rates: dict[int, list[float]] = {writers: [] for writers in _WRITERS}
    for _ in range(_ROUNDS):
        for writers in _WRITERS:
            rates[writers].append(await _round(store, new, writers, each))
    medians = {writers: float(np.median(rate)) for writers, rate in rates.items()}
    return [
        Figure(
            f"writes/s, {writers} task{'s' if writers > 1 else ''} in one process",
            lessons,
            medians[writers],
            "/s",
            raw=medians[1] if writers > 1 else 1e3 / commit,
            under="one writer" if writers > 1 else "one commit after the other, of the same bytes",
            target=_SCALES if writers == 8 else None,
        )
        for writers in _WRITERS
    ]


async def _round(store: SqliteStore, new: New, writers: int, each: int) -> float:
    given = [new.ready(each) for _ in range(writers)]

    async def write(mine: Iterator[Adding]) -> None:
        for adding in mine:
            await adding.into(store)

    start = time.perf_counter()
    await asyncio.gather(*(write(mine) for mine in given))
    return writers * each / (time.perf_counter() - start)


# --- several processes -----------------------------------------------------------------------------------------------


async def _apart(path: Path, lessons: int, many: int, seconds: float) -> list[Figure]:
    said = await asyncio.to_thread(processes.at_once, "writing", [[path, number, seconds] for number in range(many)])
    waits = np.concatenate([np.array(each["waits"]) for each in said])
    counts = [len(each["waits"]) for each in said]
    rate = Figure(
        f"writes/s, {many} processes",
        lessons,
        sum(counts) / seconds,
        "/s",
        note=f"{seconds:g} s; the luckiest had {max(counts) / sum(counts):.0%} of the turns; "
        f"{sum(each['errors'] for each in said)} errors",
    )
    p99, most = float(np.percentile(waits, 99)), float(waits.max())
    promised = many == 8
    return [
        rate,
        Figure(f"wait of a write, p99, {many} processes", lessons, p99, "ms", target=Target(250) if promised else None),
        Figure(
            f"wait of a write, longest, {many} processes",
            lessons,
            most,
            "ms",
            target=Target(1000) if promised else None,
        ),
    ]


async def _write_for(path: str, number: int, seconds: float) -> dict[str, object]:
    waits, errors = list[float](), 0
    most = int(8000 * seconds)
    store, new = await SqliteStore.open(path), New(20_000_000 + number * 1_000_000, most).ready(most)
    processes.wait_for_start()
    until = time.perf_counter() + seconds
    while (start := time.perf_counter()) < until:
        try:
            await next(new).into(store)
        except LessonbankError:
            errors += 1
        else:
            waits.append((time.perf_counter() - start) * 1e3)
    await store.close()
    return {"waits": waits, "errors": errors}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_write_for(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
