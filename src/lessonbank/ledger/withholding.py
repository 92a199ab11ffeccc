"""Which items a recall leaves out at random, so that what they change can be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def withheld(item_ids: Iterable[str], /, *, recall_id: str, probability: float) -> frozenset[str]:
    """Each item independently with `probability`; the same recall id always gives the same draw, so a retry of a
    task sees the same text."""
    return frozenset(i for i in item_ids if _uniform(recall_id, i) < probability)


def _uniform(recall_id: str, item_id: str) -> float:
    """A number in [0, 1) that nobody can steer without knowing the random recall id."""
    return int.from_bytes(hashlib.sha256(f"{recall_id}/{item_id}".encode()).digest()[:6], "big") / 2**48
