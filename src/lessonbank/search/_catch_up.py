"""Embed what has no vector yet, and search the rest meanwhile: what those that search by vectors share."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import ClassVar, Final

import anyio

from lessonbank._base.aio import seconds_left, try_write
from lessonbank.contracts.ports import Embedder, Store, Vectors
from lessonbank.contracts.records import Match
from lessonbank.contracts.records.ids import digest, new_id
from lessonbank.contracts.records.settings import REFUSED
from lessonbank.contracts.store_calls import count_records, drop_index, get_setting
from lessonbank.errors import ModelError, ModelTimeout, ModelUnavailable, NotFound, SpaceMismatch
from lessonbank.guard.quote import quoted

from ._refusals import Outages, Refusals

CATCH_UP: Final = 256
"""How many experiences, or lessons, without a vector one retrieval embeds before it answers."""
_REQUESTS: Final = 64
"""Requests that one retrieval makes at most to find the texts that an embedder fails at."""
_TOGETHER: Final = 32
"""Texts in one of these requests: what was answered counts when the time of a recall is over."""
_SHARE: Final = 0.75
"""Of the time that a recall has left, so much is for the embedder at most: then words have to stand in."""

Texts = Sequence[tuple[str, str]]
"""Id and text of each."""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """A search in one space of vectors, which embeds what lacks a vector.

    A text that the embedder fails at while it answers others is left alone for a growing time, and the rest is found.
    """

    store: Store
    embedder: Embedder
    _queries: Outages = field(default_factory=Outages, init=False, repr=False, compare=False)
    _documents: Outages = field(default_factory=Outages, init=False, repr=False, compare=False)
    of_lessons: ClassVar[bool] = False
    """Whether lessons are searched, and not experiences."""

    @property
    def space(self) -> str:
        """The embedder's space."""
        return self.embedder.space

    async def nearest(self, task: str, /, *, scope: str, limit: int) -> tuple[Sequence[Match], tuple[str, ...]]:
        """The nearest, once up to 256 that had no vector have one; and what a reader should know.

        Raises:
            ModelError: the embedder failed at the task, or is left alone after it failed.
            SpaceMismatch: the space holds vectors of another dimension.
        """
        vector = await self._embed_query(task, scope)
        search = partial(
            self.store.nearest, vector, scope=scope, space=self.space, limit=limit, lessons=self.of_lessons
        )
        nearest = await search()
        if nearest.is_complete:
            return nearest.matches, ()
        has_placed, notes = await self._embed_missing(scope)
        return (await search() if has_placed else nearest).matches, notes

    async def _embed_query(self, task: str, scope: str) -> Vectors:
        self._queries.check(scope)
        try:
            with _in_time():
                vector = (await self.embedder.embed([task], role="query"))[0]
        except ModelError as error:
            self._queries.failed(scope, digest(task), error)
            raise
        self._queries.over(scope)
        return vector

    async def _embed_missing(self, scope: str) -> tuple[bool, tuple[str, ...]]:
        """Embed some of what has no vector; whether any has one now, and why there is more without."""
        try:
            self._documents.check(scope)
            return await self._embed_due(scope)
        except ModelError as error:
            return False, (f"{self._some} a vector yet, because the embedder failed: {quoted(error)}",)

    async def _embed_due(self, scope: str) -> tuple[bool, tuple[str, ...]]:
        setting = await get_setting(self.store, REFUSED.of(scope))
        refusals = Refusals.read(setting, self.space)
        due, waiting = await self._due(scope, refusals, most=CATCH_UP)
        if not due:
            return False, self._count_refused(waiting)
        # Where nothing can be written, the embedder would be asked for the same with every retrieval.
        if problem := await try_write(self.store.put_setting(REFUSED.of(scope), refusals.written(setting, self.space))):
            return False, (f"{self._some} a vector yet, and none can be written: {quoted(problem)}",)
        progress = Embedded()
        try:
            with _in_time(so_far=progress):
                await embed_each(self.embedder, due, progress, most=_REQUESTS, together=_TOGETHER)
        except ModelError as error:
            self._documents.failed(scope, new_id(), error)
            raise
        self._documents.over(scope)
        if progress.vectors:
            await try_write(self.store.index(progress.vectors, scope=scope, space=self.space))
        if progress.refused or refusals.by_id:
            refusals = refusals.after(progress.refused, tried=[id for id, _ in due], now=time())
            await try_write(self.store.put_setting(REFUSED.of(scope), refusals.written(setting, self.space)))
        behind = (f"{self._some} a vector in {self.space!r} yet: call `reindex`",)
        made, refused = len(progress.vectors), len(progress.refused)
        left = len(due) == CATCH_UP or made + refused < len(due)
        return bool(made), (*(behind if left else ()), *self._count_refused(waiting + refused))

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Embed up to `most` without a vector that the embedder does not refuse; how many were done.

        What lies in the space with another dimension is dropped, to be embedded with the rest.

        Raises:
            ModelError: the embedder answers nothing.
        """
        while True:
            setting = await get_setting(self.store, REFUSED.of(scope))
            refusals = Refusals.read(setting, self.space)
            due, _ = await self._due(scope, refusals, most=most)
            if not due:
                if not await self._drop_if_changed(scope):
                    return 0
                continue
            await embed_each(self.embedder, due, progress := Embedded())
            await self._place(progress.vectors, scope)
            if progress.refused:
                refusals = refusals.after(progress.refused, tried=[id for id, _ in due], now=time())
                await self.store.put_setting(REFUSED.of(scope), refusals.written(setting, self.space))
            if progress.vectors:
                return len(progress.vectors)

    async def _place(self, vectors: Mapping[str, Vectors], scope: str) -> None:
        if not vectors:
            return
        try:
            await self.store.index(vectors, scope=scope, space=self.space)
        except NotFound:  # one was taken out while it was embedded: the others have their turn the next time
            return
        except SpaceMismatch:
            await drop_index(self.store, scope=scope, space=self.space)
            await self.store.index(vectors, scope=scope, space=self.space)

    async def _drop_if_changed(self, scope: str) -> bool:
        """Whether the vectors of the space were of another dimension than the embedder's, and are dropped now."""
        if not (await count_records(self.store, scope=scope)).experiences:
            return False
        (vector,) = await self.embedder.embed([_probe()], role="document")
        try:
            await self.store.nearest(vector, scope=scope, space=self.space, limit=1)
        except SpaceMismatch:
            await drop_index(self.store, scope=scope, space=self.space)
            return True
        return False

    async def _due(self, scope: str, refusals: Refusals, *, most: int) -> tuple[Texts, int]:
        """Up to `most` texts to be embedded now, and how many wait."""
        limit, now = most + len(refusals.by_id), time()
        missing = await self.store.unindexed(scope=scope, space=self.space, limit=limit, lessons=self.of_lessons)
        due = [(id, text) for id, text in missing if not refusals.waits(id, text, now=now)]
        return due[:most], len(missing) - len(due)

    @property
    def _some(self) -> str:
        return "not every lesson has" if self.of_lessons else "not every experience has"

    def _count_refused(self, count: int) -> tuple[str, ...]:
        if not count:
            return ()
        what = "lessons" if self.of_lessons else "experiences"
        return (
            f"{count} {what} cannot be found, because the embedder refuses their text: `lessonbank doctor` names them",
        )


