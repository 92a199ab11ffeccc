"""Whether a consolidator may take seconds to decide: no lock is held while it does."""

from __future__ import annotations

from lessonbank._base.checks import attribute
from lessonbank.contracts.ports import Consolidator

from .append import append


def asks_model(policy: Consolidator, /) -> bool:
    """Whether `policy` may ask a model, be it an embedder: what it says itself. One of the caller's own may."""
    if policy is append:
        return False
    return attribute(policy, "asks_model") is not False
