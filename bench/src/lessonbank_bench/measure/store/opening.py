"""A fresh process opens a bank and answers: how long, and how much memory for each lesson it loaded."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lessonbank.stores.sqlite import SqliteStore

from . import processes
from .banks import Part, built
from .clock import Stopwatch
from .figures import Figure, Target
from .retrieving import Asking, prepared
from .workload import DIMENSIONS, SCOPE, SPACE, TOP, Queries, rows

LOADING = "a fresh process reads the same rows as float32 from a plain file and makes one pass"
_GOALS = {100_000: Target(150), 1_000_000: Target(1200)}
_PART_GOAL = Target(200)
_RSS_GOAL = Target(0.9)
_KEYS = ("Rss", "Pss", "Anonymous")


def opening(
    path: Path, lessons: int, folder: Path, *, scope: str = SCOPE, times: int = 5, of: str = ""
) -> list[Figure]:
    """Time and memory of one scope of `lessons`, medians of `times` processes, with the file in the page cache."""
    plain = folder / "plain.npy"
    np.save(plain, rows(0, lessons))
    _warm(path)
    runs = {what: [_run(what, path, scope, plain) for _ in range(times)] for what in ("store", "bank", "raw", "memory")}
    target = _PART_GOAL if of else _GOALS.get(lessons)
    figures = [
        Figure(
            f"open to first answer, {name}{of}",
            lessons,
            _median(runs[what], "wall"),
            "ms",
            cpu=_median(runs[what], "cpu"),
            raw=_median(runs["raw"], "wall"),
            raw_cpu=_median(runs["raw"], "cpu"),
            under=LOADING,
            target=target if what == "store" else None,
            note=f"median of {times} processes{told}",
        )
        for what, name, told in (
            ("store", "the store", ""),
            ("bank", "connect and retrieve", "; loads the modules and prompts of a bank too"),
        )
    ]
    plain.unlink()
    return [*figures, *_memory(runs["memory"], lessons, of)]


def _memory(runs: list[dict[str, Any]], lessons: int, of: str) -> list[Figure]:
    grown = {key: _median(runs, key) / lessons for key in _KEYS}
    later = statistics.median(run["later"]["Rss"] for run in runs) / lessons
    whole, shares = grown["Rss"] * lessons / 1024, f"Pss {grown['Pss']:.2f}, private {grown['Anonymous']:.2f}"
    note = f"{shares}; after 100 answers {later:.2f}; {whole:.1f} MB in all"
    under, float32 = "the row as float32", DIMENSIONS * 4 / 1024
    name = f"memory, RSS per loaded lesson{of}"
    return [Figure(name, lessons, grown["Rss"], "KB", raw=float32, under=under, target=_RSS_GOAL, note=note)]


def _run(what: str, path: Path, scope: str, plain: Path) -> dict[str, Any]:
    return processes.fresh("opening", what, path, scope, plain)


def _median(runs: list[dict[str, Any]], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def _warm(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        with file.open("rb") as handle:
            while handle.read(1 << 24):
                pass


# --- in the fresh process --------------------------------------------------------------------------------------------


async def _store(path: Path, scope: str, plain: Path) -> dict[str, Any]:
    query, watch = Queries().take(1)[0], Stopwatch()
    with watch:
        store = await SqliteStore.open(path)
        found = (await store.nearest(query, scope=scope, space=SPACE, limit=TOP)).matches
    await store.close()
    return _spent(watch, len(found))


async def _bank(path: Path, scope: str, plain: Path) -> dict[str, Any]:
    queries, ready, watch = Queries(), prepared(10), Stopwatch()
    with watch:
        asking = await Asking.of(path, queries, scope=scope, ready=ready)
        recall = await asking.retrieve()
    await asking.bank.close()
    return _spent(watch, len(recall.candidates))


async def _raw(path: Path, scope: str, plain: Path) -> dict[str, Any]:
    query, watch = Queries().take(1)[0], Stopwatch()
    with watch:
        scores = np.load(plain) @ query
        found = np.argpartition(scores, -TOP)[-TOP:]
    return _spent(watch, len(found))


async def _resident(path: Path, scope: str, plain: Path) -> dict[str, Any]:
    """Growth in KB from before the bank is opened. A small bank was used before, so that code does not count."""
    queries = Queries()
    with tempfile.TemporaryDirectory() as folder:
        small = await built(Path(folder) / "small.db", [Part(100)])
        await _ask(await SqliteStore.open(small.path), SCOPE, queries, close=True)
    before = _mapped()
    store = await SqliteStore.open(path)
    await _ask(store, scope, queries, times=1)
    first = _mapped()
    await _ask(store, scope, queries, times=100, close=True)
    later = _mapped()
    return {**_grown(before, first), "later": _grown(before, later)}


async def _ask(store: SqliteStore, scope: str, queries: Queries, *, times: int = 20, close: bool = False) -> None:
    for query in queries.take(times):
        await store.nearest(query, scope=scope, space=SPACE, limit=TOP)
    if close:
        await store.close()


def _mapped() -> dict[str, int]:
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}


def _grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {key: after[key] - before[key] for key in _KEYS}


def _spent(watch: Stopwatch, found: int) -> dict[str, Any]:
    if found < TOP:
        raise SystemExit(f"only {found} found")
    return {"wall": watch.wall * 1e3, "cpu": watch.cpu * 1e3}


_WHAT = {"store": _store, "bank": _bank, "raw": _raw, "memory": _resident}

if __name__ == "__main__":
    chosen, path, scope, plain = sys.argv[1:5]
    print(json.dumps(asyncio.run(_WHAT[chosen](Path(path), scope, Path(plain)))))
