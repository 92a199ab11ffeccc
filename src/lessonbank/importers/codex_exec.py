"""Reads what `codex exec --json` prints: one line an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lessonbank.contracts.records import Json, Usage

from ._account import unread
from ._files import Source
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    listing,
    mapping,
    prompt_beside,
    spent_on,
    streamed,
    tool_call,
    tool_result,
    words,
)

NAME = "codex_exec"
_EVENTS: Final = {"thread.started", "turn.started", "turn.completed", "turn.failed"}
_SILENT: Final = {"turn.started", "item.started", "item.updated", "item.plan.delta"}
_SILENT_ITEMS: Final = {"todo_list", "plan"}


def _matches(value: Json, name: str) -> bool:
    kind = words(at(value, "type"))
    return kind in _EVENTS or (kind.startswith("item.") and isinstance(at(value, "item"), dict))


@dataclass(slots=True)
class _Thread:
    """What the lines of a file come to."""

    id: str
    messages: list[Json] = field(default_factory=list[Json])
    thought: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, line: Data) -> None:
        """Take a line in."""
        kind = words(line.get("type"))
        if kind == "thread.started":
            self.id = words(line.get("thread_id")) or self.id
        elif kind == "turn.completed":
            self.error = ""
            self.usage += spent_on([mapping(line.get("usage"))], "input_tokens", "output_tokens")
        elif kind in ("turn.failed", "error"):
            self.error = words(at(line, "error", "message")) or words(line.get("message")) or "error"
        elif kind == "item.completed":
            self._item(mapping(line.get("item")))
        elif kind not in _SILENT:
            self.unknown[kind or "a line without a type"] = None

    def _item(self, item: Data) -> None:
        item = {**item, **mapping(item.get("details"))}  # older releases kept the fields of an item apart
        kind = words(item.get("type"))
        if kind == "reasoning":
            self.thought.append(words(item.get("text")))
        elif kind == "agent_message":
            self._say({"content": words(item.get("text"))})
        elif kind == "error":
            self.messages.append({"role": "environment", "name": "codex", "content": words(item.get("message"))})
        elif kind in _CALLS:
            self._call(item, *_CALLS[kind](item))
        elif kind not in _SILENT_ITEMS:
            self.unknown[kind or "an item without a type"] = None

    def _call(self, item: Data, name: str, arguments: Json, text: str) -> None:
        id, code, status = words(item.get("id")), item.get("exit_code"), words(item.get("status"))
        if isinstance(code, int):
            self.exit_codes[id] = code
        failed = code != 0 if isinstance(code, int) else status == "failed" or bool(item.get("error"))
        self._say({"content": "", "tool_calls": [tool_call(id, name, arguments)]})
        output = text or (f"[{status}]" if status not in ("", "completed") else "")
        self.messages.append(
            tool_result(id, output, failed=failed and status != "declined", stated=bool(status) or code is not None)
        )

    def _say(self, message: Data) -> None:
        thought, self.thought = "\n".join(filter(None, self.thought)), []
        self.messages.append({"role": "assistant", **message, **({"reasoning_content": thought} if thought else {})})


def _command(item: Data) -> tuple[str, Json, str]:
    return "shell", {"command": item.get("command")}, words(item.get("aggregated_output"))


def _patch(item: Data) -> tuple[str, Json, str]:
    return "apply_patch", {"changes": item.get("changes")}, ""


def _mcp(item: Data) -> tuple[str, Json, str]:
    texts = [words(at(part, "text")) for part in listing(at(item, "result", "content"))]
    data = at(item, "result", "structured_content")
    text = words(at(item, "error", "message")) or "\n".join(filter(None, texts))
    name = ".".join(filter(None, (words(item.get("server")), words(item.get("tool")))))
    return name, item.get("arguments"), text or (json.dumps(data, ensure_ascii=False) if data else "")


def _search(item: Data) -> tuple[str, Json, str]:
    return "web_search", {"query": item.get("query")}, ""


def _agents(item: Data) -> tuple[str, Json, str]:
    states = mapping(item.get("agents_states")).values()
    messages = (words(at(state, "message")) for state in states)
    return words(item.get("tool")) or "agent", {"prompt": item.get("prompt")}, "\n".join(filter(None, messages))


_CALLS: Final[Mapping[str, Callable[[Data], tuple[str, Json, str]]]] = {
    "command_execution": _command,
    "file_change": _patch,
    "mcp_tool_call": _mcp,
    "web_search": _search,
    "collab_tool_call": _agents,
}
"""The call's name, its arguments, and what came back, by the type of an item."""


def _run(thread: _Thread, source: Source) -> Run:
    return Run(
        messages=thread.messages,
        source="codex",
        run_id=thread.id,
        task=prompt_beside(source),
        error=thread.error or None,
        usage=thread.usage,
        exit_codes=thread.exit_codes,
        left=unread(thread.unknown),
    )


def _read(source: Source) -> Iterator[Entry]:
    threads = [_Thread(source.stem)]

    def add(line: Data) -> None:
        id = words(line.get("thread_id")) or threads[-1].id
        if id != threads[-1].id and threads[-1].messages:  # what several calls printed may be in one file
            threads.append(_Thread(id))
        threads[-1].add(line)

    return streamed(source, NAME, add, lambda: [partial(_run, thread, source) for thread in threads])


FORMAT = Format(NAME, "what `codex exec --json` prints", _matches, _read)
