"""LanceDB, embedded: filtered by scope before the search, with the payload fetched; exact, without an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa

from .peer_run import run
from .workload import DIMENSIONS, SCOPE, TOP, Text

_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("scope", pa.string()),
        ("vector", pa.list_(pa.float32(), DIMENSIONS)),
        *((name, pa.string()) for name in Text._fields),
    ]
)


class Lance:
    """One row a lesson."""

    note = "cosine, exact, where scope before the search, with all columns; all cores; it keeps no receipt"
    fill_note = "in batches of 1,000; not synced to disk"

    def __init__(self, folder: Path) -> None:
        self._table = lancedb.connect(folder).create_table("bench", schema=_SCHEMA)

    def add(self, start: int, said: Sequence[Text], vectors: np.ndarray) -> None:
        """One call."""
        columns = {name: [getattr(text, name) for text in said] for name in Text._fields}
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
        numbers = list(range(start, start + len(said)))
        made = {"row": numbers, "scope": [SCOPE] * len(said), "vector": flat, **columns}
        self._table.add(pa.table(made, schema=_SCHEMA))

    def ready(self) -> None:
        """Join the fragments, and index the scope, as its guide says."""
        self._table.optimize()
        self._table.create_scalar_index("scope", index_type="BITMAP")

    async def ask(self, query: np.ndarray) -> list[int]:
        """Its search."""
        return [each["row"] for each in self._search(query).to_list()]

    def _search(self, query: np.ndarray) -> lancedb.query.LanceVectorQueryBuilder:
        search = self._table.search(query, vector_column_name="vector").distance_type("cosine")
        return search.where(f"scope = '{SCOPE}'", prefilter=True).limit(TOP)

    def close(self) -> None:
        """It has no close."""


if __name__ == "__main__":
    run(Lance)
