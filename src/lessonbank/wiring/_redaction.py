"""Which redactor stands at a bank's entrance."""

from __future__ import annotations

from typing import Literal

from lessonbank.errors import UsageError
from lessonbank.guard.redact import Redacting, redact
from lessonbank.protocols import Redactor


def choose(choice: Redactor | Literal["default"] | None, /) -> Redactor | None:
    """The built-in redactor, the caller's own, or none.

    Raises:
        UsageError: something that cannot be called; a switch among it, because it would not say what it switches.
    """
    if choice is None:
        return None
    if choice == "default":
        return redact
    if not callable(choice):
        raise UsageError(
            f"redact= takes a function of text that returns text, or None to keep every text as it is; got {choice!r}"
        )
    return choice


def name_of(redactor: Redactor | None, /) -> str:
    """How `parts` and `doctor` call it."""
    if redactor is None:
        return "off"
    if isinstance(redactor, Redacting):
        return "built in"
    return getattr(redactor, "__name__", type(redactor).__name__)
