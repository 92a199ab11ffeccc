"""Which consolidator a name stands for."""

from __future__ import annotations

from lessonbank.config import Consolidation, TrustPolicy
from lessonbank.errors import UsageError
from lessonbank.learning.consolidation import MergeSimilar, Recognise, append
from lessonbank.protocols import Consolidator, Embedder, LanguageModel, Retriever, Store
from lessonbank.retrieving import LexicalRetriever


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
    """The consolidator of a name.

    Raises:
        UsageError: merging without a model.
    """
    if name == "append":
        return append
    if name == "recognise":
        # Without a model only words decide: a search by words finds what they compare, and embeds nothing.
        search = retriever if model else LexicalRetriever(store)
        return Recognise(search, model, embedder, imported=trust == "open")
    if model is None:
        raise UsageError("consolidation='merge_similar' needs a model to word the merged lesson: pass model=")
    return MergeSimilar(retriever, model, embedder=embedder)
