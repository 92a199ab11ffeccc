"""Reads the pieces every message shape is made of: text, reasoning, calls and results."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lessonbank.contracts.records import Json, ToolCall
from lessonbank.errors import FormatError

from ._plain import plain

Role: TypeAlias = Literal["instructions", "user", "assistant", "tool", "environment"]
Data: TypeAlias = dict[str, Json]

_TEXT_KEYS = ("text", "content", "refusal", "thinking", "reasoning", "transcript", "data")
_TEXT_TYPES = {"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "speech"}
_THOUGHT_TYPES = {"thinking", "reasoning", "thought", "redacted_thinking"}
_SEALED = "redacted_thinking"
_OPAQUE = ("type", "kind", "part_kind", "id", "source", "data", "signature", "annotations", "citations")
_THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking", "thought")
_MEDIA = ("image", "screenshot", "audio", "video", "document", "file", "binary")
_ID_KEYS = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id")


_IMPLIED = {
    **dict.fromkeys(("functionCall", "function_call", "toolUse", "tool_kwargs"), "function_call"),
    **dict.fromkeys(("functionResponse", "function_response", "toolResult"), "function_response"),
    **dict.fromkeys(("image_url", "inlineData", "inline_data"), "image"),
}
"""What a part that does not say its kind is, by its one field that is not null (Gemini, Bedrock, LlamaIndex)."""
_CALLS = ("function", "custom", "functionCall", "function_call", "toolUse")
_RESULTS = ("functionResponse", "function_response", "toolResult")


@dataclass(frozen=True, slots=True)
class Turn:
    """One voice, once: the common form of every message shape."""

    role: Role
    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    call_id: str | None = None
    is_error: bool = False
    is_success: bool = False
    """Whether the result says itself that it is no error."""
    fragment: bool = False
    """Part of a turn that its shape spreads over several items (OpenAI Responses)."""


def text_of(content: Json, /) -> str:
    """The text of a message's content: a string, a list of parts, a part, or other data as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(part_text, content)))
    return part_text(content)


def part_text(part: Json, /) -> str:
    """The text of one content part; a part that is not text becomes a placeholder such as `[image]`."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return json.dumps(part, ensure_ascii=False)
    kind = kind_of(part)
    if kind == _SEALED:
        return ""
    if not kind and not any(key in part for key in ("text", "content")):
        return json.dumps(part, ensure_ascii=False)
    if not kind or kind in _TEXT_TYPES or kind in _THOUGHT_TYPES:
        return _first_text(part)
    is_media = any(word in kind for word in _MEDIA)
    return _placeholder(kind) if is_media else _first_text(part) or _data_text(part) or _placeholder(kind)


def _data_text(part: Data) -> str:
    """What a part of a kind of its own says, as JSON: a result's fields, but neither bytes nor what is encrypted."""
    fields = {key: value for key, value in part.items() if value and key not in _OPAQUE and "encrypted" not in key}
    return json.dumps(fields, ensure_ascii=False) if fields else ""


def _first_text(part: Data) -> str:
    for key in _TEXT_KEYS:
        value = part.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return text_of(value)
    return ""


def kind_of(part: Data, /) -> str:
    """What a content part says it is, in one spelling; `""` when it does not say."""
    if part.get("thought") is True:  # Gemini marks a part that is text
        return "thought"
    kind = part.get("part_kind", part.get("type", part.get("kind")))
    if isinstance(kind, str):
        return kind.replace("-", "_")
    return next((kind for key, kind in _IMPLIED.items() if part.get(key) is not None), "")


def is_thought(kind: str, /) -> bool:
    """Whether a part of this kind is the model thinking, not speaking."""
    return kind in _THOUGHT_TYPES


def is_call(kind: str, /) -> bool:
    """Whether a part of this kind is a tool call, in any provider's spelling."""
    return kind in {"function_call", "custom_tool_call"} or kind.endswith(("tool_use", "tool_call"))


