"""Reads requests of the three APIs in the words they share: who speaks, what is said, where a text can be added."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from lessonbank.text.messages import first_request

from .json_text import Span, fields, parse_object, with_inserted

Dialect: TypeAlias = Literal["chat", "responses", "messages"]
Speaker: TypeAlias = Literal["user", "agent", "tool", "rules"]
_PATHS: Final[tuple[tuple[re.Pattern[str], Dialect], ...]] = (
    (re.compile(r"(.*/)?chat/completions"), "chat"),
    (re.compile(r"(.*/)?responses"), "responses"),
    (re.compile(r"(.*/)?v1/messages|/messages"), "messages"),  # not /threads/…/messages, which is another API
)
_ROLES: Final[dict[str, Speaker]] = {
    "user": "user",
    "assistant": "agent",
    "tool": "tool",
    "function": "tool",
    "system": "rules",
    "developer": "rules",
}
_CALLS = ("function_call", "custom_tool_call")
_TEXTS = ("text", "input_text", "output_text")
_USERS = ("user", "safety_identifier", "prompt_cache_key")
_FAILURE: Final = re.compile(
    r"error|exception|traceback|fatal|fail|denied|refus|missing|not found|cannot|exit code", re.IGNORECASE
)
_METADATA = ("user_id", "session_id", "conversation_id", "thread_id")
_PART: Final[dict[Dialect, str]] = {"chat": "text", "responses": "input_text", "messages": "text"}


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """One message: who speaks, the text, the task if it is one, and what makes it this message and no other."""

    speaker: Speaker
    text: str
    task: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as far as memory needs it. `said` has an entry for each of `messages`; `None`: of no concern."""

    dialect: Dialect
    body: str
    messages: list[Span]
    spoken: list[SpokenMessage | None]
    listed: str
    """The list of messages as JSON, as the client wrote it."""
    system: str
    """The instructions beside the messages, as JSON."""
    tools: str
    """The tools that the agent can call, as JSON."""
    rules: str
    """All instructions: two conversations can begin alike and differ here."""
    hint: str
    """What the body says of its user or session: it tells conversations apart, and never whose memory it is."""
    previous: str | None
    conversation: str | None

    @property
    def last(self) -> int | None:
        """Where the last message stands that is no instruction."""
        return next(
            (i for i, message in reversed(list(enumerate(self.spoken))) if message and message.speaker != "rules"), None
        )

    @property
    def turn(self) -> int | None:
        """Where the user's turn stands that this request is to answer; `None` while the agent works with its tools."""
        last = self.last
        message = None if last is None else self.spoken[last]
        return last if message and message.speaker == "user" else None

    @property
    def is_partial(self) -> bool:
        """Whether the server keeps what came before, so that it is not in this request."""
        return bool(self.previous or self.conversation)


def failed_at(request: Request, /) -> tuple[int, list[Any]] | None:
    """Where the last results of tools stand, if words in them speak of a failure, and what was called with what came.

    `None` for any other request, and where the server keeps the calls.
    """
    last, spoken_messages = request.last, request.spoken
    if last is None or request.is_partial or not (message := spoken_messages[last]) or message.speaker != "tool":
        return None
    begin = next((at for at in reversed(range(last)) if (each := spoken_messages[at]) and each.speaker == "user"), 0)
    results = (
        next((at for at in reversed(range(last)) if (each := spoken_messages[at]) and each.speaker == "agent"), 0) + 1
    )
    text = request.body[request.messages[min(results, last)].start : request.messages[last].end]
    return (last, [span.value for span in request.messages[begin : last + 1]]) if _FAILURE.search(text) else None


def dialect_of(path: str, /) -> Dialect | None:
    """Which API a path belongs to; `None` for what passes through."""
    return next((dialect for form, dialect in _PATHS if form.fullmatch(path)), None)


def asks(message: SpokenMessage | None, /) -> bool:
    """Whether a turn asks for something: one that only greets is no task."""
    return (
        bool(message and message.task.strip()) and first_request((message.task, "?")) == message.task
        if message
        else False
    )


def read_request(dialect: Dialect, raw: bytes, /) -> Request | None:
    """The request in `raw`; `None` for one that memory has nothing to do with.

    Raises:
        ValueError, RecursionError: no JSON that every reader reads alike.
    """
    body = raw.decode("utf-8")
    key = "input" if dialect == "responses" else "messages"
    spans = parse_object(body, parts=(key,))
    value = {name: span.value for name, span in spans.items()}
    if key not in spans or _is_left_alone(value):
        return None
    messages, listed = _messages(body, spans[key])
    is_text = isinstance(spans[key].value, str)
    spoken_messages = [_read_message({"role": "user", "content": s.value} if is_text else s.value) for s in messages]
    if not any(spoken_messages):
        return None
    system = spans.get("instructions" if dialect == "responses" else "system")
    beside, tools = (body[span.start : span.end] if span else "null" for span in (system, spans.get("tools")))
    return Request(
        dialect=dialect,
        body=body,
        messages=messages,
        spoken=spoken_messages,
        listed=listed,
        system=beside,
        tools=tools,
        rules="\n".join([beside, *[each.text for each in spoken_messages if each and each.speaker == "rules"]]),
        hint=_hint(value),
        previous=_name(value.get("previous_response_id")),
        conversation=_name(value.get("conversation")),
    )


