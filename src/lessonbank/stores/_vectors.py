"""What a vector must be before a store keeps it, one row of finite numbers that fits its space; and what ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessonbank.errors import SpaceMismatch, UsageError

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors
    from lessonbank.contracts.records import Experience


def unit(vector: Any, /, *, what: str, space: str = "", dimensions: int | None = None) -> Vectors:
    """`vector` as one float32 row of length 1; `what` names it in errors.

    Raises:
        UsageError: not one row of finite numbers, or all zero: it has no direction to compare.
        SpaceMismatch: it has not the dimensions of its space, where these are known.
    """
    import numpy as np  # noqa: PLC0415 - a bank that is only opened needs no vectors

    try:
        row = np.asarray(vector, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise UsageError(f"the vector of {what} is not a row of numbers") from None
    largest = float(np.abs(row).max(initial=0.0))
    if row.ndim != 1 or not 0.0 < largest < np.inf:
        raise UsageError(f"the vector of {what} has no direction (shape {row.shape}, largest number {largest})")
    if dimensions not in (None, row.size):
        raise SpaceMismatch(
            f"a vector of {row.size} dimensions does not fit the space {space!r} of {dimensions}: "
            "name the embedder that filled it, or call `reindex`"
        )
    return (row / largest / np.linalg.norm(row / largest)).astype(np.float32)


def text_at(experience: Experience, place: int, /) -> tuple[str, str]:
    """Id and text of the lesson at that place, or of the task at place 0."""
    if not place:
        return experience.id, experience.task
    lesson = experience.lessons[place - 1]
    return lesson.id, lesson.text
