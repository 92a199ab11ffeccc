"""Sessions of the GitHub Copilot CLI: events of the session, its sub-agents, and what the program says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, detect, read


def event(number: int, kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": f"e{number}", "parentId": f"e{number - 1}" if number else None, **more}


def call(id: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"toolCallId": id, "name": name, "arguments": arguments}


START = ("session.start", {"sessionId": "s1", "copilotVersion": "1.0.48", "selectedModel": "gpt-5"})
ASKED = ("user.message", {"content": "Fix the date parser", "transformedContent": "<now/>Fix the date parser"})
RAN = (
    "assistant.message",
    {"content": "I look.", "reasoningText": "Hm.", "toolRequests": [call("c1", command="pytest")]},
)
FAILED = (
    "tool.execution_complete",
    {"toolCallId": "c1", "success": True, "result": {"content": "1 failed\n<exited with exit code 1>"}},
)
DONE = ("assistant.message", {"content": "Fixed.", "toolRequests": []})


def runs(folder: Path, *events: tuple[str, dict[str, Any]]) -> list[Imported]:
    path = folder / "events.jsonl"
    rows = [event(number, *one) for number, one in enumerate(events)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert detect(path) == "copilot_cli"
    found = list(read(path))
    assert all(isinstance(one, Imported) for one in found), found
    return [one for one in found if isinstance(one, Imported)]


def told(run: Imported) -> list[Any]:
    return [
        (
            step.thought,
            step.action.text,
            [(one.name, one.arguments) for one in step.action.calls],
            [(seen.source, seen.text, seen.is_error, seen.is_success) for seen in step.observations],
        )
        for step in run.trajectory.steps
    ]


def test_words_calls_results_and_costs_are_read(tmp_path: Path) -> None:
    spent = {"gpt-5": {"requests": {"count": 2, "cost": 1}, "usage": {"inputTokens": 70, "outputTokens": 7}}}
    (run,) = runs(tmp_path, START, ASKED, RAN, FAILED, DONE, ("session.shutdown", {"modelMetrics": spent}))
    assert told(run) == [
        ("", "", [], [("user", "Fix the date parser", False, False)]),
        (
            "Hm.",
            "I look.",
            [("bash", {"command": "pytest"})],
            [("tool", "1 failed\n<exited with exit code 1>", True, False)],
        ),
        ("", "Fixed.", [], []),
    ]
    made = run.trajectory
    assert (made.metadata["run_id"], made.metadata["model"]) == ("s1", "gpt-5")
    assert (made.usage.requests, made.usage.input_tokens, made.usage.output_tokens) == (2, 70, 7)
    assert run.exit_codes == {"c1": 1}
    assert run.account.left == ()


@pytest.mark.parametrize(
    ("fields", "failed", "succeeded"),
    [
        ({"success": False, "error": {"message": "no such file"}}, True, False),
        ({"success": True, "result": {"content": "Error page redesign"}}, False, True),
        ({"success": True, "result": {"content": "ok\n<exited with exit code 0>"}}, False, True),
    ],
)
def test_flags_and_exit_codes_say_whether_a_call_failed(
    fields: dict[str, Any], failed: bool, succeeded: bool, tmp_path: Path
) -> None:
    (run,) = runs(tmp_path, START, ASKED, RAN, ("tool.execution_complete", {"toolCallId": "c1", **fields}), DONE)
    seen = run.trajectory.steps[1].observations[0]
    assert (seen.is_error, seen.is_success) == (failed, succeeded)


def test_a_sub_agent_is_a_run_of_its_own_with_the_prompt_of_its_call(tmp_path: Path) -> None:
    task = call("t1", "task", prompt="Find the callers", agent_type="explore")
    main, child = runs(
        tmp_path,
        START,
        ASKED,
        ("assistant.message", {"content": "", "toolRequests": [task]}),
        ("assistant.message", {"content": "Two.", "toolRequests": [], "parentToolCallId": "t1"}),
        ("tool.execution_complete", {"toolCallId": "t1", "success": True, "result": {"content": "Two callers"}}),
        DONE,
    )
    assert (main.trajectory.task, main.account.calls, main.account.results) == ("Fix the date parser", 1, 1)
    assert (child.trajectory.task, child.trajectory.metadata["run_id"]) == ("Find the callers", "s1/t1")
    assert child.trajectory.answer == "Two."


def test_what_the_program_says_and_a_user_runs_himself_is_no_word_of_the_run(tmp_path: Path) -> None:
    (run,) = runs(
        tmp_path,
        START,
        ("user.message", {"content": "long text of a skill", "source": "skill-pdf"}),
        ("system.message", {"content": "You are Copilot", "role": "system"}),
        ASKED,
        ("hook.start", {"hookType": "postToolUse"}),
        ("tool.execution_complete", {"toolCallId": "u1", "success": True, "isUserRequested": True, "result": {}}),
        ("user.message", {"content": "Go on", "isAutopilotContinuation": True}),
        DONE,
    )
    assert told(run)[0][3] == [
        ("user", "Fix the date parser", False, False),
        ("environment", "Go on", False, False),
    ]
    assert run.account.calls == run.account.results == 0


def test_a_call_that_no_reply_has_is_told_by_its_beginning(tmp_path: Path) -> None:
    began = ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "pytest"}})
    (run,) = runs(tmp_path, START, ASKED, began, FAILED, DONE)
    assert (run.account.calls, run.account.results, run.account.strays) == (1, 1, 0)


def test_what_was_taken_back_is_left_out(tmp_path: Path) -> None:
    (run,) = runs(
        tmp_path,
        START,
        ("user.message", {"content": "Delete it all"}),
        ("assistant.message", {"content": "Deleted.", "toolRequests": []}),
        ("session.snapshot_rewind", {"upToEventId": "e1", "eventsRemoved": 2}),
        ASKED,
        DONE,
    )
    assert run.trajectory.task == "Fix the date parser"
    assert len(told(run)) == 2


def test_an_error_at_the_end_and_an_event_that_is_not_known_are_named(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, START, ASKED, DONE, ("session.error", {"message": "quota"}), ("weather.changed", {}))
    assert run.trajectory.error == "quota"
    assert run.account.left == ("`weather.changed` is not known here and was left out",)


def test_the_outcome_is_what_the_checks_of_the_session_say(tmp_path: Path) -> None:
    passed = {"toolCallId": "c2", "success": True, "result": {"content": "3 passed\n<exited with exit code 0>"}}
    edit, again = call("c3", "create", path="dates.py", file_text="x"), call("c2", command="pytest")
    (run,) = runs(
        tmp_path,
        START,
        ASKED,
        RAN,
        FAILED,
        ("assistant.message", {"content": "", "toolRequests": [edit]}),
        ("tool.execution_complete", {"toolCallId": "c3", "success": True, "result": {"content": "created"}}),
        ("assistant.message", {"content": "", "toolRequests": [again]}),
        ("tool.execution_complete", passed),
        DONE,
    )
    assert run.verdict is not None
    assert (run.verdict.outcome, run.account.outcome) == ("success", "checks")
