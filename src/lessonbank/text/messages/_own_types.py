"""Rewrites messages of programs with types of their own in the shape that others share."""

from __future__ import annotations

import re
from typing import Final

from lessonbank.contracts.records import Json

from ._turns import Data

_META: Final = ("tool_calls", "tool_results", "name", "tool_call_id", "is_error")
_IDS: Final = ("tool_call_id", "call_id", "tool_use_id", "id")
_EVENT: Final = {"invocation_id", "invocationId", "actions", "turn_complete", "turnComplete", "partial"}

_ACTION: Final = re.compile(
    r"(?:\A|(?<=\n))[ \t]*Action:[ \t]*(?P<name>[^\n]{1,200})\n+[ \t]*Action Input:[ \t]*(?P<input>.*?)"
    r"(?:\n[ \t]*Observation:(?P<result>.*))?\Z",
    re.DOTALL,
)
"""A call as agents write it that work with text alone (CrewAI, LlamaIndex, LangChain), often with its result."""
_OBSERVED: Final = "Observation:"


def as_messages(message: Data, /) -> list[Data]:
    """The messages that one message of a program's own type is; any other as it is."""
    if "author" in message and "role" not in message and ("content" in message or _EVENT & message.keys()):
        return _of_event(message)
    if isinstance(message.get("blocks"), list) and "content" not in message:
        message = _of_blocks(message)
    parts = message.get("parts")
    if isinstance(parts, list) and any(_is_tool_part(part) or _is_mark(part) for part in parts):
        message = {**message, "content": _of_parts(parts)}  # what it says beside them, they say as well
    meta = message.get("meta")
    if isinstance(meta, dict) and {"tool_calls", "tool_results"} & meta.keys():
        message = {name: meta[name] for name in _META if name in meta} | message
    content = message.get("content")
    return _of_text(message, content) if isinstance(content, str) else _with_results(message)


def _of_text(message: Data, content: str) -> list[Data]:
    """A message in whose text the agent calls a tool, or in which the user's role says what came back."""
    if message.get("role") == "user" and content.startswith(_OBSERVED):
        return [{"role": "tool", "content": content.removeprefix(_OBSERVED).strip()}]
    match = _ACTION.search(content) if message.get("role") == "assistant" and not message.get("tool_calls") else None
    if match is None:
        return _with_results(message)
    thought = content[: match.start()].strip().removeprefix("Thought:").strip()
    call: Data = {"name": match["name"].strip(), "arguments": match["input"].strip()}
    messages: list[Data] = [{**message, "content": "", "reasoning_content": thought, "tool_calls": [call]}]
    return messages if match["result"] is None else [*messages, {"role": "tool", "content": match["result"].strip()}]


def _with_results(message: Data) -> list[Data]:
    """A message that has the results of tools beside its content (`reasoning-bank` of PyPI, flat mappings)."""
    results = message.get("tool_results")
    if not isinstance(results, list) or not results or not isinstance(message.get("role"), str):
        return [message]
    own = {name: value for name, value in message.items() if name != "tool_results"}
    messages = [_result(result) for result in results]
    return [own, *messages] if own.get("content") or own.get("tool_calls") else messages


def _result(result: Json) -> Data:
    row: Data = result if isinstance(result, dict) else {"content": result}
    call_id = next((row[name] for name in _IDS if row.get(name)), None)
    content = next((row[name] for name in ("content", "output", "result") if row.get(name) is not None), None)
    message: Data = {"role": "tool", "tool_call_id": call_id, "name": row.get("name"), "content": content}
    return {**message, "is_error": row.get("is_error") is True, "is_success": row.get("is_error") is False}


def _of_event(event: Data) -> list[Data]:
    """An event of Google ADK. What is told again when it is whole is left out."""
    if event.get("partial") is True:
        return []
    held = event.get("content")
    content: Data = held if isinstance(held, dict) else {}
    parts = [_without_nulls(part) for part in pieces] if isinstance(pieces := content.get("parts"), list) else []
    messages: list[Data] = []
    if parts:
        answers = all(
            isinstance(part, dict) and {"function_response", "functionResponse"} & part.keys() for part in parts
        )
        role = "user" if event.get("author") == "user" or answers else "model"
        messages.append({"role": role, "parts": parts})
    elif isinstance(held, str):
        messages.append({"role": "user" if event.get("author") == "user" else "model", "content": held})
    error = event.get("error_message", event.get("errorMessage")) or event.get("error_code", event.get("errorCode"))
    return [*messages, {"role": "environment", "name": "error", "content": error}] if error else messages


def _without_nulls(part: Json) -> Json:
    """A part without the fields that are null: the SDK's own JSON has them all."""
    return {name: value for name, value in part.items() if value is not None} if isinstance(part, dict) else part


def _of_blocks(message: Data) -> Data:
    """A `ChatMessage` of LlamaIndex: blocks that may have lost their kind, ids among the extra arguments."""
    blocks = message["blocks"]
    listed: list[Json] = blocks if isinstance(blocks, list) else []
    content = [{"type": block.get("block_type"), **block} if isinstance(block, dict) else block for block in listed]
    extra = message.get("additional_kwargs")
    ids: Data = {"tool_call_id": extra.get("tool_call_id")} if isinstance(extra, dict) else {}
    return {**ids, **message, "content": content}


def _is_mark(part: Json) -> bool:
    """Whether a part only says that a step begins."""
    return isinstance(part, dict) and part.get("type") == "step-start"


def _is_tool_part(part: Json) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        return False
    return "toolCallId" in part and "state" in part and (kind.startswith("tool-") or kind == "dynamic-tool")


def _of_parts(parts: list[Json]) -> list[Json]:
    """The parts of a `UIMessage` of the AI SDK, of which one is a call and its result."""
    pieces: list[Json] = []
    for part in parts:
        if isinstance(part, dict) and _is_tool_part(part):
            pieces += _of_tool_part(part)
        elif not _is_mark(part):
            pieces.append(part)
    return pieces


def _of_tool_part(part: Data) -> list[Json]:
    id, state = part.get("toolCallId"), part.get("state")
    name = part.get("toolName") or str(part.get("type")).removeprefix("tool-")
    call: Data = {
        "type": "tool_call",
        "toolCallId": id,
        "toolName": name,
        "input": part.get("input", part.get("rawInput")),
    }
    result: Data = {"type": "tool_result", "toolCallId": id, "toolName": name}
    reason = approval.get("reason") if isinstance(approval := part.get("approval"), dict) else None
    denied = f"[denied] {reason or ''}".strip()
    fields = {"output-available": part.get("output"), "output-error": part.get("errorText"), "output-denied": denied}
    if state not in list(fields):
        return [call]
    return [call, {**result, "output": fields[str(state)], "is_error": state == "output-error"}]
