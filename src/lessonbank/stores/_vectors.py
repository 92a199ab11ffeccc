"""What a vector must be to be kept, and how it is packed: a direction, to within a hundred-thousandth of a cosine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from lessonbank.errors import SpaceMismatch, UsageError

from ._records import encodable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Shorts: TypeAlias = NDArray[np.int16]
    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = tuple[Shorts, Floats]
    """Packed rows: whole numbers, shape (n, dimensions), and what each row is multiplied with to have length 1."""

PARTS: Final = 4096
"""A key is an experience's number times this, plus 0 for its task or 1, 2, 3, … for its lessons in order."""
_BATCH: Final = 128
"""Rows packed at once: what comes in between fits the processor's cache."""
LARGEST: Final = 32767
"""What the largest number of a packed row becomes."""


def unit(vector: Any, /, *, what: str) -> Floats:
    """`vector` as one float32 row of length 1; `what` names it in errors.

    Raises:
        UsageError: not one row of finite numbers, or all zero: it has no direction to compare.
    """
    try:
        row = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"the vector of {what} is not a row of numbers") from None
    if row.ndim != 1 or not row.size:
        raise UsageError(f"the vector of {what} has the shape {row.shape}: one row of numbers is needed")
    largest = float(np.abs(row).max())
    if not np.isfinite(largest):
        raise UsageError(f"the vector of {what} holds NaN or infinity: the embedder is broken")
    if largest == 0.0:
        raise UsageError(f"the vector of {what} is all zeros: the embedder is broken")
    row = row / largest
    return (row / np.linalg.norm(row)).astype(np.float32)


def placeable(vectors: Mapping[str, Any], /, *, space: str | None, dimensions: int | None) -> tuple[list[str], Rows]:
    """The ids and their vectors, packed, all of one length: that of the space, where it has one already.

    Raises:
        UsageError: no space is named, or a vector is not one row of finite numbers, or zero.
        SpaceMismatch: a vector has another dimension than the space.
    """
    if not space:
        raise UsageError("these vectors come without the name of their space: pass space=")
    rows = _packed_together(list(vectors.values()))
    if rows is None or dimensions not in (None, rows[0].shape[1]):
        rows = _packed_one_by_one(vectors, space=space, dimensions=dimensions)
    return [encodable(id) for id in vectors], rows


def _packed_together(vectors: Sequence[Any]) -> Rows | None:
    """All of them at once; `None` where one is not what it should be."""
    try:
        floats = np.asarray(vectors[0])[None] if len(vectors) == 1 else np.asarray(vectors)
        if floats.dtype != np.float32:
            floats = floats.astype(np.float64)
    except (TypeError, ValueError):
        return None
    if floats.ndim != 2 or not floats.size:
        return None
    if len(floats) == 1:  # most writes have one, and every call of numpy costs more than its numbers
        alone = np.abs(floats).max()
        return _packed(floats, alone) if 0 < alone < np.inf else None
    parts = [_packed_if_sound(floats[at : at + _BATCH]) for at in range(0, len(floats), _BATCH)]
    sound = [part for part in parts if part is not None]
    if len(sound) < len(parts):
        return None
    return np.concatenate([shorts for shorts, _ in sound]), np.concatenate([factors for _, factors in sound])


def _packed_if_sound(floats: Any) -> Rows | None:
    largest = np.abs(floats).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all() or not largest.all():
        return None
    return _packed(floats, largest)


def _packed_one_by_one(vectors: Mapping[str, Any], *, space: str, dimensions: int | None) -> Rows:
    """Finds the one that is not what it should be, and says so."""
    rows: list[Floats] = []
    for id, vector in vectors.items():
        rows.append(unit(vector, what=f"the experience {id!r}"))
        dimensions = check_dimensions(rows[-1], space=space, dimensions=dimensions)
    return packed_rows(rows)


def check_dimensions(row: Floats, /, *, space: str, dimensions: int | None) -> int:
    """The dimensions of `row`, which must be those of the space where they are known.

    Raises:
        SpaceMismatch: they are not.
    """
    if dimensions is not None and row.size != dimensions:
        raise SpaceMismatch(
            f"a vector of {row.size} dimensions does not fit the space {space!r} of {dimensions}: "
            "name the embedder that filled it, or call `reindex`"
        )
    return int(row.size)


def packed_rows(rows: Sequence[Floats], /) -> Rows:
    """Unit rows in two bytes a number: each row's largest number becomes 32767.

    In 384 dimensions the cosine of a packed row is off by about 2e-6 (standard deviation), in eight by 1e-5.
    """
    floats = np.stack(rows)
    return _packed(floats, np.abs(floats).max(axis=1, keepdims=True))


def _packed(floats: Any, largest: Any) -> Rows:
    whole = np.rint(floats / largest * LARGEST)
    return whole.astype(np.int16), (1.0 / np.sqrt(np.vecdot(whole, whole))).astype(np.float32)


def to_blobs(rows: Rows, /) -> list[bytes]:
    """Each row as bytes, little-endian: its factor as float32, then its numbers as int16."""
    shorts, factors = rows
    if len(shorts) == 1:
        return [factors.astype("<f4", copy=False).tobytes() + shorts.astype("<i2", copy=False).tobytes()]
    whole = np.empty(len(shorts), dtype=_row_type(shorts.shape[1]))
    whole["factor"], whole["row"] = factors, shorts
    data, size = whole.tobytes(), whole.dtype.itemsize
    return [data[at : at + size] for at in range(0, len(data), size)]


def from_blob(blob: bytes, /, *, dimensions: int) -> Rows:
    """Rows that `to_blobs` made, joined; read-only views, not copies.

    Raises:
        ValueError: the bytes are no whole number of rows.
    """
    whole = np.frombuffer(blob, dtype=_row_type(dimensions))
    return whole["row"], whole["factor"]


def row_size(dimensions: int, /) -> int:
    """Bytes of one packed row."""
    return _row_type(dimensions).itemsize


def keys_to_blob(keys: Iterable[int], /) -> bytes:
    """Keys of rows as bytes, little-endian int64."""
    return np.fromiter(keys, dtype="<i8").tobytes()


def keys_from_blob(blob: bytes, /) -> Ints:
    """The inverse of `keys_to_blob`; a read-only view."""
    return np.frombuffer(blob, dtype="<i8")


@lru_cache(maxsize=16)
def _row_type(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("factor", "<f4"), ("row", "<i2", (dimensions,))])
