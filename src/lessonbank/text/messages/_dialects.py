"""Recognises which SDK's shape one message has, and reads it as turns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lessonbank.contracts.records import Json, ToolCall
from lessonbank.errors import FormatError

from ._own_types import as_messages
from ._turns import (
    Data,
    Role,
    Turn,
    call_of,
    first_string,
    is_call,
    is_result,
    is_thought,
    kind_of,
    part_text,
    result_of,
    text_of,
    thought_of,
)

ROLES: dict[str, Role] = {
    "system": "instructions",
    "developer": "instructions",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "humanmessagechunk": "user",
    "model": "assistant",
    "agent": "assistant",
    "bot": "assistant",
    "tool": "tool",
    "function": "tool",
    "environment": "environment",
}
_ASKED = {"action", "code", "queries", "query", "operation"}
"""Where tools that the provider runs keep what the agent asked of them."""
_KEYS = 4
"""Keys of a message without a role that an error names."""
_LANGCHAIN = {"human", "ai", "system", "tool", "function", "chat", "AIMessageChunk", "HumanMessageChunk"}
_REQUEST_PARTS: dict[str, Role] = {
    "system_prompt": "instructions",
    "instruction": "instructions",
    "user_prompt": "user",
    "text": "user",
}


def turns_of(message: Json, /) -> list[Turn]:
    """The turns one message holds: usually one; several where calls and results share a message.

    Raises:
        FormatError: it is not a message; the sentence continues "messages[i] ...".
    """
    if not isinstance(message, dict):
        raise FormatError(f"is {_short_json(message)}, not a message: each needs a role and content")
    return [turn for part in as_messages(message) for turn in _turns_of(part)]


def _turns_of(message: Data) -> list[Turn]:
    role, kind, parts = message.get("role"), message.get("type"), message.get("parts")
    if isinstance(role, str):
        return _chat(message, role)
    if isinstance(parts, list):
        return _pydantic_ai(message, parts)
    if message.get("lc") and isinstance(message.get("kwargs"), dict):
        return _langchain_constructor(message)
    if isinstance(output := message.get("output"), list) and message.get("object") == "response":
        return [turn for item in output for turn in turns_of(item)]
    if isinstance(kind, str):
        return _langchain(message, kind) if kind in _LANGCHAIN else _item(message, kind)
    keys = ", ".join(repr(key[:30]) for key in list(message)[:_KEYS]) or "nothing"
    raise FormatError(f"has no role, only {keys}: each message needs a role and content")


def usage_of(message: Json, /) -> tuple[int, int] | None:
    """The tokens in and out that LangChain, PydanticAI and Anthropic note on a message of the agent."""
    data = message if isinstance(message, dict) else {}
    for inner in ("data", "kwargs"):
        data = held if isinstance(held := data.get(inner), dict) else data
    usage = data.get("usage_metadata", data.get("usage"))
    if not isinstance(usage, dict):
        return None
    counts = [value for key in ("input_tokens", "output_tokens") if isinstance(value := usage.get(key), int)]
    return (counts[0], counts[1]) if len(counts) == 2 and min(counts) >= 0 and 0 < max(counts) < 2**53 else None


def _chat(message: Data, role: str) -> list[Turn]:
    """A message with a role: OpenAI, Anthropic, OpenTelemetry (`parts`), or plain."""
    speaker = ROLES.get(role.strip().lower())
    content = message.get("content") or message.get("parts", message.get("content"))
    if speaker == "assistant":
        return _assistant(message, content)
    if speaker == "tool":
        return _tool(message, content)
    if speaker is None or speaker == "environment":
        name = role if speaker is None else first_string(message, "name")
        failed, passed = (message.get(flag) is True for flag in ("is_error", "is_success"))
        return [Turn("environment", text_of(content), name=name, is_error=failed, is_success=passed)]
    turns = list(_split(speaker, content))
    calls = _calls(message, ())
    if not turns or calls:
        turns.append(Turn(speaker, calls=calls))
    name = first_string(message, "name")
    return [replace(turn, name=name) if turn.role == speaker else turn for turn in turns]


def _assistant(message: Data, content: Json) -> list[Turn]:
    turns = list(_split("assistant", content))
    if not turns or turns[0].role != "assistant":
        turns.insert(0, Turn("assistant"))
    head = turns[0]
    made = tuple(call for turn in turns for call in turn.calls)
    turns[0] = replace(
        head,
        text=head.text or text_of(message.get("refusal")) or _transcript(message),
        thought=head.thought or thought_of(message),
        calls=head.calls + _calls(message, made),
        fragment=message.get("type") == "message",
    )
    return turns


def _transcript(message: Data) -> str:
    audio = message.get("audio")
    return first_string(audio, "transcript") or "" if isinstance(audio, dict) else ""


def _tool(message: Data, content: Json) -> list[Turn]:
    """One result, or several where the content is a list of results."""
    if isinstance(content, list) and any(isinstance(p, dict) and is_result(kind_of(p)) for p in content):
        return list(_split("tool", content))
    ids = message.get("tool_call_ids")
    turn = result_of({**message, "content": content})
    if turn.call_id is None and isinstance(ids, list) and ids and isinstance(ids[0], str):
        turn = replace(turn, call_id=ids[0])
    return [turn]


def _calls(message: Data, made: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Calls beside the content; some SDKs list again those that stand in the content."""
    beside: Data = extra if isinstance(extra := message.get("additional_kwargs"), dict) else {}
    listed = message.get("tool_calls") or beside.get("tool_calls") or []
    legacy = message.get("function_call") or (None if listed or made else beside.get("function_call"))
    broken = message.get("invalid_tool_calls") or []
    if not isinstance(listed, list) or not isinstance(broken, list):
        raise FormatError("has tool_calls that are not a list")
    known = {call.id for call in made if call.id}
    calls = tuple(call_of(value) for value in (*listed, *broken, *([legacy] if legacy else [])))
    return tuple(call for call in calls if call.id not in known)


