"""Exact cosine, whatever the rows, and sights that later changes do not reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import SpaceMismatch, UsageError
from lessonbank.stores._vectors import Matrix, check_dimensions, from_blob, to_blob, unit


def matrix_of(rows: np.ndarray) -> Matrix:
    matrix = Matrix(rows.shape[1])
    for key, row in enumerate(rows):
        matrix.put(key, unit(row, what="a row"), created=0, active=True)
    return matrix


def test_a_vector_is_made_a_unit_row_whatever_its_length() -> None:
    for scale in (1e-300, 1.0, 1e300):
        assert np.linalg.norm(unit(np.array([3.0, 4.0]) * scale, what="x")) == pytest.approx(1.0)
    assert unit([1, 0], what="a list").dtype == np.float32


@pytest.mark.parametrize("bad", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [], [[1.0]], "text", None, 1.0])
def test_what_is_no_direction_is_refused(bad: object) -> None:
    with pytest.raises(UsageError, match="the vector of my query"):
        unit(bad, what="my query")


def test_dimensions_must_agree() -> None:
    assert check_dimensions(unit([1, 1], what="x"), space="s", dimensions=None) == 2
    with pytest.raises(SpaceMismatch, match="2 dimensions does not fit the space 's' of 3"):
        check_dimensions(unit([1, 1], what="x"), space="s", dimensions=3)


def test_a_blob_is_four_bytes_a_number_and_comes_back_exactly() -> None:
    row = unit(np.random.default_rng(1).normal(size=384), what="x")
    assert len(to_blob(row)) == 4 * 384
    assert np.array_equal(from_blob(to_blob(row)), row)


@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), limit=st.integers(0, 20))
def test_nearest_equals_a_full_sort(seed: int, count: int, limit: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.integers(-2, 3, size=(count, 3)).astype(np.float64) + 0.5
    query = unit(chance.normal(size=3), what="q")
    excluded = {int(key) for key in chance.integers(0, count, size=3)}
    exact = [round(float(unit(row, what="r").astype(np.float64) @ query), 6) for row in rows]
    usable = [key for key in range(count) if key not in excluded]
    wanted = sorted(usable, key=lambda key: (-exact[key], -key))[:limit]
    found = matrix_of(rows).sight().nearest(query, limit=limit, exclude=excluded)
    assert [key for key, _ in found] == wanted
    assert [score for _, score in found] == pytest.approx([exact[key] for key in wanted], abs=2e-6)


def test_equal_rows_tie_exactly_wherever_they_lie() -> None:
    row = np.random.default_rng(2).normal(size=384)
    noise = np.random.default_rng(3).normal(size=(997, 384))
    rows = np.concatenate([noise, [row], noise, [row], noise, [row]])
    found = matrix_of(rows).sight().nearest(unit(row, what="q"), limit=3)
    assert found == [(len(rows) - 1, 1.0), (997 * 2 + 1, 1.0), (997, 1.0)]


def test_a_sight_keeps_what_it_saw() -> None:
    matrix = matrix_of(np.eye(4))
    query = unit([1, 0.1, 0, 0], what="q")
    before = matrix.sight()
    wanted = before.nearest(query, limit=4)
    matrix.put(0, unit([0, 0, 0, 1], what="x"), created=0, active=True)
    matrix.put(1, unit([0, 1, 0, 0], what="x"), created=0, active=False)
    matrix.drop(2)
    for key in range(10, 60):
        matrix.put(key, query, created=0, active=True)
    assert before.nearest(query, limit=4) == wanted
    assert {key for key, _ in matrix.sight().nearest(query, limit=99)} == {0, 3, *range(10, 60)}


def test_a_row_set_again_replaces_the_first() -> None:
    matrix = matrix_of(np.eye(2))
    matrix.put(0, unit([0, 1], what="x"), created=5, active=True)
    assert matrix.sight().nearest(unit([0, 1], what="q"), limit=9) == [(0, 1.0), (1, 1.0)]
    for turn in range(3000):
        matrix.put(0, unit([1, turn], what="x"), created=5, active=True)
    assert matrix.wasted