def with_texts(request: Request, texts: Mapping[int, str], /) -> bytes:
    """The request's body with each text at the end of the message at its place; every other byte is the client's."""
    edits = [edit for index in sorted(texts) for edit in _edits(request, index, texts[index])]
    return with_inserted(request.body, *edits).encode()


def _edits(request: Request, index: int, text: str) -> tuple[tuple[int, str], ...]:
    span, body = request.messages[index], request.body
    spans = fields(body, span.start) if isinstance(span.value, dict) else {}
    content = spans.get("content") or spans.get("output") or span
    part = json.dumps({"type": _PART[request.dialect], "text": text})
    if body.startswith("[", content.start):
        return ((content.end - 1, f", {part}" if content.value else part),)
    if not isinstance(content.value, str):
        return ()  # such as null: there is nowhere to put it
    if request.dialect == "messages":  # clients write one text now as a string, now as a list: this is both
        return (content.start, '[{"type": "text", "text": '), (content.end, f"}}, {part}]")
    # Servers that are only compatible may read nothing but strings.
    return ((content.end - 1, json.dumps(f"\n\n{text}")[1:-1]),)


def mark_of(message: object, /) -> str | None:
    """What makes a message of the agent the same when its client sends it back; `None` for one it need not send."""
    spoken_message = _read_message(message)
    return spoken_message.mark if spoken_message and spoken_message.speaker == "agent" else None


def _is_left_alone(value: Mapping[str, Any]) -> bool:
    """Several answers to one request, or an answer that is fetched later: no conversation can be followed."""
    return value.get("n", 1) not in (1, None) or bool(value.get("background"))


def _messages(body: str, span: Span) -> tuple[list[Span], str]:
    if isinstance(span.value, list):
        return cast("list[Span]", span.value), body[span.start : span.end]
    if not isinstance(span.value, str):
        raise ValueError("the messages are neither a list nor a text")
    return [span], f'[{{"role": "user", "content": {body[span.start : span.end]}}}]'


def _hint(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    named = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    hints = [value.get(key) for key in _USERS] + [named.get(key) for key in _METADATA]
    return json.dumps([each if isinstance(each, str) else None for each in hints])


def _name(value: object) -> str | None:
    inner = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else value
    return inner if isinstance(inner, str) and inner else None


def _read_message(message: object) -> SpokenMessage | None:
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, Any]", message)
    kind, role = str(fields.get("type")), fields.get("role")
    if isinstance(role, str):
        return _message(fields, _ROLES.get(role))
    if kind in _CALLS:
        return SpokenMessage("agent", "", "", _mark("agent", "", [_call(fields)], []))
    if kind.endswith("_output"):
        text = json.dumps(fields.get("output"), sort_keys=True)
        return SpokenMessage("tool", "", "", _mark("tool", text, [str(fields.get("call_id"))], []))
    return None


def _message(message: dict[str, Any], speaker: Speaker | None) -> SpokenMessage | None:
    if speaker is None:
        return None
    content = message.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else [{"type": "text", "text": content}]
    texts: list[str] = []
    names = [_call(call) for call in _dicts(message.get("tool_calls"))]
    names += [str(message["tool_call_id"])] if "tool_call_id" in message else []
    others: list[object] = []
    for part in _dicts(parts):
        if part.get("type") in _TEXTS:
            texts.append(str(part.get("text") or ""))
        elif part.get("type") == "tool_use":
            names.append(_call(part))
        elif part.get("type") == "tool_result":
            speaker = "tool"
            names.append(str(part.get("tool_use_id")))
        elif speaker != "agent":  # what an agent thought, a client may leave out
            others.append({key: value for key, value in part.items() if key != "cache_control"})
    text = "\n".join(texts).strip()
    task = next((each for each in reversed(texts) if each.strip()), "")
    return SpokenMessage(speaker, text, task, _mark(speaker, text, names, others))


def _mark(speaker: str, text: str, names: list[str], others: list[object]) -> str:
    return json.dumps([speaker, text, names, others], sort_keys=True)


def _call(call: dict[str, Any]) -> str:
    """What names a call: its id, and for servers that give none what it says."""
    name = call.get("call_id") or call.get("id")
    return name if isinstance(name, str) else json.dumps(call, sort_keys=True)


def _dicts(value: object) -> list[dict[str, Any]]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
