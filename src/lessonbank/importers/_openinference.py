"""Reads span attributes of the OpenInference conventions (package 0.1.42) as those of OpenTelemetry's GenAI ones."""

from __future__ import annotations

from typing import Final

from lessonbank.contracts.records import Json

from ._payloads import Payloads
from ._reading import Data, at, listing, mapping, words

KIND: Final = "openinference.span.kind"
_OPERATIONS = {"LLM": "chat", "AGENT": "invoke_agent", "TOOL": "execute_tool"}
_KINDS: Final = {
    *("LLM", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT"),
    "UNKNOWN",
}
_MOST: Final = 100_000
"""Attributes of a span that are read."""
_DEEP: Final = 16


def as_span(row: Data, /) -> Data:
    """A span as OpenTelemetry nests it, out of one whose fields are columns (`attributes.llm.model_name`)."""
    if not any(name.startswith(("attributes.", "context.")) for name in list(row)[:_MOST]):
        return row
    nested: dict[str, Data] = {"attributes": {}, "context": {}}
    plain: Data = {}
    for name, value in list(row.items())[:_MOST]:
        place, _, inner = name.partition(".")
        (nested[place] if inner and place in nested else plain)[inner or name] = value
    plain["context"] = nested["context"]
    plain["attributes"] = {name: value for name, value in nested["attributes"].items() if value is not None}
    return plain


def as_gen_ai(attributes: Data, /, *, kind: str = "") -> Data:
    """`attributes` with what they say under the names of the GenAI conventions; others as they are.

    `kind`: the span's own, for those that keep it beside the attributes.
    """
    kind = (words(attributes.get(KIND) or at(attributes, "openinference", "span", "kind")) or kind).upper()
    if kind not in _KINDS:
        return attributes
    tree = _tree(attributes)
    fields: Data = {
        "gen_ai.operation.name": _OPERATIONS.get(kind, kind.lower()),
        "gen_ai.request.model": at(tree, "llm", "model_name"),
        "gen_ai.conversation.id": at(tree, "session", "id"),
        "gen_ai.usage.input_tokens": at(tree, "llm", "token_count", "prompt"),
        "gen_ai.usage.output_tokens": at(tree, "llm", "token_count", "completion"),
    }
    if kind in ("LLM", "AGENT"):
        fields["gen_ai.input.messages"] = _messages_at(tree, "input", "user")
        fields["gen_ai.output.messages"] = _messages_at(tree, "output", "assistant")
    if kind == "TOOL":
        fields["gen_ai.tool.name"] = at(tree, "tool", "name")
        fields["gen_ai.tool.call.id"] = at(tree, "tool", "id") or at(tree, "tool_call", "id")
        fields["gen_ai.tool.call.arguments"] = at(tree, "input", "value") or at(tree, "tool", "parameters")
        fields["gen_ai.tool.call.result"] = at(tree, "output", "value")
    return {**attributes, **{name: value for name, value in fields.items() if value is not None}}


def _messages_at(tree: Data, side: str, role: str) -> list[Json]:
    """The messages of a request or a reply; where there are none, those in what was sent or came back as a whole."""
    return _messages(at(tree, "llm", f"{side}_messages")) or Payloads().messages(at(tree, side, "value"), role)


def _messages(value: Json) -> list[Json]:
    return [_message(mapping(at(row, "message")) or mapping(row)) for row in _list(value)]


def _message(row: Data) -> Json:
    parts = [words(at(content, "message_content", "text")) for content in _list(row.get("contents"))]
    message: Data = {"role": row.get("role"), "content": row.get("content") or "\n".join(filter(None, parts))}
    calls: list[Json] = []
    for entry in _list(row.get("tool_calls")):
        call = mapping(at(entry, "tool_call")) or mapping(entry)
        calls.append({"id": call.get("id"), "type": "function", "function": call.get("function")})
    if calls:
        message["tool_calls"] = calls
    for name in ("tool_call_id", "name"):
        if row.get(name):
            message[name] = row[name]
    return message


def _tree(attributes: Data) -> Data:
    """`llm.input_messages.0.message.role` as nested objects; those that are nested already stay."""
    tree: Data = {}
    for name, value in list(attributes.items())[:_MOST]:
        here, path = tree, name.split(".")[:_DEEP]
        for part in path[:-1]:
            below = here.get(part)
            if not isinstance(below, dict):
                below = here[part] = {}
            here = below
        last = here.get(path[-1])
        if not (isinstance(last, dict) and not isinstance(value, dict)):
            here[path[-1]] = value
    return tree


def _list(value: Json) -> list[Json]:
    """A list, also one that was written as an object with the keys `0`, `1` and so on."""
    if not isinstance(value, dict):
        return listing(value)
    numbered = [(int(key), entry) for key, entry in value.items() if key.isascii() and key.isdigit() and len(key) < 7]
    return [entry for _, entry in sorted(numbered, key=lambda pair: pair[0])]
