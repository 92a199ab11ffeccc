"""Reads what an experiment tells its environment, and refuses in one sentence what that cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from lessonbank.errors import UsageError

from .interface import Settings

_LEAST = {"max_steps": 1, "top_k": 1, "temperature": 0.0, "grade_seconds": 1}
"""What no environment takes less of."""
T = TypeVar("T", str, int, float, bool)


def refuse_others(name: str, settings: Settings | None, known: Sequence[str], /) -> None:
    """Raises:
    UsageError: a key that the environment does not know.
    """
    unknown = sorted(set(settings or ()) - set(known))
    if unknown:
        told = f"its settings are {', '.join(known)}" if known else "it has no settings"
        raise UsageError(f"environment {name!r} has no setting {unknown[0]!r}; {told}")


def told(name: str, settings: Settings | None, key: str, otherwise: T, /) -> T:
    """The setting `key`, of the type of `otherwise`.

    Raises:
        UsageError: it is of another type, or less than makes sense.
    """
    value = (settings or {}).get(key, otherwise)
    least = _LEAST.get(key)
    if least is not None and isinstance(value, int | float) and not isinstance(value, bool) and value < least:
        raise UsageError(f"environment {name!r}: {key} is at least {least:g}; got {value:g}")
    if isinstance(otherwise, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(otherwise):
        raise UsageError(f"environment {name!r}: {key} should be like {otherwise!r}; got {value!r}")
    return cast("T", value)
