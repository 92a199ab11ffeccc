"""No embedder hands on a vector that would poison a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lessonbank.errors import ModelError
from lessonbank.providers.embedders.wrappers import Checked

pytestmark = pytest.mark.anyio


class Answering:
    """An embedder that answers with what it was given."""

    space = "the model"

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    async def embed(self, texts: object, /, *, role: str) -> Any:
        return self._rows


async def test_rows_of_any_numbers_become_float32_unit_rows() -> None:
    rows = await Checked(Answering([[3, 4], (0.0, -2.0)])).embed(["a", "b"], role="query")
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
async def test_anything_else_is_one_clear_error(raw: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        await Checked(Answering(raw)).embed(["a", "b"], role="query")
