"""The streams of the report: each has one thing planted that a ledger must find, or must not find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .stream import NOBODY, Flags, Floats, Ints, Opinions, Planted, Stream

_SHOWN = 3
MIXED = (0.15, -0.10, -0.25, 0.05, 0.0, 0.0)
"""Six lessons: one of each."""


def pool(effects: Sequence[float] | Floats, tasks: int, seed: int, /, *, base: float = 0.5, **more: Any) -> Stream:
    """A fixed bank: each task finds three lessons of all, at random. `effects`: (N,) or (kinds, N)."""
    g = np.random.default_rng((seed, 11))
    adds = np.atleast_2d(np.asarray(effects, float))
    count = adds.shape[1]
    told: dict[str, Any] = {
        "lessons": tuple(Planted(f"lesson-{n}") for n in range(count)),
        "found": g.permuted(np.tile(np.arange(count), (tasks, 1)), axis=1),
        "shown": min(_SHOWN, count),
        "base": np.full(tasks, base),
        "effect": adds,
        "kind": np.zeros(tasks, np.int64),
        "template": g.integers(60, size=tasks),
        "luck": g.random((tasks, 4)),
    }
    return Stream(**told | more)


def nulls(tasks: int, seed: int, /, *, lessons: int = 20, **more: Any) -> Stream:
    """Nothing does anything, and all tasks are alike: where chance has most room."""
    return pool(np.zeros(lessons), tasks, seed, **more)


def grouped_nulls(tasks: int, seed: int, /, *, topics: int = 5, lessons: int = 20, effect: float = 0.0) -> Stream:
    """No lesson does anything (or each the same), in topics and sources. Templates differ, and rates drift."""
    g = np.random.default_rng((seed, 12))
    home = np.arange(lessons) % topics
    made = tuple(Planted(f"lesson-{n}", (f"source/{n % 2}", f"topic/{home[n]}")) for n in range(lessons))
    topic = g.integers(topics, size=tasks)
    template = 12 * topic + g.integers(12, size=tasks)
    hard = np.clip(g.beta(2, 2, 12 * topics), 0.1, 0.9 - 3 * abs(effect))
    drift = 0.1 * np.sin(2 * np.pi * np.arange(tasks) / 1500)
    found = _of_home(home, topic, g)
    base = np.clip(hard[template] + drift, 0.05, 0.95)
    return pool(np.full(lessons, effect), tasks, seed, lessons=made, found=found, base=base, template=template)


def mixed(tasks: int, seed: int, /, **more: Any) -> Stream:
    """Six lessons: +15, -10, -25, +5 and two that do nothing."""
    return pool(MIXED, tasks, seed, base=0.55, **more)


def turning(tasks: int, seed: int, /, *, at: int = 1000, size: float = 0.25) -> Stream:
    """A lesson that adds 25 points until task 1,000 and takes 25 away afterwards, among five that do nothing."""
    effects = np.zeros((2, 6))
    effects[:, 0] = size, -size
    return pool(effects, tasks, seed, kind=(np.arange(tasks) >= at).astype(np.int64))


def hanging(tasks: int, seed: int, /, *, hangs: float = 0.3, lessons: int = 6) -> Stream:
    """One lesson hangs three in ten of its runs, and nobody hears of them; nothing else does anything."""
    return pool(np.zeros(lessons), tasks, seed, hangs=np.array([hangs, *[0.0] * (lessons - 1)]))


def silent(tasks: int, seed: int, /, *, share: float = 0.3) -> Stream:
    """Three outcomes in ten are never told, whatever was shown: nothing to warn of."""
    return pool(np.zeros(6), tasks, seed, silence=(share, share))


def judged(tasks: int, seed: int, /, *, told: float, effects: Sequence[float] = (0.0,) * 20) -> Stream:
    """A judge who likes runs with memory, where by default memory does nothing."""
    opinions = Opinions(failure=0.35, success=0.95, bare_failure=0.15, bare_success=0.85, told=told)
    return pool(effects, tasks, seed, judge=opinions)


def opposite(tasks: int, seed: int, /, *, size: float = 0.2) -> Stream:
    """A lesson that adds 20 points to the tasks of one template and takes 20 from the other's, and five nulls."""
    effects = np.zeros((2, 6))
    effects[:, 0] = size, -size
    kind = np.random.default_rng((seed, 13)).integers(2, size=tasks)
    return pool(effects, tasks, seed, kind=kind, template=kind)


