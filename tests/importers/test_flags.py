"""Whether a tool failed is what its program says by a flag or an exit code, whatever words it printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, read

from .test_coding_agents import opencode_database

Row = dict[str, Any]
RUNS = [
    ("a", "cat notes.txt", "Error: this is what the notes say", 0),
    ("b", "check it", "all is well", 2),
    ("c", "look", "", 0),
]
"""Calls: one that passed, whatever its words, one that failed, and one without words that passed."""


def lines(folder: Path, rows: Iterable[Row]) -> Path:
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def codex(folder: Path) -> Path:
    def item(**payload: Any) -> Row:
        return {"timestamp": "t", "type": "response_item", "payload": payload}

    rows: list[Row] = [{"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}]
    rows.append(item(type="message", role="user", content=[{"type": "input_text", "text": "Mend it"}]))
    for id, command, printed, code in RUNS:
        rows.append(item(type="function_call", name="exec_command", call_id=id, arguments=json.dumps({"cmd": command})))
        output = f"Wall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
        rows.append(item(type="function_call_output", call_id=id, output=output))
    return lines(folder, rows)


def gemini_cli(folder: Path) -> Path:
    rows: list[Row] = [{"sessionId": "s", "projectHash": "h", "startTime": "t"}]
    rows.append({"id": "1", "type": "user", "content": "Mend it"})
    for id, command, printed, code in RUNS:
        output = f"Output: {printed}" + f"\nExit Code: {code}" * bool(code) + "\nProcess Group PGID: 3"
        back = [{"functionResponse": {"id": id, "response": {"output": output}}}]
        call = {"id": id, "name": "run_shell_command", "args": {"command": command}, "status": "success"}
        rows.append({"id": f"m{id}", "type": "gemini", "content": "", "toolCalls": [{**call, "result": back}]})
    return lines(folder, rows)


def gemini_cli_files(folder: Path) -> Path:
    """Tools that have no exit code: a file whose words look like one is none."""
    rows: list[Row] = [{"sessionId": "s", "projectHash": "h", "startTime": "t"}]
    rows.append({"id": "1", "type": "user", "content": "Mend it"})
    for id, path, printed, code in RUNS:
        text = printed if code else f"{printed}\nError: one\nExit Code: 3"
        back = [{"functionResponse": {"id": id, "response": {"output": text}}}]
        call = {"id": id, "name": "read_file", "args": {"path": path}, "status": "error" if code else "success"}
        rows.append({"id": f"m{id}", "type": "gemini", "content": "", "toolCalls": [{**call, "result": back}]})
    return lines(folder, rows)


def qwen_code(folder: Path) -> Path:
    base = {"sessionId": "s", "cwd": "/w", "version": "0.24.4"}
    rows: list[Row] = [{**base, "uuid": "u", "type": "user", "message": {"parts": [{"text": "Mend it"}]}}]
    for id, path, printed, code in RUNS:
        call = {"id": id, "name": "read_file", "args": {"path": path}}
        back = {"id": id, "name": "read_file", "response": {"output": printed}}
        rows.append({**base, "type": "assistant", "message": {"role": "model", "parts": [{"functionCall": call}]}})
        result = {"callId": id, "status": "error" if code else "success"}
        message = {"role": "user", "parts": [{"functionResponse": back}]}
        rows.append({**base, "type": "tool_result", "message": message, "toolCallResult": result})
    return lines(folder, rows)


def cline(folder: Path) -> Path:
    messages: list[Row] = [{"role": "user", "content": [{"type": "text", "text": "Mend it"}]}]
    for id, command, printed, code in RUNS:
        use = {"type": "tool_use", "id": id, "name": "run_commands", "input": {"commands": [command]}}
        seen = [{"query": command, "result": printed, "success": code == 0}]
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": seen}]})
    path = folder / "s.messages.json"
    path.write_text(json.dumps({"sessionId": "s", "agent": "lead", "messages": messages}), encoding="utf-8")
    return path


def opencode(folder: Path) -> Path:
    messages: list[tuple[str, Row, list[Row]]] = [("s-1", {"role": "user"}, [{"type": "text", "text": "Mend it"}])]
    for id, command, printed, code in RUNS:
        state: Row = {"status": "completed", "input": {"command": command}, "output": printed}
        part = {"type": "tool", "tool": "bash", "callID": id, "state": {**state, "metadata": {"exit": code}}}
        messages.append(("s-1", {"role": "assistant"}, [part]))
    return opencode_database(folder, messages)


def mini_swe_agent(folder: Path) -> Path:
    messages: list[Row] = [{"role": "system", "content": "Help"}, {"role": "user", "content": "Mend it"}]
    for id, command, printed, code in RUNS:
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": command})},
        }
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        seen = {"role": "tool", "tool_call_id": id, "content": f"<output>\n{printed}\n</output>"}
        messages.append({**seen, "extra": {"raw_output": printed, "returncode": code}})
    return trajectory(folder, messages)


def mini_swe_agent_in_text(folder: Path) -> Path:
    messages: list[Row] = [{"role": "system", "content": "Help"}, {"role": "user", "content": "Mend it"}]
    for _, command, printed, code in RUNS:
        messages.append({"role": "assistant", "content": f"```bash\n{command}\n```"})
        messages.append({"role": "user", "content": f"<output>\n{printed}\n</output>", "extra": {"returncode": code}})
    return trajectory(folder, messages)


def trajectory(folder: Path, messages: list[Row]) -> Path:
    path = folder / "s.traj.json"
    told = {"trajectory_format": "mini-swe-agent-1.1", "info": {"mini_version": "2.4.6"}, "messages": messages}
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def tau2(folder: Path) -> Path:
    messages: list[Row] = [{"role": "user", "content": "Mend it"}]
    for id, command, printed, code in RUNS:
        call = {"id": id, "name": "look", "arguments": {"at": command}, "requestor": "assistant"}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        seen = {"id": id, "role": "tool", "content": printed, "requestor": "assistant", "error": code != 0}
        messages.append(seen)
    run = {"id": "s", "task_id": "1", "messages": messages, "reward_info": {"reward": 1.0}}
    told = {"tasks": [{"id": "1"}], "simulations": [{**run, "termination_reason": "user_stop"}]}
    path = folder / "results.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


WRITERS: list[Callable[[Path], Path]] = [
    codex,
    gemini_cli,
    gemini_cli_files,
    qwen_code,
    cline,
    opencode,
    mini_swe_agent,
    mini_swe_agent_in_text,
    tau2,
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_flag_or_an_exit_code_says_whether_a_tool_failed(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    (run,) = [one for one in read(write(tmp_path)) if isinstance(one, Imported)]
    seen = [one for step in run.trajectory.steps for one in step.observations if one.source != "user"]
    assert [(one.is_error, one.is_success) for one in seen] == [(False, True), (True, False), (False, True)]
