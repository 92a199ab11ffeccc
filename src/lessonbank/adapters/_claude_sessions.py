"""Takes in what Claude Code writes into its transcripts: messages that a program does not read, and those of agents.

The Agent SDK hands every line to the session store of the options. This store passes the lines on to the caller's own.
"""
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from claude_agent_sdk import SessionStore

from lessonbank.contracts.records import Usage

from .following import harmless

Line = dict[str, Any]
_OPTIONAL: Final = ("list_sessions", "list_session_summaries", "delete", "list_subkeys")
_SPEAKERS: Final = ("user", "assistant")
_AGENT: Final = "agent-"
_MOST: Final = 64
"""Prompts and agents whose lines wait for the end of a run."""


class SessionMirror:
    """A session store that keeps the lines of open runs in sight, before the store of the caller, if there is one."""

    def __init__(self, store: Any = None, /) -> None:
        self._store = store
        self._prompts: dict[str, str] = {}
        """The prompt that each transcript is at."""
        self._lines = OrderedDict[str, dict[str, Line]]()

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Take lines in. The SDK asks again where the caller's store fails, so that a line may come twice."""
        with harmless("the transcript of a session"):
            for line in entries:
                if line.get("type") in _SPEAKERS and isinstance(line.get("message"), dict):
                    self._take(key, line)
        if self._store is not None:
            await self._store.append(key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        """What the caller's store has. Without one, Claude Code resumes from its own files."""
        return None if self._store is None else await self._store.load(key)

    def __getattr__(self, name: str) -> Any:
        """The SDK looks for optional methods: there are those of the caller's store."""
        if name not in _OPTIONAL or getattr(type(self._store), name, None) is getattr(SessionStore, name, None):
            raise AttributeError(name)
        if self._store is None:
            if name == "list_sessions":
                return _no_sessions
            raise AttributeError(name)
        return getattr(self._store, name)

    def messages(self, names: Iterable[str], /) -> list[Line]:
        """What was said for these prompts, or by this agent. Lines with the id of one message are its blocks."""
        messages: list[Line] = []
        last = None
        for line in self._lines_of(names):
            message, id = line["message"], line["message"].get("id")
            if line.get("isApiErrorMessage"):  # the words of an error are no answer of the model
                continue
            if id and id == last:
                messages[-1]["content"] += _blocks(message.get("content"))
            else:
                messages.append(_message(line, message))
            last = id
        return messages

    def usage(self, name: str, /) -> Usage | None:
        """What an agent cost; `None` where nothing is known of it."""
        usages = {line["message"].get("id"): line["message"].get("usage") for line in self._lines_of([name])}
        counts = [usage for id, usage in usages.items() if id and isinstance(usage, dict)]
        return usage_of(counts, len(counts)) if counts else None

    def forget(self, names: Iterable[str], /) -> None:
        """A run is over: its lines are needed no more."""
        for name in names:
            self._lines.pop(name, None)

    def _take(self, key: Any, line: Line) -> None:
        part = str(key.get("subpath") or "")
        name = part.rpartition(_AGENT)[2]
        if not part:
            prompt = line.get("promptId") if line["type"] == "user" else None
            name = self._prompts[key["session_id"]] = prompt or self._prompts.get(key["session_id"], "")
        if name:
            lines = self._lines.setdefault(name, {})
            lines[str(line.get("uuid") or len(lines))] = line
        if len(self._lines) > _MOST:
            self._lines.popitem(last=False)

    def _lines_of(self, names: Iterable[str]) -> list[Line]:
        return [line for name in names for line in self._lines.get(name, {}).values()]


def usage_of(counts: Iterable[dict[str, Any]], requests: int, /) -> Usage:
    """Counts of the Messages API, with what was read from a cache among the input."""
    usages = list(counts)
    read = sum(
        usage.get(f"{kind}input_tokens") or 0 for usage in usages for kind in ("", "cache_creation_", "cache_read_")
    )
    return Usage(
        requests=requests, input_tokens=read, output_tokens=sum(usage.get("output_tokens") or 0 for usage in usages)
    )


async def _no_sessions(project_key: str) -> list[Any]:
    return []


def _message(line: Line, message: Line) -> Line:
    """What Claude Code says for itself, such as the text of a skill, is not the user's word."""
    content = message.get("content")
    if line.get("isMeta") or line.get("isCompactSummary"):
        return {"role": "environment", "name": "claude-code", "content": content}
    role = message.get("role") or line["type"]
    return {"role": role, "content": content if role == "user" else _blocks(content)}


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
