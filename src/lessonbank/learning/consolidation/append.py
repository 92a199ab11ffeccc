"""Keep everything, the published method's way; and whether another way may ask a model before it decides."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank._base.checks import safe_getattr
from lessonbank.contracts.ports import Consolidator
from lessonbank.contracts.records import Add, Change, Experience


async def append(new: Experience, /) -> Sequence[Change]:
    """Keep everything, as the paper does (section 3.2: no pruning, merging or forgetting)."""
    return (Add(experience=new),)


def asks_model(policy: Consolidator, /) -> bool:
    """Whether `policy` may ask a model, be it an embedder: what it says itself. One of the caller's own may."""
    if policy is append:
        return False
    return safe_getattr(policy, "asks_model") is not False