def is_result(kind: str, /) -> bool:
    """Whether a part of this kind is what a tool returned."""
    return kind in {"function_response", "retry_prompt"} or kind.endswith(
        ("tool_result", "tool_return", "call_response", "call_output")
    )


def _placeholder(kind: str) -> str:
    word = next((word for word in _MEDIA if word in kind), kind)
    return f"[{re.sub(r'[^a-z0-9_ ]', '', word.lower())[:40] or 'part'}]"


def thought_of(message: Data, /) -> str:
    """Reasoning that a message carries beside its content."""
    extra = message.get("additional_kwargs")
    sources: list[Data] = [message, extra] if isinstance(extra, dict) else [message]
    thoughts = (text_of(source.get(key)) for source in sources for key in _THOUGHT_KEYS)
    return next(filter(None, thoughts), "")


def call_of(value: Json, /) -> ToolCall:
    """A tool call in any provider's spelling.

    Raises:
        FormatError: it is not a mapping, or has no name.
    """
    if not isinstance(value, dict):
        raise FormatError("has a tool call that is not a mapping")
    inner = next((i for k in _CALLS if (i := _data_of(value.get(k)))), value)
    name = first_string(inner, "name", "tool_name", "toolName")
    if not name:
        raise FormatError("has a tool call without a name")
    raw = next((inner[key] for key in ("arguments", "args", "input", "tool_kwargs") if key in inner), None)
    return ToolCall(
        name=name, arguments=arguments_of(raw), id=first_string(value, *_ID_KEYS) or first_string(inner, *_ID_KEYS)
    )


def arguments_of(value: Json, /) -> dict[str, Json] | str:
    """A call's arguments as data when they are a JSON object, else as the text they came as."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        parsed = plain(json.loads(value))
    except (ValueError, RecursionError, FormatError):
        return value
    return parsed if isinstance(parsed, dict) else value


def result_of(value: Data, /) -> Turn:
    """What a tool returned, in any provider's spelling."""
    inner = next((i for k in _RESULTS if (i := _data_of(value.get(k)))), value)
    raw = next((inner[key] for key in ("content", "output", "response", "result") if inner.get(key) is not None), None)
    error = inner.get("error")
    return Turn(
        role="user" if value.get("requestor") == "user" else "tool",
        text=_result_text(raw) or (_result_text(error) if isinstance(error, str | dict) else ""),
        name=first_string(inner, "name", "tool_name", "toolName"),
        call_id=first_string(value, *_ID_KEYS) or first_string(inner, *_ID_KEYS),
        is_error=_has_failed(value) or _has_failed(inner) or "error_code" in _data_of(raw) or _says_error(inner),
        is_success=_has_succeeded(value) or _has_succeeded(inner),
    )


def _has_succeeded(value: Data) -> bool:
    """Whether a result has a flag of its own that is down. A message of a role `tool` may have it for all results."""
    flag = "is_error" if is_result(kind_of(value)) else "isError"
    return value.get("is_success") is True or value.get(flag) is False or value.get("error") is False


def _result_text(raw: Json) -> str:
    """A bare mapping is a tool's data, not a content part: its own `text` key means nothing."""
    if isinstance(raw, dict) and not isinstance(raw.get("type"), str):
        return json.dumps(raw, ensure_ascii=False)
    return text_of(raw)


def _has_failed(value: Data) -> bool:
    if (
        value.get("is_error") is True
        or value.get("isError") is True
        or value.get("status") == "error"
        or kind_of(value) == "retry_prompt"
    ):
        return True
    return bool(value.get("error")) or value.get("outcome") in ("failed", "denied", "interrupted", "retried")


def _says_error(inner: Data) -> bool:
    """Gemini's tools return their error under `error` in the response."""
    return bool(_data_of(inner.get("response")).get("error"))


def first_string(data: Data, /, *keys: str) -> str | None:
    """The first of the keys that holds a text."""
    return next((value for key in keys if isinstance(value := data.get(key), str) and value), None)


def _data_of(value: Json) -> Data:
    return value if isinstance(value, dict) else {}
