"""Whether a consolidator may take seconds to decide: no lock is held while it does."""

from __future__ import annotations

from lessonbank.protocols import Consolidator

from .append import append
from .bound import Bounded
from .caps import CappedConsolidator
from .elimination import Eliminating
from .one_wording import OneWording
from .recognise import Recognise


def asks_model(policy: Consolidator, /) -> bool:
    """Whether `policy` may ask a model, be it an embedder. A consolidator of the caller's own may."""
    while isinstance(policy, CappedConsolidator | Bounded | OneWording | Eliminating):
        if isinstance(policy, Eliminating) and policy.retriever.space is not None:
            return True
        policy = policy.inner
    if isinstance(policy, Recognise):
        return policy.model is not None or policy.retriever.space is not None
    return policy is not append
