"""What coding agents print without a terminal: `claude -p --output-format stream-json` and `codex exec --json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Entry, Imported, Skipped, detect, read


def written(tmp_path: Path, *lines: dict[str, Any], task: str = "Make the tests pass") -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    if task:
        (tmp_path / "run.task.txt").write_text(task + "\n", encoding="utf-8")
    return path


def runs(path: Path) -> list[Imported]:
    return [entry for entry in read(path) if isinstance(entry, Imported)]


def told(entry: Entry) -> list[Any]:
    assert isinstance(entry, Imported), entry
    return [
        (
            step.action.text,
            [(call.name, call.arguments) for call in step.action.calls],
            [(seen.source, seen.text, seen.is_error) for seen in step.observations],
        )
        for step in entry.trajectory.steps
    ]


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s1", "uuid": str(len(str(fields))), **fields}


def said(id: str, *blocks: dict[str, Any], above: str | None = None) -> dict[str, Any]:
    message = {
        "id": id,
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
        "usage": {"output_tokens": 3},
    }
    return line("assistant", message=message, parent_tool_use_id=above)


def used(id: str, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}


def answered(id: str, text: str, *, failed: bool = False, above: str | None = None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
    return line("user", message={"role": "user", "content": [block]}, parent_tool_use_id=above)


INIT = line("system", subtype="init", model="claude-x", tools=["Bash"])
TEXT = {"type": "text", "text": "I run them."}
END = line("result", subtype="success", is_error=False, result="Done.", total_cost_usd=0.25, usage={}, num_turns=2)
CLAUDE = (
    INIT,
    said("m1", TEXT),
    said("m1", used("c1", "pytest -q")),
    answered("c1", "Exit code 1\n1 failed", failed=True),
    said("m2", used("c2", "sed -i s/1/2/ a.py")),
    answered("c2", ""),
    said("m3", used("c3", "pytest -q")),
    answered("c3", "3 passed in 0.1s"),
    said("m4", {"type": "text", "text": "Done."}),
    END,
)


def test_a_stream_of_claude_has_its_calls_results_cost_and_what_its_tests_said(tmp_path: Path) -> None:
    path = written(tmp_path, *CLAUDE)
    assert detect(path) == "claude_stream"
    (run,) = runs(path)
    assert told(run)[:2] == [
        ("I run them.", [("Bash", {"command": "pytest -q"})], [("tool", "Exit code 1\n1 failed", True)]),
        ("", [("Bash", {"command": "sed -i s/1/2/ a.py"})], [("tool", "", False)]),
    ]
    assert (run.trajectory.task, run.trajectory.answer) == ("Make the tests pass", "Done.")
    assert (run.trajectory.usage.requests, run.trajectory.usage.cost) == (4, 0.25)
    assert (run.verdict and run.verdict.outcome, run.account.outcome) == ("success", "checks")
    assert run.account.left == ()


def test_a_sub_agent_of_a_stream_is_a_run_of_its_own(tmp_path: Path) -> None:
    asked = line("user", message={"role": "user", "content": "Find the parser"}, parent_tool_use_id="c1")
    lines = (INIT, said("m1", used("c1", "x")), asked, said("m2", TEXT, above="c1"), answered("c1", "Found"), END)
    main, child = runs(written(tmp_path, *lines))
    assert (main.trajectory.metadata["run_id"], child.trajectory.metadata["run_id"]) == ("s1", "s1/c1")
    assert (child.trajectory.task, child.trajectory.answer) == ("Find the parser", "I run them.")


def test_a_stream_that_repeats_the_prompt_needs_no_file_beside_it(tmp_path: Path) -> None:
    asked = line("user", message={"role": "user", "content": [{"type": "text", "text": "Fix it"}]})
    (run,) = runs(written(tmp_path, INIT, asked, said("m1", TEXT), END, task=""))
    assert run.trajectory.task == "Fix it"


def test_a_stream_without_its_prompt_says_where_to_write_it(tmp_path: Path) -> None:
    for lines in (CLAUDE, CODEX):
        (entry,) = list(read(written(tmp_path, *lines, task="")))
        assert isinstance(entry, Skipped)
        assert entry.reason == "the stream does not hold its prompt: write it to run.task.txt beside it"


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ({"subtype": "error_max_turns", "is_error": True}, "error_max_turns"),
        (
            {"subtype": "error_during_execution", "is_error": True, "errors": ["no net"]},
            "error_during_execution: no net",
        ),
        ({"subtype": "success", "is_error": True, "result": "API Error 529"}, "success: API Error 529"),
    ],
)
def test_a_stream_that_ended_with_an_error_says_so(end: dict[str, Any], error: str, tmp_path: Path) -> None:
    (run,) = runs(written(tmp_path, INIT, said("m1", TEXT), line("result", **end)))
    assert (run.trajectory.error, run.verdict) == (error, None)


def test_lines_of_an_unknown_type_are_named(tmp_path: Path) -> None:
    (run,) = runs(written(tmp_path, INIT, said("m1", TEXT), line("tool_call", subtype="started"), END))
    assert run.account.left == ("`tool_call` is not known here and was left out",)


def item(id: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": id, "type": kind, **fields}}


def ran(id: str, command: str, output: str, code: int | None, status: str = "completed") -> dict[str, Any]:
    return item(id, "command_execution", command=command, aggregated_output=output, exit_code=code, status=status)


CODEX = (
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    item("i0", "reasoning", text="First the tests."),
    {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "pytest -q"}},
    ran("i1", "pytest -q", "1 failed", 1, "failed"),
    item("i2", "file_change", changes=[{"path": "a.py", "kind": "update"}], status="completed"),
    ran("i3", "pytest -q", "3 passed in 0.1s", 0),
    item("i4", "todo_list", items=[]),
    item("i5", "agent_message", text="Done."),
    {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 50, "output_tokens": 20}},
)


def test_a_stream_of_codex_has_its_calls_results_and_what_its_tests_said(tmp_path: Path) -> None:
    path = written(tmp_path, *CODEX)
    assert detect(path) == "codex_exec"
    (run,) = runs(path)
    assert told(run) == [
        ("", [("shell", {"command": "pytest -q"})], [("tool", "1 failed", True)]),
        ("", [("apply_patch", {"changes": [{"path": "a.py", "kind": "update"}]})], [("tool", "", False)]),
        ("", [("shell", {"command": "pytest -q"})], [("tool", "3 passed in 0.1s", False)]),
        ("Done.", [], []),
    ]
    assert run.trajectory.steps[0].thought == "First the tests."
    assert (run.trajectory.usage.input_tokens, run.trajectory.usage.output_tokens) == (100, 20)
    assert (run.verdict and run.verdict.outcome, run.account.left) == ("success", ())


def test_other_items_of_codex_are_calls_too(tmp_path: Path) -> None:
    result = {"content": [{"type": "text", "text": "two issues"}], "structured_content": None}
    lines = (
        CODEX[0],
        item("a", "mcp_tool_call", server="git", tool="list", arguments={"n": 2}, result=result, status="completed"),
        item("b", "mcp_tool_call", server="git", tool="list", error={"message": "no token"}, status="failed"),
        item("c", "web_search", query="parser"),
        ran("d", "rm -r /", "", None, "declined"),
        item("e", "new_kind"),
        {"type": "turn.failed", "error": {"message": "usage limit"}},
    )
    (run,) = runs(written(tmp_path, *lines))
    assert [(calls[0][0], seen[0][1:]) for _, calls, seen in told(run)] == [
        ("git.list", ("two issues", False)),
        ("git.list", ("no token", True)),
        ("web_search", ("", False)),
        ("shell", ("[declined]", False)),
    ]
    assert run.trajectory.error == "usage limit"
    assert run.account.left == ("`new_kind` is not known here and was left out",)


def test_what_two_calls_of_claude_printed_into_one_file_are_two_runs(tmp_path: Path) -> None:
    failed = line("result", subtype="error_max_turns", is_error=True, total_cost_usd=0.5)
    lines = (*CLAUDE, *({**row, "session_id": "s2"} for row in (INIT, said("m9", TEXT), failed)))
    ends = [(run.trajectory.metadata["run_id"], run.trajectory.error) for run in runs(written(tmp_path, *lines))]
    assert ends == [("s1", None), ("s2", "error_max_turns")]


def test_what_two_calls_of_codex_printed_into_one_file_are_two_runs(tmp_path: Path) -> None:
    failed = {"type": "turn.failed", "error": {"message": "usage limit"}}
    lines = (*CODEX, {"type": "thread.started", "thread_id": "t2"}, item("i0", "agent_message", text="Hm."), failed)
    ends = [(run.trajectory.metadata["run_id"], run.trajectory.error) for run in runs(written(tmp_path, *lines))]
    assert ends == [("t1", None), ("t2", "usage limit")]


def test_of_two_calls_with_one_id_neither_has_the_code_of_the_other(tmp_path: Path) -> None:
    lines = (*CODEX[:6], ran("i3", "make", "", 2, "failed"), CODEX[0], ran("i3", "ls", "", 0), *CODEX[8:])
    (run,) = runs(written(tmp_path, *lines))
    assert run.exit_codes == {"i1": 1}
    assert run.verdict is None


def test_a_prompt_beside_a_stream_may_begin_with_a_mark(tmp_path: Path) -> None:
    path = written(tmp_path, *CODEX, task="\ufeffMake the tests pass")
    assert [run.trajectory.task for run in runs(path)] == ["Make the tests pass"]
