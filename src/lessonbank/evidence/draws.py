"""Which lessons a recall leaves out at random, so that what they change can be measured."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from lessonbank._base.checks import is_instance
from lessonbank.contracts.withholding import Assignment, Members
from lessonbank.errors import UsageError

from .review_snapshot import TreatmentReview
from .treatments import WHOLE

BASE_RATE: Final = 0.1


@runtime_checkable
class FollowsEvidence(Protocol):
    """A policy that the ledger informs of each review."""

    def tell(self, scope: str, treatments: Mapping[str, TreatmentReview], /) -> None:
        """Take the newest review of each treatment."""
        ...


@runtime_checkable
class OrdersByEvidence(Protocol):
    """A policy that gives places in the prompt by the evidence."""

    def order(
        self, matches: Sequence[tuple[Sequence[str], float]], /, *, places: int, recall_id: str, scope: str
    ) -> Sequence[int]:
        """Which of what was found has a place, as positions. Of each: the ids of its lessons, and how near it is."""
        ...


def draw(
    lessons: Members, rates: Mapping[str, float], /, *, base_rate: float, luck: Callable[[str], float]
) -> Assignment:
    """Draw for memory as a whole and for lessons, each by itself.

    Args:
        lessons: what was found.
        rates: by treatment: the probability with which it is left out; a treatment that is not named is not drawn.
        base_rate: the rate that people read.
        luck: a number in [0, 1) for each name, by which the draw of a treatment is decided.
    """

    def is_withheld(treatment: str) -> bool:
        return luck(treatment) < rates.get(treatment, 0.0)

    return Assignment(
        control=is_withheld(WHOLE),
        control_probability=rates.get(WHOLE, 0.0),
        withheld=frozenset(filter(is_withheld, lessons)),
        probability={id: rates.get(id, 0.0) for id in lessons},
        base_rate=base_rate,
    )


def uniform(*names: str) -> float:
    """A number in [0, 1) that follows from the names, and that nobody can steer who does not choose them."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48


class NoHoldout:
    """Withholds nothing: nothing is measured."""

    base_rate: float = 0.0

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Nothing is drawn."""
        return Assignment(probability=dict.fromkeys(lessons, 0.0))


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
        """Refuse what is no probability: UsageError."""
        check_probability(self.lessons, name="lessons")
        check_probability(self.recalls, name="recalls")

    @property
    def base_rate(self) -> float:
        """The probability for lessons."""
        return self.lessons

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Independent draws."""
        self._counts[scope] += 1
        names = (self.seed, scope, f"{self._counts[scope]}") if self.seed else (recall_id,)
        place = {id: f"{n}" for n, id in enumerate(lessons)} if self.seed else {}

        def luck(treatment: str) -> float:
            return uniform(*names, place.get(treatment, treatment))

        rates = {WHOLE: self.recalls, **dict.fromkeys(lessons, self.lessons)}
        return draw(lessons, rates, base_rate=self.base_rate, luck=luck)


def check_probability(value: object, /, *, name: str) -> None:
    """Refuse what is not from 0 to below 1.

    Raises:
        UsageError: it is not.
    """
    if is_instance(value, bool) or not is_instance(value, (int, float)) or not 0.0 <= value < 1.0:
        raise UsageError(f"{name} is a probability from 0 to below 1; got {value!r}")
