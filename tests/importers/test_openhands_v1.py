"""OpenHands since version 1: events that say their kind, in a history, a list, lines of a file or a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records import Trajectory
from lessonbank.importers import Imported, detect, read


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said}]


def event(kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {
        "id": f"{kind}-{len(str(fields))}",
        "timestamp": "2026-06-16T05:39:18",
        "source": source,
        **fields,
        "kind": kind,
    }


def called(id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command, "security_risk": "LOW", "summary": "look"})
    call = {"id": id, "name": "terminal", "arguments": arguments, "origin": "completion"}
    thought = text(f"I run {command}.")
    return event(
        "ActionEvent", thought=thought, tool_name="terminal", tool_call_id=id, tool_call=call, llm_response_id=id
    )


def saw(id: str, said: str, **fields: Any) -> dict[str, Any]:
    seen = {"content": text(said), "is_error": False, "kind": "TerminalObservation", **fields}
    return event("ObservationEvent", "environment", tool_name="terminal", tool_call_id=id, observation=seen)


ASKED = event("MessageEvent", "user", llm_message={"role": "user", "content": text("Fix the date parser")})
EVENTS = [
    event(
        "SystemPromptEvent", system_prompt={"text": "You are OpenHands."}, dynamic_context={"text": "Host: x"}, tools=[]
    ),
    ASKED,
    event("ConversationStateUpdateEvent", "environment", key="stats", value={}),
    called("c1", "pytest -q"),
    saw("c1", "1 failed", exit_code=1),
    called("c2", "sleep 99"),
    saw("c2", "still there", exit_code=-1),
    event("ActionEvent", action={"message": "It is fixed.", "kind": "FinishAction"}, thought=[], tool_call_id="c3"),
    event("ObservationEvent", "environment", tool_call_id="c3", observation={"kind": "FinishObservation"}),
]


def runs(path: Path) -> list[Imported]:
    return [entry for entry in read(path) if isinstance(entry, Imported)]


def told(run: Trajectory) -> list[Any]:
    return [
        (
            [(call.name, call.arguments) for call in step.action.calls],
            [(seen.source, seen.text, seen.is_error) for seen in step.observations],
        )
        for step in run.steps
    ]


STEPS: list[Any] = [
    ([], [("user", "Fix the date parser", False)]),
    ([("terminal", {"command": "pytest -q"})], [("tool", "1 failed", True)]),
    ([("terminal", {"command": "sleep 99"})], [("tool", "still there", False)]),
    ([], []),
]


@pytest.mark.parametrize("form", ["history", "list", "lines", "folder"])
def test_events_are_the_same_run_in_each_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    if form == "folder":
        (tmp_path / "events").mkdir()
        (tmp_path / "base_state.json").write_text('{"id": "r1", "agent": {"llm": {"model": "m"}}}', encoding="utf-8")
        for number, one in enumerate(EVENTS):
            (tmp_path / "events" / f"event-{number:05d}-x.json").write_text(json.dumps(one), encoding="utf-8")
        path = tmp_path
    elif form == "history":
        path.write_text(json.dumps({"instance_id": "a__b-1", "history": EVENTS, "metadata": {"llm": {"model": "m"}}}))
    else:
        path.write_text("\n".join(map(json.dumps, EVENTS)) if form == "lines" else json.dumps(EVENTS), encoding="utf-8")
    assert detect(path) == "openhands"
    (run,) = runs(path)
    assert told(run.trajectory) == STEPS
    assert run.trajectory.instructions == "You are OpenHands.\n\nHost: x"
    assert (run.trajectory.answer, run.trajectory.usage.requests) == ("It is fixed.", 3)
    assert run.exit_codes == {"c1": 1}
    assert run.account.left == ()


def test_an_error_a_refusal_and_a_rule_of_the_program_are_told_apart(tmp_path: Path) -> None:
    events = [
        {**ASKED, "extended_content": text("Rules of this folder")},
        called("c1", "rm -r /"),
        event("UserRejectObservation", "environment", tool_call_id="c1", rejection_reason="Not that folder"),
        called("c2", "ls"),
        event("AgentErrorEvent", tool_call_id="c2", error="no such tool"),
        event("ConversationErrorEvent", "environment", code="LLMError", detail="out of credit"),
        event("NewThingEvent", "environment"),
    ]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    (run,) = runs(path)
    assert [seen for _, seen in told(run.trajectory)] == [
        [("user", "Fix the date parser", False), ("environment", "Rules of this folder", False)],
        [("tool", "Action rejected: Not that folder", False), ("user", "Not that folder", False)],
        [("tool", "no such tool", True)],
    ]
    assert run.trajectory.error == "LLMError: out of credit"
    assert run.account.left == ("`NewThingEvent` is not known here and was left out",)


def test_an_exit_code_of_zero_is_no_error_whatever_the_words(tmp_path: Path) -> None:
    last = (called("c2", "x"), saw("c2", "ok", exit_code=3))
    events = [ASKED, called("c1", "cat log"), saw("c1", "Error: failed", exit_code=0), *last]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    (run,) = runs(path)
    seen = [one for step in run.trajectory.steps for one in step.observations if one.source == "tool"]
    assert [(one.is_error, one.is_success) for one in seen] == [(False, True), (True, False)]


def test_a_call_behind_the_agent_client_protocol_is_told_once_as_it_ended(tmp_path: Path) -> None:
    acp: dict[str, Any] = {
        "tool_call_id": "c1",
        "title": "Read a.py",
        "tool_kind": "read",
        "raw_input": {"path": "a.py"},
    }
    events = [
        ASKED,
        event("ACPToolCallEvent", **acp, status="in_progress"),
        event("ACPToolCallEvent", **acp, status="failed", raw_output="no such file", is_error=True),
        event("MessageEvent", llm_message={"role": "assistant", "content": text("There is none.")}),
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    (run,) = runs(path)
    assert told(run.trajectory)[1] == ([("read", {"path": "a.py"})], [("tool", "no such file", True)])
    assert run.trajectory.answer == "There is none."


def test_an_evaluation_keeps_its_report_as_the_outcome(tmp_path: Path) -> None:
    row = {
        "instance_id": "a__b-1",
        "instruction": "Fix it",
        "history": EVENTS,
        "test_result": {"report": {"resolved": True}},
    }
    path = tmp_path / "output.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (row, {**row, "test_result": {"git_patch": "x"}})))
    first, second = runs(path)
    assert (first.verdict and first.verdict.outcome, second.verdict) == ("success", None)
    assert second.account.left == ("`test_result` may say how the run ended, and was not used",)
