"""Reads bare message lists of OpenAI, Anthropic, LangChain, pydantic-ai, as `.json` or `.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lessonbank.contracts.records import Json

from ._account import changed_shape, ends_in, unread
from ._files import Skipped, Source
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    attempt,
    each,
    listing,
    mapping,
    reply_beside,
    run_of,
    words,
)

NAME = "messages"
_READ = {
    "messages",
    "raw_messages",
    "source",
    "run_id",
    "task_id",
    "task",
    "system",
    "tools",
    "model",
    "success",
    "reward",
}
_NAMES = {"id", "uuid", "name", "title", "created_at", "updated_at", "timestamp", "version", "object"}
"""What says nothing of the run."""
_ITEMS = {"human", "ai", "system", "tool", "message", "function_call", "function_call_output", "reasoning"}


def _is_message(value: Json) -> bool:
    row = mapping(value)
    if isinstance(row.get("role"), str):
        return "content" in row or "parts" in row or "tool_calls" in row
    if isinstance(row.get("parts"), list):
        return row.get("kind") in ("request", "response")
    return words(row.get("type")) in _ITEMS or (bool(row.get("lc")) and isinstance(row.get("kwargs"), dict))


def _matches(value: Json, name: str) -> bool:
    if isinstance(value, dict):
        return _is_message(value) or isinstance(value.get("messages"), list)
    several = listing(value)
    return bool(several) and (_is_message(several[0]) or _matches(several[0], name))


def _split(value: Json) -> list[Json]:
    """The conversations in a value: one under `messages`, one as a list, or a list of either."""
    several = listing(value)
    if not several or _is_message(several[0]):
        return [value]
    return several


def _build(entry: Json, source: Source, line: int) -> Run:
    row: Data = entry if isinstance(entry, dict) else {"messages": entry}
    system = row.get("system")
    parts = [words(mapping(part).get("text")) for part in listing(system)]
    instructions = words(system) or "\n".join(filter(None, parts))
    return replace(run_of(row, source, line, NAME), system=instructions, tools=row.get("tools"), left=_left(row))


def _left(row: Data) -> tuple[str, ...]:
    """What stands beside the messages and was not read."""
    names = row.keys() - _READ - _NAMES - set(ends_in(row)) - ({"response"} if reply_beside(row) else set[str]())
    return (*changed_shape(row), *unread(name for name in row if name in names and row[name] not in (None, "", [], {})))


def _read(source: Source) -> Iterator[Entry]:
    if _is_message(source.first()):
        return _one_conversation(source)
    return each(source, format=NAME, split=_split, build=_build)


def _one_conversation(source: Source) -> Iterator[Entry]:
    """A file with one message a line is one conversation."""
    messages: list[Json] = []
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
        elif _is_message(row.value):
            messages.append(row.value)
        else:
            yield Skipped(source.path, row.line, "not a message: a role and content are expected")
    yield attempt(source, 1, NAME, lambda: _build(messages, source, 1))


FORMAT = Format(
    NAME, "message lists of OpenAI, Anthropic, LangChain or pydantic-ai (JSON or JSON lines)", _matches, _read
)
