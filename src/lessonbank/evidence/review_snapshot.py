"""What the last review of the evidence found, kept with the bank: a process that has read nothing can go by it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class ReviewSnapshot:
    """The outcome of one review."""

    reviewed: int = 0
    """How many outcomes there were."""
    helps: frozenset[str] = frozenset()
    """Lessons that are shown to help."""
    lessons: Mapping[str, float] = field(default_factory=dict[str, float])
    """With which probability to withhold each lesson from then on."""
    expected: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each lesson is expected to change in the rate of success, drawn to the others while its evidence is thin."""
    control: float | None = None
    """With which probability to withhold a whole recall; `None`: nothing was reviewed."""
    sequence: int = 0
    """The last change that was looked at."""
    proposed: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """Approved lessons that are shown to harm: the last change when that was first seen, and the evidence."""

    @classmethod
    def of(cls, text: str | None, /) -> ReviewSnapshot:
        """From a setting of the bank; one that cannot be read tells nothing."""
        try:
            told = cast("dict[str, Any]", json.loads(text or "{}"))
            control = told.get("control")
            return cls(
                reviewed=max(int(told.get("reviewed", 0)), 0),
                sequence=max(int(told.get("sequence", 0)), 0),
                helps=frozenset(str(id) for id in told.get("helps", [])),
                lessons=_numbers(told.get("lessons", {})),
                expected=_numbers(told.get("expected", {})),
                control=None if control is None else _number(control),
                proposed={str(id): (int(since), str(why)) for id, (since, why) in told.get("proposed", {}).items()},
            )
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return cls()

    def text(self) -> str:
        """As a setting."""
        return json.dumps(
            {
                "reviewed": self.reviewed,
                "sequence": self.sequence,
                "helps": sorted(self.helps),
                "lessons": _rounded(self.lessons),
                "expected": _rounded(self.expected),
                "control": self.control,
                "proposed": dict(self.proposed),
            }
        )


def key(scope: str, /) -> str:
    """The name of the setting."""
    return f"ledger/{scope}"


def _numbers(told: Mapping[str, Any]) -> dict[str, float]:
    return {str(id): _number(number) for id, number in told.items()}


def _number(told: Any) -> float:
    number = float(told)
    if not math.isfinite(number):
        raise ValueError("a number that is none")
    return number


def _rounded(numbers: Mapping[str, float]) -> dict[str, float]:
    return {id: round(number, 4) for id, number in numbers.items()}
