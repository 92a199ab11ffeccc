"""Which lessons a recall leaves out at random, so that what they change can be measured."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lessonbank._base.checks import a_share
from lessonbank.contracts.withholding import Assignment, Members

from .treatments import WHOLE

BASE_RATE: Final = 0.1
PROBABILITY: Final = "is a probability from 0 to below 1"


def draw(
    lessons: Members, rates: Mapping[str, float], /, *, base_rate: float, luck: Callable[[str], float]
) -> Assignment:
    """Draw for memory as a whole and for the lessons that were found, each by itself.

    `rates`: by treatment, the probability with which it is left out. `luck`: a number in [0, 1) that decides its draw.
    """

    def is_withheld(treatment: str) -> bool:
        return luck(treatment) < rates.get(treatment, 0.0)

    return Assignment(
        control=is_withheld(WHOLE),
        control_probability=rates.get(WHOLE, 0.0),
        withheld=frozenset(filter(is_withheld, lessons)),
        probability={id: rates.get(id, 0.0) for id in lessons},
        base_rate=base_rate or None,
    )


def uniform(*names: str) -> float:
    """A number in [0, 1) that follows from the names, and that nobody can steer who does not choose them."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48


@dataclass(slots=True)
class Holdout:
    """The same probabilities for ever: of leaving out each lesson, and of leaving out the whole recall.

    Groups have no draws of their own. They are measured by the recalls in which they are all that was found.
    """

    lessons: float = BASE_RATE
    recalls: float = BASE_RATE
    seed: str = ""
    """With a seed, draws follow from it and from the order of the recalls, so that one process can repeat a run."""
    _counts: Counter[str] = field(default_factory=Counter[str], repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("lessons", "recalls"):
            a_share(getattr(self, name), name, PROBABILITY, below=1.0)

    @property
    def base_rate(self) -> float:
        """The probability for lessons."""
        return self.lessons

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        self._counts[scope] += 1
        names = (self.seed, scope, f"{self._counts[scope]}") if self.seed else (recall_id,)
        place = {id: f"{n}" for n, id in enumerate(lessons)} if self.seed else {}

        def luck(treatment: str) -> float:
            return uniform(*names, place.get(treatment, treatment))

        rates = {WHOLE: self.recalls, **dict.fromkeys(lessons, self.lessons)}
        return draw(lessons, rates, base_rate=self.base_rate, luck=luck)


class NoHoldout(Holdout):
    """Withholds nothing: nothing is measured."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0)
