"""Keeps what breaks around an agent apart from how the agent did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lessonbank.errors import LessonbankError
from lessonbank.guard import one_line

from .records import Failure, Stage

T = TypeVar("T")


def guarded(stage: Stage, work: Callable[[], T]) -> tuple[T | None, Failure | None]:
    """What `work` gives, or why it gave nothing."""
    try:
        return work(), None
    except LessonbankError as error:
        return None, failed(stage, error)
    except Exception as error:  # noqa: BLE001 - whatever an environment raises is kept apart from the agent's failures
        return None, Failure(stage=stage, code=type(error).__name__, message=one_line(str(error), limit=500))


def failed(stage: Stage, error: LessonbankError) -> Failure:
    """An error of this package, as a row keeps it."""
    return Failure(stage=stage, code=error.code, message=one_line(str(error), limit=500))
