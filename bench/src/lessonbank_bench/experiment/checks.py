"""Looks at what an environment and a memory give before it is kept: a row can be read again, and says the same then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from lessonbank._base.checks import replace_surrogates
from lessonbank.contracts.records import Record, Trajectory
from lessonbank.errors import LessonbankError
from lessonbank.guard import one_line
from lessonbank_bench.arms import Memory
from lessonbank_bench.environments import Finished

from .records import AttemptRow, Failure

R = TypeVar("R", bound=Record)
_SURE = (
    *("config", "versions", "at", "seed", "arm", "phase", "place", "task_id", "task", "family"),
    *("memory", "memory_digest", "same_digest"),
)
"""Fields that a row cannot be without."""


class RunError(LessonbankError):
    """There is no run that could be kept."""

    code = "run"


class SuccessError(LessonbankError):
    """What is called success is neither yes, no nor unknown."""

    code = "success"


class ScoreError(LessonbankError):
    """A score is no finite number."""

    code = "scores"


class TextError(LessonbankError):
    """A memory gave something else than text."""

    code = "text"


def recalled(memory: Memory, goal: str, /) -> str:
    """What the memory says for a goal, as it can be kept.

    Raises:
        TextError: it is no text.
    """
    text: Any = memory.recall(goal)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise TextError(f"a memory gives text, empty where it has nothing to say; got {type(text).__name__}")
    return replace_surrogates(text)


def checked(told: Any, /) -> Finished:
    """What an attempt came to, with the run as it will be read again: what is learned from it can be rebuilt.

    Raises:
        RunError: it is neither a `Finished` nor a tuple of run and success, or no line can hold the run.
        SuccessError: success is neither a bool nor `None`.
        ScoreError: a score is no finite number.
    """
    run, success, scores = _parts(told)
    success = _plain(success)
    if not (success is None or isinstance(success, bool)):
        raise SuccessError(f"success is true, false or None; got {type(success).__name__}")
    return Finished(_as_read(run), success, _numbers(scores))


def writable(row: AttemptRow, /) -> AttemptRow:
    """The row as it will be read again, its text mended; without its run, and with the reason, where no line can."""
    told = row.model_copy(update={"run": None})
    try:
        return _again(AttemptRow, told).model_copy(update={"run": row.run})
    except ValueError as error:
        message = one_line(f"the row cannot be kept: {error}", limit=500)
        bare = {name: getattr(row, name) for name in _SURE}
        return AttemptRow(**replace_surrogates(bare), error=Failure(stage="attempt", code="row", message=message))


def _parts(told: Any) -> tuple[Trajectory, Any, Any]:
    parts: tuple[Any, ...] = cast("tuple[Any, ...]", told) if isinstance(told, tuple) else ()
    if len(parts) not in (2, 3) or not isinstance(parts[0], Trajectory):
        got = type(cast("object", told)).__name__
        raise RunError(f"an attempt gives Finished(run, success, scores); got {got}")
    return parts[0], parts[1], parts[2] if len(parts) > 2 else {}


def _as_read(run: Trajectory) -> Trajectory:
    try:
        return _again(Trajectory, run)
    except ValueError as error:
        raise RunError(f"the run cannot be kept: {error}") from error


def _again(kind: type[R], record: R) -> R:
    """A record through a line and back; `ValueError` where that is not possible."""
    try:
        line = record.model_dump_json()
    except ValueError:  # text that is no Unicode, mostly
        line = kind.model_validate(replace_surrogates(record.model_dump())).model_dump_json()
    return kind.model_validate_json(line)


def _plain(value: Any) -> Any:
    """What measures with numpy gives numpy's own numbers."""
    return cast("Any", value).item() if isinstance(value, np.generic) else value


def _numbers(scores: Any) -> dict[str, float]:
    if not isinstance(scores, Mapping):
        raise ScoreError(f"scores are numbers by name; got {type(scores).__name__}")
    told = cast("Mapping[Any, Any]", scores)
    return {replace_surrogates(str(name)): _number(str(name), _plain(value)) for name, value in told.items()}


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real):
        raise ScoreError(f"score {name!r} is no number: {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ScoreError(f"score {name!r} is {number}, which is no finite number")
    return number
