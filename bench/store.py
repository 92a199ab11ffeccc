"""What the embedded store costs, each figure beside the raw operation under it, in one run on one machine.

    .venv/bin/python bench/store.py [--items 10000] [--folder DIR] [--json]

384-d random unit vectors in clusters, 200-character tasks, one item an experience, one scope, top 5, no embedding.
Wall times are medians; the ratio is what to compare between machines. `retrieve` is the vector search with the found
experiences and the kept receipt; its raw operation is one float32 pass over the same rows in one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import anyio
import numpy as np

from lessonbank.stores.sqlite import SqliteStore
from lessonbank.types import Add, Experience, Match, MemoryItem, Recall

SPACE, SCOPE, DIMENSIONS, BATCH = "bench-384", "bench", 384, 1000


def rows(count: int, seed: int = 0) -> np.ndarray:
    """`count` unit rows around 500 centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((500, DIMENSIONS))
    made = centres[rng.integers(0, 500, count)] + 0.7 * rng.standard_normal((count, DIMENSIONS))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def experience(number: int) -> Experience:
    """One experience with one item of about 300 characters."""
    words = f"task {number} about case {number % 977} in room {number % 31} "
    item = MemoryItem(title=f"Lesson {number}", description="when it fits", content=(words * 4)[:200])
    return Experience(scope=SCOPE, task=(words * 6)[:200], items=(item,))


async def timed(call: Callable[[int], Awaitable[object]], times: int) -> float:
    """Median wall milliseconds of `call`."""
    taken: list[float] = []
    for number in range(times):
        start = time.perf_counter()
        await call(number)
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken)


async def fill(path: Path, vectors: np.ndarray) -> float:
    """Items a second that a new bank takes in batches."""
    store = await SqliteStore.open(path)
    start = time.perf_counter()
    for at in range(0, len(vectors), BATCH):
        batch = [experience(n) for n in range(at, min(at + BATCH, len(vectors)))]
        named = {e.id: vectors[at + i] for i, e in enumerate(batch)}
        await store.apply([Add(experience=e) for e in batch], scope=SCOPE, writer="b", vectors=named, space=SPACE)
    taken = time.perf_counter() - start
    await store.close()
    return len(vectors) / taken


async def searching(store: SqliteStore, vectors: np.ndarray, queries: np.ndarray) -> dict[str, dict[str, float]]:
    """Vector search, retrieval with its receipt, and search by words."""

    async def near(number: int) -> list[Match]:
        return list(await store.nearest(queries[number % len(queries)], scope=SCOPE, space=SPACE, limit=5))

    async def retrieve(number: int) -> None:
        await store.record(Recall(scope=SCOPE, task=(await near(number))[0].experience.task))

    async def raw_pass(number: int) -> None:
        np.argpartition(vectors @ queries[number % len(queries)], -5)[-5:]

    async def by_words(number: int) -> None:
        await store.search(f"case {number * 7 % 977} in room {number % 31}", scope=SCOPE, limit=5)

    exact = [np.sort(vectors @ query)[-5] for query in queries[:50]]
    hits = [m.score >= least - 1e-5 for n, least in enumerate(exact) for m in await near(n)]
    raw = await timed(raw_pass, 200)
    return {
        "vector search, ms": {"ours": await timed(near, 200), "raw": raw},
        "retrieve with receipt, ms": {"ours": await timed(retrieve, 100), "raw": raw},
        "recall@5": {"ours": float(np.mean(hits))},
        "search by words, ms": {"ours": await timed(by_words, 50)},
    }


async def writing(store: SqliteStore, folder: Path, queries: np.ndarray) -> dict[str, dict[str, float]]:
    """One durable change beside one full commit of as many bytes."""
    raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
    for pragma in ("journal_mode=wal", "synchronous=full"):
        raw.execute(f"pragma {pragma}")
    raw.execute("create table t (b blob)")
    blob = experience(0).model_dump_json().encode() * 2 + queries[0].tobytes()

    async def write(number: int) -> None:
        new = experience(10_000_000 + number)
        named = {new.id: queries[number]}
        await store.apply([Add(experience=new)], scope=SCOPE, writer="b", vectors=named, space=SPACE)

    async def raw_commit(_: int) -> None:
        raw.execute("insert into t values (?)", (blob,))

    figures = {"durable single write, ms": {"ours": await timed(write, 100), "raw": await timed(raw_commit, 100)}}
    raw.close()
    return figures


async def measure(folder: Path, items: int) -> dict[str, dict[str, float]]:
    """Every figure: ours, and the raw operation where there is one."""
    vectors, queries = rows(items), rows(200, seed=1)
    rate = await fill(folder / "bench.db", vectors)
    size = (folder / "bench.db").stat().st_size
    start = time.perf_counter()
    store = await SqliteStore.open(folder / "bench.db")
    await store.nearest(queries[0], scope=SCOPE, space=SPACE, limit=5)
    opened = (time.perf_counter() - start) * 1e3
    figures = {**await searching(store, vectors, queries), **await writing(store, folder, queries)}
    await store.close()
    return {
        **figures,
        "bulk import, items/s": {"ours": rate},
        "open to first answer, ms": {"ours": opened},
        "disk, KB per item": {"ours": size / items / 1024},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where the files are made (a disk, not a memory file system)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = anyio.run(measure, Path(folder), options.items)
    if options.json:
        json.dump({"items": options.items, **figures}, sys.stdout, indent=2)
        return
    print(f"{options.items:,} items")
    for name, figure in figures.items():
        ratio = f"   {figure['ours'] / figure['raw']:.2f} x the raw {figure['raw']:.3f}" if "raw" in figure else ""
        print(f"{name:28}{figure['ours']:12.3f}{ratio}")


if __name__ == "__main__":
    main()
