"""What frameworks save of a run: states of the OpenAI Agents SDK, sessions of Google ADK, compacted ones of Cline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, Skipped, detect, read


def written(place: Path, value: object, name: str = "run.json") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(json.dumps(value), encoding="utf-8")
    return place / name


def run_of(path: Path) -> Imported:
    (run,) = [one for one in read(path) if isinstance(one, Imported)]
    return run


def item(kind: str, **raw: Any) -> dict[str, Any]:
    return {"type": kind, "raw_item": raw, "agent": {"name": "a"}}


CALLED = item("tool_call_item", type="function_call", call_id="c1", name="weather", arguments='{"city": "Rome"}')
SAW = item("tool_call_output_item", type="function_call_output", call_id="c1", output="Sunny")
SAID = item("message_output_item", type="message", role="assistant", content=[{"type": "output_text", "text": "Warm."}])
STATE: dict[str, Any] = {
    "$schemaVersion": "1.17",
    "original_input": "Weather in Rome?",
    "generated_items": [CALLED, SAW],
    "session_items": [CALLED, SAW, SAID],
    "context": {"usage": {"requests": 2, "input_tokens": 9, "output_tokens": 4}},
    "current_step": None,
}


@pytest.mark.parametrize("asked", ["Weather in Rome?", [{"role": "user", "content": "Weather in Rome?"}]])
def test_a_run_state_has_its_calls_results_and_answer(asked: Any, tmp_path: Path) -> None:
    path = written(tmp_path, {**STATE, "original_input": asked})
    assert detect(path) == "openai_agents"
    run = run_of(path)
    assert (run.trajectory.task, run.trajectory.answer) == ("Weather in Rome?", "Warm.")
    assert (run.account.calls, run.account.results, run.account.unanswered, run.account.strays) == (1, 1, 0, 0)
    assert (run.trajectory.usage.requests, run.trajectory.usage.input_tokens) == (2, 9)


def test_a_run_state_that_waits_says_so_and_counts_its_call_once(tmp_path: Path) -> None:
    asks = item("tool_approval_item", **CALLED["raw_item"])
    step = {"type": "next_step_interruption"}
    run = run_of(written(tmp_path, {**STATE, "session_items": [CALLED, asks], "current_step": step}))
    assert run.account.calls == 1
    assert run.account.left == ("the run waits for leave to make a call, and is not at its end",)


TRIPPED = {"tripwireTriggered": True, "outputInfo": {"why": "off topic"}}
RAISED = {"behavior": {"type": "raise_exception"}, "outputInfo": None}


@pytest.mark.parametrize(
    ("field", "output"),
    [
        ("input_guardrail_results", TRIPPED),
        ("output_guardrail_results", TRIPPED),
        ("output_guardrail_results", {"tripwire_triggered": True, "output_info": {}}),
        ("tool_input_guardrail_results", RAISED),
        ("tool_output_guardrail_results", RAISED),
    ],
)
def test_a_run_state_that_a_guardrail_stopped_says_so(field: str, output: dict[str, Any], tmp_path: Path) -> None:
    passed: dict[str, Any] = {
        "guardrail": {"name": "spelling"},
        "output": {"tripwireTriggered": False, "outputInfo": {}},
    }
    stopped = {"guardrail": {"type": "x", "name": "topic"}, "output": output}
    run = run_of(written(tmp_path, {**STATE, field: [passed, stopped]}))
    assert run.trajectory.error == "the guardrail topic stopped the run"
    assert run.account.left == ("a guardrail stopped the run; what it found was left out",)


@pytest.mark.parametrize(
    "output",
    [
        {"tripwireTriggered": False, "outputInfo": {}},
        {"behavior": {"type": "allow"}, "outputInfo": None},
        {"behavior": {"type": "reject_content", "message": "no"}, "outputInfo": None},
    ],
)
def test_a_run_state_that_no_guardrail_stopped_has_no_error(output: dict[str, Any], tmp_path: Path) -> None:
    result = {"guardrail": {"name": "g"}, "output": output}
    fields = {name: [result] for name in ("output_guardrail_results", "tool_input_guardrail_results")}
    run = run_of(written(tmp_path, {**STATE, **fields}))
    assert (run.trajectory.error, run.account.left) == (None, ())


def event(author: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    return {"author": author, "content": {"parts": list(parts)}, "id": "e", "actions": {}, **fields}


EVENTS = [
    event("user", {"text": "Weather in Rome?"}),
    event("agent", {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}},
          usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 4}, modelVersion="gemini"),
    event("agent", {"functionResponse": {"id": "c1", "name": "weather", "response": {"error": "no net"}}}),
    event("agent", {"text": "Wa"}, partial=True),
    event("agent", {"text": "No idea."}),
]  # fmt: skip


@pytest.mark.parametrize("app", ["app_name", "appName"])
def test_a_session_of_adk_has_its_calls_results_and_answer(app: str, tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "s1", app: "trip", "userId": "u", "state": {}, "events": EVENTS})
    assert detect(path) == "adk"
    run = run_of(path)
    assert (run.trajectory.task, run.trajectory.answer) == ("Weather in Rome?", "No idea.")
    assert (run.account.calls, run.account.results, run.account.errors, run.account.unanswered) == (1, 1, 1, 0)
    assert run.trajectory.metadata == {"source": "adk/trip", "run_id": "s1", "model": "gemini"}
    assert (run.trajectory.usage.requests, run.trajectory.usage.output_tokens) == (1, 4)


def test_a_session_of_adk_with_all_the_fields_that_are_null_is_the_same_run(tmp_path: Path) -> None:
    nulls = dict.fromkeys(("text", "thought", "functionCall", "functionResponse", "inlineData", "executableCode"))
    told = json.loads(json.dumps(EVENTS))
    for one in told:
        one["content"]["parts"] = [{**nulls, **part} for part in one["content"]["parts"]]
        one.update({"errorMessage": None, "partial": one.get("partial"), "usageMetadata": one.get("usageMetadata")})
    saved: dict[str, Any] = {"id": "s1", "appName": "trip", "userId": "u", "state": {}, "lastUpdateTime": 1.5}
    plain, full = (
        run_of(written(tmp_path / name, {**saved, "events": events})) for name, events in (("a", EVENTS), ("b", told))
    )
    assert full.account == plain.account
    assert full.trajectory.steps == plain.trajectory.steps
    assert full.trajectory.answer == "No idea."


def session(task: str) -> dict[str, Any]:
    said = [{"role": "user", "content": task}, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]
    return {"version": 1, "agent": "lead", "sessionId": "178_x", "messages": said}


@pytest.mark.parametrize("name", ["178_x.messages.json", "session.messages.json"])
def test_a_session_that_cline_compacted_counts_once(name: str, tmp_path: Path) -> None:
    written(tmp_path, session("Align the sidebar"), name)
    written(tmp_path, session("Context summary: align"), "agentic.compaction.json")
    entries = list(read(tmp_path))
    assert [one.trajectory.task for one in entries if isinstance(one, Imported)] == ["Align the sidebar"]
    assert [one.unknown for one in entries if isinstance(one, Skipped)] == [True]


def test_a_compacted_session_alone_is_read(tmp_path: Path) -> None:
    written(tmp_path, {**session("Another"), "sessionId": "9"}, "other.messages.json")
    path = written(tmp_path, session("Context summary: align"), "basic.compaction.json")
    assert run_of(path).trajectory.task == "Context summary: align"