@dataclass(frozen=True, slots=True)
class Embedded:
    """What an embedder made of some texts."""

    vectors: dict[str, Vectors] = field(default_factory=dict[str, Vectors])
    refused: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By id: a text that it failed at while it answered others, and why."""


@contextmanager
def _in_time(so_far: Embedded | None = None) -> Generator[None]:
    """Inside, an embedder has its share of the time that a recall has left.

    Raises:
        ModelTimeout: it gave nothing `so_far`.
    """
    seconds = _SHARE * seconds_left()
    with anyio.move_on_after(seconds) as limit:
        yield
    if limit.cancelled_caught and not (so_far and so_far.vectors):
        raise ModelTimeout(f"it gave no vectors within {seconds:.2g} seconds")


async def embed_each(
    embedder: Embedder, texts: Texts, progress: Embedded, /, *, most: int | None = None, together: int | None = None
) -> None:
    """Take the vectors of texts in, by id; which ones the embedder fails at is found by halving, with `most` requests.

    Raises:
        ModelError: it does not answer at all.
    """
    size = together or max(len(texts), 1)
    todo, requests, answers = [texts[at : at + size] for at in range(0, len(texts), size)][::-1], 0, False
    while todo and (most is None or requests < most):
        part = todo.pop()
        requests += 1
        try:
            rows = await embedder.embed([text for _, text in part], role="document")
        except ModelError as error:
            if not answers:
                await _check_answers(embedder, error)
                answers = True
            if len(part) == 1:
                progress.refused[part[0][0]] = (part[0][1], quoted(error))
            else:
                todo += [part[len(part) // 2 :], part[: len(part) // 2]]
            continue
        progress.vectors.update((id, rows[at]) for at, (id, _) in enumerate(part))


async def _check_answers(embedder: Embedder, error: ModelError) -> None:
    """Raise the error unless the embedder answers something else."""
    if isinstance(error, ModelTimeout | ModelUnavailable):
        raise error
    try:
        await embedder.embed([_probe()], role="document")
    except ModelError:
        raise error from None


def _probe() -> str:
    """A harmless text that nobody remembers the vector of."""
    return f"Is anybody there? {new_id()}"
