"""Reads sessions of the GitHub Copilot CLI (`events.jsonl`): one line an event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lessonbank.contracts.records import Json, Usage

from ._account import unread
from ._files import Source, parse
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    count,
    listing,
    mapping,
    spent_on,
    streamed,
    tool_call,
    tool_result,
    words,
)

NAME = "copilot_cli"
_SAID: Final = ("user.message", "assistant.message", "tool.execution_complete")
_KNOWN: Final = re.compile(
    r"(?:assistant|tool|session|model|hook|permission|subagent|skill|system|command|commands|mcp|sampling|elicitation|"
    r"user_input|external_tool|exit_plan_mode|auto_mode_switch|capabilities|pending_messages|abort)\b"
)
"""How the types of events begin that say nothing of the run beside what is read."""
_EXIT: Final = re.compile(r"<(?:command with shellId: \S+ )?exited with exit code (-?\d{1,5})>\s*\Z")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    kind = words(row.get("type"))
    return isinstance(row.get("data"), dict) and "parentId" in row and (kind in _SAID or kind.startswith("session."))


@dataclass(slots=True)
class _Agent:
    """What one agent of a session said and saw: the session's own, or a sub-agent."""

    messages: list[Json] = field(default_factory=list[Json])
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])
    asked: set[str] = field(default_factory=set[str])
    """The ids of the calls that its replies have."""

    def reply(self, data: Data) -> None:
        """Take in what the agent said and called."""
        calls = [mapping(request) for request in listing(data.get("toolRequests"))]
        self.asked |= {words(call.get("toolCallId")) for call in calls}
        message: Data = {
            "role": "assistant",
            "content": words(data.get("content")),
            "tool_calls": [
                tool_call(call.get("toolCallId"), call.get("name"), call.get("arguments")) for call in calls
            ],
        }
        thought = words(data.get("reasoningText"))
        self.messages.append({**message, "reasoning_content": thought} if thought else message)

    def result(self, data: Data, start: Data | None) -> None:
        """Take in what came of a call; `start`: its beginning, in the place of a call that no reply has."""
        id = words(data.get("toolCallId"))
        if start and id not in self.asked:
            self.reply({"toolRequests": [{**start, "name": start.get("toolName")}]})
        text = words(at(data, "result", "content")) or words(at(data, "error", "message"))
        code = _EXIT.search(text[-200:])
        if code:
            self.exit_codes[id] = int(code[1])
        failed = int(code[1]) != 0 if code else data.get("success") is False
        self.messages.append(tool_result(id, text, failed=failed, stated=bool(code) or data.get("success") is True))


@dataclass(slots=True)
class _Session:
    """What the lines of a file come to."""

    id: str
    agents: dict[str, _Agent] = field(default_factory=lambda: {"": _Agent()})
    places: dict[str, int] = field(default_factory=dict[str, int])
    """How many messages the session's own agent had before each event."""
    starts: dict[str, Data] = field(default_factory=dict[str, Data])
    model: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, line: Data) -> None:
        """Take an event in."""
        kind, data = words(line.get("type")), mapping(line.get("data"))
        agent = self.agents.setdefault(words(line.get("agentId")) or words(data.get("parentToolCallId")), _Agent())
        self.places[words(line.get("id"))] = len(self.agents[""].messages)
        if kind == "user.message" and not words(data.get("source")).startswith("skill"):
            speaker = "environment" if data.get("isAutopilotContinuation") is True else "user"
            agent.messages.append({"role": speaker, "content": words(data.get("content"))})
        elif kind == "assistant.message":
            self.error, self.model = "", words(data.get("model")) or self.model
            agent.reply(data)
        elif kind == "tool.execution_start":
            self.starts[words(data.get("toolCallId"))] = data
        elif kind == "tool.execution_complete" and data.get("isUserRequested") is not True:
            agent.result(data, self.starts.pop(words(data.get("toolCallId")), None))
        elif kind.startswith("session."):
            self._read_session_event(kind.removeprefix("session."), data)
        elif not (kind in _SAID or _KNOWN.match(kind)):
            self.unknown[kind or "a line without a type"] = None

    def _read_session_event(self, kind: str, data: Data) -> None:
        """What the program says of the session."""
        if kind == "start":
            self.id = words(data.get("sessionId")) or self.id
        elif kind == "error":
            self.error = words(data.get("message")) or "error"
        elif kind == "snapshot_rewind":
            del self.agents[""].messages[self.places.get(words(data.get("upToEventId")), 2**31) :]
        elif kind == "shutdown":
            self.usage = _spent(data)
        self.model = words(data.get("newModel")) or words(data.get("selectedModel")) or self.model


def _spent(data: Data) -> Usage:
    """The tokens of all models that the session asked."""
    models = mapping(data.get("modelMetrics")).values()
    requests = sum(count(at(model, "requests", "count")) for model in models)
    return spent_on([mapping(at(model, "usage")) for model in models], "inputTokens", "outputTokens", requests=requests)


def _run(session: _Session, name: str, agent: _Agent) -> Run:
    return Run(
        messages=list(agent.messages),
        source="copilot-cli",
        run_id="/".join(filter(None, (session.id, name))),
        task=None if not name else _asked_of(session, name),
        model=session.model or None,
        error=session.error or None if not name else None,
        usage=Usage() if name else session.usage,
        exit_codes=agent.exit_codes,
        left=unread(session.unknown),
    )


def _asked_of(session: _Session, name: str) -> str | None:
    """What a sub-agent was asked by the call that began it; its own words, where the call is not known."""
    calls = (
        call
        for own in session.agents.values()
        for message in own.messages
        for call in listing(at(message, "tool_calls"))
    )
    arguments = next((words(at(call, "function", "arguments")) for call in calls if at(call, "id") == name), "")
    try:
        return words(at(parse(arguments), "prompt")) or None
    except ValueError:
        return None


def _read(source: Source) -> Iterator[Entry]:
    session = _Session(source.folder.name if source.stem == "events" else source.stem)
    return streamed(source, NAME, session.add, lambda: _runs(session))


def _runs(session: _Session) -> list[Callable[[], Run]]:
    """A run for the session itself, and for each sub-agent that did something."""
    agents = [(name, agent) for name, agent in session.agents.items() if agent.messages or not name]
    return [partial(_run, session, name, agent) for name, agent in agents]


FORMAT = Format(NAME, "GitHub Copilot CLI sessions (`events.jsonl`); sub-agents are own runs", _matches, _read)
