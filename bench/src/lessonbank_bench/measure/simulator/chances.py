"""Which situations come up in a world, and how likely success is in each, whatever is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .columns import Flags, Floats, Ints
from .world import World

_SOON = np.float32(1e-30)
"""Clocks are never quite at zero, so that one which never rings is not a zero times infinity."""


@dataclass(frozen=True, eq=False)
class Situations:
    """n tasks that came up, with the k lessons that were found for each."""

    task: Ints
    """Shape (n,)."""
    base: Floats
    """Success rate without memory at the time, shape (n,)."""
    found: Ints
    """Lessons, shape (n, k)."""
    placed: Flags
    """Which of them are there: fewer than k may be left to find, shape (n, k)."""
    race: Floats
    """What decided which lessons were found: the smaller the sooner, shape (n, N)."""


def situations(world: World, g: np.random.Generator, number: Ints, /) -> Situations:
    """The situations of the episodes with these numbers, shape (n,), which matter where rates drift.

    Lessons enter a race of exponential clocks: the first k are found, which is drawing k without replacement by weight.
    """
    n = len(number)
    drawn = np.searchsorted(world.cumulative, g.random(n) * world.cumulative[-1], side="right")
    task = np.minimum(drawn, len(world.cumulative) - 1)
    family = world.tasks.family[world.tasks.template[task]]
    base = world.tasks.base[task]
    if world.drift:
        turns = number / world.period + world.families.phase[family]
        base = np.clip(base + world.drift * np.sin(2 * np.pi * turns), *world.bounds)
    race = g.standard_exponential((n, world.lessons), dtype=np.float32)
    if world.fresh < 1.0:
        race = np.where((g.random(n) < world.fresh)[:, None], race, world.tasks.habit[task])
    if np.isinf(world.hurdle).any():
        np.maximum(race, _SOON, out=race)
    race *= world.hurdle[family]
    found, placed = first(race, world.candidates)
    return Situations(task, base, found, placed, race)


def first(race: Floats, k: int, /, *, out: Flags | None = None) -> tuple[Ints, Flags]:
    """The k soonest of each row, and which of them came at all; lessons that are `out` do not."""
    if out is not None and out.any():
        race = np.where(out, np.float32(np.inf), race)
    found = np.argpartition(race, k - 1, axis=1)[:, :k] if k < race.shape[1] else np.argsort(race, axis=1)
    return found, np.isfinite(np.take_along_axis(race, found, axis=1))


def chance(world: World, task: Ints, base: Floats, found: Ints, shown: Flags) -> Floats:
    """The probability of success in each situation when just the `shown` of the `found` lessons are in the prompt."""
    adds = world.tasks.effect[world.tasks.template[task][:, None], found]
    told = base + np.einsum("nk,nk->n", adds, shown)
    if world.synergy is not None:
        told = told + _together(world.synergy, found, shown)
    return np.clip(told, *world.bounds)


def _together(synergy: Floats, found: Ints, shown: Flags) -> Floats:
    adds = np.zeros(len(found))
    for one in range(found.shape[1]):
        for other in range(one):
            adds += synergy[found[:, one], found[:, other]] * (shown[:, one] & shown[:, other])
    return adds
