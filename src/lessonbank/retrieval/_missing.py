"""Embed what has no vector yet: the part of catching up that searches by vectors share."""

from __future__ import annotations

from contextlib import suppress

from lessonbank.errors import NotFound
from lessonbank.protocols import Embedder, Store


async def embed_missing(
    store: Store, embedder: Embedder, /, *, space: str, scope: str, most: int, items: bool = False
) -> int:
    """Embed up to `most` tasks (or texts of items) that have no vector in `space`; how many were taken up."""
    missing = await store.unindexed(scope=scope, space=space, limit=most, items=items)
    if missing:
        rows = await embedder.embed([text for _, text in missing], role="document")
        vectors = {id: rows[i] for i, (id, _) in enumerate(missing)}
        with suppress(NotFound):  # one was taken out while it was embedded: the others have their turn the next time
            await store.index(vectors, scope=scope, space=space)
    return len(missing)
