"""Columns of episodes from the few that a test is about: the others say that nothing is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lessonbank.evidence.episodes import Episodes, Flags, Floats, Ints, Pairs

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
    **more: Any,
) -> Episodes:
    """`lessons`, `withheld` and `probability` are (episodes, places); `more` are columns by name."""
    n = len(outcome)
    nothing = np.full(n, np.nan)
    found = np.empty((n, 0), dtype=np.int64) if lessons is None else lessons
    judged = more.get("judged", nothing)
    unsaid: dict[str, Any] = dict.fromkeys(("confidence", "steps", "tokens", "cost", "seconds"), nothing)
    told: dict[str, Any] = {
        "true": np.ones(n, dtype=np.bool_),
        "judged": judged,
        "judge": np.where(np.isnan(judged), -1, 0),
        "judges": ("a judge",),
        "cluster": np.arange(n),
    }
    return Episodes(
        outcome=np.asarray(outcome, dtype=np.float64),
        control=np.zeros(n, dtype=np.bool_) if control is None else control,
        control_probability=np.broadcast_to(control_probability, (n,)).astype(np.float64),
        pairs=Pairs(
            row=np.repeat(np.arange(n), found.shape[1]),
            lesson=found.ravel(),
            withheld=np.zeros(found.size, dtype=np.bool_) if withheld is None else withheld.ravel(),
            probability=np.broadcast_to(probability, found.shape).astype(np.float64).ravel(),
            cited=np.zeros(found.size, dtype=np.bool_),
        ),
        lessons=tuple(f"lesson {i}" for i in range(names)),
        **{**unsaid, **told, **more},
    )
