"""What a vector must be before a store keeps it, one row of finite numbers that fits its space; and what ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lessonbank.errors import SpaceMismatch, UsageError

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors
    from lessonbank.contracts.records import Lesson


def unit(vector: Any, /, *, what: str) -> Vectors:
    """`vector` as one float32 row of length 1; `what` names it in errors.

    Raises:
        UsageError: not one row of finite numbers, or all zero: it has no direction to compare.
    """
    try:
        row = np.asarray(vector, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
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


def check_dimensions(row: Vectors, /, *, space: str, dimensions: int | None) -> int:
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


def stale_places(before: Sequence[Lesson], after: Sequence[Lesson], /) -> set[int]:
    """Places of lessons that are not there any more or say something else. Retiring one changes nothing."""
    says, old_texts = [(i.id, i.text) for i in after], [(i.id, i.text) for i in before]
    return {at for at, text in enumerate(old_texts, 1) if at > len(says) or says[at - 1] != text}
