"""Writes scripted sessions into files as Claude Code, Codex and Gemini CLI write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Turn = dict[str, Any]
"""What a person or an agent said, or the call of a tool with what came back."""


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
    names = {"bash": ("Bash", "command"), "edit": ("Edit", "file_path"), "read": ("Read", "file_path")}
    name, field = names[turn["tool"]]
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
