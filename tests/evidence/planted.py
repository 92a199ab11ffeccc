"""Columns of episodes from the few that a test is about: the others say that nothing is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lessonbank.evidence._e_process import Scores, gains_by_cell, least_effect
from lessonbank.evidence.episodes import GROUP_LEVEL, LESSON_LEVEL, Draws, Episodes, Flags, Floats, Ints, Placed

SEEDS = st.integers(0, 2**32 - 1)


def episodes(
    outcome: Any,
    *,
    control: Flags | None = None,
    control_probability: Floats | float = 0.0,
    lessons: Ints | None = None,
    withheld: Flags | None = None,
    probability: Floats | float = 0.0,
    names: int = 0,
    groups: tuple[int, ...] = (),
    group_withheld: Flags | None = None,
    group_probability: Floats | float = 0.0,
    **more: Any,
) -> Episodes:
    """`lessons`, `withheld` and `probability` are (episodes, places); `more` are columns by name.

    Treatment 0 is memory as a whole, then the lessons, then the groups. With `groups`, lesson `i` is in `groups[i]`;
    each recall finds lessons of one group, and `group_withheld` says whether its draw left them out.
    """
    n = len(outcome)
    nothing = np.full(n, np.nan)
    found = np.empty((n, 0), dtype=np.int64) if lessons is None else lessons
    places = found.shape[1]
    held = np.zeros(found.shape, dtype=np.bool_) if withheld is None else withheld.reshape(found.shape)
    off = np.zeros(n, dtype=np.bool_) if control is None else control
    gone = np.zeros(n, dtype=np.bool_) if group_withheld is None else group_withheld
    odds = np.broadcast_to(control_probability, (n,)).astype(np.float64)
    group_odds = np.broadcast_to(group_probability, (n,)).astype(np.float64)
    lesson_odds = np.broadcast_to(probability, found.shape).astype(np.float64)
    rows, many = np.arange(n), max(groups, default=-1) + 1
    group_of = np.array(groups)[found[:, 0]] if groups else np.zeros(n, np.int64)
    columns = [
        (rows, np.zeros(n, np.int64), ~off, 1 - odds, np.ones(n, np.bool_)),
        (rows, 1 + names + group_of, ~gone, 1 - group_odds, ~off if groups else np.zeros(n, np.bool_)),
        *((rows, 1 + found[:, k], ~held[:, k], 1 - lesson_odds[:, k], ~off & ~gone) for k in range(places)),
    ]
    row, treatment, shown, chance, told = (np.concatenate([one[i] for one in columns]) for i in range(5))
    kept = told & (chance > 0) & (chance < 1)
    order = np.flatnonzero(kept)[np.argsort(row[kept], kind="stable")]
    numbers = ("steps", "tokens", "cost", "seconds", "judged", "audit_odds")
    unsaid: dict[str, Any] = {
        **dict.fromkeys(numbers, nothing),
        **dict.fromkeys(("broke", "audited", "waiting", "again"), np.zeros(n, dtype=np.bool_)),
        **{"at": np.zeros(n), "writer": np.zeros(n, np.int64), "model": np.full(n, -1)},
        **{"writers": (), "models": (), "another_task": 0},
    }
    rest: dict[str, Any] = {
        "true": np.ones(n, dtype=np.bool_),
        "cluster": np.arange(n),
        "treatments": ("*", *(f"lesson {i}" for i in range(names)), *(f"group/{i}" for i in range(many))),
        "level": np.repeat([0, LESSON_LEVEL, GROUP_LEVEL], [1, names, many]),
        "turn": np.concatenate([[0], np.arange(names), np.arange(many)]),
        "parents": ((), *((1 + names + g,) for g in groups or ()), *[()] * (many + (0 if groups else names))),
    }
    return Episodes(
        outcome=np.asarray(outcome, dtype=np.float64),
        draws=Draws(row[order], treatment[order], shown[order], chance[order]),
        placed=Placed(
            row=np.repeat(rows, places),
            treatment=1 + found.ravel(),
            shown=(~held & ~off[:, None] & ~gone[:, None]).ravel(),
        ),
        **{**unsaid, **rest, **more},
    )


def of(scores: Scores, group: int, /) -> Scores:
    """The scores of one group alone."""
    own = scores.where(scores.group == group)
    return replace(own, group=np.zeros(len(own), np.int64), groups=1, bold=scores.bold[group : group + 1])


def path(scores: Scores, /, *, at: Ints, level: float = 0.95) -> tuple[Floats, Floats]:
    """The bounds of a single group as they stood after the first `at` scores, for each of `at`."""
    each = gains_by_cell(replace(scores, group=np.arange(len(scores)), groups=len(scores), bold=np.empty(0)))
    every = (np.insert(made[0], 0, 0.0, axis=0) for made in (each.up, each.down, each.scale))
    up, down, scale = (np.cumsum(made, axis=0)[at] for made in every)
    lowest = np.minimum.accumulate(np.r_[0.0, scores.lowest])
    highest = np.maximum.accumulate(np.r_[0.0, scores.highest])
    bets, bar = scores.log_prior(lowest[at], highest[at]), np.full(len(at), math.log(2 / (1 - level)))
    return least_effect(up + bets[0], scale, threshold=bar), -least_effect(down + bets[1], scale, threshold=bar)
