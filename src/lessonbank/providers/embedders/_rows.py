"""What all embedders owe their callers: finite unit rows, one per text, made off the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from lessonbank._base.aio import PerLoop
from lessonbank._base.plural import plural
from lessonbank.contracts.ports import Vectors
from lessonbank.errors import ModelError

T = TypeVar("T")

# Embedding is work for the processor: more threads of it than this would only take turns.
_limiter = PerLoop(partial(anyio.CapacityLimiter, 2))


async def off_loop(work: Callable[[], T], /) -> T:
    """Run `work` in a thread, two at a time, none of them taken from the limit other blocking work has.

    Whoever waits no more leaves the thread alone.
    """
    return await anyio.to_thread.run_sync(work, limiter=_limiter.here(), abandon_on_cancel=True)


def unit_rows(raw: Iterable[Any], /, *, count: int, name: str) -> Vectors:
    """`raw` as float32 rows of length one, shape (count, dimensions).

    Raises:
        ModelError: another number of rows, rows of different lengths, values that are no finite numbers, a zero row.
    """
    try:
        rows = np.asarray(raw if isinstance(raw, np.ndarray) else list(raw), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} gave something else than rows of numbers") from error
    if count == 0 and rows.size == 0:
        return np.zeros((0, rows.shape[1] if rows.ndim == 2 else 0), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
        raise ModelError(f"{name} gave vectors of shape {rows.shape} for {plural(count, 'text')}")
    norms = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    if not all(0.0 < norm < inf for norm in norms.ravel().tolist()):
        raise ModelError(f"{name} gave {_unfit(norms)}")
    return (rows / norms).astype(np.float32)


def _unfit(norms: NDArray[np.float64]) -> str:
    if not np.isfinite(norms).all():
        return "a vector with a value that is not a finite number"
    return "a zero vector, which is similar to nothing"
