"""The closest rows are found among rows hard to tell apart: few dimensions, no clusters, or very large ones."""

from __future__ import annotations

import numpy as np
import pytest

from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores.sqlite._rows import PARTS, SpaceRow, row_type, to_blobs
from lessonbank.stores.sqlite._vectors import Matrix

pytestmark = pytest.mark.full

Rows = np.ndarray


def units(rows: Rows) -> Rows:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def matrix_of(rows: Rows) -> Matrix:
    matrix = Matrix(SpaceRow(1, "space", 1, rows.shape[1]))
    matrix.put(np.arange(len(rows)) * PARTS, np.frombuffer(b"".join(to_blobs(rows)), row_type(rows.shape[1])))
    return matrix


def recall(rows: Rows, queries: Rows, *, limit: int = 5) -> float:
    """Which share of the closest `limit` is found; rows as close as the last one count as well as that one."""
    rows, queries = units(rows), units(queries)
    matrix, found = matrix_of(rows), 0
    for query in queries:
        exact = rows @ query
        last = np.partition(exact, -limit)[-limit] - 2e-5
        near = matrix.closest(query, count=limit)
        found += sum(exact[key // PARTS] >= last for key in sorted(near, key=near.__getitem__)[-limit:])
    return found / (limit * len(queries))


@pytest.mark.parametrize("dimensions", [1, 2, 8, 63, 65, 130, 200, 384, 1030])
def test_rows_without_any_order(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    rows = chance.normal(size=(6000, dimensions))
    queries = np.concatenate([chance.normal(size=(15, dimensions)), rows[:15] + 0.3 * chance.normal(size=(15, 1))])
    assert recall(rows, queries) >= 0.98


@pytest.mark.parametrize("clusters", [1, 2, 10])
@pytest.mark.parametrize("spread", [0.05, 0.7])
def test_rows_of_a_few_large_clusters(clusters: int, spread: float) -> None:
    chance = np.random.default_rng(clusters)
    centres = chance.normal(size=(clusters, 128))

    def drawn(count: int) -> Rows:
        return centres[chance.integers(0, clusters, count)] + spread * chance.normal(size=(count, 128))

    assert recall(drawn(8000), drawn(30)) >= 0.98


def test_tasks_from_few_templates_in_the_hashing_space() -> None:
    chance = np.random.default_rng(9)
    templates = ("Cancel the pending order #W{} of {}", "Exchange the {1} in order #W{0}", "Refund {1} for order #W{0}")

    def task() -> str:
        template = templates[chance.integers(0, 3)]
        return template.format(chance.integers(10**6, 10**7), ("boots", "lamp", "desk", "phone")[chance.integers(0, 4)])

    embedder = HashingEmbedder(dimensions=256)
    assert recall(embedder.rows([task() for _ in range(5000)]), embedder.rows([task() for _ in range(30)])) >= 0.98


def test_nearly_equal_rows_and_a_limit_beyond_them_all() -> None:
    chance = np.random.default_rng(3)
    rows = 1.0 + 1e-3 * chance.normal(size=(3000, 64))
    assert recall(rows, rows[:20], limit=20) >= 0.98
    assert len(matrix_of(units(rows)).closest(units(rows)[0], count=10**12)) == 3000


def test_many_dimensions() -> None:
    chance = np.random.default_rng(2)
    centres = chance.normal(size=(20, 3072))
    rows = centres[chance.integers(0, 20, 1500)] + 0.7 * chance.normal(size=(1500, 3072))
    assert recall(rows, rows[:10] + 0.1 * chance.normal(size=(10, 3072))) >= 0.98


def rows_of(kind: str, count: int) -> Rows:
    chance = np.random.default_rng(6)
    normal = chance.normal(size=(count, 384))
    falling = 1.0 / np.arange(1, 385)
    match kind:
        case "near ties":
            return chance.normal(size=(200, 384))[chance.integers(0, 200, count)] + 0.02 * normal
        case "a falling spectrum, the largest first, around a mean":
            return (normal + 1.5) * falling
        case "a falling spectrum, the largest last":
            return normal * falling[::-1]
        case "few dimensions":
            return chance.normal(size=(count, 16)) @ normal[:16]
        case _:
            return np.abs(chance.normal(size=(count, 20)) @ normal[:20]) + 0.3 * normal


@pytest.mark.parametrize(
    "kind",
    [
        "near ties",
        "a falling spectrum, the largest first, around a mean",
        "a falling spectrum, the largest last",
        "few dimensions",
        "all positive",
    ],
)
def test_nearly_all_of_the_closest_rows_are_found_whatever_their_kind(kind: str) -> None:
    rows = rows_of(kind, 8_030)
    assert recall(rows[:8_000], rows[8_000:]) >= 0.99
