"""The same tasks with and without a lesson, pair by pair: who goes when, when to stop, and what may be said then.

For every pair, d is the outcome with the lesson less the outcome without it, from -1 to 1, with the mean t before the
pair is run. For a stake L below 1 the product of (1 + L d) / (1 + L t) is a martingale. log(1 + L t) is concave in t,
so with m for the average of t over the n pairs so far the product of (1 + L d), divided by (1 + L m) ** n, is never
above it: whatever the effect does from task to task, the chance that this ever exceeds 1 / a is at most a. At m = 0 it
is an e-value against "no effect on average"; as a function of m it is inverted for an interval. A mixture of stakes is
as valid as one. For outcomes that are successes or failures it is a mixture test of McNemar's kind: ties cost nothing.

Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from lessonbank.arguments import a_count, a_seed, a_share, an_id, settle
from lessonbank.errors import UsageError
from lessonbank.guard import canonical, canonical_line, one_line
from lessonbank.types import Lesson, Record

from .draws import uniform
from .lift import Standing

Way = Literal["without", "with", "placebo"]
Arm = Literal["with", "without"]
Stopped = Literal["effect shown", "too small to matter", "nothing left to run", "not proven"]

STAKES: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
_HALVINGS: Final = 40
_LARGEST: Final = 700.0

NEUTRAL: Final = (
    "The river turns east below the old mill and runs slowly past the orchard.",
    "In autumn the hills behind the village are red and yellow for a few weeks.",
    "A clock in the hall strikes the hour, and nobody in the house looks up.",
    "Bread is left to rise under a cloth while the kitchen grows warm.",
    "The ferry crosses the bay twice in the morning and once before dark.",
    "Swallows gather on the roof of the barn when the days become shorter.",
    "An old map of the coast hangs between two windows of the library.",
    "Rain fell in the night, and the stones of the square are still wet.",
)
"""What a placebo is made of: sentences that no task is about."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared: memory as it was shown, with a lesson and without it, or with something irrelevant instead."""

    way: Way
    lesson_id: str | None = None
    """`None`: everything that was shown, which only a placebo can replace."""


