"""What a vector must be to be kept, and how little of it is lost by packing it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import SpaceMismatch, UsageError
from lessonbank.stores._vectors import unit
from lessonbank.stores.sqlite._arrays import row_type, to_blobs


def test_a_vector_is_made_a_unit_row_whatever_its_length() -> None:
    for scale in (1e-300, 1.0, 1e300):
        assert np.linalg.norm(unit(np.array([3.0, 4.0]) * scale, what="x")) == pytest.approx(1.0)
    assert unit([1, 0], what="a list").dtype == np.float32


@pytest.mark.parametrize("bad", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [], [[1.0]], "text", None, 1.0])
def test_what_is_no_direction_is_refused(bad: object) -> None:
    with pytest.raises(UsageError, match="the vector of my query"):
        unit(bad, what="my query")


def test_dimensions_must_agree() -> None:
    assert unit([1, 1], what="x", space="s", dimensions=2).size == 2
    with pytest.raises(SpaceMismatch, match="2 dimensions does not fit the space 's' of 3"):
        unit([1, 1], what="x", space="s", dimensions=3)


def test_a_packed_row_is_two_bytes_a_number_and_four_more() -> None:
    rows = [unit(np.random.default_rng(n).normal(size=384), what="x") for n in range(3)]
    together = to_blobs(rows)
    assert [len(blob) for blob in together] == [2 * 384 + 4] * 3 == [row_type(384).itemsize] * 3
    assert together == [blob for row in rows for blob in to_blobs([row])]


@given(seed=st.integers(0, 2**32), dimensions=st.sampled_from([2, 8, 384]))
def test_packing_moves_a_cosine_by_less_than_a_score_can_show(seed: int, dimensions: int) -> None:
    chance = np.random.default_rng(seed)
    row, query = (unit(chance.normal(size=dimensions), what="x") for _ in range(2))
    kept = np.frombuffer(to_blobs([row])[0], row_type(dimensions))[0]
    again = kept["row"].astype(np.float64) * kept["factor"]
    assert again @ again == pytest.approx(1.0, abs=1e-6)
    assert again @ query == pytest.approx(row.astype(np.float64) @ query, abs=2.5e-5)
    assert again @ row == pytest.approx(1.0, abs=1e-6)
