"""Reads agent runs out of OpenTelemetry traces that follow the GenAI conventions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

from ._conversation import Conversation, mark_errors
from ._files import Skipped, Source
from ._openinference import as_gen_ai, as_span
from ._payloads import decoded
from ._reading import Data, Entry, Format, Run, at, attempt, listing, mapping, spent_on, words
from ._traces import by_trace, instant

NAME = "otel"
_TOOL = "execute_tool"
_AGENT = "invoke_agent"
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
_SCALARS = ("stringValue", "boolValue", "doubleValue", "string_value", "bool_value", "double_value")


@dataclass(frozen=True, slots=True)
class _Span:
    trace: str
    id: str
    parent: str
    start: str
    attributes: Data
    events: list[Data]
    error: str

    @property
    def operation(self) -> str:
        return words(self.attributes.get("gen_ai.operation.name"))


@dataclass(slots=True)
class _Thread:
    """The conversation of one agent in one trace, put together from its requests."""

    run_id: str
    line: int
    talk: Conversation = field(default_factory=Conversation)
    calls: set[str] = field(default_factory=set[str])
    spent: list[Data] = field(default_factory=list[Data])
    conversation: str = ""
    error: str = ""


def _matches(value: Json, name: str) -> bool:
    row = as_span(mapping(value[0] if isinstance(value, list) and value else value))
    if "resourceSpans" in row or "resource_spans" in row:
        return True
    if inner := _listed(row):
        return not isinstance(inner[0], list) and "data" not in mapping(inner[0]) and _matches(inner[:1], name)
    context = mapping(row.get("context"))
    return "attributes" in row and bool({"traceId", "trace_id"} & (row.keys() | context.keys()))


def _spans(value: Json) -> Iterator[_Span]:
    """Every span in a value: OTLP's nesting, one span, or a list of either."""
    if isinstance(value, list):
        for entry in value:
            yield from _spans(entry)
        return
    row = as_span(mapping(value))
    resources = listing(row.get("resourceSpans", row.get("resource_spans")))
    if not resources:
        if "attributes" in row:
            yield _span(row)
        else:
            yield from (_span(span) for span in map(as_span, map(mapping, _listed(row))) if "attributes" in span)
        return
    for resource in resources:
        for scope in listing(at(resource, "scopeSpans") or at(resource, "scope_spans")):
            yield from (_span(mapping(span)) for span in listing(at(scope, "spans")))


def _listed(row: Data) -> list[Json]:
    """The spans in a page of an API (Phoenix), or in a trace."""
    return listing(row.get("data")) or listing(row.get("spans"))


def _span(row: Data) -> _Span:
    context = {**mapping(row.get("context")), **row}
    status = mapping(row.get("status"))
    code = words(status.get("code", status.get("status_code"))) or words(row.get("status_code"))
    attributes = as_gen_ai(_attributes(row.get("attributes")), kind=words(row.get("span_kind")))
    failed = code in ("2", "ERROR", "STATUS_CODE_ERROR")
    message = words(status.get("message", status.get("description"))) or words(row.get("status_message"))
    error = message or words(attributes.get("error.type")) or "error"
    return _Span(
        trace=_first(context, "traceId", "trace_id"),
        id=_first(context, "spanId", "span_id"),
        parent=_first(context, "parentSpanId", "parent_span_id", "parent_id"),
        start=_start(context),
        attributes=attributes,
        events=[
            {**_attributes(at(event, "attributes")), "event": words(at(event, "name"))}
            for event in listing(row.get("events"))
        ],
        error=error if failed else "",
    )


def _first(row: Data, *keys: str) -> str:
    return next((text for key in keys if (text := words(row.get(key)))), "")


def _start(row: Data) -> str:
    text = _first(row, "startTimeUnixNano", "start_time_unix_nano", "start_time")[:80]
    return text.rjust(30, "0") if text.isdecimal() else instant(text)


def _attributes(value: Json) -> Data:
    """Attributes as a mapping: OTLP writes a list of keys with typed values."""
    if isinstance(value, dict):
        return value
    return {words(at(pair, "key")): _value(at(pair, "value")) for pair in listing(value)}


def _value(value: Json) -> Json:
    row = mapping(value)
    for key in _SCALARS:
        if key in row:
            return row[key]
    if "intValue" in row or "int_value" in row:
        text = words(row.get("intValue", row.get("int_value")))
        return int(text) if text.removeprefix("-").isdecimal() and len(text) < 30 else text
    array = row.get("arrayValue", row.get("array_value"))
    if array is not None:
        return [_value(item) for item in listing(at(array, "values"))]
    return _attributes(at(row.get("kvlistValue", row.get("kvlist_value")), "values"))


def _read_request(attributes: Data) -> tuple[list[Json], list[Json]]:
    """What one request was sent, and what came back."""
    system = decoded(attributes.get("gen_ai.system_instructions"))
    sent: list[Json] = [{"role": "system", "content": system}] if system else []
    sent.extend(listing(decoded(attributes.get("gen_ai.input.messages"))))
    return sent, listing(decoded(attributes.get("gen_ai.output.messages")))


