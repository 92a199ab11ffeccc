"""Whether an experiment can answer its question: how many pairs that takes, what they cost, and what this one has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from lessonbank.errors import UsageError

from .comparison import many
from .distributions import NORMAL, binomial, student
from .records import Experiment, Question
from .schedule import attempts as attempts_of
from .stopping_rule import always_power

MOST: Final = 1_000_000
"""Pairs beyond which nobody goes."""
_USUAL: Final = 0.5
_PARTS: Final = 100
_EXACT: Final = 20_000
"""Pairs up to which the exact test's power is summed up; beyond, it is that of the normal approximation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment has, and what its question takes."""

    seeds: int
    tasks: int
    pairs: int
    """Per comparison."""
    comparisons: int
    attempts: int
    power: float
    """The chance to show the effect that is hoped for, where it exists."""
    wanted: float
    smallest: float | None
    """The effect that these pairs show with the power wanted."""
    seeds_needed: int | None
    """With as many tasks as there are; `None`: more than can be counted."""
    pairs_needed: int | None
    attempts_needed: int | None
    cost: float
    """US dollars for the experiment as it is, training included."""
    cost_needed: float | None
    seconds: float

    @property
    def can_answer(self) -> bool:
        """Whether the power is what was wanted."""
        return self.power >= self.wanted


def plan(experiment: Experiment, /) -> Plan:
    """What the experiment's own question takes.

    Raises:
        UsageError: no two outcomes have the base, the effect and the correlation that the question supposes.
    """
    question = experiment.question
    comparisons = max(1, len(experiment.claims))
    seeds, tasks = len(experiment.seeds), experiment.tasks
    stop = bool(experiment.stop)
    needed = seeds_needed(question, tasks, comparisons=comparisons, stop=stop)
    per_seed = attempts_of(experiment) // seeds
    attempts = None if needed is None else needed * per_seed
    price = experiment.price
    return Plan(
        seeds=seeds,
        tasks=tasks,
        pairs=seeds * tasks,
        comparisons=comparisons,
        attempts=seeds * per_seed,
        power=power(question, seeds, tasks, comparisons=comparisons, stop=stop),
        wanted=question.power,
        smallest=smallest(question, seeds, tasks, comparisons=comparisons, stop=stop),
        seeds_needed=needed,
        pairs_needed=None if needed is None else needed * tasks,
        attempts_needed=attempts,
        cost=seeds * per_seed * price.attempt,
        cost_needed=None if attempts is None else attempts * price.attempt,
        seconds=seeds * per_seed * price.seconds,
    )


def discordant(question: Question, /) -> tuple[float, float]:
    """The probabilities that of a pair only the new arm succeeds, and only the baseline does.

    Raises:
        UsageError: there are none that fit.
    """
    base, new = question.base, question.base + question.effect
    if not 0 < new < 1:
        raise UsageError(f"a base of {base:g} and an effect of {question.effect:+g} make a rate outside of 0 to 1")
    low, high = _correlations(base, new)
    correlation = correlation_of(question)
    both = base * new + correlation * math.sqrt(base * (1 - base) * new * (1 - new))
    gained, lost = new - both, base - both
    if not low - 1e-9 <= correlation <= high + 1e-9:
        raise UsageError(
            f"no pairs have a base of {base:g}, an effect of {question.effect:+g} and a correlation of "
            f"{correlation:g}: with that base and effect it is between {low:.2f} and {high:.2f}"
        )
    return max(gained, 0.0), max(lost, 0.0)


def correlation_of(question: Question, /) -> float:
    """What the question supposes, or by itself a half, or what of all that can be is closest to it."""
    if question.correlation is not None:
        return question.correlation
    low, high = _correlations(question.base, question.base + question.effect)
    return min(max(_USUAL, low), high)


def _correlations(base: float, new: float) -> tuple[float, float]:
    spread = math.sqrt(base * (1 - base) * new * (1 - new))
    return (max(0.0, base + new - 1) - base * new) / spread, (min(base, new) - base * new) / spread


def power(question: Question, seeds: int, tasks: int, /, *, comparisons: int = 1, stop: bool = False) -> float:
    """The chance that a difference is shown: both the exact McNemar test and the interval over seeds have to say so.

    Differences of a seed that go together count for fewer pairs (design effect 1 + (tasks - 1) * clustering). The level
    is divided by the comparisons, which is what the first of Holm's steps asks. With `stop` the interval that is right
    however often one looks has to leave zero out instead.
    """
    if seeds < 2:
        return 0.0
    gained, lost = discordant(question)
    alpha = (1 - question.level) / comparisons
    if stop:
        return always_power(seeds, tasks, gained, lost, alpha, clustering=question.clustering)
    spread = (1 + (tasks - 1) * question.clustering) / (seeds * tasks)
    exact = mcnemar_power(int(1 / spread), gained, lost, alpha)
    return _both(exact, _interval_power(question.effect, gained + lost, spread, seeds, alpha), seeds, alpha)


def _interval_power(effect: float, apart: float, spread: float, seeds: int, alpha: float) -> float:
    """Of an interval with Student's t over seeds (normal approximation of the noncentral t, Abramowitz 26.7.10)."""
    error = math.sqrt(max(apart - effect**2, 1e-12) * spread)
    edge, freedom = student(1 - alpha / 2, seeds - 1), seeds - 1
    return NORMAL.cdf((abs(effect) / error - edge * (1 - 1 / (4 * freedom))) / math.sqrt(1 + edge**2 / (2 * freedom)))


