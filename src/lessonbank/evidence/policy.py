"""The policies: how often memory and each lesson are left out at random, and which lessons have a place."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import hypot, prod
from statistics import NormalDist
from typing import Final

from lessonbank._base.checks import a_share
from lessonbank.contracts.withholding import Assignment, Members, Withholding
from lessonbank.errors import UsageError

from .groups import TOPIC
from .review_snapshot import TreatmentReview
from .treatments import WHOLE

BASE_RATE: Final = 0.1
PROBABILITY: Final = "is a probability from 0 to below 1"
_NORMAL: Final = NormalDist()
_UNKNOWN: Final = TreatmentReview()
_FEW: Final = 20
"""Recalls of a topic or a lesson below which memory as a whole says more of it than it does itself."""


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

    At 0 nothing is measured. Groups have no draws of their own: they are measured by the recalls in which they are all
    that was found.
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


@dataclass(frozen=True, slots=True)
class Rates:
    """How often something is left out: while it surely helps, while nothing is known, while it surely harms."""

    helps: float
    unknown: float
    harms: float
    worth: float = 0.1
    """An effect below which something that helps is left out nearly as often as if it were unknown."""

    def __post_init__(self) -> None:
        for name in ("helps", "unknown", "harms"):
            a_share(getattr(self, name), name, PROBABILITY, below=1.0)
        if not 0.0 < self.helps <= self.unknown <= self.harms:
            raise UsageError("Rates needs 0 < helps <= unknown <= harms < 1: what is never left out is not measured")

    def at(self, mean: float, spread: float, /) -> float:
        """The rate for an effect that is expected to be `mean`, give or take `spread`.

        It falls as the effect is likely worth having, and rises as it is likely harm.
        """
        small, harm = (_NORMAL.cdf((effect - mean) / max(spread, 1e-9)) for effect in (self.worth, 0.0))
        more = (self.harms - self.unknown) * max(2.0 * harm - 1.0, 0.0)
        return self.helps + (self.unknown - self.helps) * small + more


@dataclass(slots=True)
class _Scope:
    """What the policy knows of one scope."""

    treatments: Mapping[str, TreatmentReview] = field(default_factory=dict[str, TreatmentReview])
    places: int = 0
    """How many lessons had a place for which others competed."""
    trials: int = 0
    """How many of these places were given to a lesson that would have had none."""
    tried: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    """How often each was since the last review, which counts its outcomes."""


@dataclass(slots=True)
class AdaptiveHoldout:
    """The default. It leaves out seldom what helps and often what harms, and gives places by measured effect.

    A task goes without memory at the rates of `memory`, all draws together. Where several lessons are found, each is
    left out at the rates of `lesson`. Rates follow the last outcomes; opinions of a judge alone change nothing. Each
    recall keeps the probabilities of its draws, so estimates stay unbiased (Horvitz and Thompson 1952).
    """

    memory: Rates = Rates(0.05, 0.15, 0.5, worth=0.12)
    lesson: Rates = Rates(0.2, 0.3, 0.7)
    seed: str = ""
    """Another seed gives other draws for the same recall ids."""
    _scopes: dict[str, _Scope] = field(default_factory=dict[str, _Scope], repr=False, compare=False)

    @property
    def base_rate(self) -> float:
        """The rate of a lesson of which nothing is known."""
        return self.lesson.unknown

    def tell(self, scope: str, treatments: Mapping[str, TreatmentReview], /) -> None:
        """Take the newest review of each treatment."""
        now = self._of(scope)
        now.treatments = treatments
        now.tried.clear()

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        rates = self.rates(lessons, self._of(scope).treatments)
        return draw(lessons, rates, base_rate=self.base_rate, luck=partial(uniform, self.seed, recall_id))

    def rates(self, lessons: Members, known: Mapping[str, TreatmentReview], /) -> dict[str, float]:
        """By treatment, memory as a whole and each lesson: with which probability a draw leaves it out.

        If all lessons are left out one by one, the task goes without memory, too. At most half of such tasks may come
        from that: the other half is what memory as a whole is measured by.
        """
        own = {id: self.lesson.at(*_expected(known.get(id, _UNKNOWN))) for id in lessons}
        bare = min(self.memory.at(*estimate) for estimate in _expected_of_all(lessons, own, known))
        if len(lessons) < 2:
            return {WHOLE: bare}
        if (alone := prod(own.values())) > bare / 2.0:
            shrunk = (bare / 2.0 / alone) ** (1.0 / len(own))
            own, alone = {id: rate * shrunk for id, rate in own.items()}, bare / 2.0
        return {WHOLE: 1.0 - (1.0 - bare) / (1.0 - alone), **own}

    def order(
        self, matches: Sequence[tuple[Sequence[str], float]], /, *, places: int, recall_id: str, scope: str
    ) -> list[int]:
        """Which of what was found has one of the `places`, as positions, the best first.

        `matches`: the ids of lessons that come together, and how near they are; the nearest first. `recall_id` decides
        whether one is tried; none is where it is empty.
        """
        now, near = self._of(scope), [distance for _, distance in matches]
        band = [n for n in range(len(matches)) if n < places or near[n] >= max(_BAND * near[places - 1], 0.0)]
        known = {n: [now.treatments.get(id, _UNKNOWN) for id in matches[n][0]] for n in band}
        times = {n: sum(review.found for review in known[n]) for n in band}
        hope = _HOPE if band and times[band[0]] >= _FEW else 0.0
        effect = {n: sum(review.expected for review in known[n]) + hope * (times[n] < _FEW) for n in band}
        best = sorted(band, key=lambda n: (-effect[n] - _SLOPE * near[n] / max(near[0], 1e-9), n))
        if len(band) > places and recall_id:
            now.places += places
            if now.trials < _FIRST_TRIALS + _TRIALS * now.places and uniform(self.seed, recall_id, "") < _OFTEN:
                ids = {n: tuple(matches[n][0]) for n in best[places:]}
                seldom = min(ids, key=lambda n: (times[n] + now.tried[ids[n]], near[0] - near[n]))
                now.trials, best[places - 1] = now.trials + 1, seldom
                now.tried[ids[seldom]] += 1
        return best[:places]

    def _of(self, scope: str) -> _Scope:
        return self._scopes.setdefault(scope, _Scope())


_BAND: Final = 0.8
"""A lesson competes for a place if it is so near, as a share of the last one that has a place by nearness."""
_SLOPE: Final = 0.5
"""How much less success is expected of a lesson that is not near at all than of the nearest, before evidence."""
_HOPE: Final = 0.05
"""How much more success is expected of a lesson with few outcomes, once the nearest one has many."""
_TRIALS: Final = 0.05
"""The share of those places that goes to lessons that would have none, so that their effect becomes known."""
_FIRST_TRIALS: Final = 2
_OFTEN: Final = 0.2
"""How often a lesson is tried while the share for that is not used up: two are, at first, whatever the share."""


def _expected(known: TreatmentReview) -> tuple[float, float]:
    """The effect that is expected, and its spread; opinions alone tell nothing."""
    known = _UNKNOWN if known.by_judge else known
    return known.expected, known.spread


def _expected_of_all(
    lessons: Members, rate: Mapping[str, float], known: Mapping[str, TreatmentReview]
) -> Iterator[tuple[float, float]]:
    """What is expected of all lessons of a recall together, by one way to know it or by two.

    By their topic, if they have one and it is known, else by memory as a whole. Where each of them is known, too, the
    sum of their effects may tell more (of a topic that harms a task may find the lessons that help), or less (each of
    two that say the same does nothing beside the other). A single lesson that is known speaks alone.
    """
    each = [(1.0 - rate[id], known.get(id, _UNKNOWN)) for id in lessons]
    are_known = all(review.recalls >= _FEW and not review.by_judge for _, review in each)
    if are_known and len(each) == 1:
        yield _expected(each[0][1])
        return
    topics = {group for groups in lessons.values() for group in groups if group.startswith(TOPIC)}
    topic = known.get(topics.pop(), _UNKNOWN) if len(topics) == 1 else _UNKNOWN
    yield _expected(topic if topic.recalls >= _FEW else known.get(WHOLE, _UNKNOWN))
    if are_known:
        yield (
            sum(share * review.expected for share, review in each),
            hypot(*(share * review.spread for share, review in each)),
        )


def described(policy: Withholding, /) -> str:
    """For people: what is withheld."""
    match policy:
        case Holdout(lessons=0.0, recalls=0.0):
            return "off"
        case Holdout(lessons=lessons, recalls=recalls):
            return f"{lessons:g}" if lessons == recalls else f"{lessons:g}, whole {recalls:g}"
        case AdaptiveHoldout(memory=memory, lesson=lesson):
            return f"memory {memory.helps:g} to {memory.harms:g}, a lesson {lesson.helps:g} to {lesson.harms:g}"
        case _:
            return f"{type(policy).__name__}, {policy.base_rate:g}"
