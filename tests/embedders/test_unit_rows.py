"""No embedder hands on a vector that would poison a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lessonbank.embedders._rows import unit_rows
from lessonbank.errors import ModelError


def test_rows_of_any_numbers_become_float32_unit_rows() -> None:
    rows = unit_rows([[3, 4], (0.0, -2.0)], count=2, name="x")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, -1.0]])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([[1.0]], "for 2 texts"),
        ([[1.0, 2.0], [1.0]], "something else than rows"),
        ([1.0, 2.0], "for 2 texts"),
        ([[], []], "for 2 texts"),
        ([[1.0, float("nan")], [1.0, 0.0]], "not a finite number"),
        ([[1.0, float("inf")], [1.0, 0.0]], "not a finite number"),
        ([[0.0, 0.0], [1.0, 0.0]], "zero vector"),
        ([["a", "b"], ["c", "d"]], "something else than rows"),
        ([None, None], "for 2 texts"),
    ],
)
def test_anything_else_is_one_clear_error(raw: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        unit_rows(raw, count=2, name="the model")
