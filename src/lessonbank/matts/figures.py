"""The figures of several runs of one task: Pass@1, best-of-n, Pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.contracts.records import Outcome
from lessonbank.errors import UsageError


def pass_at(k: int, /, *, n: int, successes: int) -> float:
    """The chance that one of `k` runs drawn from these `n` succeeded: 1 - C(n - c, k) / C(n, k), without bias.

    Source: Chen et al. 2021 (arXiv:2107.03374), equation 1. Pass@1 is the share of successes; Pass@n is 1 or 0.

    Raises:
        UsageError: `k` is not from 1 to `n`, or there are more successes than runs.
    """
    if not 1 <= k <= n or not 0 <= successes <= n:
        raise UsageError(f"Pass@k needs k from 1 to n and 0 to n successes; got k={k}, n={n}, successes={successes}")
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


@dataclass(frozen=True, slots=True)
class Figures:
    """What is told of a group of runs; `None` and empty where no outcome is known."""

    pass_at_1: float | None = None
    best_of_n: float | None = None
    pass_at_k: tuple[float, ...] = ()
    mixed: bool = False


def of_group(outcomes: Sequence[Outcome], choice: int | None, /) -> Figures:
    """The figures of independent runs: one without a known outcome counts on neither side."""
    known = [outcome for outcome in outcomes if outcome != "unknown"]
    n, wins = len(known), known.count("success")
    each = tuple(pass_at(k, n=n, successes=wins) for k in range(1, n + 1))
    return Figures(each[0] if each else None, _score_choice(outcomes, choice), each, 0 < wins < n)


def of_rounds(outcomes: Sequence[Outcome], choice: int | None, /) -> Figures:
    """The figures of rounds that build on each other: Pass@1 is the first, Pass@k whether one of the first k did it.

    Rounds cannot be exchanged, so nothing is averaged over orders.
    """
    known = [outcome for outcome in outcomes if outcome != "unknown"]
    reached = tuple(float("success" in known[:k]) for k in range(1, len(known) + 1))
    first = _score_choice(outcomes, 0 if outcomes else None)
    return Figures(first, _score_choice(outcomes, choice), reached, len(set(known)) == 2)


def _score_choice(outcomes: Sequence[Outcome], choice: int | None) -> float | None:
    """Where no run came to its end there is none to choose, and that is no success."""
    outcome = outcomes[choice] if choice is not None else "failure" if set(outcomes) - {"unknown"} else "unknown"
    return None if outcome == "unknown" else float(outcome == "success")
