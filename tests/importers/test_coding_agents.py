"""Sessions of coding agents as their programs write them: each line type known, the unknown ones passed over."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, Skipped, detect, read

Row = dict[str, Any]
COMMAND = "printf x > calc.py"
TEST = "python3 -m unittest -q"
SHOWN = "<<<lessons 1234>>> SHOWN <<<end lessons 1234>>>"


def _codex() -> Iterable[Row]:
    def item(**payload: Any) -> Row:
        return {"timestamp": "t", "type": "response_item", "payload": payload}

    def said(role: str, text: str) -> Row:
        return item(type="message", role=role, content=[{"type": "input_text", "text": text}])

    def call(id: str, command: str) -> Row:
        return item(type="function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=id)

    def result(id: str, code: int, text: str) -> Row:
        output = f"Wall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}"
        return item(type="function_call_output", call_id=id, output=output)

    yield {"type": "session_meta", "payload": {"id": "s-1", "base_instructions": {"text": "You are"}}}
    yield {"type": "turn_context", "payload": {"model": "scripted"}}
    yield said("developer", SHOWN)
    yield said("user", "<environment_context>\n  <cwd>/p</cwd>")
    yield said("user", "Fix add")
    yield {"type": "brand_new", "payload": {"text": "?"}}
    yield call("a", COMMAND)
    yield result("a", 0, "")
    yield call("b", TEST)
    yield result("b", 1, "FAILED (failures=1)")
    yield said("assistant", "It fails.")
    spent = {"total_token_usage": {"input_tokens": 30, "output_tokens": 15}}
    yield {"type": "event_msg", "payload": {"type": "token_count", "info": spent}}


def _gemini() -> Iterable[Row]:
    def call(id: str, command: str, output: str, status: str = "success") -> Row:
        result = [{"functionResponse": {"id": id, "response": {"output": output}}}]
        return {"id": id, "name": "run_shell_command", "args": {"command": command}, "result": result, "status": status}

    tokens = {"tokens": {"input": 15, "output": 5}, "model": "scripted"}
    yield {"sessionId": "s-1", "projectHash": "h", "startTime": "t", "kind": "main"}
    context = {"id": "0", "type": "user", "content": [{"text": "<session_context>\nToday"}]}
    yield {"$set": {"messages": [context], "lastUpdated": "t"}}
    yield {"id": "1", "type": "user", "content": [{"text": f"Fix add<hook_context>{SHOWN}</hook_context>"}]}
    yield {"id": "2", "type": "gemini", "content": "", **tokens}
    calls = [call("a", COMMAND, "<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 3\n</untrusted_context>")]
    yield {"id": "2", "type": "gemini", "content": "", **tokens, "toolCalls": calls}
    yield {"id": "3", "type": "user", "content": [{"functionResponse": {"id": "a", "response": {"output": "twice"}}}]}
    yield {"$brand_new": 1}
    failed = "<untrusted_context>\nOutput: FAILED (failures=1)\nExit Code: 1\n</untrusted_context>"
    failed += f"\n\n<hook_context>{SHOWN}</hook_context>"
    yield {"id": "4", "type": "gemini", "content": "", **tokens, "toolCalls": [call("b", TEST, failed)]}
    yield {"id": "5", "type": "gemini", "content": "It fails.", "thoughts": []}


def _qwen() -> Iterable[Row]:
    def line(kind: str, *parts: Row, **more: Any) -> Row:
        return {"uuid": "u", "sessionId": "s-1", "type": kind, "message": {"parts": list(parts)}, **more}

    def call(id: str, command: str) -> Row:
        call = {"id": id, "name": "run_shell_command", "args": {"command": command}}
        spent = {"promptTokenCount": 15, "candidatesTokenCount": 5}
        return line("assistant", {"functionCall": call}, model="scripted", usageMetadata=spent)

    def result(id: str, **response: str) -> Row:
        return line("tool_result", {"functionResponse": {"id": id, "response": response}})

    inside = f"\n<qwen:user-prompt-submit-context>\n{SHOWN}\n</qwen:user-prompt-submit-context>"
    yield line("user", {"text": "Fix add"}, {"text": inside}, provenance="real_user")
    yield line("user", {"text": f"<qwen:user-prompt-submit-context>{SHOWN}"}, provenance="hook")
    yield line("system", subtype="brand_new", systemPayload={"uiEvent": {"text": "?"}})
    yield call("a", COMMAND)
    trailer = "\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none)"
    yield result("a", output=f"Command: {COMMAND}\nDirectory: (root)\nOutput: (empty){trailer}")
    yield call("b", TEST)
    told = f"\n\n&lt;lessonbank&gt;\n{SHOWN}\n&lt;/lessonbank&gt;"
    yield result("b", error=f"Command: {TEST}\nDirectory: (root)\nOutput: FAILED (failures=1){told}")
    yield line("assistant", {"text": "It fails."}, {"text": "hm", "thought": True})


def _cline() -> Row:
    def call(id: str, command: str) -> Row:
        use = {"type": "tool_use", "id": id, "name": "run_commands", "input": {"commands": [command]}}
        metrics = {"inputTokens": 15, "outputTokens": 5}
        return {"role": "assistant", "content": [use], "modelInfo": {"id": "scripted"}, "metrics": metrics}

    def result(id: str, text: str, success: bool) -> Row:
        told = [{"query": "q", "result": text, "success": success}]
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": told}]}

    asked = {"type": "text", "text": '<user_input mode="act">Fix add</user_input>'}
    messages = [
        {"id": "1", "role": "user", "content": [asked]},
        call("a", COMMAND),
        result("a", "", True),
        call("b", TEST),
        result("b", "FAILED (failures=1)", False),
        {"role": "assistant", "content": [{"type": "text", "text": "It fails."}]},
    ]
    return {"version": "1", "agent": "lead", "sessionId": "s-1", "messages": messages, "system_prompt": "You are"}


def _lines(rows: Callable[[], Iterable[Row]]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "session.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
        return folder / "session.jsonl"

    return write


def _cline_file(folder: Path) -> Path:
    (folder / "s-1.messages.json").write_text(json.dumps(_cline(), indent=1))
    return folder / "s-1.messages.json"


def opencode_database(
    folder: Path, messages: list[tuple[str, Row, list[Row]]], sessions: dict[str, str | None] | None = None
) -> Path:
    """Messages, each with its session and its parts; `sessions` names the parents of sessions."""
    with sqlite3.connect(folder / "opencode.db") as database:
        database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, time_created INTEGER)")
        database.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
        database.execute("CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)")
        for number, (id, parent) in enumerate((sessions or {"s-1": None}).items()):
            database.execute("INSERT INTO session VALUES (?, ?, ?)", (id, parent, number))
        for number, (session, data, parts) in enumerate(messages, 1):
            row = (str(number), session, number, json.dumps(data))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for place, part in enumerate(parts):
                database.execute(
                    "INSERT INTO part VALUES (?, ?, ?)", (f"{number}{place}", str(number), json.dumps(part))
                )
    database.close()
    return folder / "opencode.db"


def _opencode_file(folder: Path) -> Path:
    def call(id: str, command: str, output: str, code: int) -> Row:
        state = {"status": "completed", "input": {"command": command}, "output": output, "metadata": {"exit": code}}
        return {"type": "tool", "tool": "bash", "callID": id, "state": state}

    told = {"role": "assistant", "modelID": "scripted", "tokens": {"input": 15, "output": 5}}
    messages: list[tuple[str, Row, list[Row]]] = [
        (
            "s-1",
            {"role": "user"},
            [{"type": "text", "text": '"Fix add"'}, {"type": "text", "text": SHOWN, "synthetic": True}],
        ),
        (
            "s-1",
            told,
            [
                {"type": "step-start"},
                call("a", COMMAND, "", 0),
                call("b", TEST, f"FAILED (failures=1)\n\n<lessonbank>\n{SHOWN}\n</lessonbank>", 1),
            ],
        ),
        ("s-1", told, [{"type": "brand_new"}, {"type": "text", "text": "It fails."}]),
        ("s-2", {"role": "user"}, [{"type": "text", "text": "Look around"}]),
    ]
    return opencode_database(folder, messages, {"s-1": None, "s-2": "s-1"})


FILES: dict[str, Callable[[Path], Path]] = {
    "codex": _lines(_codex),
    "gemini_cli": _lines(_gemini),
    "qwen_code": _lines(_qwen),
    "cline": _cline_file,
    "opencode": _opencode_file,
}


@pytest.mark.parametrize("name", FILES)
def test_a_session_is_a_run_with_its_calls_results_and_outcome(tmp_path: Path, name: str) -> None:
    path = FILES[name](tmp_path)
    assert detect(path) == name
    entry = next(iter(read(path)))
    assert isinstance(entry, Imported)
    run = entry.trajectory
    assert (run.task, run.answer, run.metadata["run_id"]) == ("Fix add", "It fails.", "s-1")
    assert run.metadata["model"] == "scripted"
    assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 15 if name == "codex" else 10)
    calls = [str(call.arguments) for step in run.steps for call in step.action.calls]
    assert len(calls) == 2
    assert COMMAND in calls[0]
    assert TEST in calls[1]
    results = [seen for step in run.steps for seen in step.observations if seen.source == "tool"]
    assert [(seen.text.splitlines()[:1], seen.is_error) for seen in results] == [
        ([], False),
        (["FAILED (failures=1)"], True),
    ]
    assert entry.verdict
    assert (entry.verdict.outcome, run.metadata["outcome_by"]) == ("failure", "the tests failed after the last edit")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Wall time: 9 seconds\nProcess exited with code 0\nOutput:\ndone", "success"),
        ("Wall time: 9 seconds\nProcess exited with code 1\nOutput:\n", "failure"),
        ("Wall time: 9 seconds\nProcess running with session ID 7\nOutput:\ncollecting", None),
        ("aborted by user", None),
        (json.dumps({"output": "1 failed", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}), "failure"),
        (json.dumps({"output": "3 passed", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}), "success"),
    ],
)
def test_a_command_of_codex_decides_by_its_exit_code_and_not_before_it_ended(
    tmp_path: Path, output: str, expected: str | None
) -> None:
    rows = list(_codex())
    rows[9]["payload"]["output"] = output
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (entry,) = read(tmp_path / "s.jsonl")
    assert isinstance(entry, Imported)
    assert (entry.verdict and entry.verdict.outcome) == expected


def _came_to(code: int, output: str) -> list[Row]:
    head = "Script completed\nWall time 0.1 seconds\nOutput:\n"
    told = json.dumps({"chunk_id": "7b", "wall_time_seconds": 0.1, "exit_code": code, "output": output})
    return [{"type": "input_text", "text": head}, {"type": "input_text", "text": told}]


@pytest.mark.parametrize(
    "script",
    [
        'text(await tools.exec_command({cmd:"python3 -m unittest -q",max_output_tokens:1000}));\n',
        "const r = await tools.exec_command({ workdir: '/p', cmd: 'python3 -m unittest -q' }); text(r);",
        'const r = await tools.exec_command({"cmd": `python3 -m unittest -q`}); text(r)',
    ],
)
@pytest.mark.parametrize(("code", "printed", "expected"), [(2, "1 failed\n", "failure"), (0, "3 passed\n", "success")])
def test_a_script_of_codex_that_runs_one_command_is_read_as_this_command(
    tmp_path: Path, script: str, code: int, printed: str, expected: str
) -> None:
    rows = list(_codex())
    rows[8]["payload"] = {"type": "custom_tool_call", "name": "exec", "call_id": "b", "input": script}
    rows[9]["payload"] = {"type": "custom_tool_call_output", "call_id": "b", "output": _came_to(code, printed)}
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (entry,) = read(tmp_path / "s.jsonl")
    assert isinstance(entry, Imported)
    assert entry.exit_codes["b"] == code
    ((call, seen),) = [
        (step.action.calls[0], step.observations[0]) for step in entry.trajectory.steps if TEST in str(step.action)
    ]
    assert (call.name, seen.text, seen.is_error) == ("exec_command", printed, code != 0)
    assert entry.verdict
    assert entry.verdict.outcome == expected


@pytest.mark.parametrize(
    "script",
    [
        'for (const one of all) await tools.exec_command({cmd: one}); text("done")',
        'await tools.exec_command({cmd:"make a"}); text(await tools.exec_command({cmd:"make b"}))',
    ],
)
def test_a_script_of_codex_that_runs_several_commands_says_nothing_of_any(tmp_path: Path, script: str) -> None:
    rows = list(_codex())
    rows[8]["payload"] = {"type": "custom_tool_call", "name": "exec", "call_id": "b", "input": script}
    rows[9]["payload"] = {"type": "custom_tool_call_output", "call_id": "b", "output": _came_to(1, "")}
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (entry,) = read(tmp_path / "s.jsonl")
    assert isinstance(entry, Imported)
    assert [call.name for step in entry.trajectory.steps for call in step.action.calls] == ["exec_command", "exec"]
    assert entry.verdict is None


def test_what_a_script_of_codex_patches_after_the_tests_makes_them_stale(tmp_path: Path) -> None:
    rows = [json.loads(json.dumps(row)) for row in _codex()]
    patch = 'const p = "*** Begin Patch"; text(await tools.apply_patch(p)); await tools.exec_command({cmd:"ls"})'
    rows[8:8] = [_called("p", "exec", patch), _came("p", _script("{}"))]
    rows[12:12] = [_called("q", "exec", patch), _came("q", _script("{}"))]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (entry,) = read(tmp_path / "s.jsonl")
    assert isinstance(entry, Imported)
    assert [call.name for step in entry.trajectory.steps for call in step.action.calls].count("apply_patch") == 2
    assert entry.verdict is None


def _called(id: str, name: str, given: object) -> Row:
    kind, key, text = ("custom_tool_call", "input", given) if name == "exec" else ("function_call", "arguments", None)
    payload = {"type": kind, "name": name, "call_id": id, key: text or json.dumps(given)}
    return {"type": "response_item", "payload": payload}


def _came(id: str, output: object) -> Row:
    kind = "function_call_output" if isinstance(output, str) else "custom_tool_call_output"
    return {"type": "response_item", "payload": {"type": kind, "call_id": id, "output": output}}


def _script(*texts: object) -> list[Row]:
    told = [text if isinstance(text, str) else json.dumps(text) for text in texts]
    return [
        {"type": "input_text", "text": text} for text in ("Script completed\nWall time 1 seconds\nOutput:\n", *told)
    ]


_RUNS = "Wall time: 1.0 seconds\nProcess {} \nOutput:\n{}"
_CELL = "Script running with cell ID 4\nWall time 10 seconds\nOutput:\n"
_STILL = {"chunk_id": "1", "wall_time_seconds": 1.0, "session_id": 7, "output": "collecting\n"}
_ENDED = {"chunk_id": "2", "wall_time_seconds": 3.0, "exit_code": 1, "output": "1 failed\n"}
_POLL = "text(await tools.write_stdin({session_id:7, chars:'', yield_time_ms:1000}));"
_BEGAN = [
    _called("b", "exec_command", {"cmd": TEST}),
    _came("b", _RUNS.format("running with session ID 7", "collecting\n")),
]
_ENDS = {
    "by a call that waits": [
        *_BEGAN,
        _called("w", "write_stdin", {"session_id": 7, "chars": ""}),
        _came("w", _RUNS.format("running with session ID 7", "")),
        _called("x", "write_stdin", {"session_id": 7}),
        _came("x", _RUNS.format("exited with code 1", "1 failed\n")),
    ],
    "by a call that types": [
        *_BEGAN,
        _called("x", "write_stdin", {"session_id": 7, "chars": "y\n"}),
        _came("x", _RUNS.format("exited with code 1", "1 failed\n")),
    ],
    "by a script": [
        _called("b", "exec", f'text(await tools.exec_command({{cmd:"{TEST}"}}))'),
        _came("b", _script(_STILL)),
        _called("x", "exec", _POLL),
        _came("x", _script(_ENDED)),
    ],
    "by a script that is waited for": [
        _called("b", "exec", f'text(await tools.exec_command({{cmd:"{TEST}"}}))'),
        _came("b", _script(_STILL)),
        _called("w", "exec", _POLL),
        _came("w", _CELL),
        _called("x", "wait", {"cell_id": "4"}),
        _came("x", _script(_ENDED)),
        _called("y", "exec", _POLL),
        _came("y", _script("Script error:\nwrite_stdin failed: Unknown process id 7")),
    ],
}


@pytest.mark.parametrize("how", _ENDS)
def test_the_exit_code_of_a_command_of_codex_that_outlives_its_call_is_of_this_call(tmp_path: Path, how: str) -> None:
    (run,) = _written(tmp_path, [*list(_codex())[:8], *_ENDS[how]])
    assert run.exit_codes == {"a": 0, "b": 1}
    seen = {seen.call_id: seen for step in run.trajectory.steps for seen in step.observations}
    assert (seen["b"].text, seen["b"].is_error) == ("collecting\n1 failed\n", True)
    assert (seen["x"].text, seen["x"].is_error) == ("1 failed\n", False)
    typed = how == "by a call that types"  # it may have edited
    assert (run.verdict and run.verdict.outcome) == (None if typed else "failure")


def test_a_command_of_codex_that_was_interrupted_did_not_fail(tmp_path: Path) -> None:
    typed = _called("x", "write_stdin", {"session_id": 7, "chars": "\x03"})
    ended = _came("x", _RUNS.format("exited with code 1", "^C"))
    (run,) = _written(tmp_path, [*list(_codex())[:8], *_BEGAN, typed, ended])
    assert run.exit_codes == {"a": 0}
    assert not any(seen.is_error for step in run.trajectory.steps for seen in step.observations)


def test_tests_of_codex_that_passed_while_the_agent_waited_passed_after_the_last_edit(tmp_path: Path) -> None:
    waits = _called("x", "write_stdin", {"session_id": 7, "chars": ""})
    ended = _came("x", _RUNS.format("exited with code 0", "Ran 3 tests in 0.1s\n\nOK\n"))
    (run,) = _written(tmp_path, [*list(_codex())[:8], *_BEGAN, waits, ended])
    assert run.verdict
    assert (run.verdict.outcome, run.verdict.source) == ("success", "ground_truth")


_SEVERAL = f"""const all = await Promise.all([
  tools.exec_command({{cmd: "git status", workdir: "/p"}}), tools.exec_command({{workdir: '/q', cmd: '{TEST}'}}),
]); for (const one of all) text(JSON.stringify(one))"""
_FINE: Row = {"exit_code": 0, "output": "clean"}


@pytest.mark.parametrize("texts", [(_FINE, _ENDED), ([_FINE, _ENDED],), (f"A\n{json.dumps(_FINE)}", "B", _ENDED)])
def test_each_command_of_a_script_of_codex_that_says_what_it_came_to_is_a_call(
    tmp_path: Path, texts: tuple[object, ...]
) -> None:
    rows = [*list(_codex())[:8], _called("b", "exec", _SEVERAL), _came("b", _script(*texts))]
    (run,) = _written(tmp_path, rows)
    step = run.trajectory.steps[-1]
    commands = [{"cmd": "git status", "workdir": "/p"}, {"cmd": TEST, "workdir": "/q"}]
    assert [(call.name, call.id, call.arguments) for call in step.action.calls] == [
        ("exec_command", "b.1", commands[0]),
        ("exec_command", "b.2", commands[1]),
    ]
    results = [(seen.call_id, seen.text, seen.is_error) for seen in step.observations]
    assert results == [("b.1", "clean", False), ("b.2", "1 failed\n", True)]
    assert run.exit_codes == {"a": 0, "b.1": 0, "b.2": 1}


def test_a_command_among_several_of_codex_may_end_later(tmp_path: Path) -> None:
    later = [_called("x", "exec", _POLL), _came("x", _script(_ENDED))]
    rows = [*list(_codex())[:8], _called("b", "exec", _SEVERAL), _came("b", _script(_FINE, _STILL)), *later]
    (run,) = _written(tmp_path, rows)
    assert run.exit_codes == {"a": 0, "b.1": 0, "b.2": 1}


@pytest.mark.parametrize("texts", [("clean", "1 failed"), (_FINE, _ENDED, _ENDED), ({"a": _FINE, "b": _ENDED},)])
def test_a_script_of_codex_that_does_not_say_which_command_came_to_what_stays_one_call(
    tmp_path: Path, texts: tuple[Row | str, ...]
) -> None:
    rows = [*list(_codex())[:8], _called("b", "exec", _SEVERAL), _came("b", _script(*texts))]
    (run,) = _written(tmp_path, rows)
    assert [(call.name, call.id) for call in run.trajectory.steps[-1].action.calls] == [("exec", "b")]
    assert run.exit_codes == {"a": 0}


@pytest.mark.parametrize("name", FILES)
def test_nothing_that_memory_showed_is_read_back(tmp_path: Path, name: str) -> None:
    for entry in read(FILES[name](tmp_path)):
        assert isinstance(entry, Imported)
        assert "SHOWN" not in entry.trajectory.model_dump_json()


def test_a_sub_agent_of_opencode_is_a_run_with_a_parent(tmp_path: Path) -> None:
    runs = [
        entry.trajectory.metadata["run_id"] for entry in read(_opencode_file(tmp_path)) if isinstance(entry, Imported)
    ]
    assert runs == ["s-1", "s-1/s-2"]


def test_a_session_that_opencode_exports_is_read_as_its_database_is(tmp_path: Path) -> None:
    state = {"status": "completed", "input": {"command": TEST}, "output": "FAILED", "metadata": {"exit": 1}}
    parts = [{"type": "tool", "tool": "bash", "callID": "b", "state": state}]
    messages = [
        {"info": {"id": "1", "role": "user"}, "parts": [{"type": "text", "text": "Fix add"}]},
        {"info": {"id": "2", "role": "assistant", "modelID": "scripted"}, "parts": parts},
    ]
    file = tmp_path / "session.json"
    file.write_text(json.dumps({"info": {"id": "s-1", "parentID": "s-0"}, "messages": messages}, indent=2))
    assert detect(file) == "opencode"
    (entry,) = read(file)
    assert isinstance(entry, Imported)
    assert (entry.trajectory.task, dict(entry.exit_codes)) == ("Fix add", {"b": 1})
    assert entry.trajectory.metadata["run_id"] == "s-0/s-1"
    state["status"] = "running"
    file.write_text(json.dumps({"info": {"id": "s-1"}, "messages": messages}))
    (entry,) = read(file)
    assert isinstance(entry, Imported)
    assert entry.account.unanswered == 1


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            f"DROP TABLE session; CREATE VIEW session AS {ENDLESS} 's' AS id, '' AS parent_id, i AS time_created"
            " FROM n WHERE i < 0",
            "its session is no plain table",
        ),
        (
            f"DROP TABLE message; CREATE VIEW message AS {ENDLESS} '1' AS id, 's-1' AS session_id, '{{}}' AS data,"
            " i AS time_created FROM n WHERE i < 0",
            "its message is no plain table",
        ),
        (
            "DROP TABLE part; CREATE TABLE part (id TEXT, message_id TEXT, data AS (hex(zeroblob(400000000))))",
            "its part is no plain table",
        ),
        ("DROP TABLE part", "it has other tables"),
        ("DROP TABLE part; CREATE TABLE part (id TEXT)", "OperationalError"),
    ],
)
def test_a_database_of_opencode_that_would_run_something_is_refused_at_once(
    sql: str, said: str, tmp_path: Path
) -> None:
    with sqlite3.connect(_opencode_file(tmp_path)) as database:
        database.executescript(sql)
    database.close()
    reasons = [entry.reason for entry in read(tmp_path / "opencode.db") if isinstance(entry, Skipped)]
    assert [said in reason for reason in reasons] == [True]


def test_what_is_too_much_costs_the_session_that_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.importers.opencode.RECORD_LIMIT", 100_000)
    with sqlite3.connect(_opencode_file(tmp_path)) as database:
        for number in range(3):
            part = json.dumps({"type": "text", "text": "x" * 40_000})
            database.execute("INSERT INTO part VALUES (?, '1', ?)", (f"more{number}", part))
    database.close()
    first, second = read(tmp_path / "opencode.db")
    assert isinstance(first, Skipped)
    assert "the session holds more than" in first.reason
    assert isinstance(second, Imported)


def test_the_work_that_a_database_makes_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank._base.safe_read._STEPS", 20_000)
    monkeypatch.setattr("lessonbank._base.safe_read._STEPS_A_BYTE", 0)
    with sqlite3.connect(_opencode_file(tmp_path)) as database:
        database.executemany("INSERT INTO session VALUES (?, NULL, 0)", [(f"s{n}",) for n in range(20_000)])
    database.close()
    (entry,) = read(tmp_path / "opencode.db")
    assert isinstance(entry, Skipped)


@pytest.mark.parametrize("name", ["codex", "gemini_cli", "qwen_code"])
def test_torn_and_odd_lines_are_skipped_and_the_rest_is_read(tmp_path: Path, name: str) -> None:
    path = FILES[name](tmp_path)
    lines = path.read_text().splitlines()
    lines[4:4] = ["{torn", "7", '"text"', "[]", json.dumps({"type": ["odd"], "payload": 3, "message": []})]
    path.write_text("\n".join(lines))
    entries = list(read(path))
    assert len([entry for entry in entries if isinstance(entry, Skipped)]) == 1
    assert isinstance(entries[-1], Imported)
    assert entries[-1].trajectory.answer == "It fails."


def test_what_codex_says_in_the_users_name_is_no_task(tmp_path: Path) -> None:
    begin, *rest = _codex()
    told = {"type": "message", "role": "user", "content": [{"text": "<recommended_plugins>\nHere is a list"}]}
    path = tmp_path / "rollout-x.jsonl"
    rows = [begin, {"type": "response_item", "payload": told}, *rest]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (run,) = read(path)
    assert isinstance(run, Imported)
    assert run.trajectory.task == "Fix add"


def _written(folder: Path, rows: Iterable[Row]) -> list[Imported]:
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [entry for entry in read(folder / "s.jsonl") if isinstance(entry, Imported)]


def test_what_a_tool_of_codex_gave_is_whole_though_it_speaks_of_outputs(tmp_path: Path) -> None:
    rows = list(_codex())
    text = "# Usage\nIt exited with code 1\nOutput:\nfoo"
    rows[9]["payload"]["output"] = text
    (run,) = _written(tmp_path, rows)
    seen = run.trajectory.steps[-2].observations[-1]
    assert (seen.text, seen.is_error, "b" in run.exit_codes) == (text, False, False)


def test_a_command_of_codex_that_names_a_code_has_its_own(tmp_path: Path) -> None:
    rows = list(_codex())
    head = "Command: /bin/sh -c 'echo exit code 3'\nWall time: 1 seconds\nProcess exited with code 1\nOutput:\n"
    rows[9]["payload"]["output"] = f"{head}FAILED"
    (run,) = _written(tmp_path, rows)
    assert (run.exit_codes["b"], run.trajectory.steps[-2].observations[-1].text) == (1, "FAILED")


def test_calls_of_codex_that_ran_side_by_side_stand_in_one_step_with_their_results(tmp_path: Path) -> None:
    rows = list(_codex())
    rows[7:9] = [rows[8], rows[7]]
    (run,) = _written(tmp_path, rows)
    (step,) = [step for step in run.trajectory.steps if step.action.calls]
    assert [call.id for call in step.action.calls] == ["a", "b"]
    assert [(seen.call_id, seen.text) for seen in step.observations] == [("a", ""), ("b", "FAILED (failures=1)")]


def test_a_command_that_the_sandbox_of_codex_denied_has_its_code(tmp_path: Path) -> None:
    rows = list(_codex())
    denied = 'exec_command failed: CreateProcess { message: "Codex(Sandbox(Denied { output: ExecToolCallOutput { '
    rows[9]["payload"]["output"] = f'{denied}exit_code: 128, stderr: "Operation not permitted" }} }}))" }}'
    (run,) = _written(tmp_path, rows)
    assert (run.exit_codes["b"], run.trajectory.steps[-2].observations[-1].is_error) == (128, True)


def test_what_was_taken_back_of_a_chat_of_gemini_did_not_happen(tmp_path: Path) -> None:
    undone = [{"id": "6", "type": "user", "content": "Drop the tables"}, {"id": "7", "type": "gemini", "content": "Ok"}]
    rest = [{"id": "8", "type": "user", "content": "And the docs"}, {"id": "9", "type": "gemini", "content": "Done"}]
    (run,) = _written(tmp_path, [*_gemini(), *undone, {"$rewindTo": "6"}, *rest])
    assert "Drop" not in run.trajectory.model_dump_json()
    assert (run.trajectory.task, run.trajectory.answer) == ("Fix add", "Done")
    assert not _written(tmp_path, [*_gemini(), {"$rewindTo": "of another session"}])


def test_a_call_that_is_not_at_its_end_has_no_result(tmp_path: Path) -> None:
    *rows, failed, _ = _gemini()
    del failed["toolCalls"][0]["result"], failed["toolCalls"][0]["status"]
    (run,) = _written(tmp_path, [*rows, failed])
    assert (run.account.calls, run.account.unanswered) == (2, 1)
