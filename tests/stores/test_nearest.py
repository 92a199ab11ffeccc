"""The closest rows by cosine, whatever the rows, and only those that may be found."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _trouble import opened
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Restore, Retire
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores._vectors import unit
from lessonbank.stores.sqlite._arrays import row_type, to_blobs
from lessonbank.stores.sqlite._matrices import Matrices, Matrix
from lessonbank.stores.sqlite._rows import PARTS, SpaceRow
from lessonbank.testing.store_samples import MINE, SPACE, added, experience

Rows = np.ndarray


def packed(rows: Rows) -> Rows:
    return np.frombuffer(b"".join(to_blobs(units(rows))), row_type(rows.shape[1]))


def units(rows: Rows) -> Rows:
    """What `unit` makes of each row, of all at once."""
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def loaded(rows: Rows) -> Matrix:
    """The rows, put in all at once."""
    matrix = Matrix(SpaceRow(1, SPACE, 1, rows.shape[1]))
    matrix.put(np.arange(len(rows)) * PARTS, packed(rows))
    return matrix


def grown(rows: Rows) -> Matrix:
    """The same, one by one, in another order."""
    matrix = Matrix(SpaceRow(1, SPACE, 1, rows.shape[1]))
    for number in np.random.default_rng(0).permutation(len(rows)):
        put(matrix, int(number), rows[number])
    return matrix


def put(matrix: Matrix, number: int, row: Rows) -> None:
    matrix.put(np.array([number * PARTS]), packed(np.array([row])))


def found(matrix: Matrix, query: object, limit: int) -> list[tuple[int, float]]:
    """(number, score), equal scores with the largest number first."""
    near = matrix.closest(unit(query, what="q"), count=limit)
    return [(key // PARTS, score) for score, key in sorted(((s, k) for k, s in near.items()), reverse=True)[:limit]]


@pytest.mark.full
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), limit=st.integers(1, 20))
def test_nearest_equals_a_full_sort(seed: int, count: int, limit: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.integers(-2, 3, size=(count, 3)).astype(np.float64) + 0.5
    query = chance.normal(size=3)
    kept = packed(rows)
    exact = ((kept["row"].astype(np.float32) @ unit(query, what="q")) * kept["factor"]).astype(np.float64).round(5)
    wanted = sorted(range(count), key=lambda n: (-exact[n], -n))[:limit]
    for matrix in (loaded(rows), grown(rows)):
        got = found(matrix, query, limit)
        assert [number for number, _ in got] == wanted
        # A sum in another order may be rounded to the neighbour.
        assert [score for _, score in got] == pytest.approx([exact[n] for n in wanted], abs=1.1e-5)


@pytest.mark.full
def test_equal_rows_tie_exactly_wherever_they_lie() -> None:
    row = np.random.default_rng(2).normal(size=384)
    noise = np.random.default_rng(3).normal(size=(997, 384))
    rows = np.concatenate([noise, [row], noise, [row], noise, [row]])
    for matrix in (loaded(rows), grown(rows)):
        assert found(matrix, row, 3) == [(len(rows) - 1, 1.0), (997 * 2 + 1, 1.0), (997, 1.0)]


def test_a_crowd_of_equal_bits_hides_no_row() -> None:
    chance = np.random.default_rng(4)
    rows = np.abs(chance.normal(size=(5000, 64))) + 3.0
    rows[::2] *= -1
    exact = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = np.argsort(exact @ exact[7])[-5:][::-1].tolist()
    assert [number for number, _ in found(loaded(rows), rows[7], 5)] == wanted


def test_rows_of_one_kind_at_every_sampled_place_crash_nothing() -> None:
    rows = np.random.default_rng(8).normal(size=(3200, 64))
    rows[::16] = rows[0]
    assert len(found(loaded(rows), -rows[0], 5)) == 5
    assert [score for _, score in found(loaded(rows), rows[0], 200)] == [1.0] * 200


@pytest.mark.full
@pytest.mark.parametrize("limit", [1, 700, 2000, 2999, 3000, 4000])
def test_as_many_rows_are_found_as_asked_for(limit: int) -> None:
    rows = np.random.default_rng(9).normal(size=(3000, 384))
    numbers = [number for number, _ in found(loaded(rows), rows[4], limit)]
    assert len(set(numbers)) == len(numbers) == min(limit, 3000)
    assert numbers[0] == 4


@pytest.mark.full
def test_a_thousand_equal_rows_tie_also_in_a_large_matrix() -> None:
    rows = np.random.default_rng(10).normal(size=(6000, 384))
    rows[::6] = rows[0]
    near = loaded(rows).closest(unit(rows[0], what="q"), count=3)
    assert sorted(key for key, score in near.items() if score == 1.0) == [n * PARTS for n in range(0, 6000, 6)]


@pytest.mark.full
def test_rows_put_one_by_one_are_found_like_rows_put_at_once() -> None:
    chance = np.random.default_rng(6)
    rows = chance.normal(size=(30, 384))[chance.integers(0, 30, 5020)] + 0.7 * chance.normal(size=(5020, 384))
    one_by_one, whole = loaded(rows[:1500]), loaded(rows[:5000])
    for number in range(1500, 5000):
        put(one_by_one, number, rows[number])
        if number % 500 == 0:
            assert found(one_by_one, rows[number], 1) == [(number, 1.0)]
    for query in rows[5000:]:
        # A sum in another order may be rounded to the neighbour.
        ours, theirs = dict(found(one_by_one, query, 5)), dict(found(whole, query, 5))
        assert ours == pytest.approx(theirs, abs=1.1e-5)


# --- rows hard to tell apart: few dimensions, no clusters, or very large ones -----------------------------------------


def recall(rows: Rows, queries: Rows, *, limit: int = 5) -> float:
    """Which share of the closest `limit` is found; rows as close as the last one count as well as that one."""
    matrix, rows, hits = loaded(rows), units(rows), 0
    for query in units(queries):
        exact = rows @ query
        last = np.partition(exact, -limit)[-limit] - 2e-5
        near = matrix.closest(query, count=limit)
        hits += sum(exact[key // PARTS] >= last for key in sorted(near, key=near.__getitem__)[-limit:])
    return hits / (limit * len(queries))


@pytest.mark.full
@pytest.mark.parametrize("dimensions", [1, 2, 8, 63, 65, 130, 200, 384, 1030])
def test_rows_without_any_order(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    rows = chance.normal(size=(6000, dimensions))
    queries = np.concatenate([chance.normal(size=(15, dimensions)), rows[:15] + 0.3 * chance.normal(size=(15, 1))])
    assert recall(rows, queries) >= 0.98


@pytest.mark.full
@pytest.mark.parametrize("clusters", [1, 10])
@pytest.mark.parametrize("spread", [0.05, 0.7])
def test_rows_of_a_few_large_clusters(clusters: int, spread: float) -> None:
    chance = np.random.default_rng(clusters)
    centres = chance.normal(size=(clusters, 128))

    def drawn(count: int) -> Rows:
        return centres[chance.integers(0, clusters, count)] + spread * chance.normal(size=(count, 128))

    assert recall(drawn(8000), drawn(30)) >= 0.98


@pytest.mark.full
def test_tasks_from_few_templates_in_the_hashing_space() -> None:
    chance = np.random.default_rng(9)
    templates = ("Cancel the pending order #W{} of {}", "Exchange the {1} in order #W{0}", "Refund {1} for order #W{0}")

    def task() -> str:
        template = templates[chance.integers(0, 3)]
        return template.format(chance.integers(10**6, 10**7), ("boots", "lamp", "desk", "phone")[chance.integers(0, 4)])

    embedder = HashingEmbedder(dimensions=256)
    assert recall(embedder.rows([task() for _ in range(5000)]), embedder.rows([task() for _ in range(30)])) >= 0.98


@pytest.mark.full
def test_nearly_equal_rows_and_a_limit_beyond_them_all() -> None:
    chance = np.random.default_rng(3)
    rows = 1.0 + 1e-3 * chance.normal(size=(3000, 64))
    assert recall(rows, rows[:20], limit=20) >= 0.98
    assert len(found(loaded(rows), rows[0], 10**12)) == 3000


@pytest.mark.full
def test_many_dimensions() -> None:
    chance = np.random.default_rng(2)
    centres = chance.normal(size=(20, 3072))
    rows = centres[chance.integers(0, 20, 1500)] + 0.7 * chance.normal(size=(1500, 3072))
    assert recall(rows, rows[:10] + 0.1 * chance.normal(size=(10, 3072))) >= 0.98


@pytest.fixture(scope="module")
def drawn() -> tuple[Rows, dict[str, Any]]:
    """Rows without any order, from which those of every kind are made, and what is drawn next."""
    chance = np.random.default_rng(6)
    return chance.normal(size=(20_030, 384)), chance.bit_generator.state


def rows_of(kind: str, normal: Rows, chance: np.random.Generator) -> Rows:
    count = len(normal)
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


@pytest.mark.full
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
def test_nearly_all_of_the_closest_rows_are_found_whatever_their_kind(
    kind: str, drawn: tuple[Rows, dict[str, Any]]
) -> None:
    chance = np.random.default_rng()
    chance.bit_generator.state = drawn[1]
    rows = rows_of(kind, drawn[0], chance)
    assert recall(rows[:20_000], rows[20_000:]) >= 0.99


# --- a store ---------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.anyio
async def test_only_retired_lessons_are_close_and_none_of_them_takes_the_place_of_another(path: Path) -> None:
    async with opened(path) as store:
        rows = np.random.default_rng(11).normal(size=(1300, 8)).astype(np.float32)
        rows[:1200] = rows[0] + 0.1 * rows[:1200]
        every = [experience(str(n)) for n in range(1300)]
        await added(store, *every, along=list(rows))
        first = every[0].lessons[0].id
        await retire(store, every[:1200])
        exact = units(rows) @ unit(rows[0], what="q")
        wanted = [str(1200 + n) for n in np.argsort(exact[1200:])[::-1][:5]]
        assert await tasks(store, rows[0]) == wanted
        await store.apply([Restore(lesson_ids=(first,), reason="test")], scope=MINE, writer="tests")
        assert await tasks(store, rows[0]) == ["0", *wanted[:4]]


async def retire(store: Store, some: list[Experience]) -> None:
    ids = tuple(e.lessons[0].id for e in some)
    await store.apply([Retire(lesson_ids=ids, reason="test")], scope=MINE, writer="tests")


async def tasks(store: Store, query: Rows) -> list[str]:
    near = await store.nearest(query, scope=MINE, space=SPACE, limit=5)
    return [match.experience.task for match in near.matches]


@pytest.mark.anyio
async def test_searches_at_once_in_several_scopes_find_what_each_finds_alone(path: Path) -> None:
    rng = np.random.default_rng(5)
    scopes = [f"team/{n}" for n in range(4)]
    async with opened(path) as store:
        for scope in scopes:
            known = [experience(f"Task {n}", minute=n, scope=scope) for n in range(40)]
            await added(store, *known, along=list(rng.standard_normal((40, 6))), scope=scope)
        asked = [(scope, rng.standard_normal(6)) for scope in scopes for _ in range(8)]

        async def found_by(scope: str, query: Rows) -> list[str]:
            nearest = await store.nearest(query, scope=scope, space=SPACE, limit=5)
            return [match.experience.id for match in nearest.matches]

        alone = [await found_by(*each) for each in asked]
        assert await asyncio.gather(*[found_by(*each) for each in asked]) == alone


def test_the_matrices_used_longest_ago_go_when_all_weigh_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.stores.sqlite._matrices._BUDGET", 60_000)
    matrices, connection = Matrices(), sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE vectors (number INTEGER PRIMARY KEY, space, key, vector)")
    blobs = to_blobs(units(np.eye(100)))
    for number in range(5):
        rows = [(number, key, blob) for key, blob in enumerate(blobs)]
        connection.executemany("INSERT INTO vectors (space, key, vector) VALUES (?, ?, ?)", rows)
        assert matrices.current(connection, SpaceRow(1, str(number), number, 100)).size == 100
    connection.close()
    assert [space for _, space in matrices.held] == ["2", "3", "4"]
