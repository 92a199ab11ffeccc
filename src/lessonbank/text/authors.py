"""Says who wrote a lesson: `learn` handed in what rules or a model wrote, and wrote nothing itself."""

from __future__ import annotations

from typing import Final

from lessonbank.contracts.records import EXTRACTIVE, Provenance

_NAMED: Final = {
    EXTRACTIVE: "rules, without a model",
    "merge": "a merge of lessons",
    "note": "an agent, as a note",
    "file": "a file",
}
"""By how a lesson came about; of the others the person or the model is named."""


def author(of: Provenance, /) -> str:
    """Who wrote a lesson: a person by name, a model, or rules. Who taught it is another matter."""
    if of.method == "human":
        return of.writer
    if of.method == "llm":
        return f"the model {of.model}" if of.model else "a model"
    return _NAMED.get(of.method, f"an import from {of.method}" if of.writer == "import" else of.method)
