"""Which lessons a recall leaves out at random, so that what they change can be measured."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import Final, Protocol, runtime_checkable

from lessonbank._base.checks import is_a
from lessonbank.contracts.records import GroupDraw
from lessonbank.contracts.withholding import Assignment, Members
from lessonbank.errors import UsageError

from .groups import SOURCE, TOPIC, is_origin
from .review_snapshot import UnitReview
from .units import WHOLE

USUAL: Final = 0.1
_NORMAL: Final = NormalDist()


@runtime_checkable
class FollowsEvidence(Protocol):
    """A policy that the ledger tells what it found."""

    def tell(self, scope: str, units: Mapping[str, UnitReview], /, *, recalls: int) -> None:
        """What is known from now on, by unit. `recalls`: how many there were at least, with an outcome or not."""
        ...


def drawn(
    lessons: Members, rate: Callable[[str], float], /, *, recall_id: str, usual: float, seed: str = "", tree: bool
) -> Assignment:
    """Draw for memory as a whole, then for groups, then for lessons: each is withheld with the probability `rate` says.

    Units that cover the same lessons of this recall are one: whichever draw falls, the same lessons go. So the draws of
    such units add up to the largest of their rates, and no further: a lesson that was found alone, in a topic of its
    own, is not left out four times as often as was promised. Without `tree` groups are not drawn, and the whole and
    each lesson have a draw of their own whatever they cover.
    """
    above: dict[frozenset[str], float] = {}

    def own(unit: str, covered: frozenset[str]) -> float:
        """The probability of a draw that is missing to the rate of `unit`."""
        wanted, had = rate(unit), above.get(covered, 0.0) if tree else 0.0
        above[covered] = max(wanted, had)
        return wanted if not had else 1.0 - (1.0 - wanted) / (1.0 - had) if wanted > had else 0.0

    def falls(unit: str, probability: float) -> bool:
        return uniform(seed, recall_id, unit) < probability

    control = own(WHOLE, frozenset(lessons))
    covered = _covered(lessons if tree else {})
    groups = {group: own(group, covered[group]) for group in covered}
    odds = {id: own(id, frozenset((id,))) for id in lessons}
    return Assignment(
        control=falls(WHOLE, control),
        control_probability=control,
        withheld=frozenset([id for id, odd in odds.items() if falls(id, odd)]),
        probability=odds,
        usual=usual,
        groups=tuple([GroupDraw(group=g, withheld=falls(g, p), probability=p) for g, p in groups.items() if p > 0.0]),
    )


def _covered(lessons: Members) -> Mapping[str, frozenset[str]]:
    """By group: its lessons in this recall; the widest first."""
    held: dict[str, list[str]] = {}
    for id, groups in lessons.items():
        for group in groups:
            held.setdefault(group, []).append(id)
    return {group: frozenset(held[group]) for group in sorted(held, key=lambda group: (-len(held[group]), group))}


def uniform(*names: str) -> float:
    """A number in [0, 1) that follows from the names, and that nobody can steer who does not choose them."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48


