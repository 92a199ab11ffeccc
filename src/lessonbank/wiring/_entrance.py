"""What stands at a bank's entrance: a redactor, and a gate for lessons."""

from __future__ import annotations

from lessonbank.arguments import called, is_a
from lessonbank.config import Unset, chosen
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting, redact
from lessonbank.protocols import Admission, Redactor


def choose(redactor: Redactor | Unset | None, admission: Admission | Unset | None, profile: str, /) -> IntakeFilter:
    """The built-in parts, the caller's own, or none."""
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
    return "built in" if is_a(part, own) else called(part)
