"""What a bank's trust policy and its caps put around its retriever and its consolidator."""

from __future__ import annotations

import logging

from lessonbank.contracts.ports import Consolidator, Retriever, Store
from lessonbank.contracts.settings import Caps, Unset, chosen
from lessonbank.guard.identity import holders
from lessonbank.guard.trust import TrustPolicy
from lessonbank.learning.consolidation import DEFAULT_CAPS, CappedConsolidator, Corroborating, OneWording
from lessonbank.search import Trusted

log = logging.getLogger("lessonbank")


async def warn_unprotected(policy: TrustPolicy, store: Store, /) -> None:
    """Say that nobody is asked for a key where only what a person approved is to be shown."""
    if policy == "reviewed" and not await holders(store, "reviewer"):
        log.warning(
            'trust="reviewed" is not protected from an agent on this machine: any program here can approve a lesson, '
            "until bank.admin.add_reviewer(NAME) gives a person a key"
        )


def trusting(
    policy: TrustPolicy, search: Retriever, bare: Retriever, consolidator: Consolidator, /, *, store: Store | None
) -> tuple[Retriever, Consolidator]:
    """The retriever and the consolidator as `policy` wants them; with a `store`, each wording is one lesson."""
    if store is not None:
        consolidator = OneWording(consolidator, store)
    if policy == "open":
        return Trusted(search, policy), consolidator
    watched = consolidator if policy == "reviewed" else Corroborating(consolidator, bare, store=store)
    return Trusted(search, policy), watched


def rationed(consolidator: Consolidator, store: Store, caps: Caps | Unset | None, /) -> Consolidator:
    """The consolidator within `caps`, where there are any."""
    caps = chosen(caps, DEFAULT_CAPS)
    return consolidator if caps is None else CappedConsolidator(consolidator, store, caps)