def asked(*, without: str | None, with_: str | None, placebo: str | bool) -> Question:
    """The question of a call.

    Raises:
        UsageError: none or several of the three, or something that is no id.
    """
    given: dict[Way, str | bool | None] = {"without": without, "with": with_, "placebo": placebo}
    named: list[tuple[Way, str | bool]] = [
        (way, what) for way, what in given.items() if what is not None and what is not False
    ]
    if len(named) != 1:
        raise UsageError("trial compares one thing: give one of without=id, with_=id, placebo=True or placebo=id")
    way, what = named[0]
    if way == "placebo" and what is True:
        return Question("placebo")
    return Question(way, an_id(what, f"{'with_' if way == 'with' else way}="))


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How pairs are run and when they stop."""

    max_pairs: int = 200
    """The most pairs, each of which is two runs."""
    rounds: int = 1
    """How often a task may be done by each side. Beyond one, the answer speaks of these tasks more than of others."""
    min_effect: float = 0.05
    """An effect within this distance of zero does not matter: the search for it ends. Zero: it never does."""
    level: float = 0.95
    seed: int = 0
    concurrency: int = 1
    """How many pairs are run at once. What is found does not depend on it."""

    def __post_init__(self) -> None:
        """Refuse what cannot be: UsageError."""
        for name in ("max_pairs", "rounds", "concurrency"):
            settle(self, **{name: a_count(getattr(self, name), name)})
        a_share(self.min_effect, "min_effect", below=1.0)
        a_share(self.level, "level", least=0.5, below=1.0)
        settle(self, seed=a_seed(self.seed))


@dataclass(frozen=True, slots=True)
class Planned:
    """One pair that is to be run."""

    recall_id: str
    seed: int
    """For both runs of the pair, from 0 to below 2 ** 32: what is chance in the world can be the same in both."""
    first: Arm


def plan(recall_ids: Sequence[str], design: Design, /) -> Iterator[Planned]:
    """The pairs in the order in which they are run: each round all recalls, shuffled, each side first by a coin.

    All of it follows from the seed and the places of the recalls, so that equal calls are equal experiments.
    """
    seed, left, places = str(design.seed), design.max_pairs, list(enumerate(recall_ids))
    for number in map(str, range(design.rounds)):
        order = sorted(places, key=lambda one, n=number: uniform(seed, "order", n, str(one[0])))[:left]
        for place, id in order:
            chance = int(uniform(seed, "chance", number, str(place)) * 2**32)
            first = "with" if uniform(seed, "first", number, str(place)) < 0.5 else "without"
            yield Planned(id, chance, first)
        left -= len(order)


def placebo(lesson: Lesson, /, *, start: int) -> Lesson:
    """`lesson` with an irrelevant text in the place of its own: the same kind, as many lines, each about as long.

    It never takes more room than `lesson`, so whatever fits beside the one fits beside the other.
    """
    content = "\n".join(
        _filler(line, start + n) for n, line in enumerate(canonical(lesson.content).strip().split("\n"))
    )
    told = {"title": _filler(canonical_line(lesson.title), start + 3), "content": content}
    when = canonical_line(lesson.description)
    return lesson.model_copy(update={**told, "description": _filler(when, start + 5) if when else lesson.description})


def _filler(line: str, start: int) -> str:
    """Neutral words in at most as many bytes as `line` has, beginning at the sentence `start`."""
    room = len(line.encode("utf-8", "replace"))
    turned = NEUTRAL[start % len(NEUTRAL) :] + NEUTRAL[: start % len(NEUTRAL)]
    words = " ".join(turned * (room // sum(map(len, NEUTRAL)) + 1))
    cut = words[:room]
    whole = cut if len(words) <= room or words[room] == " " else cut.rpartition(" ")[0]
    return (whole or cut).strip()


class ReplayedPair(Record):
    """One task, done with and without."""

    recall_id: str
    seed: int
    first: Arm
    digest_with: str
    """Of the text that the agent was handed (SHA-256, hex)."""
    digest_without: str
    outcome_with: float | None = None
    """From 0 to 1; `None` where it is not known."""
    outcome_without: float | None = None
    refused: str = ""
    """Why a run does not prove what it was shown; empty where both do."""

    @property
    def difference(self) -> float | None:
        """The outcome with it less the outcome without it; `None` where the pair does not count."""
        if self.refused or self.outcome_with is None or self.outcome_without is None:
            return None
        return self.outcome_with - self.outcome_without


class Replay(Record):
    """What a lesson changed when the same tasks were done with and without it. `print(replay)` says it in words.

    Nothing of it is written into the bank. Where a run did not prove what it was shown, there is no effect here at all.
    """

    scope: str
    way: Way
    lesson_id: str | None = None
    """`None`: memory as a whole, against a placebo."""
    title: str = ""
    pairs: int = 0
    """Those that count: both runs proved what they were shown, and both outcomes are known."""
    wins: int = 0
    """Pairs that went better with it."""
    losses: int = 0
    ties: int = 0
    unknown: int = 0
    """Pairs left out because an outcome was not known."""
    refused: int = 0
    """Pairs left out because a run did not prove what it was shown; the rows say why."""
    runs: int = 0
    """What it cost: how often the agent ran."""
    success_with: float | None = None
    success_without: float | None = None
    effect: float | None = None
    """The average difference over the pairs, in the unit of the outcome: 0.05 is five points. Stopping when an effect
    is shown makes it look larger than it is; the interval is right all the same."""
    low: float | None = None
    high: float | None = None
    """Between what the effect on these tasks lies, however often one looked and whenever one stopped."""
    e_value: float = 1.0
    """Against there being no effect: at least 1 / (1 - level) exactly when the interval excludes zero."""
    level: float = 0.95
    standing: Standing = "no evidence yet"
    stopped: Stopped = "nothing left to run"
    seed: int = 0
    rows: tuple[ReplayedPair, ...] = ()
    """The pairs as they were run, those that do not count among them."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return in_words(self)


@dataclass(slots=True)
class PairedTest:
    """Evidence about the mean of paired differences, after each of which one may look and stop."""

    level: float = 0.95
    n: int = 0
    _up: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))
    _down: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))

    def add(self, difference: float, /) -> None:
        """One more pair: from -1 to 1."""
        self.n += 1
        if difference:
            self._up = [log + math.log1p(stake * difference) for log, stake in zip(self._up, STAKES, strict=True)]
            self._down = [log + math.log1p(-stake * difference) for log, stake in zip(self._down, STAKES, strict=True)]

    @property
    def log_e(self) -> float:
        """The natural log of a two-sided e-value against "no effect on average"."""
        return max(self._log(self._up, 0.0), self._log(self._down, 0.0)) - math.log(2)

    def above(self, effect: float, /) -> bool:
        """Whether it is shown that the average effect so far is above `effect`."""
        return self._log(self._up, effect) >= self._bar

    def below(self, effect: float, /) -> bool:
        """Whether it is shown that the average effect so far is below `effect`."""
        return self._log(self._down, -effect) >= self._bar

    def interval(self) -> tuple[float, float]:
        """Between what the average effect so far lies; right at every moment at once."""
        return self._least(self._up), -self._least(self._down)

    @property
    def _bar(self) -> float:
        return math.log(2 / (1 - self.level))

    def _log(self, logs: Sequence[float], effect: float) -> float:
        """The log of the wealth that bets on more than `effect` have won."""
        now = [log - self.n * math.log1p(stake * effect) for log, stake in zip(logs, STAKES, strict=True)]
        top = max(now)
        return top + math.log(sum(math.exp(log - top) for log in now) / len(STAKES))

    def _least(self, logs: Sequence[float]) -> float:
        """The effect at which wealth falls to the bar, from below: what is returned is never too high."""
        low, high = -1.0, 1.0
        if self._log(logs, low) < self._bar:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._log(logs, middle) >= self._bar else (low, middle)
        return low


