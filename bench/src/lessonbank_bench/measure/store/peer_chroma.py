"""Chroma, embedded and on disk: filtered by the scope in its metadata, with the payload fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import chromadb
import numpy as np
from chromadb.config import Settings

from .peer_run import run
from .workload import SCOPE, TOP, Text


class Chroma:
    """One document a lesson; everything else is metadata."""

    note = "cosine, where scope, with documents and metadata; it keeps no receipt"
    fill_note = "in batches of 1,000"

    def __init__(self, folder: Path) -> None:
        client = chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))
        self._rows = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)

    def add(self, start: int, said: Sequence[Text], vectors: np.ndarray) -> None:
        """One call."""
        self._rows.add(
            ids=[str(start + i) for i in range(len(said))],
            embeddings=vectors,
            documents=[text.content for text in said],
            metadatas=[
                {"scope": SCOPE, "task": text.task, "title": text.title, "description": text.description}
                for text in said
            ],
        )

    def ready(self) -> None:
        """Nothing is left to do."""

    async def ask(self, query: np.ndarray) -> list[int]:
        """Its query."""
        found = self._rows.query(
            query_embeddings=[query],
            n_results=TOP,
            where={"scope": SCOPE},
            include=["documents", "metadatas", "distances"],
        )
        return [int(id) for id in found["ids"][0]]

    def close(self) -> None:
        """It has no close."""


if __name__ == "__main__":
    run(Chroma)
