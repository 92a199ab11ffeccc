"""What a bank's trust policy puts around its retriever and its consolidator."""

from __future__ import annotations

from lessonbank.consolidation import Corroborating
from lessonbank.errors import UsageError
from lessonbank.guard.trust import POLICIES, TrustPolicy
from lessonbank.protocols import Consolidator, Retriever
from lessonbank.retrieval import Trusted


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
