"""Writes scripted sessions into files as Claude Code, Codex and Gemini CLI write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

Turn = dict[str, Any]
"""What a person or an agent said, or the call of a tool with what came back."""


_CLAUDE: Final = {
    "bash": ("Bash", "command"),
    "edit": ("Edit", "file_path"),
    "write": ("Write", "file_path"),
    "read": ("Read", "file_path"),
    "search": ("Grep", "path"),
}


def claude_lines(session: str, turns: Iterable[Turn]) -> Iterator[str]:
    """Those of Claude Code."""
    is_command = False
    for number, turn in enumerate(turns):
        if turn["role"] == "tool":
            yield from _claude_call(session, f"{session}-{number}", turn)
            continue
        text, role = turn["text"], "user" if turn["role"] == "person" else "assistant"
        if role == "user" and (is_command := text.startswith("/")):
            name, _, arguments = text.partition(" ")
            text = f"<command-name>{name}</command-name>\n<command-args>{arguments}</command-args>"
        elif role == "assistant" and is_command:
            role, text, is_command = "user", f"<local-command-stdout>{text}</local-command-stdout>", False
        yield _claude_line(session, f"{session}-{number}", role, text)


def _claude_call(session: str, id: str, turn: Turn) -> Iterator[str]:
    name, field = _CLAUDE[turn["tool"]]
    given = {field: turn["command"] if turn["tool"] == "bash" else turn["path"]}
    yield _claude_line(session, f"{id}-a", "assistant", [{"type": "tool_use", "id": id, "name": name, "input": given}])
    code = turn["exit_code"]
    if code is None:
        printed: dict[str, Any] = {"toolUseResult": {"stdout": turn["output"], "interrupted": True}}
    else:
        printed = {}
    content = f"Exit code {code}\n{turn['output']}" if code else turn["output"]
    result = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": bool(code)}
    yield _claude_line(session, f"{id}-b", "user", [result], **printed)


def _claude_line(session: str, uuid: str, role: str, content: Any, **more: Any) -> str:
    message = {"role": role, "content": content}
    return json.dumps({"type": role, "uuid": uuid, "sessionId": session, "message": message, **more}) + "\n"


def codex_lines(session: str, turns: Iterable[Turn]) -> Iterator[str]:
    """Those of Codex; what it carries out itself, such as `/model`, is not in its file."""
    yield _row(type="session_meta", payload={"id": session})
    for number, turn in enumerate(turns):
        call = f"{session}-{number}"
        if turn["role"] == "tool":
            yield from _codex_call(call, turn)
        elif not turn.get("own"):
            role = "user" if turn["role"] == "person" else "assistant"
            yield _item(type="message", role=role, content=[{"type": "input_text", "text": turn["text"]}])


def _codex_call(id: str, turn: Turn) -> Iterator[str]:
    code = turn["exit_code"]
    if turn["tool"] == "edit":
        patch = f"*** Begin Patch\n*** Update File: {turn['path']}\n@@\n+x\n*** End Patch"
        yield _item(type="custom_tool_call", name="apply_patch", input=patch, call_id=id)
        yield _item(type="custom_tool_call_output", call_id=id, output="Success. Updated the following files")
        return
    command = turn["command"] if turn["tool"] == "bash" else f"cat {turn['path']}"
    yield _item(type="function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=id)
    if code is None:
        return
    item = {"type": "CommandExecution", "id": id, "exit_code": code}
    yield _row(type="event_msg", payload={"type": "item_completed", "item": item})
    output = f"Wall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{turn['output']}"
    yield _item(type="function_call_output", call_id=id, output=output)


def _item(**payload: Any) -> str:
    return _row(timestamp="t", type="response_item", payload=payload)


def _row(**row: Any) -> str:
    return json.dumps(row) + "\n"


def gemini_lines(session: str, turns: Iterable[Turn]) -> Iterator[str]:
    """Those of Gemini CLI; what it carries out itself is not in its file."""
    yield _row(sessionId=session, projectHash="h", startTime="t", kind="main")
    for number, turn in enumerate(turns):
        id = f"{session}-{number}"
        if turn["role"] == "tool":
            yield _row(id=id, type="gemini", content="", toolCalls=[_gemini_call(f"{id}-c", turn)])
        elif not turn.get("own"):
            said: Any = [{"text": turn["text"]}] if turn["role"] == "person" else turn["text"]
            yield _row(id=id, type="user" if turn["role"] == "person" else "gemini", content=said)


def gemini_output(turn: Turn) -> str:
    """What its shell tool gives."""
    trailer = f"\nExit Code: {turn['exit_code']}" if turn["exit_code"] else ""
    return f"Output: {turn['output'] or '(empty)'}{trailer}\nProcess Group PGID: 7"


def _gemini_call(id: str, turn: Turn) -> dict[str, Any]:
    names = {"bash": ("run_shell_command", "command"), "edit": ("replace", "file_path"), "read": ("read_file", "path")}
    name, field = names[turn["tool"]]
    call: dict[str, Any] = {"id": id, "name": name, "args": {field: turn.get("command") or turn.get("path")}}
    if turn["exit_code"] is None:
        return {**call, "status": "cancelled"}
    output = gemini_output(turn) if turn["tool"] == "bash" else turn["output"]
    result = [{"functionResponse": {"id": id, "response": {"output": output}}}]
    return {**call, "status": "success", "result": result}