def _split(role: Role, content: Json) -> Iterator[Turn]:
    """The turns in a content list: results stand on their own, the rest is what `role` said between them."""
    if not isinstance(content, list):
        text = text_of(content)
        if text:
            yield Turn(role, text)
        return
    own: list[Json] = []
    for part in content:
        if isinstance(part, dict) and is_result(kind_of(part)):
            yield from _spoken(role, own)
            own = []
            yield result_of(part)
        else:
            own.append(part)
    yield from _spoken(role, own)


def _spoken(role: Role, parts: Iterable[Json]) -> Iterator[Turn]:
    text: list[str] = []
    thought: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        kind = kind_of(part) if isinstance(part, dict) else ""
        if is_call(kind):
            calls.append(call_of(part))
        else:
            (thought if is_thought(kind) else text).append(part_text(part))
    turn = Turn(role, "\n".join(filter(None, text)), "\n".join(filter(None, thought)), tuple(calls))
    if turn.text or turn.thought or turn.calls:
        yield turn


def _pydantic_ai(message: Data, parts: list[Json]) -> list[Turn]:
    """A pydantic-ai request or response; a request repeats the agent's instructions each time."""
    if message.get("kind") == "response":
        return list(_split("assistant", parts)) or [Turn("assistant")]
    turns: list[Turn] = []
    instructions = message.get("instructions")
    if isinstance(instructions, str) and instructions:
        turns.append(Turn("instructions", instructions))
    for part in parts:
        if not isinstance(part, dict):
            raise FormatError("has a part that is not a mapping")
        turns.append(_request_part(part))
    return turns


def _request_part(part: Data) -> Turn:
    kind = kind_of(part)
    if kind == "retry_feedback" or (kind == "retry_prompt" and not first_string(part, "tool_name")):
        return Turn("environment", text_of(part.get("content")), name="retry", is_error=True)
    if is_result(kind):
        return result_of(part)
    role = _REQUEST_PARTS.get(kind)
    if role is None:
        return Turn("environment", part_text(part), name=kind or "part")
    return Turn(role, text_of(part.get("content")))


def _langchain_constructor(message: Data) -> list[Turn]:
    """LangChain's own serialisation: the class name says the type."""
    path, fields = message.get("id"), message["kwargs"]
    name = str(path[-1]) if isinstance(path, list) and path else ""
    kind = name.removesuffix("Chunk").removesuffix("Message").lower()
    return turns_of({"type": kind, **fields} if isinstance(fields, dict) else fields)


def _langchain(message: Data, kind: str) -> list[Turn]:
    inner = message.get("data")
    if isinstance(inner, dict):
        message = {**message, **inner}
    return _chat(message, first_string(message, "role") or kind)


def _item(message: Data, kind: str) -> list[Turn]:
    """An item of the OpenAI Responses API that is no message."""
    if kind == "reasoning":
        thought = text_of(message.get("summary")) or text_of(message.get("content"))
        return [Turn("assistant", thought=thought, fragment=True)]
    if is_result(kind):
        return [result_of(message)]
    if kind.endswith("_call"):
        return _hosted_call(message, kind)
    return [Turn("environment", part_text(message), name=kind)]


def _hosted_call(message: Data, kind: str) -> list[Turn]:
    """A call and, for tools the provider runs itself, what it returned."""
    if kind in {"function_call", "custom_tool_call"} or first_string(message, "name"):
        call = call_of(message)
    else:
        shown: Data = {k: v for k, v in message.items() if k in _ASKED and v is not None}
        call = ToolCall(name=kind.removesuffix("_call"), arguments=shown, id=first_string(message, "call_id", "id"))
    turns = [Turn("assistant", calls=(call,), fragment=True)]
    output = next((message[k] for k in ("output", "outputs", "results", "result", "error") if message.get(k)), None)
    if output is not None:
        is_image = kind == "image_generation_call" and output is message.get("result")  # in base64
        text = "[image]" if is_image else text_of(output)
        turns.append(Turn("tool", text, call_id=call.id, is_error=bool(message.get("error"))))
    return turns


def _short_json(value: Json) -> str:
    return "null" if value is None else f"{json.dumps(value, ensure_ascii=False)[:40]}"