def _both(exact: float, interval: float, seeds: int, alpha: float) -> float:
    """The chance of two events that differ by what the seeds' spread is misjudged: a bivariate normal's corner."""
    if not (0 < exact < 1 and 0 < interval < 1):
        return min(exact, interval)
    shared = 1 / (1 + student(1 - alpha / 2, seeds - 1) ** 2 / (2 * (seeds - 1)))
    first, second = NORMAL.inv_cdf(exact), NORMAL.inv_cdf(interval)
    ends = np.linspace(0, 1, _PARTS + 1)
    middles = (ends[1:] + ends[:-1]) / 2 * exact
    points = [NORMAL.inv_cdf(float(share)) for share in middles] if first > -8 else []
    other = [NORMAL.cdf((second - math.sqrt(shared) * z) / math.sqrt(1 - shared)) for z in points]
    return exact * math.fsum(other) / _PARTS


def mcnemar_power(pairs: int, gained: float, lost: float, alpha: float, /) -> float:
    """The chance that McNemar's exact test is below `alpha`, summed over all that can happen.

    Beyond 20,000 pairs by the normal approximation (Connor 1987).
    """
    apart = gained + lost
    if apart <= 0:
        return 0.0
    if pairs > _EXACT:
        effect = abs(gained - lost)
        over = effect * math.sqrt(pairs) - NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(apart)
        return NORMAL.cdf(over / math.sqrt(apart - effect**2))
    chance = binomial(pairs, apart)
    middle, spread = pairs * apart, 6 * math.sqrt(pairs * apart * (1 - apart)) + 5
    first, last = max(1, int(middle - spread)), min(pairs, int(middle + spread) + 1)
    return float(sum(chance[n] * _shown(binomial(n, gained / apart), _edge(n, alpha)) for n in range(first, last + 1)))


def _shown(chances: np.ndarray[tuple[int], np.dtype[np.float64]], edge: int) -> float:
    return 0.0 if edge < 0 else float(chances[: edge + 1].sum() + chances[len(chances) - 1 - edge :].sum())


@lru_cache(maxsize=50_000)
def _edge(n: int, alpha: float) -> int:
    """The most of the rarer sort at which n discordant pairs show something; -1 where none do."""
    return int(np.searchsorted(np.cumsum(binomial(n, 0.5)), alpha / 2, side="right")) - 1


def seeds_needed(question: Question, tasks: int, /, *, comparisons: int = 1, stop: bool = False) -> int | None:
    """With how many seeds of so many tasks the power is what is wanted; `None` for more than a million pairs."""
    if not question.effect:
        return None

    def enough(seeds: int) -> bool:
        return power(question, seeds, tasks, comparisons=comparisons, stop=stop) >= question.power

    return _first(enough, 2, MOST // tasks)


def smallest(
    question: Question, seeds: int, tasks: int, /, *, comparisons: int = 1, stop: bool = False
) -> float | None:
    """The smallest effect, in whole thousandths and of the question's sign, that so many pairs show."""
    sign = -1.0 if question.effect < 0 else 1.0
    room = question.base if sign < 0 else 1 - question.base
    correlation = _USUAL if question.correlation is None else question.correlation

    def shown(thousandths: int) -> bool:
        told = question.model_copy(update={"effect": sign * thousandths / 1000})
        low, high = _correlations(told.base, told.base + told.effect)
        fitted = told.model_copy(update={"correlation": min(max(correlation, low), high)})
        return power(fitted, seeds, tasks, comparisons=comparisons, stop=stop) >= question.power

    found = _first(shown, 1, int(room * 1000) - 1)
    return None if found is None else sign * found / 1000


def _first(holds: Callable[[int], bool], low: int, most: int) -> int | None:
    """The smallest number that holds, where it holds for all above."""
    high = low
    while not holds(high):
        if high >= most:
            return None
        low, high = high + 1, min(high * 2, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def in_words(told: Plan, question: Question, /) -> str:
    """The plan as plain text."""
    effect = f"{100 * question.effect:+.1f} points"
    lines = [
        f"{many(told.seeds, 'seed')} of {many(told.tasks, 'task')}: {many(told.pairs, 'pair')} for each of "
        f"{many(told.comparisons, 'comparison')}, "
        f"{told.attempts:,} attempts in all.",
        f"The question: an effect of {effect} on a base of {question.base:.0%}, pairs correlated "
        f"{correlation_of(question):.3g}, differences of one seed {question.clustering:g}.",
        f"The chance to show it is {told.power:.1%}; wanted are {told.wanted:.0%}.",
    ]
    if told.smallest is not None:
        lines.append(f"The smallest effect these pairs show that often: {100 * told.smallest:+.1f} points.")
    if told.seeds_needed is None:
        lines.append("No number of seeds with so many tasks shows it: raise the tasks, or ask for a larger effect.")
    elif not told.can_answer:
        lines.append(
            f"It takes {told.seeds_needed:,} seeds of {told.tasks} tasks: {told.pairs_needed:,} pairs, "
            f"{told.attempts_needed:,} attempts{_money(told.cost_needed)}."
        )
    if told.cost or told.seconds:
        hours = f", {told.seconds / 3600:,.1f} hours" if told.seconds else ""
        lines.append(f"Expected{_money(told.cost) or ': nothing'}{hours} for the experiment as it is.")
    lines.append("It can answer its question." if told.can_answer else "It cannot answer its question.")
    return "\n".join(lines)


def _money(cost: float | None) -> str:
    return f": {cost:,.2f} US dollars" if cost else ""
