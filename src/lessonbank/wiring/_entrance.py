"""What stands at a bank's entrance: a redactor, and a gate for lessons."""

from __future__ import annotations

from lessonbank.config import UNSET, Unset, chosen
from lessonbank.errors import UsageError
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting, redact
from lessonbank.protocols import Admission, Redactor


def choose(redactor: Redactor | None | Unset, admission: Admission | None | Unset, profile: str, /) -> IntakeFilter:
    """The built-in parts, the caller's own, or none.

    Raises:
        UsageError: a value that cannot be called, such as True or False.
    """
    if redactor is not None and redactor is not UNSET and not callable(redactor):
        raise UsageError(
            f"redact= takes a function of text that returns text, or None to keep every text as it is; got {redactor!r}"
        )
    if admission is not None and admission is not UNSET and not callable(admission):
        raise UsageError(
            f"admission= takes a gate such as LessonGate(), or None to keep every lesson; got {admission!r}"
        )
    gate = None if profile == "paper" else LessonGate()
    return IntakeFilter(redactor=chosen(redactor, redact), admission=chosen(admission, gate))


def named(entrance: IntakeFilter, /) -> dict[str, str]:
    """How `parts` and `doctor` call them."""
    return {
        "redactor": _name(entrance.redactor, own=Redacting),
        "admission": _name(entrance.admission, own=LessonGate),
    }


def _name(part: object, *, own: type) -> str:
    if part is None:
        return "off"
    return "built in" if isinstance(part, own) else getattr(part, "__name__", type(part).__name__)