class Trial:
    """Takes pairs one by one in the order of the plan, and says when it is enough."""

    def __init__(self, design: Design, /) -> None:
        self._design, self._test = design, PairedTest(design.level)
        self.rows: list[ReplayedPair] = []

    def take(self, row: ReplayedPair, /) -> Stopped | None:
        """Why to stop after this pair; `None`: go on."""
        self.rows.append(row)
        if row.refused:
            return "not proven"
        if row.difference is None:
            return None
        test, small = self._test, self._design.min_effect
        test.add(row.difference)
        if test.above(0.0) or test.below(0.0):
            return "effect shown"
        return "too small to matter" if small and test.above(-small) and test.below(small) else None

    def told(self, about: Replay, /, *, stopped: Stopped | None) -> Replay:
        """`about` with what was found."""
        kept = [row for row in self.rows if row.difference is not None]
        refused = sum(bool(row.refused) for row in self.rows)
        update: dict[str, object] = {
            "pairs": len(kept),
            "unknown": len(self.rows) - len(kept) - refused,
            "refused": refused,
            "level": self._design.level,
            "seed": self._design.seed,
            "stopped": stopped or "nothing left to run",
            "rows": tuple(self.rows),
            "notes": (*about.notes, *_unknown(self.rows)),
        }
        if kept and not refused:
            update |= self._found(kept)
        return about.model_copy(update=update)

    def _found(self, kept: Sequence[ReplayedPair]) -> dict[str, object]:
        with_, without = (
            math.fsum(getattr(row, f"outcome_{arm}") for row in kept) / len(kept) for arm in ("with", "without")
        )
        differences = [row.difference or 0.0 for row in kept]
        low, high = self._test.interval()
        return {
            "wins": sum(d > 0 for d in differences),
            "losses": sum(d < 0 for d in differences),
            "ties": sum(d == 0 for d in differences),
            "success_with": with_,
            "success_without": without,
            "effect": math.fsum(differences) / len(kept),
            "low": low,
            "high": high,
            "e_value": math.exp(min(self._test.log_e, _LARGEST)),
            "standing": "helps" if low > 0 else "harms" if high < 0 else "no evidence yet",
        }


def _unknown(rows: Sequence[ReplayedPair]) -> list[str]:
    """What a reader should know of missing outcomes: where they follow from the lesson, leaving them out deceives."""
    left = [row for row in rows if not row.refused and row.difference is None]
    with_, without = sum(r.outcome_with is None for r in left), sum(r.outcome_without is None for r in left)
    said = f"no outcome is known of {with_} runs with it and {without} runs without: their pairs are left out"
    return [said] if left else []


def in_words(replay: Replay, /) -> str:
    """The result as plain text. Nothing that strangers wrote can drive a terminal."""
    what = (
        f"the lesson {one_line(replay.title, limit=80) or replay.lesson_id!r}"
        if replay.lesson_id
        else "memory as a whole"
    )
    against = "a placebo in its place" if replay.way == "placebo" else "none of it"
    head = f"Replay of {what} against {against}: {replay.pairs} pairs, {replay.runs} runs."
    return "\n".join([head, *(f"  {one_line(line)}" for line in (*_verdict(replay), *replay.notes))])


def _verdict(replay: Replay) -> list[str]:
    if replay.refused:
        why = next(row.refused for row in replay.rows if row.refused)
        return [f"Not proven, and so no effect is told: {why}."]
    if replay.effect is None or replay.low is None or replay.high is None:
        return ["No evidence yet: no pair of runs has two known outcomes."]
    said = {"helps": "It helps", "harms": "It harms", "no evidence yet": "No evidence yet"}[replay.standing]
    said = "No effect that matters" if replay.stopped == "too small to matter" else said
    span = f"[{100 * replay.low:+.0f}, {100 * replay.high:+.0f}]"
    return [
        f"{said}: success {100 * replay.effect:+.1f} points {span}, e-value {replay.e_value:.3g}.",
        f"{replay.success_with:.0%} with it, {replay.success_without:.0%} without; "
        f"{replay.wins} pairs went better with it, {replay.losses} worse, {replay.ties} the same.",
        f"Stopped: {replay.stopped}.",
    ]
