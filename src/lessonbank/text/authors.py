"""Says who wrote a lesson, and who taught it: `learn` hands in what rules or a model wrote, and writes nothing."""

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
_CALLS: Final = ("learn", "import", "file")
"""Writers by which no person and no program is named."""


def author(of: Provenance, /) -> str:
    """Who wrote a lesson: a person by name, a model, or rules. Who taught it is another matter."""
    if of.method == "human":
        return of.writer
    if of.method == "llm":
        return f"the model {of.model}" if of.model else "a model"
    return _NAMED.get(of.method, f"an import from {of.method}" if of.writer == "import" else of.method)


def teacher(of: Provenance, /) -> str:
    """Who taught a lesson, by name and as the bank knows them; empty where the bank does not."""
    named = of.writer if of.writer not in _CALLS else ""
    return ", ".join(filter(None, (named, of.identity))) if of.identity else ""