class Never:
    """Withholds nothing: nothing is measured."""

    usual: float = 0.0

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Nothing is drawn."""
        return Assignment(probability=dict.fromkeys(lessons, 0.0))


@dataclass(frozen=True, slots=True)
class Holdout:
    """The same probabilities for ever: of leaving out each lesson, and of leaving out the whole recall.

    Groups have no draws of their own. They are measured by the recalls in which they are all that was found.
    """

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

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Independent draws."""

        def rate(unit: str) -> float:
            return self.recalls if unit == WHOLE else self.lessons

        return drawn(lessons, rate, recall_id=recall_id, usual=self.lessons, seed=self.seed, tree=False)


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

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """The next place in the block of this task."""
        count = self._counts.get((scope, task), 0)
        self._counts[scope, task] = count + 1
        block, place = divmod(count, self.size)
        control = place == int(uniform(self.seed, scope, task, str(block)) * self.size)
        draws = {id: uniform(self.seed, scope, task, f"{count}, {n}") for n, id in enumerate(lessons)}
        withheld = frozenset(id for id, draw in draws.items() if draw < self.lessons)
        return Assignment(control, 1.0 / self.size, withheld, dict.fromkeys(lessons, self.lessons), self.lessons)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the ledger told of one scope."""

    units: Mapping[str, UnitReview] = field(default_factory=dict[str, UnitReview])
    recalls: int = 0
    sources: int = 0
    """How many sources there are, those of writers left out."""

    @classmethod
    def of(cls, units: Mapping[str, UnitReview], recalls: int, /) -> _Told:
        """With what follows from it."""
        return cls(units, recalls, sum(map(is_origin, units)))

    @property
    def whole(self) -> UnitReview | None:
        """What is known of memory as a whole."""
        return self.units.get(WHOLE)


_HARMFUL: Final = ("likely harms", "harms")
_HELPFUL: Final = ("likely helps", "helps")
_ENOUGH: Final = 1 / 3
"""Doubt of a group that is enough to withhold it every other time: then it harms with a chance of two in three. Lessons
are doubted more slowly: their draws are what shows them to harm, or to help."""


@dataclass(slots=True)
class TrialPeriods:
    """The default. What is new is withheld often, what is known seldom, and nothing more than every other time.

    Memory as a whole, a topic or a lesson that is alone in its topic is on trial for its first `length` recalls. So
    what matters is known early, and little is given up in the long run. Whatever the evidence says, each unit keeps
    being withheld now and then: what harms later must still be found. Opinions of a judge alone change nothing. Each
    recall keeps the probability that it was drawn with, so estimates stay unbiased (Horvitz and Thompson 1952).
    """

    trial: float = 0.3
    """While it is new."""
    usual: float = USUAL
    """Later, until it is shown to help; and for a lesson in a topic of several, which is tried as a whole."""
    proven: float = 0.05
    """Once it is shown to help."""
    doubted: float = 0.5
    """While it likely harms."""
    length: int = 150
    """Recalls of the scope for which memory as a whole is new, and of a topic for which it is."""
    longest: int = 1000
    """Recalls of a lesson that is found alone for which it is new, if memory is not likely to help before."""
    topics: float = 0.4
    """A topic of which several lessons were found, in its first `length` recalls."""
    few: int = 20
    """Recalls of a lesson before it has draws of its own, where it was found with others of its topic: so few could
    not tell anything of it, and its draws would blur what the topic does."""
    seed: str = ""
    """Another seed gives other draws for the same recall ids."""
    _told: dict[str, _Told] = field(default_factory=dict[str, _Told])

    def __post_init__(self) -> None:
        """Refuse what are no probabilities in order: UsageError."""
        for name in ("trial", "usual", "proven", "doubted"):
            check_probability(getattr(self, name), name=name)
        if not 0.0 < self.proven <= self.usual <= self.trial <= self.doubted <= 0.5:
            raise UsageError("TrialPeriods needs 0 < proven <= usual <= trial <= doubted <= 0.5")
        if self.length < 0:
            raise UsageError(f"TrialPeriods(length=) is a number of recalls; got {self.length!r}")

    def tell(self, scope: str, units: Mapping[str, UnitReview], /, *, recalls: int) -> None:
        """See `FollowsEvidence.tell`."""
        self._told[scope] = _Told.of(units, recalls)

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Draws with the probabilities of now."""
        told = self._told.get(scope, _NOTHING_TOLD)

        @cache
        def rate(unit: str) -> float:
            return self._rate(unit, told, lessons, rate)

        return drawn(lessons, rate, recall_id=recall_id, usual=self.usual, seed=self.seed, tree=True)

    def _rate(self, unit: str, told: _Told, lessons: Members, rate: Callable[[str], float]) -> float:
        """How often to withhold one unit."""
        known = told.units.get(unit)
        grade = known.grade if known and not known.by_judge else ""
        if (known.found if known else 0) < self.few and _beside(unit, lessons):
            return 0.0
        if is_origin(unit) and told.sources < 2:
            return 0.0  # all that there is: memory as a whole
        if grade in _HARMFUL:
            return self.doubted
        if grade == "helps":
            return self.proven
        is_new = grade not in _HELPFUL and self._is_new(unit, known, told, lessons)
        usual = self._trial(unit, known, lessons) if is_new else self.usual
        if known is None or known.by_judge or unit == WHOLE:
            return usual
        return usual + (self.doubted - usual) * self._doubt(unit, known, told, lessons, rate)

    def _doubt(
        self, unit: str, known: UnitReview, told: _Told, lessons: Members, rate: Callable[[str], float]
    ) -> float:
        """How far the evidence speaks for harm by what a draw would leave out of this recall, 0 to 1.

        For a group that is the sum of what was found of it, as far as that is known: of a topic that helps a task may
        find the lessons that harm.
        """
        within = {id: told.units.get(id) for id, groups in lessons.items() if unit in groups}
        if not within:
            return doubt(known.expected, known.spread)
        mean, spread = known.expected, known.spread
        if all(one and one.found >= self.few for one in within.values()):
            kept = [(1.0 - rate(id), one) for id, one in within.items() if one]
            mean = sum(share * one.expected for share, one in kept)
            spread = math.hypot(*(share * one.spread for share, one in kept))
        return min(doubt(mean, spread) / _ENOUGH, 1.0)

    def _trial(self, unit: str, known: UnitReview | None, lessons: Members) -> float:
        """How often to withhold what is on trial."""
        if sum(unit in groups for groups in lessons.values()) < 2:
            return self.trial
        return min(self.topics, self.doubted) if (known.recalls if known else 0) < self.length else self.usual

    def _is_new(self, unit: str, known: UnitReview | None, told: _Told, lessons: Members) -> bool:
        """Whether it is on trial."""
        recalls = known.recalls if known else 0
        if unit == WHOLE:
            return max(recalls, told.recalls) < self.length
        if recalls >= self.longest or unit.startswith(SOURCE):
            return False
        whole = told.whole
        if whole and not whole.by_judge and whole.grade in _HELPFUL:
            return False  # what comes to a memory that helps most likely helps
        if not (whole and whole.recalls) and told.recalls >= self.length:
            return False  # nobody tells outcomes: there is nothing to learn
        topic = _topic_of(unit, lessons)
        others = told.units.get(topic) if topic else None
        return others is None or others.recalls <= recalls


