"""What a bank's trust policy and its caps put around its retriever and its consolidator."""

from __future__ import annotations

from lessonbank.errors import UsageError
from lessonbank.guard.trust import POLICIES, TrustPolicy
from lessonbank.learning.consolidation import Caps, Corroborating, Rationing
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


def rationed(consolidator: Consolidator, store: Store, caps: object, /) -> Consolidator:
    """The consolidator within `caps`, where there are any.

    Raises:
        UsageError: no `Caps`, or one below 1.
    """
    if caps is None:
        return consolidator
    if not isinstance(caps, Caps) or any(most is not None and most < 1 for most in (caps.hour, caps.scope)):
        raise UsageError(f"caps= takes Caps(hour=…, scope=…) of at least 1, or None for no bound; got {caps!r}")
    return Rationing(consolidator, store, caps)