def _told_by_events(events: list[Data]) -> tuple[list[Json], list[Json]]:
    """The messages from span events: one a message in older conventions, one with everything in newer ones."""
    sent: list[Json] = []
    back: list[Json] = []
    for event in events:
        role = _EVENT_ROLES.get(words(event["event"]))
        if role is None:
            more_sent, more_back = _read_request(event)
            sent.extend(more_sent)
            back.extend(more_back)
            continue
        inner = decoded(event.get("message"))
        body = {**event, **mapping(inner)}
        message: Data = {"role": role, "content": decoded(body.get("content"))}
        if body.get("tool_calls"):
            message["tool_calls"] = decoded(body["tool_calls"])
        if role == "tool":
            message["tool_call_id"] = body.get("id")
        (back if event["event"] == "gen_ai.choice" else sent).append(message)
    return sent, back


def _add_request(thread: _Thread, span: _Span) -> None:
    """Each request repeats the history; only what is new, or there more often than before, is appended."""
    for message in thread.talk.add_request(*_read_span(span)):
        for part in (*listing(at(message, "parts")), *listing(at(message, "tool_calls"))):
            thread.calls.add(words(at(part, "id")))
    thread.spent.append(span.attributes)
    thread.conversation = thread.conversation or words(span.attributes.get("gen_ai.conversation.id"))


def _add_tool(thread: _Thread, span: _Span, answered: set[str]) -> None:
    """A tool's own span counts only where no request shows its result."""
    call_id = words(span.attributes.get("gen_ai.tool.call.id")) or span.id
    if call_id in answered:
        return
    name = words(span.attributes.get("gen_ai.tool.name")) or "tool"
    if call_id not in thread.calls:
        arguments = span.attributes.get("gen_ai.tool.call.arguments")
        thread.talk.messages.append(
            {"role": "assistant", "tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]}
        )
    result = decoded(span.attributes.get("gen_ai.tool.call.result")) or span.error
    thread.talk.messages.append(
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": result, "is_error": bool(span.error)}
    )


def _answered(spans: list[_Span]) -> set[str]:
    ids: set[str] = set()
    for span in spans:
        for message in (*_read_request(span.attributes)[0], *_told_by_events(span.events)[0]):
            ids.add(words(at(message, "tool_call_id")))
            parts = (part for part in listing(at(message, "parts")) if words(at(part, "type")).endswith("response"))
            ids.update(words(at(part, "id")) for part in parts)
    return ids - {""}


def _agent_of(span: _Span, spans: dict[str, _Span], known: dict[str, str]) -> str:
    """The nearest agent above a span, so that a sub-agent's requests make a run of their own.

    `known` (parent id to agent) keeps what was found on the way, so that a chain of any length is walked once.
    """
    path: dict[str, None] = {}
    here = span.parent
    while here in spans and here not in known and here not in path and spans[here].operation != _AGENT:
        path[here] = None
        here = spans[here].parent
    agent = here if here in spans and spans[here].operation == _AGENT else known.get(here, "")
    known.update(dict.fromkeys(path, agent))
    return agent


def _threads(spans: list[_Span], line: int) -> Iterator[_Thread]:
    """The conversations of one trace."""
    by_id = {span.id: span for span in spans if span.id}
    answered = _answered(spans)
    threads: dict[str, _Thread] = {}
    above: dict[str, str] = {}
    talking = {id(s) for s in spans if s.operation not in (_TOOL, _AGENT) and any(_read_span(s))}
    talking = talking or {id(s) for s in spans if s.operation == _AGENT}
    for span in sorted(spans, key=lambda span: span.start):
        agent = _agent_of(span, by_id, above)
        thread = threads.setdefault(agent, _Thread(f"{span.trace}/{agent}" if agent else span.trace, line))
        if span.operation == _TOOL:
            _add_tool(thread, span, answered)
        elif id(span) in talking:
            _add_request(thread, span)
    failed = {words(s.attributes.get("gen_ai.tool.call.id")) for s in spans if s.operation == _TOOL and s.error} - {""}
    for agent, thread in threads.items():
        mark_errors(thread.talk.messages, failed)
        thread.error = by_id[agent].error if agent else next((s.error for s in spans if not s.parent), "")
        if thread.talk.messages:
            yield thread


def _read_span(span: _Span) -> tuple[list[Json], list[Json]]:
    sent, back = _read_request(span.attributes)
    return (sent, back) if sent or back else _told_by_events(span.events)


def _run(thread: _Thread) -> Run:
    if not any(at(message, "role") == "user" for message in thread.talk.messages):
        raise FormatError("the trace holds no user message: was the recording of content switched off?")
    models = (
        words(attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model"))
        for attributes in thread.spent
    )
    return Run(
        messages=thread.talk.messages,
        source="otel",
        run_id=thread.run_id,
        task_id=thread.conversation,
        model=next(filter(None, models), None),
        error=thread.error or None,
        usage=spent_on(thread.spent, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    )


def _read(source: Source) -> Iterator[Entry]:
    nothing = "not a span: OTLP JSON or an object with attributes is expected"
    traces = yield from by_trace(source, _spans, nothing=nothing)
    for line, spans in traces.values():
        threads = list(_threads(spans, line))
        if not threads:
            yield Skipped(source.path, line, "the trace holds no messages: was the recording of content switched off?")
        for thread in threads:
            yield attempt(source, line, NAME, lambda t=thread: _run(t))


FORMAT = Format(NAME, "OpenTelemetry GenAI spans: OTLP JSON, or one span (or export) per line", _matches, _read)
