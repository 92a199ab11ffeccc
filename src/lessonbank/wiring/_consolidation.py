"""Which consolidator a name stands for, what trust and caps put around it, and what sorts lessons into topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lessonbank._base.aio import promised_answer
from lessonbank._base.checks import argument_error, is_instance, signature
from lessonbank.contracts.ports import Consolidator, Embedder, LanguageModel, Retriever, Store
from lessonbank.contracts.records import Change, Experience
from lessonbank.contracts.records.entry import Entry
from lessonbank.contracts.settings import Caps, Consolidation, Learning, Profile, TopicsBy, TrustPolicy, Unset, chosen
from lessonbank.errors import UsageError
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
from lessonbank.search import LexicalRetriever


def _own(given: object, store: Store, /) -> Consolidator:
    """What the caller gave; a class or function whose one argument is called `store` makes it."""
    called_with, made = signature(given), cast("Any", given)
    if called_with is not None and list(called_with.parameters) == ["store"]:
        made = made(store)
    if not callable(made):
        takes = "takes a consolidator, or a function of the store that makes one"
        raise argument_error("Parts(consolidator=)", takes, made)

    async def held_to_it(new: Experience, /) -> Sequence[Change]:
        return await promised_answer(made, new, "consolidator=", "a list of changes", _are_changes)

    return held_to_it


def _are_changes(result: object) -> bool:
    changes = cast("tuple[object, ...]", result) if is_instance(result, (list, tuple)) else (None,)
    return all(is_instance(change, Entry) for change in changes)


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
    caps: Caps | Unset | None,
    unique_wording: bool,
) -> Consolidator:
    """The consolidator that the caller gave, or that of a name, within `caps`, and as `trust` wants it.

    Raises:
        UsageError: what was given makes none.
    """
    if given is not None:
        consolidator = _own(given, store)
    elif name == "append":
        consolidator = append
    else:
        # Without a model only words decide: a search by words finds what they compare, and embeds nothing.
        search = retriever if model else LexicalRetriever(store)
        consolidator = Eliminating(Recognise(search, model, embedder, imported=trust == "open", store=store), search)
        consolidator = Adding(consolidator, search, store) if additions else consolidator
    most = chosen(caps, DEFAULT_CAPS)
    consolidator = consolidator if most is None else CappedConsolidator(consolidator, store, most)
    consolidator = OneWording(consolidator, store) if unique_wording else consolidator
    if trust in ("open", "reviewed"):
        return consolidator
    return Corroborating(consolidator, retriever, store=store if unique_wording else None)


def takes_additions(learning: Learning, profile: Profile, /, *, recognises: bool) -> bool:
    """Whether what a repeated lesson adds is kept. Raises UsageError: it is asked for, and no repeat is recognised."""
    if learning.additions is True and not recognises:
        raise UsageError("Learning(additions=True) needs consolidation='recognise', and no consolidator of your own")
    return recognises and chosen(learning.additions, profile != "paper")


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
