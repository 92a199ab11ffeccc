"""Two tenants of one bank in random turns: whatever one is told must be what it is told when it is alone."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from .places import TESTS, cases
from .table import Row, counted

import bank_tenants  # isort: skip - `places` makes them importable
import sharing  # isort: skip
import tenants  # isort: skip
import test_tenancy  # isort: skip
import test_tenancy_walks as walking  # isort: skip

assert TESTS
_BOUNDARIES = {
    "sqlite._derived.TAIL": 3,
    "_words._MORE": 1,
}
"""So that a short walk crosses the edges behind which a large bank is kept in another way."""
Walk = Callable[..., Awaitable[list[Any]]]


async def rows(every: int = 1) -> list[Row]:
    """Answers that differ because of somebody else, and doors that open to somebody else's id."""
    told, compared = list[str](), 0
    with pytest.MonkeyPatch.context() as patched:
        for name, size in _BOUNDARIES.items():
            patched.setattr(f"lessonbank.stores.{name}", size)
        for kind in sharing.STORES:
            for seed in range(max(1, 6 // every)):
                for walk, moves, steps in _WALKS:
                    drawn = _drawn(moves, steps // min(every, 3), random.Random(f"{kind} {seed}"))
                    differing, number = await _differing(walk, kind, drawn)
                    told += [f"{kind} {seed}: {what}" for what in differing]
                    compared += number
    doors = [answer for kind in sharing.STORES for answer in await _opened_doors(kind, every)]
    ways = len(cases("tenancy", "door", every=every))
    return [
        counted(
            "cross-tenant read, write or delete", told, cases=f"{compared} answers compared with those given alone"
        ),
        counted("existence of another tenant's record given away", doors, cases=f"{ways} doors, on two stores"),
    ]


_WALKS: tuple[tuple[Walk, Sequence[str], int], ...] = (
    (walking.store_walk, tenants.MOVES, 90),
    (walking.bank_walk, bank_tenants.MOVES, 45),
)


def _drawn(moves: Sequence[str], steps: int, chance: random.Random) -> list[walking.Move]:
    return [(chance.random() < 0.5, chance.choice(moves), chance.randrange(2**32)) for _ in range(steps)]


async def _differing(walk: Walk, kind: str, moves: Sequence[walking.Move]) -> tuple[list[str], int]:
    beside, alone = await walk(kind, moves, alone=False), await walk(kind, moves, alone=True)
    differing = [repr(there)[:80] for there, here in zip(beside, alone, strict=True) if there != here]
    return differing + [repr(a)[:80] for a in beside if "theirs" in repr(a)], len(beside)


async def _opened_doors(kind: str, every: int) -> list[str]:
    opened: list[str] = []
    with sharing.folder() as where:
        async with sharing.opened(kind, where) as bank:
            await sharing.furnished(bank.store, sharing.OURS)
            foreign = await sharing.furnished(bank.store, sharing.THEIRS, "foreign-")
            theirs = await test_tenancy.glance(bank.store, sharing.THEIRS)
            for case in cases("tenancy", "door", every=every):
                there = await test_tenancy.knocked(bank, case, foreign)
                nowhere = await test_tenancy.knocked(bank, case, sharing.NOBODYS)
                if there != nowhere or await test_tenancy.glance(bank.store, sharing.THEIRS) != theirs:
                    opened.append(f"{kind}: {case['id']}")
    return opened
