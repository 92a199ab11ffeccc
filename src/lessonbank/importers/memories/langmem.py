"""Reads memories of LangMem 0.0.30 as the LangGraph store holds them: `Item.dict()`, one, a list, or one a line."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.records import Json

from ._memory import Format, Memory, fields_of, memory


def _read(value: Json) -> Sequence[Memory] | None:
    rows = value if isinstance(value, list) else [value]
    items = [row for entry in rows if (row := fields_of(entry, "namespace", "key", "value"))]
    contents = [held["content"] for row in items if (held := fields_of(row["value"], "content"))]
    return [memory(_words(content)) for content in contents] or None


def _words(content: Json) -> str:
    """A memory's text; one of a schema of its own (an episode, a profile) as a line for each field that is text."""
    if not isinstance(content, dict):
        return content if isinstance(content, str) else ""
    if content.keys() == {"content"}:
        return _words(content["content"])
    return "\n".join(f"{name}: {text}" for name, text in content.items() if isinstance(text, str))


FORMAT = Format("langmem", "LangMem's memories as items of the LangGraph store, JSON", of_value=_read)
