"""Embed what has no vector yet, and search once everything has one: what those that search by vectors share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol, cast, runtime_checkable

from lessonbank.errors import NotFound
from lessonbank.protocols import Embedder, Store, Vectors
from lessonbank.types import Match

CATCH_UP: Final = 256
"""How many experiences, or lessons, without a vector one retrieval embeds before it answers."""


@runtime_checkable
class OneLook(Protocol):
    """A store that tells with one look at its file what is nearest, or that something has no vector yet."""

    async def nearest_unless_missing(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[Match] | None:
        """As `Store.nearest`; `None` where `Store.unindexed` would name something."""
        ...


async def nearest(
    store: Store,
    embedder: Embedder,
    vector: Vectors,
    /,
    *,
    space: str,
    scope: str,
    limit: int,
    lessons: bool = False,
) -> tuple[Sequence[Match], bool]:
    """The nearest, once up to 256 that had no vector have one; and whether there may be more without."""
    if one_look := _one_look(store):
        found = await one_look.nearest_unless_missing(vector, scope=scope, space=space, limit=limit, lessons=lessons)
        if found is not None:
            return found, False
    behind = await embed_missing(store, embedder, space=space, scope=scope, most=CATCH_UP, lessons=lessons) == CATCH_UP
    return await store.nearest(vector, scope=scope, space=space, limit=limit), behind


def _one_look(store: Store) -> OneLook | None:
    # As `isinstance` says it, which takes ten times as long, and is asked with every retrieval.
    return cast("OneLook", store) if hasattr(store, "nearest_unless_missing") else None


async def embed_missing(
    store: Store, embedder: Embedder, /, *, space: str, scope: str, most: int, lessons: bool = False
) -> int:
    """Embed up to `most` tasks (or texts of lessons) that have no vector in `space`; how many were taken up."""
    missing = await store.unindexed(scope=scope, space=space, limit=most, lessons=lessons)
    if missing:
        rows = await embedder.embed([text for _, text in missing], role="document")
        vectors = {id: rows[i] for i, (id, _) in enumerate(missing)}
        with suppress(NotFound):  # one was taken out while it was embedded: the others have their turn the next time
            await store.index(vectors, scope=scope, space=space)
    return len(missing)
