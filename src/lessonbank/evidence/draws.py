"""Which lessons a recall leaves out at random, so that what they change can be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from lessonbank.arguments import is_a
from lessonbank.errors import UsageError

from .review_snapshot import UnitReview

USUAL: Final = 0.1
_WHOLE: Final = "*"


@dataclass(frozen=True, slots=True)
class Rates:
    """How often to withhold: what a policy that adapts is allowed to do."""

    usual: float = USUAL
    """While nothing is known."""
    floor: float = 0.05
    """Never less, so that what is known stays true: tasks and models change."""
    ceiling: float = 0.5
    """What is probably harmful is withheld so often, and never more: only what is shown can be acquitted."""


DEFAULT_RATES: Final = Rates()


@dataclass(frozen=True, slots=True)
class Assignment:
    """What was drawn for one recall, and with which probabilities: all that an unbiased estimate needs later."""

    control: bool = False
    """Whether the whole recall is withheld: this task goes without memory."""
    control_probability: float = 0.0
    withheld: frozenset[str] = frozenset()
    """The lessons left out, each by a draw of its own, independent of the first."""
    probability: Mapping[str, float] = field(default_factory=dict[str, float])
    """By lesson id: the probability with which it was to be left out, fixed before the draw."""
    usual: float | None = None
    """The rate the policy starts from; `None` where nothing is ever withheld."""


class Withholding(Protocol):
    """Draws for one recall. Must not depend on what becomes of its task; probabilities must be those drawn with."""

    @property
    def usual(self) -> float:
        """The rate it starts from, for people to read."""
        ...

    def __call__(self, lesson_ids: Sequence[str], /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """`recall_id` is random, and the same draw must come of the same one: a retry of a task sees the same text."""
        ...


def drawn(
    lesson_ids: Sequence[str],
    /,
    *,
    recall_id: str,
    lessons: Mapping[str, float],
    control: float,
    usual: float,
    seed: str = "",
) -> Assignment:
    """Each lesson, and the recall as a whole, independently with its probability: for a lesson not named, the usual."""
    odds = {id: lessons.get(id, usual) for id in lesson_ids}
    return Assignment(
        control=uniform(seed, recall_id, _WHOLE) < control,
        control_probability=control,
        withheld=frozenset(id for id, odd in odds.items() if uniform(seed, recall_id, id) < odd),
        probability=odds,
        usual=usual,
    )


def uniform(*names: str) -> float:
    """A number in [0, 1) that follows from the names, and that nobody can steer who does not choose them."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48


class Never:
    """Withholds nothing: nothing is measured."""

    usual: float = 0.0

    def __call__(self, lesson_ids: Sequence[str], /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Nothing is drawn."""
        return Assignment(probability=dict.fromkeys(lesson_ids, 0.0))


@dataclass(frozen=True, slots=True)
class Holdout:
    """The same probabilities for ever: of leaving out each lesson, and of leaving out the whole recall."""

    lessons: float = USUAL
    recalls: float = USUAL
    seed: str = ""
    """Another seed gives other draws for the same recall ids."""

    def __post_init__(self) -> None:
        """Refuse what is no probability: UsageError."""
        check_probability(self.lessons, name="lessons")
        check_probability(self.recalls, name="recalls")

    @property
    def usual(self) -> float:
        """The probability for lessons."""
        return self.lessons

    def __call__(self, lesson_ids: Sequence[str], /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Independent draws."""
        return drawn(
            lesson_ids, recall_id=recall_id, lessons={}, control=self.recalls, usual=self.lessons, seed=self.seed
        )


@dataclass(slots=True)
class Blocked:
    """For experiments: of every `size` recalls of one task exactly one goes without memory, at a random place.

    With `size=2` tasks are paired: each is done once with and once without. Lessons are drawn independently. Everything
    follows from the seed and the order of the recalls, so one object serves one process, and a run can be repeated.
    """

    size: int = 2
    lessons: float = USUAL
    seed: str = ""
    _counts: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def __post_init__(self) -> None:
        """Refuse what is no block, and no probability: UsageError."""
        check_probability(self.lessons, name="lessons")
        if self.size < 2:
            raise UsageError(f"Blocked needs blocks of at least 2 recalls, got size={self.size}")

    @property
    def usual(self) -> float:
        """The probability for lessons."""
        return self.lessons

    def __call__(self, lesson_ids: Sequence[str], /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """The next place in the block of this task."""
        count = self._counts.get((scope, task), 0)
        self._counts[scope, task] = count + 1
        block, place = divmod(count, self.size)
        control = place == int(uniform(self.seed, scope, task, str(block)) * self.size)
        draws = {id: uniform(self.seed, scope, task, f"{count}, {n}") for n, id in enumerate(lesson_ids)}
        withheld = frozenset(id for id, draw in draws.items() if draw < self.lessons)
        return Assignment(control, 1.0 / self.size, withheld, dict.fromkeys(lesson_ids, self.lessons), self.lessons)


@dataclass(slots=True)
class Adaptive:
    """Starts with the same probability for all and follows the evidence: what likely harms is left out more often,
    what is shown to help less, never below `floor`. The ledger tells it after its reviews; each recall keeps the
    probability that it was drawn with, so estimates stay unbiased (Horvitz and Thompson 1952)."""

    start: float = DEFAULT_RATES.usual
    floor: float = DEFAULT_RATES.floor
    ceiling: float = DEFAULT_RATES.ceiling
    seed: str = ""
    _told: dict[str, tuple[Mapping[str, float], float]] = field(
        default_factory=dict[str, tuple[Mapping[str, float], float]]
    )

    def __post_init__(self) -> None:
        """Refuse what are no probabilities in order: UsageError."""
        for name in ("start", "floor", "ceiling"):
            check_probability(getattr(self, name), name=name)
        if not 0.0 < self.floor <= self.start <= self.ceiling:
            raise UsageError("Adaptive needs 0 < floor <= start <= ceiling < 1: below the floor nothing can be learned")

    @property
    def usual(self) -> float:
        """What it starts with."""
        return self.start

    @property
    def rates(self) -> Rates:
        """What it may do, for a review of the evidence."""
        return Rates(self.start, self.floor, self.ceiling)

    def tell(self, scope: str, units: Mapping[str, UnitReview], /) -> None:
        """From now on what a review says of each unit decides how often it is withheld in `scope`."""
        odds = {id: self._odds(unit) for id, unit in units.items()}
        self._told[scope] = odds, odds.get(_WHOLE, self.start)

    def _odds(self, unit: UnitReview) -> float:
        if unit.grade in ("harms", "likely harms"):
            return self.ceiling
        return self.floor if unit.helps else self.start

    def __call__(self, lesson_ids: Sequence[str], /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Independent draws with the probabilities of now."""
        lessons, control = self._told.get(scope, ({}, self.start))
        return drawn(
            lesson_ids, recall_id=recall_id, lessons=lessons, control=control, usual=self.start, seed=self.seed
        )


def check_probability(value: object, /, *, name: str) -> None:
    """Refuse what is not from 0 to below 1.

    Raises:
        UsageError: it is not.
    """
    if is_a(value, bool) or not is_a(value, (int, float)) or not 0.0 <= value < 1.0:
        raise UsageError(f"{name} is a probability from 0 to below 1; got {value!r}")
