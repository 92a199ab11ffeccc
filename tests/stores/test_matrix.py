"""The closest rows by cosine, whatever the rows, and snapshots that later changes do not reach."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonbank.stores._matrix import PARTS, Matrix, ranked
from lessonbank.stores._vectors import packed_rows, unit

pytestmark = pytest.mark.full


def packed(row: object) -> tuple[np.ndarray, np.ndarray]:
    return packed_rows([unit(row, what="a row")])


def matrix_of(rows: np.ndarray) -> Matrix:
    matrix = Matrix(rows.shape[1])
    for number, row in enumerate(rows):
        matrix.put(number * PARTS, packed(row))
    return matrix


def loaded(rows: np.ndarray) -> Matrix:
    """The same rows, given all at once."""
    return Matrix.of(np.arange(len(rows)) * PARTS, *packed_rows([unit(row, what="a row") for row in rows]))


def found(matrix: Matrix, query: object, limit: int, exclude: tuple[int, ...] = ()) -> list[tuple[int, float]]:
    """(number, score), equal scores with the largest number first."""
    near = matrix.snapshot().nearest(unit(query, what="q"), limit=limit, exclude=exclude)
    best = ranked(near, limit=limit, age=lambda numbers: dict.fromkeys(numbers, 0))
    return [(key // PARTS, score) for key, score in best]


@pytest.mark.full
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), limit=st.integers(0, 20))
def test_nearest_equals_a_full_sort(seed: int, count: int, limit: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.integers(-2, 3, size=(count, 3)).astype(np.float64) + 0.5
    query = chance.normal(size=3)
    excluded = tuple(int(number) for number in chance.integers(0, count, size=3))
    shorts, factors = packed_rows([unit(row, what="r") for row in rows])
    exact = ((shorts.astype(np.float32) @ unit(query, what="q")) * factors).astype(np.float64).round(5)
    wanted = sorted(set(range(count)) - set(excluded), key=lambda n: (-exact[n], -n))[:limit]
    for matrix in (matrix_of(rows), loaded(rows)):
        got = found(matrix, query, limit, excluded)
        assert [number for number, _ in got] == wanted
        # A sum in another order may be rounded to the neighbour.
        assert [score for _, score in got] == pytest.approx([exact[n] for n in wanted], abs=1.1e-5)


def test_equal_rows_tie_exactly_wherever_they_lie() -> None:
    row = np.random.default_rng(2).normal(size=384)
    noise = np.random.default_rng(3).normal(size=(997, 384))
    rows = np.concatenate([noise, [row], noise, [row], noise, [row]])
    for matrix in (matrix_of(rows), loaded(rows)):
        assert found(matrix, row, 3) == [(len(rows) - 1, 1.0), (997 * 2 + 1, 1.0), (997, 1.0)]


@pytest.mark.full
@settings(max_examples=settings().max_examples // 8, deadline=None)
@given(seed=st.integers(0, 2**32), shift=st.sampled_from([0.0, 3.0]))
def test_signs_choose_nearly_all_of_the_closest_rows_even_far_from_the_origin(seed: int, shift: float) -> None:
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(40, 128)) + shift
    rows = centres[chance.integers(0, 40, 6000)] + 0.7 * chance.normal(size=(6000, 128))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    matrix, hits = loaded(rows), 0
    for row in centres[:20]:
        wanted = set(np.argsort(units @ (row / np.linalg.norm(row)))[-5:].tolist())
        hits += len(wanted & {number for number, _ in found(matrix, row, 5)})
    assert hits >= 97


def test_a_crowd_of_equal_signs_hides_no_row() -> None:
    chance = np.random.default_rng(4)
    rows = np.abs(chance.normal(size=(5000, 64))) + 3.0
    rows[::2] *= -1
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = np.argsort(units @ units[7])[-5:][::-1].tolist()
    assert [number for number, _ in found(loaded(rows), rows[7], 5)] == wanted


def test_rows_left_out_or_inactive_take_no_place_of_others() -> None:
    rows = np.random.default_rng(5).normal(size=(3000, 64))
    matrix = loaded(rows)
    for number in range(0, 3000, 2):
        matrix.activate(number * PARTS, active=False)
    exclude = tuple(range(1, 2990, 2))
    assert {number for number, _ in found(matrix, rows[0], 9, exclude)} == {2991, 2993, 2995, 2997, 2999}


def clustered(count: int) -> np.ndarray:
    chance = np.random.default_rng(6)
    return chance.normal(size=(30, 384))[chance.integers(0, 30, count)] + 0.7 * chance.normal(size=(count, 384))


@pytest.mark.full
def test_a_large_matrix_chooses_by_a_third_of_the_signs_first() -> None:
    rows = clustered(20_000)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    matrix, hits = loaded(rows), 0
    for row in rows[:40]:
        wanted = set(np.argsort(units @ (row / np.linalg.norm(row)))[-5:].tolist())
        hits += len(wanted & {number for number, _ in found(matrix, row, 5)})
    assert hits >= 196


@pytest.mark.full
@pytest.mark.parametrize("limit", [1, 700, 2000, 2999, 3000, 4000])
def test_as_many_rows_are_found_as_asked_for(limit: int) -> None:
    rows = np.random.default_rng(9).normal(size=(3000, 384))
    numbers = [number for number, _ in found(loaded(rows), rows[4], limit)]
    assert len(set(numbers)) == len(numbers) == min(limit, 3000)
    assert numbers[0] == 4


def test_a_thousand_equal_rows_tie_also_in_a_large_matrix() -> None:
    rows = np.random.default_rng(10).normal(size=(6000, 384))
    rows[::6] = rows[0]
    near = loaded(rows).snapshot().nearest(unit(rows[0], what="q"), limit=3)
    assert sorted(near) == [(number * PARTS, 1.0) for number in range(0, 6000, 6)]


def test_only_inactive_rows_are_close_and_none_of_them_is_found() -> None:
    chance = np.random.default_rng(11)
    rows = chance.normal(size=(5000, 384))
    rows[:4000] = rows[0] + 0.1 * rows[:4000]
    matrix = loaded(rows)
    for number in range(4000):
        matrix.activate(number * PARTS, active=False)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = 4000 + np.argsort(units[4000:] @ units[0])[::-1][:5]
    assert [number for number, _ in found(matrix, rows[0], 5)] == wanted.tolist()
    assert found(matrix, rows[0], 5, exclude=tuple(range(4000, 5000))) == []
    matrix.activate(7 * PARTS, active=True)
    assert found(matrix, rows[7], 1) == [(7, 1.0)]


@pytest.mark.full
def test_rows_put_one_by_one_are_found_like_rows_loaded_at_once() -> None:
    rows = clustered(5020)
    grown, whole = loaded(rows[:1500]), loaded(rows[:5000])
    for number in range(1500, 5000):
        grown.put(number * PARTS, packed(rows[number]))
        if number % 500 == 0:
            assert found(grown, rows[number], 1) == [(number, 1.0)]
    for query in rows[5000:]:
        # A sum in another order may be rounded to the neighbour.
        ours, theirs = dict(found(grown, query, 5)), dict(found(whole, query, 5))
        assert ours == pytest.approx(theirs, abs=1.1e-5)


@pytest.mark.full
def test_threads_that_ask_at_once_get_what_each_would_alone() -> None:
    rows = clustered(20_040)
    matrix = loaded(rows[:20_000])
    alone = [found(matrix, query, 5) for query in rows[20_000:]]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: found(matrix, query, 5), np.tile(rows[20_000:], (5, 1)))) == 5 * alone


def test_a_sight_keeps_what_it_saw() -> None:
    matrix = matrix_of(np.eye(4))
    query = unit([1, 0.1, 0, 0], what="q")
    before = matrix.snapshot()
    wanted = before.nearest(query, limit=4)
    matrix.put(0, packed([0, 0, 0, 1]))
    matrix.put(1 * PARTS, packed([0, 1, 0, 0]), active=False)
    matrix.drop(2 * PARTS)
    for number in range(10, 60):
        matrix.put(number * PARTS, packed(query))
    assert before.nearest(query, limit=4) == wanted
    assert {key // PARTS for key, _ in matrix.snapshot().nearest(query, limit=99)} == {0, 3, *range(10, 60)}


def test_a_row_set_again_replaces_the_first() -> None:
    matrix = loaded(np.eye(2))
    matrix.put(0, packed([0, 1]))
    assert found(matrix, [0, 1], 9) == [(1, 1.0), (0, 1.0)]
    assert len(matrix) == 2
    for turn in range(3000):
        matrix.put(0, packed([1, turn % 2]))
    assert matrix.wasted
    assert len(matrix) == 2


def test_of_several_rows_with_one_key_the_last_counts() -> None:
    rows = packed_rows([unit(row, what="r") for row in np.eye(3)])
    matrix = Matrix.of(np.array([5 * PARTS, 2 * PARTS, 5 * PARTS]), *rows)
    assert len(matrix) == 2
    assert found(matrix, [0, 0, 1], 1) == [(5, 1.0)]


def test_missing_names_what_has_no_row_or_lost_it() -> None:
    matrix = loaded(np.eye(3))
    matrix.put(7 * PARTS, packed([1, 1, 1]))
    matrix.drop(1 * PARTS)
    assert matrix.missing([0, 1 * PARTS, 7 * PARTS, 8 * PARTS]).tolist() == [1, 3]
    matrix.put(1 * PARTS, packed([1, 0, 0]))
    assert matrix.missing([0, 1 * PARTS, 7 * PARTS, 8 * PARTS]).tolist() == [3]
