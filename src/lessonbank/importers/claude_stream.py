"""Reads what `claude -p --output-format stream-json` prints, and other programs keep: one line a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lessonbank.contracts.records import Json

from ._account import unread
from ._files import Source
from ._reading import Data, Entry, Format, Run, at, listing, mapping, prompt_beside, spent_on, streamed, words
from ._shell import stated_exit_code

NAME = "claude_stream"
_SPEAKERS: Final = {"user", "assistant"}
_SILENT: Final = {
    *("system", "stream_event", "rate_limit_event", "control_request", "control_response", "control_cancel_request"),
    *("keep_alive", "tool_progress", "auth_status"),
}
_INPUTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    if "session_id" not in row or "sessionId" in row:
        return False
    kind = row.get("type")
    return (kind in _SPEAKERS and isinstance(row.get("message"), dict)) or (
        kind in ("system", "result") and isinstance(row.get("subtype"), str)
    )


@dataclass(slots=True)
class _Session:
    """One agent's messages in the stream: the session's own, or those of a sub-agent."""

    id: str
    messages: list[Json] = field(default_factory=list[Json])
    reply: str = ""
    model: str = ""
    usage: dict[str, Data] = field(default_factory=dict[str, Data])
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, line: Data) -> None:
        """Take a message in. Lines with one message id are pieces of one reply."""
        message = mapping(line.get("message"))
        role, content = words(line.get("type")), message.get("content")
        blocks: list[Json] = listing(content) or [{"type": "text", "text": words(content)}]
        id = words(message.get("id")) if role == "assistant" else ""
        if id and id == self.reply:
            last = mapping(self.messages[-1])
            last["content"] = [*listing(last.get("content")), *blocks]
        else:
            self.messages.append({"role": role, "content": blocks})
        self.reply = id
        for block in blocks if role == "user" else []:
            if at(block, "type") == "tool_result" and (code := _exit_code(mapping(block))) is not None:
                self.exit_codes[words(at(block, "tool_use_id"))] = code
        if role == "assistant":
            self.model = words(message.get("model")) or self.model
            self.usage[id or f"line {len(self.messages)}"] = mapping(message.get("usage"))


def _exit_code(result: Data) -> int | None:
    """A command that failed says its code. An error without one is something else: a refusal, or a clock."""
    if result.get("is_error") is not True:
        return 0
    content = result.get("content")
    return stated_exit_code(words(content) or words(at(next(iter(listing(content)), None), "text")))


@dataclass(slots=True)
class _Stream:
    """What the lines of a file come to."""

    session: str = ""
    """The id of the session that the last line is of."""
    sessions: dict[tuple[str, str], _Session] = field(default_factory=dict[tuple[str, str], _Session])
    ends: dict[str, Data] = field(default_factory=dict[str, Data])
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, line: Data) -> None:
        """Take a line in."""
        kind, self.session = words(line.get("type")), words(line.get("session_id")) or self.session
        if kind == "result":
            self.ends[self.session] = line
        elif kind in _SPEAKERS and isinstance(line.get("message"), dict):
            above = words(line.get("parent_tool_use_id"))
            id = "/".join(filter(None, (self.session, above)))
            self.sessions.setdefault((self.session, above), _Session(id)).add(line)
        elif kind not in _SILENT:
            self.unknown[kind or "a line without a type"] = None


def _run(session: _Session, end: Data, left: tuple[str, ...], source: Source, *, is_child: bool) -> Run:
    users = (message for message in session.messages if at(message, "role") == "user")
    has_text = any(at(block, "type") == "text" for message in users for block in listing(at(message, "content")))
    asked = None if is_child or has_text else prompt_beside(source)
    spent = list(session.usage.values())
    return Run(
        messages=session.messages,
        source="claude-code",
        run_id=session.id or source.stem,
        task=asked,
        model=session.model or None,
        error=None if is_child else _error(end),
        exit_codes=session.exit_codes,
        usage=spent_on(spent, _INPUTS, "output_tokens", cost=None if is_child else end.get("total_cost_usd")),
        left=left,
    )


def _error(end: Data) -> str | None:
    """What stopped the run, if something did. That it ended well says nothing of whether the task was done."""
    if end.get("is_error") is not True:
        return None
    parts = [words(end.get("subtype")), *map(words, listing(end.get("errors"))), words(end.get("result"))]
    return ": ".join(filter(None, parts)) or "error"


def _read(source: Source) -> Iterator[Entry]:
    stream = _Stream()
    return streamed(
        source,
        NAME,
        stream.add,
        lambda: [
            partial(_run, session, stream.ends.get(id, {}), unread(stream.unknown), source, is_child=bool(above))
            for (id, above), session in stream.sessions.items()
        ],
    )


FORMAT = Format(NAME, "what `claude -p --output-format stream-json` prints; sub-agents are own runs", _matches, _read)
