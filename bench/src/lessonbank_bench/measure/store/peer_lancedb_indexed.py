"""LanceDB again, with an approximate index over the vectors."""

from __future__ import annotations

import lancedb
import numpy as np

from .peer_lancedb import Lance
from .peer_run import run


class Indexed(Lance):
    """With 20 lists searched, 100 candidates, and four times as many rescored as wanted."""

    note = "cosine, IVF_HNSW_SQ, where scope before the search, with all columns; all cores; it keeps no receipt"
    fill_note = "in batches of 1,000, then the index; not synced to disk"

    def ready(self) -> None:
        """Index scope and vectors."""
        super().ready()
        self._table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")

    def _search(self, query: np.ndarray) -> lancedb.query.LanceVectorQueryBuilder:
        return super()._search(query).nprobes(20).ef(100).refine_factor(4)


if __name__ == "__main__":
    run(Indexed)
