"""Which consolidator a name stands for, and what sorts lessons into topics."""

from __future__ import annotations

from lessonbank.contracts.ports import Consolidator, Embedder, LanguageModel, Retriever, Store
from lessonbank.contracts.settings import Consolidation, Profile, TopicsBy, TrustPolicy, Unset, chosen
from lessonbank.errors import UsageError
from lessonbank.learning.consolidation import Eliminating, Recognise, append
from lessonbank.learning.topics import Topics, TopicsByModel, TopicsByWords
from lessonbank.search import LexicalRetriever


def choose(
    name: Consolidation,
    retriever: Retriever,
    model: LanguageModel | None,
    embedder: Embedder | None,
    /,
    *,
    store: Store,
    trust: TrustPolicy,
) -> Consolidator:
    """The consolidator of a name."""
    if name == "append":
        return append
    # Without a model only words decide: a search by words finds what they compare, and embeds nothing.
    search = retriever if model else LexicalRetriever(store)
    return Eliminating(Recognise(search, model, embedder, imported=trust == "open"), search)


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
