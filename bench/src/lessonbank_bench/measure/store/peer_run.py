"""Runs an engine through the workload inside its own environment: fill, ask, compare with the exact answer."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from .clock import Stopwatch, alternate
from .workload import TOP, Queries, Text, exact, rows, texts

_BATCH = 1000
_RECALLED = 50


class Engine(Protocol):
    """What is measured. `note` and `fill_note` say what it does and does not do."""

    note: str
    fill_note: str

    def add(self, start: int, said: Sequence[Text], vectors: np.ndarray) -> None:
        """Keep rows `start` and following."""
        ...

    def ready(self) -> None:
        """All is added."""
        ...

    async def ask(self, query: np.ndarray) -> list[int]:
        """The rows of the five nearest in the scope, after their payload was fetched."""
        ...

    def close(self) -> None:
        """Release the files."""
        ...


def run(make: type) -> None:
    """Measure the engine that `make(folder)` opens, as the arguments say, and print it."""
    folder, lessons, calls, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    folder.mkdir(parents=True)
    print(json.dumps(asyncio.run(_measured(make, folder, lessons, calls, seconds))))


async def _measured(make: type, folder: Path, lessons: int, calls: int, seconds: float) -> dict[str, object]:
    vectors, queries, watch = rows(0, lessons), Queries(), Stopwatch()
    before = _resident()
    engine: Engine = make(folder)
    filled = _fill(engine, vectors, watch, seconds)
    with watch:
        engine.ready()
    (timed,) = (
        await alternate({"ask": lambda: engine.ask(queries.take(1)[0])}, calls, warm=2, seconds=seconds)
    ).values()
    recall = await _recall(engine, vectors[:filled], queries.take(min(_RECALLED, timed.calls)), seconds)
    resident = _resident()
    engine.close()
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "filled": filled,
        "rate": filled / watch.wall,
        "disk": disk,
        "rss": resident - before,
        "wall": timed.wall,
        "cpu": timed.cpu,
        "p99": timed.percentile(99),
        "calls": timed.calls,
        "recall": recall,
        "note": engine.note,
        "fill_note": engine.fill_note,
    }


def _resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def _fill(engine: Engine, vectors: np.ndarray, watch: Stopwatch, seconds: float) -> int:
    for start in range(0, len(vectors), _BATCH):
        part = vectors[start : start + _BATCH]
        said = list(texts(start, len(part)))
        with watch:
            engine.add(start, said, part)
        if watch.wall > seconds:
            return start + len(part)
    return len(vectors)


async def _recall(engine: Engine, vectors: np.ndarray, queries: Sequence[np.ndarray], seconds: float) -> float:
    hits, asked, until = 0, 0, time.perf_counter() + seconds
    for query in queries:
        hits += len(set(await engine.ask(query)) & exact(vectors, query))
        asked += 1
        if time.perf_counter() > until:
            break
    return hits / (asked * TOP)
