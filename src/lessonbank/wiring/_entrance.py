"""What stands at a bank's entrance: a redactor, and a gate for lessons."""

from __future__ import annotations

from lessonbank._base.checks import display_name, is_instance
from lessonbank.contracts.ports import Admission, LanguageModel, Redactor
from lessonbank.contracts.settings import UNSET, Unset, chosen
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting, redact
from lessonbank.learning.harm_check import HarmCheck


def choose_intake(
    redactor: Redactor | Unset | None,
    admission: Admission | Unset | None,
    model: LanguageModel | None,
    profile: str,
    /,
) -> IntakeFilter:
    """The built-in parts, the caller's own, or none. A gate that the caller gives asks no model."""
    gate = None if profile == "paper" else LessonGate()
    check = HarmCheck(model) if model and gate and admission is UNSET else None
    return IntakeFilter(redactor=chosen(redactor, redact), admission=chosen(admission, gate), check=check)


def describe_intake(entrance: IntakeFilter, /) -> dict[str, str]:
    """How `parts` and `doctor` call them."""
    return {
        "redactor": _name(entrance.redactor, own=Redacting),
        "admission": _name(entrance.admission, own=LessonGate),
    }


def _name(part: object, *, own: type) -> str:
    if part is None:
        return "off"
    return "built in" if is_instance(part, own) else display_name(part)
