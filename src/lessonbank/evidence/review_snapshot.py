"""What the last review of the evidence found, kept with the bank: a process that has read nothing can go by it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any, cast, get_args

from .effects import LITTLE, Standing

_OLD = "units"
"""What snapshots of earlier versions call treatments: each has two more numbers before the others."""


@dataclass(frozen=True, slots=True)
class TreatmentReview:
    """What is known of memory as a whole (`*`), a group or a lesson."""

    recalls: int = 0
    """Recalls with an outcome in which it was drawn, shown or not."""
    grade: Standing = "no evidence yet"
    by_judge: bool = False
    """Whether it rests on opinions alone. Then nothing is retired or trusted because of it."""
    expected: float = 0.0
    """What showing it is expected to change in the rate of success, drawn to its group while its evidence is thin."""
    spread: float = 0.1
    """The standard deviation of that."""
    found: int = 0
    """Recalls with an outcome for which a lesson was found, drawn or not."""
    most: float = 1.0
    """How large the effect is at most, up or down, however often one looks."""

    @property
    def does_nothing(self) -> bool:
        """Whether it is shown to change next to nothing; opinions alone show nothing."""
        return self.grade == "no evidence yet" and not self.by_judge and self.most <= LITTLE


@dataclass(frozen=True)  # no slots: `helps` is found once
class ReviewSnapshot:
    """The outcome of one review."""

    reviewed: int = 0
    """How many outcomes there were."""
    treatments: Mapping[str, TreatmentReview] = field(default_factory=dict[str, TreatmentReview])
    sequence: int = 0
    """The last change that was looked at."""
    proposed: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """What waits for a person: the last change when that was first seen, and the evidence."""

    @cached_property
    def helps(self) -> frozenset[str]:
        """The treatments that true outcomes show to help. Each recall asks for them."""
        return frozenset(id for id, known in self.treatments.items() if known.grade == "helps" and not known.by_judge)

    @classmethod
    def of(cls, text: str | None, /) -> ReviewSnapshot:
        """From a setting of the bank; one that cannot be read tells nothing."""
        try:
            fields = cast("dict[str, Any]", json.loads(text or "{}"))
            rows = fields.get("treatments") or {id: (*v[:3], *v[5:]) for id, v in fields.get(_OLD, {}).items()}
            return cls(
                reviewed=max(int(fields.get("reviewed", 0)), 0),
                sequence=max(int(fields.get("sequence", 0)), 0),
                treatments={str(id): _review(*review) for id, review in rows.items()},
                proposed={str(id): (int(since), str(why)) for id, (since, why) in fields.get("proposed", {}).items()},
            )
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return cls()

    def text(self) -> str:
        """As a setting."""
        rows = ((id, astuple(review)) for id, review in self.treatments.items())
        treatments = {id: (*row[:3], *(round(number, 4) for number in row[3:])) for id, row in rows}
        fields = {"reviewed": self.reviewed, "sequence": self.sequence, "treatments": treatments}
        return json.dumps({**fields, "proposed": dict(self.proposed)})


def _review(recalls: Any, grade: Any, by_judge: Any, *numbers: Any) -> TreatmentReview:
    expected, spread, *later = map(float, numbers)
    found, most = (*later, *(0.0, 1.0)[len(later) :])  # snapshots of earlier versions end before
    if grade not in get_args(Standing) or not all(map(math.isfinite, (expected, spread, found, most))):
        raise ValueError("a grade, or a number, that is none")
    return TreatmentReview(max(int(recalls), 0), grade, bool(by_judge), expected, spread, max(int(found), 0), most)
