"""The answers: what each lesson truly changes under a design, and memory as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from .chances import chance, situations
from .columns import Flags, Floats, Ints
from .playing import Run
from .world import World

_EXACT = 6
"""Up to so many candidates every combination of draws is gone through; beyond, combinations are drawn."""
_DRAWS = 32
_BLOCK = 20_000


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of a world under a design, in probability of success.

    The estimand of a lesson is the average, over the recalls in which it has a place and which are not control, of what
    showing it adds: the success probability with it less that without it, averaged over the draws of the other lessons
    found (each is shown with its own probability, none of them retired) and with the clipping of rates to the world's
    bounds. A recall weighs e(1 - e), where e is the probability with which the lesson is shown there: what a regression
    on centred draws (Z - e) estimates. While a lesson has one probability throughout, that is the plain average.
    Control recalls are drawn at random, so leaving them out or in changes nothing.

    The lift is the average over all recalls of the success probability with the lessons that the draws leave, less that
    with nothing.
    """

    lesson: Floats
    """Shape (N,); `nan` for a lesson that never had a place."""
    error: Floats
    """Monte Carlo standard error of `lesson`, shape (N,)."""
    lift: float
    lift_error: float
    designed: float
    """Success with the draws as designed."""
    nothing: float
    everything: float
    places: Floats
    """The share of recalls in which each lesson has a place, shape (N,)."""


def truth(
    world: World, /, *, withhold: float | Floats, sample: int = 200_000, horizon: int | None = None, seed: int = 0
) -> Truth:
    """The truth about a world under a design that withholds each lesson with its probability.

    Exact in the draws (up to 6 candidates), averaged over `sample` situations; the planted probabilities are used, not
    outcomes, so the error is small and told.

    Args:
        world: what is planted.
        withhold: one probability, or one per lesson, shape (N,).
        sample: situations averaged over.
        horizon: episodes over which a drifting world is averaged; by default one whole swing.
        seed: of the situations.
    """
    g, sums = np.random.default_rng((seed, 2)), _Sums(world)
    odds = np.broadcast_to(np.asarray(withhold, float), (world.lessons,))
    for begin in range(0, sample, _BLOCK):
        came = situations(world, g, g.integers(horizon or world.period, size=min(_BLOCK, sample - begin)))
        sums.add(_Design(came.task, came.base, came.found, came.placed, odds[came.found]), came.placed * 1.0, g)
    return sums.told()


def truth_of(world: World, run: Run, /, *, seed: int = 0) -> Truth:
    """The truth about the very recalls of a run, under the probabilities that each of them had.

    For designs that adapt: a recall weighs e(1 - e) for a lesson, so one in which nothing was drawn does not count.
    `error` then says how well this sample stands for its population, not how well the answer is known.
    """
    sums, g, episodes, hidden = _Sums(world), np.random.default_rng((seed, 2)), run.episodes, run.hidden
    back = run.when
    pairs, times = episodes.pairs, np.bincount(episodes.pairs.row, minlength=len(episodes))
    slot = np.arange(len(pairs)) - np.repeat(np.cumsum(times) - times, times)
    shape = len(episodes), world.candidates
    found, placed, odds = np.zeros(shape, np.int64), np.zeros(shape, bool), np.zeros(shape)
    found[pairs.row, slot], placed[pairs.row, slot], odds[pairs.row, slot] = pairs.lesson, True, pairs.probability
    design = _Design(hidden.task[back], hidden.chance_of_nothing[back], found, placed, odds)
    sums.add(design, odds * (1.0 - odds) * placed, g)
    return sums.told()


@dataclass(frozen=True, eq=False)
class _Design:
    """Situations, and the probability with which each lesson found is withheld in each, shape (n, k)."""

    task: Ints
    base: Floats
    found: Ints
    placed: Flags
    odds: Floats

    def chance(self, world: World, shown: Flags) -> Floats:
        return chance(world, self.task, self.base, self.found, shown & self.placed)


class _Sums:
    """Running sums of weights and effects by lesson, and of rates."""

    def __init__(self, world: World, /) -> None:
        self._world, self._n = world, 0
        self._lessons = np.zeros((6, world.lessons))
        self._rates, self._squares = np.zeros(3), 0.0

    def add(self, design: _Design, weight: Floats, g: np.random.Generator, /) -> None:
        """Take in some situations, with the weight of each lesson in each."""
        w, n, everything = self._world, len(design.task), np.ones_like(design.placed)
        exact = design.found.shape[1] <= _EXACT
        designed, adds = _exactly(w, design) if exact else _by_draws(w, design, g)
        nothing = design.chance(w, ~everything)
        self._rates += designed.sum(), nothing.sum(), design.chance(w, everything).sum()
        self._squares += float(((designed - nothing) ** 2).sum())
        columns = (design.placed * 1.0, weight, weight * adds, weight**2, weight**2 * adds, (weight * adds) ** 2)
        for row, column in enumerate(columns):
            self._lessons[row] += np.bincount(design.found.ravel(), weights=column.ravel(), minlength=w.lessons)
        self._n += n

    def told(self) -> Truth:
        """What the sums say."""
        places, weight, effect, squared, crossed, own = self._lessons
        designed, nothing, everything = self._rates / self._n
        lift = designed - nothing
        with np.errstate(invalid="ignore", divide="ignore"):
            lesson = effect / weight
            error = np.sqrt(np.maximum(own - 2 * lesson * crossed + lesson**2 * squared, 0.0)) / weight
        return Truth(
            lesson=lesson.round(12),
            error=error,
            lift=float(lift),
            lift_error=float(np.sqrt(max(self._squares / self._n - lift**2, 0.0) / self._n)),
            designed=float(designed),
            nothing=float(nothing),
            everything=float(everything),
            places=places / self._n,
        )


def _exactly(world: World, design: _Design) -> tuple[Floats, Floats]:
    """Success as designed, shape (n,), and what each lesson adds, shape (n, k), over all combinations of draws."""
    shows = np.where(design.placed, 1.0 - design.odds, 0.0)
    n, k = shows.shape
    designed, adds = np.zeros(n), np.zeros((n, k))
    for combination in product((False, True), repeat=k):
        mask = np.array(combination)
        chances = design.chance(world, np.broadcast_to(mask, (n, k)))
        factors = np.where(mask, shows, 1.0 - shows)
        designed += factors.prod(axis=1) * chances
        for slot in range(k):
            others = np.delete(factors, slot, axis=1).prod(axis=1)
            adds[:, slot] += others * chances * (1.0 if mask[slot] else -1.0)
    return designed, adds


def _by_draws(world: World, design: _Design, g: np.random.Generator) -> tuple[Floats, Floats]:
    """The same over some draws, each used with and without each lesson."""
    n, k = design.found.shape
    designed, adds = np.zeros(n), np.zeros((n, k))
    for _ in range(_DRAWS):
        shown = g.random((n, k)) >= design.odds
        designed += design.chance(world, shown) / _DRAWS
        for slot in range(k):
            one, none = shown.copy(), shown.copy()
            one[:, slot], none[:, slot] = True, False
            adds[:, slot] += (design.chance(world, one) - design.chance(world, none)) / _DRAWS
    return designed, adds
