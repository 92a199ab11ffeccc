"""Reads sessions of Cline (`*.messages.json`): one session a file."""

from __future__ import annotations

import re

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Data, Run, at, entries, listing, mapping, spent_on, words

_INPUT = re.compile(r"\A\s*<user_input[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return {"sessionId", "agent", "messages"} <= row.keys() and isinstance(row["messages"], list)


def _message(message: Json) -> Json:
    """A message with Cline's frame around the user's words taken off, and its results as texts."""
    told = mapping(message)
    parts = [_part(mapping(part)) for part in listing(told.get("content"))]
    return {"role": told.get("role"), "content": parts or told.get("content")}


def _part(part: Data) -> Json:
    if part.get("type") == "text" and (framed := _INPUT.match(words(part.get("text")))):
        return {"type": "text", "text": framed.group(1)}
    if part.get("type") != "tool_result":
        return part
    results = [mapping(result) for result in listing(part.get("content"))]
    if not results or not all("result" in result for result in results):
        return part
    failed = part.get("is_error") is True or any(result.get("success") is False for result in results)
    text = "\n".join(words(result.get("result")) or words(result.get("error")) for result in results)
    return {"type": "tool_result", "tool_use_id": part.get("tool_use_id"), "content": text, "is_error": failed}


def _exit_codes(messages: list[Json]) -> dict[str, int]:
    """Cline keeps whether commands succeeded, and no code: one that failed may also have been refused."""
    parts = [mapping(part) for message in messages for part in listing(at(message, "content"))]
    told = {words(part.get("tool_use_id")): listing(part.get("content")) for part in parts}
    return {id: 0 for id, results in told.items() if results and all(at(one, "success") is True for one in results)}


def _run(value: Json, source: Source, line: int) -> Run:
    messages = listing(at(value, "messages"))
    spent = [mapping(at(message, "metrics")) for message in messages if at(message, "metrics")]
    models = [words(at(message, "modelInfo", "id")) for message in messages if at(message, "modelInfo", "id")]
    return Run(
        messages=[_message(message) for message in messages],
        source="cline",
        run_id=words(at(value, "sessionId")) or source.stem,
        model=models[-1] if models else None,
        usage=spent_on(spent, "inputTokens", "outputTokens"),
        exit_codes=_exit_codes(messages),
    )


FORMAT = entries("cline", "Cline sessions (`*.messages.json`)", _matches, _run)
