"""Which consolidator a name stands for."""

from __future__ import annotations

from lessonbank.config import Consolidation, Unset, chosen
from lessonbank.errors import UsageError
from lessonbank.learning.consolidation import MergeSimilar, SkipDuplicates, append
from lessonbank.protocols import Consolidator, Embedder, LanguageModel, Retriever


def choose(
    choice: Consolidation | Unset, retriever: Retriever, model: LanguageModel | None, embedder: Embedder | None, /
) -> Consolidator:
    """The consolidator of a name; by default every lesson is kept.

    Raises:
        UsageError: merging without a model.
    """
    name = chosen(choice, "append")
    if name == "append":
        return append
    if name == "skip_duplicates":
        return SkipDuplicates(retriever)
    if model is None:
        raise UsageError("consolidation='merge_similar' needs a model to word the merged lesson: pass model=")
    return MergeSimilar(retriever, model, embedder=embedder)
