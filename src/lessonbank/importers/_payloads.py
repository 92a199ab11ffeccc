"""Finds the messages in what a tracing service kept of a request and its reply, however a framework wrapped them."""

from __future__ import annotations

import ast
import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from lessonbank.contracts.records import Json, ToolCall
from lessonbank.text.bounded_json import parse

from ._reading import Data, at, listing, mapping, tool_call, words

_ROLES: Final = "system|developer|user|human|assistant|ai|tool|function"
_SPOKEN: Final = re.compile(rf"\A(?:system|developer|user|human): |(?<=\n)(?:{_ROLES}): ", re.IGNORECASE)
"""Where a voice begins in a conversation that was written as one text."""
_STARTS: Final = re.compile(r"\A(?:system|developer|user|human): ")
_ASKS: Final = re.compile(r"^(?:user|human): ", re.IGNORECASE | re.MULTILINE)
"""What LangChain begins with a capital may also be a line of a report: more than one voice has to be there."""
_LITERAL: Final = r"(None|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_REPR: Final = re.compile(rf"\Arole='(\w+)' content={_LITERAL}(?: name={_LITERAL} tool_call_id={_LITERAL})?", re.DOTALL)
"""A message that was written as Python writes its fields (Agno)."""
_KNOWN: Final = {*_ROLES.split("|"), "model", "environment", "instructions"}
_WRAPS: Final = ("messages", "message", "prompt", "input", "output", "text", "content", "result", "response")
_SYSTEMS: Final = ("system", "system_instruction", "systemInstruction", "instructions")
_SEALED: Final = {"protectedData", "thoughtSignature", "thought_signature", "signature", "encrypted_content"}
_BROKEN: Final[Data] = {"role": "user", "content": "role"}
"""What an exporter of 2025 wrote in place of a list of messages."""
_NOTHING: Final = ("", "None", "null", "undefined")


def decoded(value: Json, /) -> Json:
    """Some exports write JSON as text, some do so twice."""
    for _ in range(2):
        if not isinstance(value, str) or not value.lstrip().startswith(("[", "{", '"')):
            return value
        try:
            value = parse(value)
        except ValueError:
            return value
    return value


@dataclass(slots=True)
class Payloads:
    """Reads the payloads of one trace."""

    tools: list[Json] = field(default_factory=list[Json])
    """Definitions of tools that stood among the messages."""
    guessed: bool = False
    """Whether it is by the places of words in a text that somebody is known to have said them."""
    unread: dict[str, None] = field(default_factory=dict[str, None])
    """The fields of payloads in which no message was found."""

    def messages(self, value: Json, role: str, /) -> list[Json]:
        """The messages in what was sent or came back; a bare text is one message of `role`."""
        messages = self._find_messages(decoded(value), role)
        return _answered([message for message in map(self._message, messages) if message])

    def _find_messages(self, value: Json, role: str) -> list[Data]:
        if isinstance(value, str):
            return self._spoken(value, role)
        if isinstance(value, list):
            inner = value[0] if len(value) == 1 and isinstance(value[0], list) else value
            return [message for entry in inner for message in self._each(decoded(entry), role)]
        return self._unwrapped(mapping(value), role)

    def _each(self, value: Json, role: str) -> list[Data]:
        """An element of a list; one without a role is a call of the AI SDK, or wrapped again."""
        row = mapping(value)
        if "toolName" in row and "type" not in row:
            call = tool_call(row.get("toolCallId"), row["toolName"], row.get("input", row.get("args")))
            return [{"role": "assistant", "content": "", "tool_calls": [call]}]
        if row and not ({"role", "type", "kwargs", "kind", "parts"} & row.keys()):
            return self._unwrapped(row, role)
        return [row] if row else self._spoken(words(value), role)

    def _spoken(self, text: str, role: str) -> list[Data]:
        """One text: a message as Python writes it, a conversation with a role before each voice, or `role`'s words."""
        if is_nothing(text):
            return []
        if fields := _REPR.match(text):
            return [_from_repr(fields)]
        begins = [match.start() for match in _SPOKEN.finditer(text)] if role == "user" else []
        if begins[:1] != [0] or not (_STARTS.match(text) or (begins[1:] and _ASKS.search(text))):
            return [{"role": role, "content": text}]
        self.guessed = True
        voices = [text[start:end] for start, end in zip(begins, [*begins[1:], len(text)], strict=True)]
        turns = [(name, speech.strip()) for name, _, speech in (voice.partition(": ") for voice in voices)]
        return [{"role": name.lower(), "content": speech} for name, speech in turns if speech not in _NOTHING]

    def _unwrapped(self, row: Data, role: str) -> list[Data]:
        if isinstance(row.get("role"), str) or ("kwargs" in row and "id" in row):
            return [row]
        system: list[Data] = [{"role": "system", "content": text} for text in _systems(row)]
        if contents := row.get("contents"):
            return [
                *system,
                *self._find_messages([contents] if isinstance(contents, dict) else decoded(contents), role),
            ]
        if reply := _first_reply(row):
            return self._find_messages(decoded(reply), role)
        if listing(at(row, "content", "parts")):
            return [{**mapping(row["content"]), "role": at(row, "content", "role") or "model"}]
        if arguments := listing(row.get("args")):
            return self._find_messages(arguments[0], role)
        for name in _WRAPS:
            if row.get(name) and (messages := self._find_messages(decoded(row[name]), role)) and messages != [_BROKEN]:
                return [*system, *messages]
        self.unread.update(dict.fromkeys(row))
        return system

    def _message(self, message: Data) -> Data:
        """A message as every reader knows it; empty where it defines a tool."""
        content = decoded(message.get("content"))
        if message.get("role") == "tool" and mapping(at(content, "function")).get("parameters") is not None:
            self.tools.append(content)
            return {}
        if calls := _calls_in(content):
            return {"role": "assistant", "content": "", "tool_calls": calls}
        extra = listing(at(message, "additional_kwargs", "tool_calls"))
        if extra and not message.get("tool_calls"):
            message = {**message, "tool_calls": extra}
        parts = listing(message.get("parts")) or listing(message.get("content"))
        if not any(_is_sealed(part) for part in parts):
            return message
        open_parts: list[Json] = [_opened(mapping(part)) if _is_sealed(part) else part for part in parts]
        return {**message, "parts" if listing(message.get("parts")) else "content": open_parts}


