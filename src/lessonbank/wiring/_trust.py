"""What a bank's trust policy and its caps put around its retriever and its consolidator."""

from __future__ import annotations

from typing import cast

from lessonbank.config import Caps, Unset, chosen
from lessonbank.errors import UsageError
from lessonbank.guard.trust import POLICIES, TrustPolicy
from lessonbank.learning.consolidation import DEFAULT_CAPS, CappedConsolidator, Corroborating
from lessonbank.protocols import Consolidator, Retriever, Store
from lessonbank.retrieving import Trusted


def trusting(
    policy: TrustPolicy, search: Retriever, bare: Retriever, consolidator: Consolidator, /
) -> tuple[Retriever, Consolidator]:
    """The retriever and the consolidator as `policy` wants them.

    Raises:
        UsageError: no such policy.
    """
    if policy not in POLICIES:
        raise UsageError(f"trust is one of {', '.join(map(repr, POLICIES))}; got {policy!r}")
    if policy == "open":
        return search, consolidator
    watched = consolidator if policy == "reviewed" else Corroborating(consolidator, bare, policy)
    return Trusted(search, policy), watched


def rationed(consolidator: Consolidator, store: Store, caps: Caps | None | Unset, /) -> Consolidator:
    """The consolidator within `caps`, where there are any.

    Raises:
        UsageError: something else than `Caps`.
    """
    caps = chosen(caps, DEFAULT_CAPS)
    if caps is None:
        return consolidator
    if not isinstance(cast("object", caps), Caps):
        raise UsageError(f"caps= takes Caps(hour=…, scope=…), or None for no bound; got {caps!r}")
    return CappedConsolidator(consolidator, store, caps)
