"""Keep everything: the published method's way."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.records import Add, Change, Experience


async def append(new: Experience, /) -> Sequence[Change]:
    """Keep everything, as the paper does (section 3.2: no pruning, merging or forgetting)."""
    return (Add(experience=new),)