def twins(tasks: int, seed: int, /, *, size: float = 0.2) -> Stream:
    """Three lessons that say the same, any one of which adds 20 points, and three nulls."""
    g = np.random.default_rng((seed, 14))
    topic = g.integers(2, size=tasks)
    home = np.array([0, 0, 0, 1, 1, 1])
    made = tuple(Planted(f"lesson-{n}", ("source/0", f"topic/{home[n]}")) for n in range(6))
    effects = np.where(home == 0, size, 0.0)
    return pool(effects, tasks, seed, lessons=made, found=_of_home(home, topic, g), together="any")


def poisoned(tasks: int, seed: int, /, *, helpful: float = 0.2, harmful: float = 0.3, size: float = 0.15) -> Stream:
    """30 lessons in five topics, of which four are shown: 30 % of them take 15 points away."""
    lessons, topics = 30, 5
    g = np.random.default_rng((seed, 15))
    home = np.arange(lessons) % topics
    made = tuple(Planted(f"lesson-{n}", (f"source/{n // 15}", f"topic/{home[n]}")) for n in range(lessons))
    effects = np.zeros(lessons)
    order = g.permutation(lessons)
    bad, good = round(harmful * lessons), round(helpful * lessons)
    effects[order[:bad]], effects[order[bad : bad + good]] = -size, size
    share, level = g.dirichlet(np.full(topics, 2.0)), g.uniform(0.25, 0.75, topics)
    topic = g.choice(topics, tasks, p=share)
    template = 20 * topic + g.integers(20, size=tasks)
    base = np.clip(level[topic] + 0.1 * g.standard_normal(100)[template], 0.02, 0.98)
    found = _of_home(home, topic, g)
    return pool(effects, tasks, seed, lessons=made, found=found, base=base, template=template, shown=4)


def arriving(
    tasks: int,
    seed: int,
    /,
    *,
    topics: int = 25,
    zipf: float = 0.8,
    effects: Floats | None = None,
    recognised: float = 0.0,
) -> Stream:
    """A bank that adds a lesson after each task, and finds three of the task's topic.

    Topics come up by Zipf's law; the lessons of 40 % of them add 20 points together, those of 30 % take 20 away.
    `recognised`: the share of lessons that the bank knew already, so that it added nothing.
    """
    g = np.random.default_rng((seed, 16))
    worth = topic_effects(topics, seed) if effects is None else effects
    share = np.arange(1, topics + 1) ** -zipf
    topic = g.choice(topics, tasks, p=share / share.sum())
    is_new = (g.random(tasks) >= recognised) | _first_of(topic)
    home = topic[is_new]
    return pool(
        worth[home],
        tasks,
        seed,
        lessons=tuple(Planted(f"lesson-{n}", ("source/0", f"topic/{home[n]}")) for n in range(len(home))),
        found=_born_before(topic, is_new, g),
        template=topic,
        together="share",
        shown=_SHOWN,
    )


def topic_effects(topics: int, seed: int, /, *, size: float = 0.2) -> Floats:
    """What the lessons of each topic add: 40 % of topics +20, 30 % nothing, 30 % -20."""
    helpful, harmful = round(0.4 * topics), round(0.3 * topics)
    worth = np.zeros(topics)
    worth[:helpful], worth[helpful : helpful + harmful] = size, -size
    return np.random.default_rng((seed, 17)).permutation(worth)


def wholly(tasks: int, seed: int, /, *, effect: float = 0.1) -> Stream:
    """The same bank where every lesson is worth ten points: memory as a whole helps, and no lesson comes often."""
    return arriving(tasks, seed, effects=np.full(25, effect))


def _first_of(topic: Ints) -> Flags:
    first = np.zeros(len(topic), bool)
    first[np.unique(topic, return_index=True)[1]] = True
    return first


_MOST = 8
"""Lessons found for a task, so that some are left where others were taken back."""


def _born_before(topic: Ints, is_new: Flags, g: np.random.Generator) -> Ints:
    """(T, m): lessons of the task's topic that earlier tasks left, in random order."""
    found = np.full((len(topic), _MOST), NOBODY)
    known: dict[int, list[int]] = {}
    count = 0
    for task, name in enumerate(topic):
        there = known.setdefault(int(name), [])
        some = g.permutation(len(there))[:_MOST]
        found[task, : len(some)] = [there[n] for n in some]
        if is_new[task]:
            there.append(count)
            count += 1
    return found


def _of_home(home: Ints, topic: Ints, g: np.random.Generator) -> Ints:
    """(T, m): the lessons of the task's topic, in random order."""
    homes = [np.flatnonzero(home == name) for name in range(int(home.max()) + 1)]
    most = max(map(len, homes))
    found = np.full((len(topic), most), NOBODY)
    for name, own in enumerate(homes):
        at = np.flatnonzero(topic == name)
        found[at, : len(own)] = g.permuted(np.tile(own, (len(at), 1)), axis=1)
    return found