def _topic_of(unit: str, lessons: Members) -> str | None:
    """The topic of a lesson that was found."""
    return next((group for group in lessons.get(unit, ()) if group.startswith(TOPIC)), None)


def _beside(unit: str, lessons: Members) -> bool:
    """Whether this is a lesson, and others of its topic were found with it."""
    topic = _topic_of(unit, lessons)
    return topic is not None and sum(topic in groups for groups in lessons.values()) > 1


@dataclass(slots=True)
class Bandit:
    """Lets the evidence decide who is shown: what seems to harm is withheld more and more, up to `ceiling`.

    For those who want success and no proof. What is withheld nearly always is hardly measured any more, so it takes
    long to be shown to harm, and longer to be acquitted. Each recall keeps the probability that it was drawn with, so
    estimates stay unbiased (Horvitz and Thompson 1952), only less precise.
    """

    start: float = USUAL
    floor: float = 0.02
    """Never less, so that what is known stays true: tasks and models change."""
    ceiling: float = 0.9
    """Never more: only what is shown can be acquitted."""
    seed: str = ""
    _told: dict[str, _Told] = field(default_factory=dict[str, _Told])

    def __post_init__(self) -> None:
        """Refuse what are no probabilities in order: UsageError."""
        for name in ("start", "floor", "ceiling"):
            check_probability(getattr(self, name), name=name)
        if not 0.0 < self.floor <= self.start <= self.ceiling:
            raise UsageError("Bandit needs 0 < floor <= start <= ceiling < 1: below the floor nothing can be learned")

    @property
    def usual(self) -> float:
        """What it starts with."""
        return self.start

    def tell(self, scope: str, units: Mapping[str, UnitReview], /, *, recalls: int) -> None:
        """See `FollowsEvidence.tell`."""
        self._told[scope] = _Told.of(units, recalls)

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """Draws with the probabilities of now."""
        told = self._told.get(scope, _NOTHING_TOLD)

        def rate(unit: str) -> float:
            known = told.units.get(unit)
            return self._rate(known) if known else 0.0 if "/" in unit else self.start

        return drawn(lessons, rate, recall_id=recall_id, usual=self.start, seed=self.seed, tree=True)

    def _rate(self, known: UnitReview) -> float:
        """More the likelier it harms, less the surer it helps."""
        neutral = self.floor + (self.start - self.floor) * min(known.spread / _UNSURE, 1.0)
        return neutral + (self.ceiling - neutral) * math.sqrt(doubt(known.expected, known.spread))


_NOTHING_TOLD: Final = _Told()
_UNSURE: Final = 0.05
"""A spread, in the rate of success, at which nothing is known yet."""


def doubt(expected: float, spread: float, /) -> float:
    """How far the evidence speaks for harm, 0 to 1: 0 where help is at least as likely."""
    return max(0.0, 2.0 * _NORMAL.cdf(-expected / max(spread, 1e-9)) - 1.0)


def check_probability(value: object, /, *, name: str) -> None:
    """Refuse what is not from 0 to below 1.

    Raises:
        UsageError: it is not.
    """
    if is_a(value, bool) or not is_a(value, (int, float)) or not 0.0 <= value < 1.0:
        raise UsageError(f"{name} is a probability from 0 to below 1; got {value!r}")
