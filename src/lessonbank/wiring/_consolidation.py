"""Which consolidator a name stands for, what trust and caps put around it, and what sorts lessons into topics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from lessonbank._base.checks import argument_error, signature
from lessonbank.contracts.ports import Consolidator, Embedder, LanguageModel, Retriever, Store
from lessonbank.contracts.settings import Caps, Consolidation, Profile, TopicsBy, TrustPolicy, Unset, chosen
from lessonbank.errors import UsageError
from lessonbank.guard.identity import key_names
from lessonbank.learning.consolidation import (
    DEFAULT_CAPS,
    Adding,
    CappedConsolidator,
    Corroborating,
    Eliminating,
    OneWording,
    Recognise,
    append,
)
from lessonbank.learning.topics import Topics, TopicsByModel, TopicsByWords
from lessonbank.search import LexicalRetriever, TrustFilter


def _own(given: object, store: Store, /) -> Consolidator:
    """What the caller gave; a class or function whose one argument is called `store` makes it."""
    takes = signature(given)
    if takes is None or list(takes.parameters) != ["store"]:
        return cast("Consolidator", given)
    made = cast("Callable[[Store], object]", given)(store)
    if not callable(made):
        raise argument_error(
            "Parts(consolidator=)", "takes a consolidator, or a function of the store that makes one", made
        )
    return cast("Consolidator", made)


def choose_consolidator(
    name: Consolidation,
    retriever: Retriever,
    model: LanguageModel | None,
    embedder: Embedder | None,
    /,
    *,
    given: object,
    store: Store,
    trust: TrustPolicy,
    additions: bool,
) -> Consolidator:
    """The consolidator that the caller gave, or that of a name. Raises UsageError: what was given makes none."""
    if given is not None:
        return _own(given, store)
    if name == "append":
        return append
    # Without a model only words decide: a search by words finds what they compare, and embeds nothing.
    search = retriever if model else LexicalRetriever(store)
    known = Eliminating(Recognise(search, model, embedder, imported=trust == "open"), search)
    return Adding(known, search, store) if additions else known


def choose_topics(
    choice: TopicsBy | Unset | None, store: Store, model: LanguageModel | None, profile: Profile, /, *, measured: bool
) -> Topics | None:
    """What sorts new lessons into topics; the paper has none. Without measurement, no model is paid for it.

    Raises:
        UsageError: topics by a model without a model.
    """
    usual = None if profile == "paper" else "model" if model and measured else "words"
    name = chosen(choice, usual)
    if name is None:
        return None
    if name == "words":
        return TopicsByWords(store)
    if model is None:
        raise UsageError("topics='model' needs a model to name them: pass model=, or topics='words'")
    return TopicsByModel(TopicsByWords(store), model)


log = logging.getLogger("lessonbank")


async def warn_unprotected(policy: TrustPolicy, store: Store, /) -> None:
    """Say that nobody is asked for a key where only what a person approved is to be shown."""
    if policy == "reviewed" and not await key_names(store, "reviewer"):
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
        return TrustFilter(search, policy), consolidator
    watched = consolidator if policy == "reviewed" else Corroborating(consolidator, bare, store=store)
    return TrustFilter(search, policy), watched


def rationed(consolidator: Consolidator, store: Store, caps: Caps | Unset | None, /) -> Consolidator:
    """The consolidator within `caps`, where there are any."""
    caps = chosen(caps, DEFAULT_CAPS)
    return consolidator if caps is None else CappedConsolidator(consolidator, store, caps)
