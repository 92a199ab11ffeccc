"""Messages of programs with types of their own: no call and no result among them is lost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from lessonbank.contracts.records import Trajectory
from lessonbank.errors import FormatError
from lessonbank.text.messages import to_messages, trajectory_from

CALL = {"id": "1", "name": "look", "arguments": {"place": "shelf"}}


@dataclass
class Turn:
    """As the package of PyPI has it."""

    role: str
    content: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


def told(messages: Any) -> list[Any]:
    return told_of(trajectory_from(messages))


def told_of(run: Trajectory) -> list[Any]:
    return [
        (
            step.action.text,
            [(call.name, call.arguments) for call in step.action.calls],
            [(seen.source, seen.text, seen.is_error) for seen in step.observations],
        )
        for step in run.steps
    ]


def seen(text: str, *, failed: bool = False) -> list[Any]:
    """What all of these runs come to."""
    return [
        ("", [], [("user", "Find the lamp", False)]),
        ("", [("look", {"place": "shelf"})], [("tool", text, failed)]),
        ("Found.", [], []),
    ]


RUNS: dict[str, list[Any]] = {
    "turns with meta": [
        Turn("user", "Find the lamp"),
        Turn("assistant", "", {"tool_calls": [CALL]}),
        Turn("tool", "", {"tool_results": [{"tool_call_id": "1", "content": "here"}]}),
        Turn("assistant", "Found."),
    ],
    "mappings with results": [
        {"role": "user", "content": "Find the lamp"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "", "tool_results": [{"id": "1", "output": "here"}]},
        {"role": "assistant", "content": "Found."},
    ],
    "results with the call": [
        {"role": "user", "content": "Find the lamp"},
        {"role": "assistant", "content": "", "tool_calls": [CALL], "tool_results": ["here"]},
        {"role": "assistant", "content": "Found."},
    ],
    "events of ADK": [
        {"author": "user", "content": {"role": "user", "parts": [{"text": "Find the lamp"}]}, "invocation_id": "i"},
        {"author": "agent", "content": {"role": "model", "parts": [{"text": "Fo"}]}, "partial": True},
        {"author": "agent", "content": {"parts": [{"function_call": {"name": "look", "args": CALL["arguments"]}}]}},
        {"author": "agent", "content": {"parts": [{"function_response": {"name": "look", "response": "here"}}]}},
        {"author": "agent", "content": {"role": "model", "parts": [{"text": "Found."}]}, "actions": {}},
    ],
    "messages of LlamaIndex": [
        {"role": "user", "blocks": [{"block_type": "text", "text": "Find the lamp"}]},
        {"role": "assistant", "blocks": [
            {"block_type": "tool_call", "tool_call_id": "1", "tool_name": "look", "tool_kwargs": CALL["arguments"]}]},
        {"role": "tool", "additional_kwargs": {"tool_call_id": "1"}, "blocks": [{"text": "here"}]},
        {"role": "assistant", "blocks": [{"text": "Found."}]},
    ],
    "messages of the AI SDK": [
        {"id": "a", "role": "user", "parts": [{"type": "text", "text": "Find the lamp"}]},
        {"id": "b", "role": "assistant", "parts": [
            {"type": "step-start"},
            {"type": "tool-look", "toolCallId": "1", "state": "output-available", "input": CALL["arguments"],
             "output": "here"},
            {"type": "step-start"},
            {"type": "text", "text": "Found.", "state": "done"}]},
    ],
    "messages of CrewAI": [
        {"role": "system", "content": "You are a finder."},
        {"role": "user", "content": "Find the lamp"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"place": "shelf"}'}}]},
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "here"},
        {"role": "assistant", "content": "Found."},
    ],
    "messages of Strands": [
        {"role": "user", "content": [{"text": "Find the lamp"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "look", "input": CALL["arguments"]}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "here"}]}}]},
        {"role": "assistant", "content": [{"text": "Found."}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_calls_and_results_of_each_type_are_read(name: str) -> None:
    assert told(RUNS[name]) == seen("here")


def test_the_parts_of_a_message_of_the_ai_sdk_count_also_beside_its_text() -> None:
    first, second = RUNS["messages of the AI SDK"]
    assert told([first, {**second, "content": "Found."}]) == seen("here")


@pytest.mark.parametrize("name", ["mappings with results", "messages of the AI SDK"])
def test_the_very_messages_come_back(name: str) -> None:
    assert to_messages(trajectory_from(RUNS[name])) == RUNS[name]


@pytest.mark.parametrize(
    ("state", "fields", "result"),
    [
        ("output-error", {"errorText": "no shelf"}, ("tool", "no shelf", True)),
        (
            "output-denied",
            {"approval": {"approved": False, "reason": "No"}},
            ("tool", "[denied] No", False),
        ),
        ("input-available", {}, None),
        ("approval-requested", {"approval": {"id": "x"}}, None),
    ],
)
def test_a_call_of_the_ai_sdk_ends_in_each_of_its_states(state: str, fields: Any, result: Any) -> None:
    named = {"type": "dynamic-tool", "toolName": "look", "toolCallId": "1"}
    part: dict[str, Any] = {**named, "state": state, "input": {}, **fields}
    steps = told([{"role": "user", "content": "Find the lamp"}, {"role": "assistant", "parts": [part]}])
    assert steps[1] == ("", [("look", {})], [result] if result else [])


@dataclass
class TaskOutput:
    """As CrewAI has it."""

    description: str
    messages: list[dict[str, Any]]
    tool_failures: list[ToolFailure] = field(default_factory=list["ToolFailure"])


@dataclass
class ToolFailure:
    tool_name: str
    message: str


ACTED = 'Thought: On the shelf?\nAction: look\nAction Input: {"place": "shelf"}'


@pytest.mark.parametrize(
    "said",
    [
        [{"role": "assistant", "content": f"{ACTED}\nObservation: here"}],
        [{"role": "assistant", "content": ACTED}, {"role": "user", "content": "Observation: here"}],
        [{"role": "assistant", "content": f"{ACTED}\n\nObservation:\nhere\n"}],
    ],
)
def test_a_call_that_an_agent_writes_as_text_is_a_call_with_its_result(said: list[dict[str, Any]]) -> None:
    made = trajectory_from([{"role": "user", "content": "Find the lamp"}, *said])
    step = made.steps[1]
    assert (step.thought, step.action.text) == ("On the shelf?", "")
    assert [(call.name, call.arguments) for call in step.action.calls] == [("look", {"place": "shelf"})]
    assert [(seen.source, seen.text) for seen in step.observations] == [("tool", "here")]


def test_words_about_an_action_are_no_call() -> None:
    said = "Thought: The form has a field Action: none.\nAction Input: is empty, too"
    made = trajectory_from([{"role": "user", "content": "Find it"}, {"role": "assistant", "content": said}])
    assert made.steps[1].action.calls == ()
    assert made.steps[1].action.text == said


def test_an_output_of_crewai_is_read_with_its_task() -> None:
    output = TaskOutput("Find the lamp", RUNS["messages of CrewAI"])
    made = trajectory_from(output)
    assert (made.task, made.instructions, made.answer) == ("Find the lamp", "You are a finder.", "Found.")
    assert [call.name for step in made.steps for call in step.action.calls] == ["look"]
    assert trajectory_from(TaskOutput("", RUNS["messages of CrewAI"])).task == "Find the lamp"


def test_a_failure_that_crewai_notes_apart_from_the_messages_is_one_of_its_result() -> None:
    output = TaskOutput("Find the lamp", RUNS["messages of CrewAI"], [ToolFailure("look", "here")])
    assert told_of(trajectory_from(output)) == seen("here", failed=True)
    other = TaskOutput("Find the lamp", RUNS["messages of CrewAI"], [ToolFailure("lift", "here")])
    assert told_of(trajectory_from(other)) == seen("here")


def test_an_error_in_a_result_of_a_turn_is_one() -> None:
    failed = {"tool_results": [{"tool_call_id": "1", "content": "no shelf", "is_error": True}]}
    turns = [Turn("user", "Find the lamp"), Turn("assistant", "", {"tool_calls": [CALL]}), Turn("tool", "", failed)]
    assert told([*turns, Turn("assistant", "Found.")]) == seen("no shelf", failed=True)


def test_an_event_of_adk_in_the_other_spelling_with_an_error_is_read() -> None:
    events: list[Any] = [
        {"author": "user", "content": {"parts": [{"text": "Find the lamp"}]}, "invocationId": "i"},
        {"author": "agent", "errorCode": "429", "errorMessage": "too many requests", "invocationId": "i"},
    ]
    assert told(json.loads(json.dumps(events)))[0][2] == [
        ("user", "Find the lamp", False),
        ("environment", "too many requests", False),
    ]


def test_a_mapping_with_an_author_that_is_no_event_is_refused_as_before() -> None:
    with pytest.raises(FormatError, match="has no role"):
        trajectory_from([{"author": "Ann", "title": "A book"}], task="x")