def _systems(row: Data) -> list[str]:
    """The instructions beside the messages of a request."""
    sources = (row, mapping(row.get("config")))
    values = (source.get(name) for source in sources for name in _SYSTEMS)
    texts = (words(value) or words(at(value, "text")) or _texts(at(value, "parts") or value) for value in values)
    return [text for text in texts if text]


def _texts(parts: Json) -> str:
    return "\n".join(filter(None, (words(at(part, "text")) for part in listing(parts))))


def is_nothing(value: Json, /) -> bool:
    """Whether a payload was not recorded."""
    return not value or (isinstance(value, str) and value.strip() in _NOTHING)


def _first_reply(row: Data) -> Json:
    """The first of the replies a model gave, where its API lists them."""
    if choices := listing(row.get("choices")):
        return next((at(choice, "message") or at(choice, "text") for choice in choices), None)
    if candidates := listing(row.get("candidates")):
        content = mapping(at(candidates[0], "content"))
        return {**content, "role": content.get("role") or "model"} if content else None
    batches = listing(row.get("generations"))
    first = batches[0][0] if batches and isinstance(batches[0], list) and batches[0] else next(iter(batches), None)
    return at(first, "message") or at(first, "text")


def _from_repr(fields: re.Match[str]) -> Data:
    role, content, _, call_id = fields.groups()
    message: Data = {"role": role, "content": _literal(content)}
    if call_id and call_id != "None":
        message["tool_call_id"] = _literal(call_id)
    return message


def _literal(text: str) -> str:
    try:
        return words(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text


def _calls_in(content: Json) -> list[Json]:
    """The calls in a content that is nothing else: some exporters write them as its text."""
    several = listing(content)
    calls = [call for call in several if at(call, "function", "name") and "arguments" in mapping(at(call, "function"))]
    if not calls or len(calls) != len(several):
        return []
    return [
        tool_call(at(call, "id"), at(call, "function", "name"), at(call, "function", "arguments")) for call in calls
    ]


def _is_sealed(part: Json) -> bool:
    row = mapping(part)
    return bool(_SEALED & row.keys()) or bool(_SEALED & mapping(row.get("content")).keys())


def _opened(part: Data) -> Data:
    """A part without what only its provider can read."""
    fields = {name: value for name, value in part.items() if name not in _SEALED}
    inner = mapping(part.get("content"))
    if _SEALED & inner.keys():
        return {"type": "reasoning", "content": words(inner.get("text"))}
    return fields


class Waiting:
    """Calls without a result, found again by any of their labels: an id, a name, a name with its arguments."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[int, ToolCall]] = {}
        self._labels: dict[str, deque[int]] = {}
        self._count = 0

    def add(self, place: int, call: ToolCall, /) -> None:
        """Let a call of the message at `place` wait."""
        self._count += 1
        self._calls[self._count] = (place, call)
        for label in (call.id, call.name, labelled(call.name, call.arguments)):
            self._labels.setdefault(label or "", deque()).append(self._count)

    def take(self, *labels: str) -> tuple[int, ToolCall] | None:
        """The first call that waits under the first of the labels that has one; it waits no longer."""
        for label in filter(None, labels):
            numbers = self._labels.get(label, deque())
            while numbers:
                if call := self._calls.pop(numbers.popleft(), None):
                    return call
        return None

    def first(self) -> ToolCall | None:
        """The call that waits longest, which waits no longer."""
        number = next(iter(self._calls), None)
        return None if number is None else self._calls.pop(number)[1]


def labelled(name: str, arguments: Json, /) -> str:
    """The label of a call by its name and its arguments."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def _answered(messages: list[Data]) -> list[Json]:
    """Return messages in which each result names the call that it follows."""
    waiting = Waiting()
    conversation: list[Json] = []
    for message in messages:
        for call in listing(message.get("tool_calls")):
            name = words(at(call, "function", "name")) or words(at(call, "name"))
            if name and words(at(call, "id")):
                waiting.add(0, ToolCall(name=name, arguments={}, id=words(at(call, "id"))))
        role, id = words(message.get("role")), words(message.get("tool_call_id"))
        match = waiting.take(id, "" if role in _KNOWN else role)
        call = match[1] if match else None
        if role == "tool" and not id and not message.get("parts"):
            call = waiting.first()
        of_call = {} if id or call is None else {"role": "tool", "tool_call_id": call.id, "name": call.name}
        conversation.append({**message, **of_call})
    return conversation


def result_text(value: Json, /) -> str:
    """What a tool returned, as text."""
    value = decoded(value)
    if isinstance(value, str):
        return "" if is_nothing(value) else value
    inner = mapping(value)
    if inner.keys() == {"content"} and (text := _texts(inner["content"])):
        return text
    if len(inner) == 1 and isinstance(content := next(iter(inner.values())), str):
        return content
    return "" if value is None else json.dumps(value, ensure_ascii=False)
