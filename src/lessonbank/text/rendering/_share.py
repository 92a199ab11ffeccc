"""Divides a budget: which steps are told in full, in brief or not at all, and how many bytes each part gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FLOOR = 200
"""Bytes every part of a step told in full can count on; below that a text says nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a part would like to have (`want`, bytes), is sure of (`floor`), and its weight when sharing the rest."""

    want: int
    weight: float
    floor: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step costs at least, told in full and told in brief, and its rank (lower is more important)."""

    full: int
    brief: int
    rank: int


def share(claims: Sequence[Claim], room: int, /) -> list[int]:
    """Weighted max-min fair sizes: everybody gets `floor`, small wants are met, the large ones share what is left."""
    if sum(claim.want for claim in claims) <= room:
        return [claim.want for claim in claims]
    low, high = 0.0, float(max(room, 1))
    for _ in range(48):
        level = (low + high) / 2
        if sum(_at(claim, level) for claim in claims) <= room:
            low = level
        else:
            high = level
    return [_at(claim, low) for claim in claims]


def _at(claim: Claim, level: float, /) -> int:
    return min(claim.want, max(claim.floor, int(claim.weight * level)))


def choose(costs: Sequence[Cost], room: int, /) -> tuple[frozenset[int], frozenset[int]]:
    """The indices of the steps to tell in full, and of those to tell in brief; the others are left out.

    Two fifths of `room` may go to brief forms and three fifths to the floors of full ones, most important first.
    """
    order = sorted(range(len(costs)), key=lambda i: (costs[i].rank, -i))
    shown, spent = _take(order, [cost.brief for cost in costs], room * 2 // 5)
    extra = [max(cost.full - cost.brief, 0) for cost in costs]
    full, _ = _take([i for i in order if i in shown], extra, room * 4 // 5 - spent)
    return full, shown - full


def _take(order: Sequence[int], prices: Sequence[int], room: int, /) -> tuple[frozenset[int], int]:
    taken: list[int] = []
    spent = 0
    for i in order:
        if spent + prices[i] <= room:
            spent += prices[i]
            taken.append(i)
    return frozenset(taken), spent
