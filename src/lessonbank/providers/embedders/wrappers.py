"""What an embedder needs around it: long texts pooled, requests of a bearable size, and answers remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from lessonbank.contracts.ports import BlockingEmbedder, Embedder, Vectors
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import LessonbankError, ModelError, UsageError
from lessonbank.guard.quote import quoted, words_of

from ._rows import off_loop, unit_rows

Role = Literal["query", "document"]


@runtime_checkable
class Windowed(Protocol):
    """An embedder that reads at most `window` units of a text and can count them."""

    @property
    def window(self) -> int | None:
        """The most it reads; `None` when there is no limit."""
        ...

    def count(self, text: str, /) -> int:
        """How many units `text` has, or more."""
        ...


def standard(embedder: Embedder, /, *, size: int = 1024) -> Embedder:
    """`embedder` as the bank uses it: long texts pooled where it has a window, bounded requests, a cache."""
    whole: Embedder = Batched(embedder)
    if isinstance(embedder, Windowed) and embedder.window is not None:
        whole = Chunked(whole, window=embedder.window, count=embedder.count)
    return Cached(whole, size=size)


class Checked:
    """An embedder of somebody's own, whose answers and failures are those that the port promises.

    A plain `embed`, which blocks, runs in a thread.
    """

    def __init__(self, embedder: Embedder | BlockingEmbedder, /) -> None:
        self._embedder = embedder

    @property
    def space(self) -> str:
        """The wrapped embedder's space."""
        return self._embedder.space

    async def embed(self, texts: Sequence[str], /, *, role: Role) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions).

        Raises:
            ModelError: it raised, or gave something else than one finite row that is not zero for each text.
        """
        try:
            return unit_rows(await self._embed_raw(texts, role), count=len(texts), name=self.space)
        except LessonbankError:
            raise
        except Exception as error:  # somebody else's embedder may raise anything
            reason = quoted(f"{type(error).__name__}: {words_of(error)}")
            raise ModelError(f"the embedder {self.space} raised {reason}") from error

    async def _embed_raw(self, texts: Sequence[str], role: Role) -> Any:
        embed: Callable[..., Any] = self._embedder.embed
        if iscoroutinefunction(embed):
            return await embed(texts, role=role)
        answer = await off_loop(lambda: embed(texts, role=role))
        return await answer if isawaitable(answer) else answer


class Chunked:
    """An embedder for texts of any length: what its window cannot hold is split, embedded in parts and averaged.

    The mean is weighted by length and made a unit vector again. A text that fits keeps the vector it had.

    Args:
        embedder: what embeds the parts.
        window: the most a part may count.
        count: how a text is counted; characters by default.
    """

    def __init__(self, embedder: Embedder, /, *, window: int, count: Callable[[str], int] = len) -> None:
        if window < 8:
            raise UsageError(f"a window of {window} tokens is too small: use at least 8")
        self._embedder = embedder
        self._window = window
        self._count = count

    @property
    def space(self) -> str:
        """The wrapped embedder's space and how long texts are pooled."""
        return f"{self._embedder.space}+mean{self._window}"

    async def embed(self, texts: Sequence[str], /, *, role: Role) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions)."""
        parts = await self._split(texts)
        flat = [part for pieces in parts for part in pieces]
        vectors = await self._embedder.embed(flat, role=role)
        if len(flat) == len(texts):
            return vectors
        return pooled(vectors, [[len(piece) for piece in pieces] for pieces in parts], name=self.space)

    async def _split(self, texts: Sequence[str]) -> list[list[str]]:
        # No text counts more than four units to a character: short ones are not worth a thread.
        if all(len(text) * 4 <= self._window for text in texts):
            return [[text] for text in texts]
        return await off_loop(lambda: [split(text, window=self._window, count=self._count) for text in texts])


def split(text: str, /, *, window: int, count: Callable[[str], int] = len) -> list[str]:
    """`text` in parts of at most `window` units, cut at white space where there is some nearby.

    Together the parts are the text. Parts without a visible character are left out, unless there is no other. Linear:
    a long text is first cut into blocks that `count` need not be asked about as a whole.
    """
    blocks = [text] if len(text) <= 4 * window else list(_blocks(text, 4 * window))
    parts = [part for block in blocks for part in _halve(block, window, count)]
    return [part for part in parts if not part.isspace()] or [text[:1]]


def _blocks(text: str, size: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = len(text) if start + size >= len(text) else _cut(text, start + size, start + size - size // 8)
        yield text[start:end]
        start = end


def _halve(text: str, window: int, count: Callable[[str], int]) -> list[str]:
    parts: list[str] = []
    todo = [text]
    while todo:
        part = todo.pop()
        if len(part) <= 1 or count(part) <= window:
            parts.append(part)
            continue
        middle = _cut(part, (len(part) + 1) // 2, len(part) // 4)
        todo += [part[middle:], part[:middle]]
    return parts


def _cut(text: str, end: int, earliest: int) -> int:
    """Just after the last white space before `end`, unless it lies before `earliest`."""
    for at in range(end, max(earliest, end - 200, 1), -1):
        if text[at - 1].isspace():
            return at
    return end


def pooled(vectors: Vectors, lengths: Sequence[Sequence[int]], /, *, name: str) -> Vectors:
    """One unit row for each text from the rows of its parts, weighted by their lengths."""
    weights = np.array([length for of_text in lengths for length in of_text], dtype=np.float64)
    starts = np.cumsum([0, *(len(of_text) for of_text in lengths[:-1])])
    sums = np.add.reduceat(vectors.astype(np.float64) * np.maximum(weights, 1.0)[:, None], starts, axis=0)
    return unit_rows(sums, count=len(lengths), name=name)


class Batched:
    """An embedder that is asked for a bounded number of texts, and of characters, at a time."""

    def __init__(self, embedder: Embedder, /, *, texts: int = 64, characters: int = 200_000) -> None:
        self._embedder = embedder
        self._texts = texts
        self._characters = characters

    @property
    def space(self) -> str:
        """The wrapped embedder's space."""
        return self._embedder.space

    async def embed(self, texts: Sequence[str], /, *, role: Role) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions)."""
        batches = list(_batches(texts, self._texts, self._characters))
        if len(batches) <= 1:
            return await self._embedder.embed(texts, role=role)
        return np.concatenate([await self._embedder.embed(batch, role=role) for batch in batches])


def _batches(texts: Sequence[str], most: int, characters: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) >= most or size + len(text) > characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


class Cached:
    """An embedder that remembers the vectors of the last `size` texts, by role and digest."""

    def __init__(self, embedder: Embedder, /, *, size: int = 1024) -> None:
        self._embedder = embedder
        self._size = size
        self._rows: OrderedDict[tuple[Role, str], Vectors] = OrderedDict()

    @property
    def space(self) -> str:
        """The wrapped embedder's space."""
        return self._embedder.space

    async def embed(self, texts: Sequence[str], /, *, role: Role) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions); only unknown texts are embedded, each once."""
        keys: list[tuple[Role, str]] = [(role, digest(text)) for text in texts]
        known = {key: self._rows[key] for key in keys if key in self._rows}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new or not keys:
            vectors = await self._embedder.embed(list(new.values()), role=role)
            if not keys:
                return vectors
            known.update(zip(new, vectors, strict=True))
        self._remember({key: known[key] for key in keys})
        return np.stack([known[key] for key in keys])

    def _remember(self, rows: dict[tuple[Role, str], Vectors]) -> None:
        for key, row in rows.items():
            self._rows[key] = row.copy()
            self._rows.move_to_end(key)
        while len(self._rows) > self._size:
            self._rows.popitem(last=False)
