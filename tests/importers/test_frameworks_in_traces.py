"""Each framework wraps its requests in a way of its own; a trace of any of them is the same conversation."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, Skipped, read

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
ASK, SUNNY = "Weather in Rome?", "Sunny, 30C"


def observed(kind: str, second: int, sent: Any, back: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": f"o{second}",
        "traceId": "t1",
        "type": kind,
        "name": "get_weather" if kind == "TOOL" else "llm",
        "startTime": f"2026-01-01T00:00:{second:02d}Z",
        "parentObservationId": None,
        "input": json.dumps(sent),
        "output": json.dumps(back),
        **more,
    }


def trace(tmp_path: Path, *observations: dict[str, Any], asked: Any = None) -> Path:
    path = tmp_path / "trace.json"
    whole = {"id": "t1", "name": "x", "input": json.dumps(asked), "output": None}
    path.write_text(json.dumps({"trace": whole, "observations": observations}), encoding="utf-8")
    return path


def run_of(path: Path) -> Imported:
    (entry,) = list(read(path))
    assert isinstance(entry, Imported), entry
    return entry


def told(run: Imported) -> list[Any]:
    return [
        (
            step.action.text,
            [(call.name, call.arguments) for call in step.action.calls],
            [(seen.source, seen.text) for seen in step.observations],
        )
        for step in run.trajectory.steps
    ]


def parts(*some: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": list(some)}


GEMINI_CALL = {"function_call": {"name": "get_weather", "args": {"city": "Rome"}}}
AGNO = (
    f"role='user' content='{ASK}' name=None tool_call_id=None tool_calls=None",
    "role='assistant' content=None name=None tool_call_id=None tool_calls=[]",
    f"role='tool' content=\"{SUNNY}\" name=None tool_call_id='c1' tool_calls=None",
)
JSON_CALL = json.dumps([{"function": CALL["function"], "id": "c1", "type": "function"}])
DEFINITION: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "", "parameters": {}},
}
ASKED, WARM = {"role": "user", "content": ASK}, {"role": "assistant", "content": "Warm."}
USE = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Rome"}}
CALLED, MODEL_CALLED = {"role": "assistant", "content": "", "tool_calls": [CALL]}, parts(GEMINI_CALL, role="model")
RESPONSE = parts({"function_response": {"name": "get_weather", "response": SUNNY}})
HISTORY = [parts({"text": ASK}), MODEL_CALLED, RESPONSE]
FRAMEWORKS: dict[str, list[dict[str, Any]]] = {
    "Agno": [
        observed("GENERATION", 1, {"messages": AGNO[:1]}, {"choices": [{"message": CALLED}]}),
        observed("GENERATION", 2, f"user: {ASK}", "None", parentObservationId="o1"),
        observed("GENERATION", 3, {"messages": AGNO}, {"choices": [{"message": WARM}]}),
        observed("GENERATION", 4, f"user: {ASK}\nassistant: None\ntool: {SUNNY}", "Warm.", parentObservationId="o3"),
    ],
    "Claude Agent SDK": [
        observed("GENERATION", 1, ASKED, {"role": "assistant", "content": [USE]}),
        observed("TOOL", 2, {"input": {"city": "Rome"}}, {"content": [{"type": "text", "text": SUNNY}]}),
        observed("GENERATION", 3, {"content": "role"}, WARM),
    ],
    "Koog": [
        observed("GENERATION", 1, [ASKED], [{"role": "assistant", "content": JSON_CALL}]),
        observed(
            "GENERATION", 2, [ASKED, {"role": "tool", "content": JSON_CALL}, {"role": "tool", "content": SUNNY}], [WARM]
        ),
    ],
    "Gemini SDK": [
        observed("GENERATION", 1, {"contents": ASK, "model": "m"}, {"candidates": [{"content": MODEL_CALLED}]}),
        observed("GENERATION", 2, {"contents": HISTORY}, {"candidates": [{"content": {"parts": [{"text": "Warm."}]}}]}),
    ],
    "ADK": [
        observed("GENERATION", 1, {"contents": HISTORY[:1], "config": {}}, {"content": MODEL_CALLED}),
        observed("TOOL", 2, {"city": "Rome"}, SUNNY, name="execute_tool get_weather"),
        observed("GENERATION", 3, {"contents": HISTORY[:1]}, {"content": parts({"text": "Warm."}, role="model")}),
    ],
    "AI SDK": [
        observed("GENERATION", 1, {"prompt": ASK}, ""),
        observed(
            "GENERATION",
            2,
            [ASKED],
            [{"toolCallId": "c1", "toolName": "get_weather", "input": '{"city":"Rome"}'}],
            parentObservationId="o1",
        ),
        observed("TOOL", 3, {"city": "Rome"}, SUNNY),
        observed("GENERATION", 4, [ASKED], "Warm.", parentObservationId="o1"),
    ],
    "LangGraph": [
        observed(
            "GENERATION",
            1,
            [ASKED, {"role": "tool", "content": DEFINITION}],
            {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [CALL]}},
        ),
        observed("GENERATION", 2, [ASKED, CALLED, {"role": "get_weather", "content": SUNNY}], WARM),
    ],
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_call_its_result_and_the_answer_are_read_once_each(framework: str, tmp_path: Path) -> None:
    run = run_of(trace(tmp_path, *FRAMEWORKS[framework]))
    steps = told(run)
    calls = [call for _, made, _ in steps for call in made]
    seen = [one for _, _, some in steps for one in some]
    assert (run.trajectory.task, run.trajectory.answer) == (ASK, "Warm.")
    assert seen == [("user", ASK), ("tool", SUNNY)]
    assert calls == [("get_weather", {"city": "Rome"})]
    assert (run.account.unanswered, run.account.strays, run.account.left) == (0, 0, ())


@pytest.mark.parametrize(
    "text",
    [
        "system: Be brief.\nuser: Say hi to Bob\nassistant: Hi Bob\nuser: And to Ann: twice",
        "System: Be brief.\nHuman: Say hi to Bob\nAI: Hi Bob\nHuman: And to Ann: twice",
        "SYSTEM: Be brief.\n\nUSER: Say hi to Bob\n\nASSISTANT: Hi Bob\n\nUSER: And to Ann: twice",
        "Developer: Be brief.\nUser: Say hi to Bob\nAssistant: Hi Bob\nUser: And to Ann: twice",
    ],
)
def test_roles_in_one_text_are_voices_and_the_account_says_it_was_a_guess(text: str, tmp_path: Path) -> None:
    run = run_of(trace(tmp_path, observed("GENERATION", 1, text, "Hi Ann, hi Ann")))
    assert (run.trajectory.instructions, run.trajectory.task) == ("Be brief.", "Say hi to Bob")
    assert [said for said, _, _ in told(run)] == ["", "Hi Bob", "Hi Ann, hi Ann"]
    assert run.account.speakers == "places"


@pytest.mark.parametrize(
    "text",
    [
        "System: Ubuntu 24\nIssue: no sound",
        "User: ann\nThe login fails",
        "Which user: admin or guest?",
        "Explain\nuser: x",
        "assistant: is it a role?",
    ],
)
def test_a_text_that_only_names_a_role_is_one_voice(text: str, tmp_path: Path) -> None:
    run = run_of(trace(tmp_path, observed("GENERATION", 1, text, "Yes")))
    assert (run.trajectory.task, run.account.speakers) == (text, "roles")


@pytest.mark.parametrize(
    ("asked", "task"),
    [
        ("Return the red lamp", "Return the red lamp"),
        ({"messages": [{"type": "human", "content": "Return the red lamp"}]}, "Return the red lamp"),
        ({"prompt": "Return the red lamp", "system": "Be nice."}, "Return the red lamp"),
        ({"args": ["lamp"], "kwargs": {}}, "You help."),
        (None, "You help."),
    ],
)
def test_what_the_trace_was_asked_is_the_task(asked: Any, task: str, tmp_path: Path) -> None:
    sent = [{"role": "user", "content": "You help."}, {"role": "user", "content": "Return the red lamp"}]
    assert run_of(trace(tmp_path, observed("GENERATION", 1, sent, "Done"), asked=asked)).trajectory.task == task


def test_a_signature_is_no_word_of_the_agent(tmp_path: Path) -> None:
    sealed = {
        "type": "Microsoft.Extensions.AI.TextReasoningContent",
        "content": {"text": "", "protectedData": "Q0I" * 99},
    }
    back = [{"role": "assistant", "parts": [sealed, {"type": "text", "content": "Hi", "thoughtSignature": "x" * 99}]}]
    run = run_of(trace(tmp_path, observed("GENERATION", 1, [{"role": "user", "content": "Hello there"}], back)))
    assert [said for said, _, _ in told(run)] == ["", "Hi"]


def test_a_tool_that_failed_says_so_in_its_result(tmp_path: Path) -> None:
    rows = FRAMEWORKS["ADK"]
    failed = observed("TOOL", 2, {"city": "Rome"}, None, level="ERROR", statusMessage="no such city")
    run = run_of(trace(tmp_path, rows[0], failed, rows[2]))
    assert [(seen.text, seen.is_error) for step in run.trajectory.steps for seen in step.observations][1:] == [
        ("no such city", True)
    ]


def test_results_of_tools_that_belong_to_no_call_are_counted(tmp_path: Path) -> None:
    talk = observed("GENERATION", 1, [{"role": "user", "content": ASK}], "Warm.")
    run = run_of(trace(tmp_path, talk, observed("TOOL", 2, {}, SUNNY), observed("TOOL", 3, {}, SUNNY)))
    assert run.account.left == ("2 results of tools belong to no call and was left out",)


def test_inputs_in_an_unknown_form_are_not_called_switched_off(tmp_path: Path) -> None:
    (unknown,) = list(read(trace(tmp_path, observed("GENERATION", 1, {"turns": [1]}, {"reply": 2}))))
    (empty,) = list(read(trace(tmp_path, observed("GENERATION", 1, None, None, input=None, output=None))))
    assert isinstance(unknown, Skipped)
    assert isinstance(empty, Skipped)
    assert unknown.reason.endswith("of the trace: `turns`, `reply` are not known here and were left out")
    assert "switched off?" in empty.reason


@pytest.mark.full
def test_many_calls_and_results_of_one_name_take_linear_time(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        calls = [{**CALL, "id": f"c{n}", "function": {"name": "look", "arguments": f"[{n}]"}} for n in range(count)]
        talk = observed("GENERATION", 0, [{"role": "user", "content": ASK}], {"role": "assistant", "tool_calls": calls})
        path = trace(tmp_path, talk, *(observed("TOOL", 1, [n], SUNNY, name="look") for n in range(count)))
        began = time.process_time()
        run = run_of(path)
        assert run.account.results == count
        return time.process_time() - began

    seconds(10)
    assert seconds(1000) < 10 * seconds(250) + 0.2
