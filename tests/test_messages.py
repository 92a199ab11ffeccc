"""Messages of every common SDK become one trajectory, and come back as they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth, growth_of

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.errors import FormatError
from lessonbank.text.messages import first_request, to_messages, trajectory_from

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is my parcel?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel":"P1"}'}},
            {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "in Lyon"},
    {"role": "tool", "tool_call_id": "c2", "content": "09:00"},
    {"role": "assistant", "content": "It is in Lyon."},
]


def test_an_openai_chat_becomes_instructions_steps_and_an_answer() -> None:
    run = trajectory_from(CHAT)
    assert run.task == "Where is my parcel?"
    assert run.instructions == "Be brief."
    assert run.answer == "It is in Lyon."
    opening, calling, telling = run.steps
    assert opening.action == Action()
    assert opening.observations == (Observation(text="Where is my parcel?", source="user"),)
    assert calling.action.calls == (
        ToolCall(name="track", arguments={"parcel": "P1"}, id="c1"),
        ToolCall(name="clock", arguments={}, id="c2"),
    )
    assert calling.observations == (
        Observation(text="in Lyon", source="tool", name="track", call_id="c1"),
        Observation(text="09:00", source="tool", name="clock", call_id="c2"),
    )
    assert telling.action.text == "It is in Lyon."
    assert run.original == ()
    assert to_messages(run) == CHAT


def test_a_trajectory_is_returned_as_it_is_and_may_be_given_another_task() -> None:
    run = Trajectory(task="a", answer="b")
    assert trajectory_from(run) is run
    assert trajectory_from(run, task=" a ") is run
    assert trajectory_from(run, task="c") == run.model_copy(update={"task": "c"})


def test_a_string_is_an_answer() -> None:
    run = trajectory_from("Paris", task="Capital of France?")
    assert (run.task, run.answer, run.steps) == ("Capital of France?", "Paris", ())
    assert to_messages(run) == [
        {"role": "user", "content": "Capital of France?"},
        {"role": "assistant", "content": "Paris"},
    ]


def test_the_legacy_function_call_is_a_call_and_its_result_an_observation() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "f", "content": "2"},
    ]
    run = trajectory_from(messages)
    assert run.steps[1].action.calls == (ToolCall(name="f", arguments={"x": 1}),)
    assert run.steps[1].observations == (Observation(text="2", source="tool", name="f"),)
    assert run.answer is None
    assert to_messages(run) == messages


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"output": "42"}, "42"),
        ({"content": None, "output": "42"}, "42"),
        ({"content": "", "error": "no such order"}, "no such order"),
        ({"error": {"code": 404}}, '{"code": 404}'),
        ({"content": "", "error": 0}, ""),
        ({"content": "", "is_error": True, "error": False}, ""),
        ({"content": "42", "error": "late"}, "42"),
    ],
)
def test_what_a_tool_returned_or_why_not_is_read_wherever_it_stands(result: dict[str, Any], text: str) -> None:
    run = trajectory_from([{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "1", **result}])
    assert [seen.text for seen in run.steps[0].observations] == ["x", text]
    part = {"type": "tool_result", "tool_use_id": "1", **result}
    assert trajectory_from([{"role": "user", "content": [part]}], task="x").steps[0].observations[0].text == text


def test_a_legacy_call_of_langchain_is_read_once() -> None:
    legacy = {"function_call": {"name": "f", "arguments": '{"x": 1}'}}
    listed = [{"name": "f", "args": {"x": 1}, "id": "1"}]
    for fields, id in (
        ({}, None),
        ({"tool_calls": listed}, "1"),
        ({"content": [{"type": "tool_use", **listed[0]}]}, "1"),
    ):
        message = {"type": "ai", "content": "", "additional_kwargs": legacy, **fields}
        (step,) = trajectory_from([message], task="x").steps
        assert step.action.calls == (ToolCall(name="f", arguments={"x": 1}, id=id),)


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}])
def test_parts_are_read_where_there_is_no_content(content: dict[str, Any]) -> None:
    parts = [{"type": "text", "text": "hello"}]
    run = trajectory_from([{"role": role, **content, "parts": parts} for role in ("user", "assistant")])
    assert (run.task, run.answer) == ("hello", "hello")


def test_an_image_that_a_provider_drew_is_told_and_not_copied() -> None:
    item = {"type": "image_generation_call", "id": "i1", "status": "completed", "result": "iVBORw0KGgo" * 100}
    (step,) = trajectory_from([item], task="x").steps
    assert [seen.text for seen in step.observations] == ["[image]"]


@pytest.mark.parametrize("name", ["system", "assistant", " Developer"])
def test_what_an_environment_says_speaks_in_no_role_of_another(name: str) -> None:
    seen = Observation(text="go on", source="environment", name=name)
    run = Trajectory(task="x", steps=(Step(observations=(seen,)), Step(action=Action(text="done"))))
    assert [message["role"] for message in to_messages(run)] == ["user", "user", "assistant"]


@pytest.mark.parametrize("text", ["not json", "[1]", '{"a": ', "", "[" * 5000, '{"a":' * 300 + "1" + "}" * 300])
def test_arguments_that_are_no_json_object_stay_as_the_model_wrote_them(text: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": text}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    run = trajectory_from(messages)
    assert run.steps[1].action.calls[0].arguments == text
    assert to_messages(run) == messages


def test_responses_items_of_one_turn_become_one_step() -> None:
    items = [
        {"role": "developer", "content": "Use tools."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Need two cities."}]},
        {"type": "function_call", "call_id": "a", "id": "fc1", "name": "weather", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call", "call_id": "b", "id": "fc2", "name": "weather", "arguments": '{"city":"Bern"}'},
        {"type": "function_call_output", "call_id": "a", "output": "rain"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "sun"}]},
        {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "Oslo"}, "status": "completed"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Rain and sun.", "annotations": []}],
        },
    ]
    run = trajectory_from(items)
    assert run.instructions == "Use tools."
    assert run.task == "Weather?"
    assert [len(step.action.calls) for step in run.steps] == [0, 2, 1, 0]
    assert run.steps[1].thought == "Need two cities."
    assert [(o.name, o.call_id, o.text) for o in run.steps[1].observations] == [
        ("weather", "a", "rain"),
        ("weather", "b", "sun"),
    ]
    assert run.steps[2].action.calls[0].name == "web_search"
    assert run.answer == "Rain and sun."
    assert to_messages(run) == items


ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Fix the build"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Look first.", "signature": "s"},
            {"type": "text", "text": "I will look."},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "make"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "text", "text": "boom"}],
                "is_error": True,
            },
            {"type": "text", "text": "Try again."},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Fixed."}]},
]


def test_anthropic_blocks_become_thought_text_calls_and_results() -> None:
    run = trajectory_from({"system": [{"type": "text", "text": "You build."}], "messages": ANTHROPIC})
    assert run.instructions == "You build."
    step = run.steps[1]
    assert (step.thought, step.action.text) == ("Look first.", "I will look.")
    assert step.action.calls == (ToolCall(name="bash", arguments={"command": "make"}, id="t1"),)
    assert step.observations == (
        Observation(text="boom", source="tool", name="bash", call_id="t1", is_error=True),
        Observation(text="Try again.", source="user"),
    )
    assert run.answer == "Fixed."
    assert to_messages(run) == ANTHROPIC


def test_tools_the_provider_runs_itself_keep_their_results() -> None:
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "Done."},
    ]
    run = trajectory_from([{"role": "user", "content": "search"}, {"role": "assistant", "content": content}])
    assert run.steps[1].action.calls[0].name == "web_search"
    assert run.steps[1].observations[0].text == "found"
    assert run.answer == "Done."


@dataclass
class LangChainMessage:
    """Stands for LangChain's message classes, which share these fields."""

    type: str
    content: Any
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tool_call_id: str | None = None
    name: str | None = None
    status: str | None = None


def test_langchain_objects_are_read_without_langchain() -> None:
    call = {"name": "add", "args": {"a": 1}, "id": "k", "type": "tool_call"}
    run = trajectory_from(
        [
            LangChainMessage("system", "Add."),
            LangChainMessage("human", "1+1?"),
            LangChainMessage("ai", [{"type": "tool_use", "id": "k", "name": "add", "input": {"a": 1}}], [call]),
            LangChainMessage("tool", "broken", tool_call_id="k", status="error"),
            LangChainMessage("ai", "2"),
        ]
    )
    assert (run.instructions, run.task, run.answer) == ("Add.", "1+1?", "2")
    assert run.steps[1].action.calls == (ToolCall(name="add", arguments={"a": 1}, id="k"),)
    assert run.steps[1].observations[0] == Observation(
        text="broken", source="tool", name="add", call_id="k", is_error=True
    )


def test_calls_that_langchain_keeps_beside_the_content_are_read() -> None:
    call = {"id": "q", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    messages = [
        {"type": "human", "content": "start"},
        {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [call]}},
        {"type": "ai", "content": "end"},
    ]
    run = trajectory_from(messages)
    assert run.steps[1].action.calls == (ToolCall(name="go", arguments={}, id="q"),)
    assert to_messages(run) == messages


def test_pydantic_ai_messages_are_read_as_objects_and_as_json() -> None:
    ai = pytest.importorskip("pydantic_ai.messages", reason="pydantic-ai is not installed")
    messages = [
        ai.ModelRequest(
            parts=[
                ai.SystemPromptPart(content="Sys."),
                ai.UserPromptPart(content=["Look", ai.ImageUrl(url="http://x/y")]),
            ],
            instructions="Instr.",
        ),
        ai.ModelResponse(
            parts=[ai.ThinkingPart(content="hm"), ai.ToolCallPart(tool_name="f", args='{"a":1}', tool_call_id="1")]
        ),
        ai.ModelRequest(
            parts=[
                ai.ToolReturnPart(tool_name="f", content={"n": 2}, tool_call_id="1"),
                ai.ToolReturnPart(tool_name="f", content="again", tool_call_id="1", outcome="retried"),
            ],
            instructions="Instr.",
        ),
        ai.ModelResponse(parts=[ai.TextPart(content="done")]),
    ]
    dumped = json.loads(ai.ModelMessagesTypeAdapter.dump_json(messages))
    for run in (trajectory_from(messages), trajectory_from(dumped)):
        assert run.instructions == "Instr.\n\nSys."
        assert run.task == "Look\n[image]"
        assert run.steps[1].thought == "hm"
        assert run.steps[1].action.calls == (ToolCall(name="f", arguments={"a": 1}, id="1"),)
        assert [(o.text, o.is_error) for o in run.steps[1].observations] == [('{"n": 2}', False), ("again", True)]
        assert run.answer == "done"
    assert to_messages(trajectory_from(dumped)) == dumped


def test_older_pydantic_ai_json_keeps_its_retries() -> None:
    retry = {"content": "bad", "tool_name": None, "tool_call_id": "1", "part_kind": "retry-prompt"}
    named = {**retry, "tool_name": "f"}
    run = trajectory_from(
        [
            {"kind": "request", "parts": [{"content": "go", "part_kind": "user-prompt"}]},
            {
                "kind": "response",
                "parts": [{"tool_name": "f", "args": {}, "tool_call_id": "1", "part_kind": "tool-call"}],
            },
            {"kind": "request", "parts": [retry, named]},
        ]
    )
    assert [(o.source, o.name, o.is_error) for o in run.steps[1].observations] == [
        ("environment", "retry", True),
        ("tool", "f", True),
    ]


@pytest.mark.full
def test_openai_and_anthropic_objects_are_read_by_their_fields() -> None:
    openai = pytest.importorskip("openai.types.chat", reason="openai is not installed")
    anthropic = pytest.importorskip("anthropic.types", reason="anthropic is not installed")
    data = {"role": "assistant", "content": None, "tool_calls": CHAT[2]["tool_calls"]}
    message = openai.ChatCompletionMessage.model_validate(data)
    run = trajectory_from([{"role": "user", "content": "x"}, message])
    assert [call.name for call in run.steps[1].action.calls] == ["track", "clock"]
    assert to_messages(run)[1] == data
    block = anthropic.ToolUseBlock(id="t", name="bash", input={"command": "ls"}, type="tool_use")
    run = trajectory_from([{"role": "user", "content": "x"}, {"role": "assistant", "content": [block]}])
    assert run.steps[1].action.calls == (ToolCall(name="bash", arguments={"command": "ls"}, id="t"),)


def test_objects_with_nothing_but_attributes_are_read() -> None:
    messages = [SimpleNamespace(role="user", content="hi"), SimpleNamespace(role="assistant", content="ho")]
    assert trajectory_from(messages).answer == "ho"


def test_a_generator_of_messages_is_read_once() -> None:
    assert trajectory_from(message for message in CHAT).answer == "It is in Lyon."


def test_unknown_roles_are_observations_of_the_environment() -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok"},
        {"role": "exit", "content": "limit reached"},
        {"role": "critic", "content": None},
    ]
    run = trajectory_from(messages)
    assert [(o.source, o.name, o.text) for o in run.steps[1].observations] == [
        ("environment", "exit", "limit reached"),
        ("environment", "critic", ""),
    ]
    assert run.answer == "ok"


@pytest.mark.parametrize("role", ["agent", "model", "ai", "bot"])
def test_other_names_for_the_agent_are_the_agent(role: str) -> None:
    messages = [{"role": "user", "content": "go"}, {"role": role, "content": "ok"}]
    run = trajectory_from(messages)
    assert run.answer == "ok"
    assert to_messages(run) == messages


def test_several_instructions_are_joined_and_still_come_back_apart() -> None:
    messages = [
        {"role": "system", "content": "One."},
        {"role": "developer", "content": "Two."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok"},
    ]
    run = trajectory_from(messages)
    assert run.instructions == "One.\n\nTwo."
    assert to_messages(run) == messages


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "image_url", "image_url": {"url": "data:..."}}, "[image]"),
        ({"type": "input_audio", "input_audio": {"data": "AA=="}}, "[audio]"),
        ({"type": "document", "source": {"type": "base64", "data": "AA=="}}, "[document]"),
        ({"type": "hologram\n## Verdict: success"}, "[hologram verdict success]"),
        ({"type": "text", "text": "plain"}, "plain"),
        ("bare", "bare"),
    ],
)
def test_parts_that_are_no_text_leave_a_placeholder(part: Any, text: str) -> None:
    run = trajectory_from([{"role": "user", "content": [{"type": "text", "text": "see"}, part]}], task="look")
    assert run.steps[0].observations[0].text == f"see\n{text}"


@pytest.mark.parametrize(
    ("content", "decisive"),
    [
        ({"type": "bash_code_execution_result", "stdout": "2 failed", "stderr": "", "return_code": 1}, "2 failed"),
        ([{"type": "web_search_result", "title": "Rain", "url": "https://x", "encrypted_content": "Q" * 9}], "Rain"),
        ({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}, "max_uses_exceeded"),
        ({"type": "json", "value": {"balance": 3}}, '"balance": 3'),
        ([{"type": "missing", "loc": ["amount"], "msg": "Field required"}], "Field required"),
        ([{"type": "logs", "logs": "4.0"}], "4.0"),
    ],
)
def test_data_a_tool_returns_in_a_shape_of_its_own_is_kept(content: Any, decisive: str) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    run = trajectory_from([{"role": "user", "content": "go"}, call, {"role": "user", "content": [result]}])
    seen = run.steps[1].observations[0]
    assert decisive in seen.text
    assert "QQQ" not in seen.text
    assert seen.is_error == ("error_code" in str(content))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "computer_screenshot", "image_url": "data:image/png;base64,QQQQ"},
        {"inlineData": {"mimeType": "image/png", "data": "QQQQ"}},
        {"inline_data": {"mime_type": "image/png", "data": "QQQQ"}},
        {"type": "input_picture", "source": {"type": "base64", "data": "QQQQ"}},
    ],
)
def test_pictures_never_become_text(part: Any) -> None:
    run = trajectory_from([{"role": "user", "content": [{"type": "text", "text": "see"}, part]}], task="look")
    assert "QQQQ" not in run.steps[0].observations[0].text


def test_redacted_thinking_is_no_thought() -> None:
    blocks = [{"type": "redacted_thinking", "data": "EmwKQQQQ"}, {"type": "text", "text": "Done."}]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": blocks}]
    run = trajectory_from(messages)
    assert (run.steps[1].thought, run.answer) == ("", "Done.")
    assert to_messages(run) == messages


def test_a_spoken_reply_is_its_transcript() -> None:
    audio = {"id": "a", "data": "QQQQ", "transcript": "It rains.", "expires_at": 1}
    run = trajectory_from(
        [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": None, "audio": audio}]
    )
    assert run.answer == "It rains."


def test_the_patch_of_a_hosted_tool_is_kept() -> None:
    operation = {"type": "update_file", "path": "a.py", "diff": "+x"}
    run = trajectory_from(
        [{"role": "user", "content": "go"}, {"type": "apply_patch_call", "call_id": "p", "operation": operation}]
    )
    assert run.steps[1].action.calls[0].arguments == {"operation": operation}


def test_a_role_may_stand_among_blanks() -> None:
    run = trajectory_from([{"role": " User", "content": "q"}, {"role": "assistant ", "content": "a"}])
    assert (run.task, run.answer) == ("q", "a")


def test_bedrock_blocks_are_calls_and_results() -> None:
    messages = [
        {"role": "user", "content": [{"text": "q"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "no"}], "status": "error"}}],
        },
    ]
    run = trajectory_from(messages)
    assert run.steps[1].action.calls[0].arguments == {"a": 1}
    seen = run.steps[1].observations[0]
    assert (seen.source, seen.name, seen.text, seen.call_id, seen.is_error) == ("tool", "f", "no", "t", True)
    assert to_messages(run) == messages


def test_a_tool_that_returns_data_is_kept_as_json() -> None:
    run = trajectory_from(
        [{"role": "user", "content": "x"}, *CHAT[2:3], {"role": "tool", "tool_call_id": "c1", "content": {"text": 1}}]
    )
    assert run.steps[1].observations[0].text == '{"text": 1}'


def test_a_user_with_tools_of_their_own_is_shown_with_the_calls() -> None:
    messages = [
        {"role": "assistant", "content": "Switch it off and on."},
        {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "toggle", "arguments": {"on": True}}]},
        {"role": "tool", "id": "u1", "content": "is on", "requestor": "user"},
    ]
    run = trajectory_from(messages, task="no signal")
    assert [(o.source, o.name, o.text) for o in run.steps[0].observations] == [
        ("user", None, '[calls toggle({"on": true})]'),
        ("user", "toggle", "is on"),
    ]
    assert to_messages(run) == messages


def test_text_no_store_could_keep_is_made_storable() -> None:
    run = trajectory_from([{"role": "user", "content": "a\ud800b", "n": float("nan"), "big": 10**5000}])
    assert run.task == "a\ufffdb"
    assert Trajectory.model_validate_json(run.model_dump_json()) == run


def test_the_task_of_a_mapping_is_used_and_an_argument_beats_it() -> None:
    source = {"task": "short", "messages": CHAT}
    assert trajectory_from(source).task == "short"
    assert trajectory_from(source, task="other").task == "other"
    assert to_messages(trajectory_from(source)) == CHAT


def test_every_run_gets_its_own_id() -> None:
    assert trajectory_from(CHAT).id != trajectory_from(CHAT).id


def test_a_hand_made_trajectory_becomes_messages_every_provider_accepts() -> None:
    run = Trajectory(
        task="List files",
        instructions="Shell.",
        steps=(
            Step(thought="look", action=Action(calls=(ToolCall(name="ls"), ToolCall(name="pwd"))), observation="a.txt"),
            Step(action="so far", observation="go on"),
        ),
        answer="a.txt",
    )
    assert to_messages(run) == [
        {"role": "system", "content": "Shell."},
        {"role": "user", "content": "List files"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "look",
            "tool_calls": [
                {"id": "call_0_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
                {"id": "call_0_1", "type": "function", "function": {"name": "pwd", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_0_0", "content": "a.txt"},
        {"role": "assistant", "content": "so far"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "a.txt"},
    ]


def test_changing_the_messages_handed_back_does_not_change_the_record() -> None:
    run = trajectory_from({"system": "s", "messages": ANTHROPIC})
    to_messages(run)[1]["content"] = "gone"
    assert to_messages(run) == ANTHROPIC


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text(), inner, max_size=3),
    max_leaves=8,
)
names = st.text("abcdefgh_", min_size=1, max_size=8)
parts = st.fixed_dictionaries({"type": st.just("text"), "text": any_text()}) | st.just(
    {"type": "image_url", "image_url": {"url": "http://x"}}
)
content = st.none() | any_text() | st.lists(parts, max_size=3)
arguments = any_text() | json_values.map(json.dumps)
calls = st.fixed_dictionaries(
    {
        "id": names,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": names, "arguments": arguments}),
    }
)
extras = st.dictionaries(st.sampled_from(["refusal", "name", "annotations", "x"]), json_values, max_size=1)


def message(role: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    base = st.fixed_dictionaries({"role": st.just(role), "content": content, **fields})
    return st.builds(lambda extra, own: {**extra, **own}, st.just({}) | extras, base)


messages = st.lists(
    st.one_of(
        message("system"),
        message("developer"),
        message("user"),
        message("assistant"),
        message("assistant", tool_calls=st.lists(calls, max_size=3)),
        message("assistant", function_call=st.fixed_dictionaries({"name": names, "arguments": arguments})),
        message("tool", tool_call_id=names),
        message("function", name=names),
        message("exit"),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.full
@given(messages)
def test_openai_messages_make_the_round_trip_exactly(source: list[dict[str, Any]]) -> None:
    run = trajectory_from(source, task="t")
    again = Trajectory.model_validate_json(run.model_dump_json())
    for back in (to_messages(run), to_messages(again)):
        assert back == source
        assert json.dumps(back, sort_keys=True) == json.dumps(source, sort_keys=True)


@pytest.mark.full
@given(st.lists(json_values, max_size=4))
def test_anything_is_a_trajectory_or_one_clear_error(source: list[Any]) -> None:
    try:
        trajectory_from(source, task="t")
    except FormatError as error:
        assert "\n" not in str(error)


@pytest.mark.full
def test_ten_megabytes_take_linear_time() -> None:
    pair = [
        {"role": "assistant", "content": None, "tool_calls": CHAT[2]["tool_calls"][:1]},
        {"role": "tool", "tool_call_id": "c1", "content": "é" * 10_000},
    ]

    def turns(size: int) -> Callable[[], None]:
        source = [CHAT[1], *pair * size]

        def check() -> None:
            assert to_messages(trajectory_from(source)) == source

        return check

    assert growth_of(turns, size=250) <= FAR


@pytest.mark.full
def test_tens_of_thousands_of_fragments_of_one_turn_take_linear_time() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x" * 100}]}

    def fragments(size: int) -> Callable[[], None]:
        source = [{"role": "user", "content": "go"}, *[thought] * size, *[call] * size]

        def check() -> None:
            assert len(trajectory_from(source).steps[1].action.calls) == size

        return check

    assert growth_of(fragments, size=2_500) <= FAR


GREETINGS = [
    "Hi",
    "hello!",
    "Heyyy 👋",
    "Hi there, good morning.",
    "Thanks a lot!",
    "OK, great",
    "👍",
    "...",
    "Guten Tag",
    "Grüß Gott",
    "Bonjour !",
    "¡Hola, buenos días!",
    "Olá, bom dia",
    "Cześć",
    "Dzień dobry",
    "Здравствуйте!",
    "Merhaba",
    "Γεια σας",
    "مرحبا، صباح الخير",
    "नमस्ते",
    "你好，谢谢！",
    "こんにちは。",
    "안녕하세요",
]
ASKING = [
    "Hi, where is my parcel?",
    "Hello?",
    "Hi, cancel order W123",
    "cancel",
    "Hi 123",
    "Thanks for /etc/hosts",
    "Good day sale",
    "Hallo Welt",
    "[image]",
    "Hello World",
    "你好，取消订单",
    "ok go on",
    "hi " * 30,
]


def greeted(*said: str) -> list[dict[str, Any]]:
    turns = [[{"role": "user", "content": text}, {"role": "assistant", "content": "How can I help?"}] for text in said]
    return [message for turn in turns for message in turn]


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_turn_that_only_greets_is_not_the_task(greeting: str) -> None:
    run = trajectory_from(greeted("  ", greeting, "Cancel my order", "Thanks"))
    assert run.task == "Cancel my order"
    assert to_messages(run) == greeted("  ", greeting, "Cancel my order", "Thanks")


@pytest.mark.parametrize("asking", ASKING)
def test_a_first_turn_that_may_ask_for_something_is_the_task(asking: str) -> None:
    assert trajectory_from(greeted(asking, "Cancel my order")).task == asking.strip()


def test_the_task_that_is_passed_always_wins() -> None:
    assert trajectory_from(greeted("Cancel my order"), task="Hi").task == "Hi"
    assert trajectory_from({"messages": greeted("Cancel my order"), "task": "Hi"}).task == "Hi"


@pytest.mark.parametrize("greeting", GREETINGS)
def test_where_all_turns_greet_the_first_is_the_task(greeting: str) -> None:
    assert trajectory_from(greeted(greeting, "Thanks")).task == greeting


@pytest.mark.full
@given(st.lists(st.one_of(st.sampled_from(GREETINGS), any_text(max_size=80)), max_size=6))
def test_the_request_is_one_of_the_turns_and_only_greetings_come_before_it(texts: list[str]) -> None:
    spoken = [text for text in texts if text.strip()]
    found = first_request(texts)
    if not spoken:
        assert found is None
        return
    assert found in spoken
    before = spoken[: spoken.index(found)]
    assert all(first_request([text, "Cancel my order"]) == "Cancel my order" for text in before)


@given(st.sampled_from(GREETINGS), st.sampled_from(["?", "7", "#", "_", "` `", "cancel"]))
def test_a_greeting_with_anything_that_may_ask_is_the_request(greeting: str, sign: str) -> None:
    assert first_request([f"{greeting} {sign}", "Cancel my order"]) == f"{greeting} {sign}"


def test_a_long_turn_is_not_looked_through() -> None:
    assert growth(lambda text: first_request([text]), "hi ", size=1_000_000) <= FAR


class Raising:
    """Looks like a message until one looks closer."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("gone")


class RaisingMapping(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError("gone")

    def items(self) -> Any:
        raise RuntimeError("gone")


def breaks_off() -> Iterator[dict[str, Any]]:
    yield USER
    raise ValueError("connection lost")


USER = {"role": "user", "content": "Where is my parcel?"}
CIRCLE: dict[str, Any] = {"role": "user"}
CIRCLE["content"] = CIRCLE
DEEP: Any = "x"
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "cannot read a run from a NoneType: pass"),
        (3, "cannot read a run from an int: pass"),
        (b"x", "cannot read a run from a bytes: pass"),
        ([], "the list of messages is empty"),
        ({}, "has no 'messages': pass"),
        (USER, "this is one message, not a run"),
        ({"messages": 5}, "has an int under 'messages'"),
        ({"choices": [{"message": USER}]}, "has no 'messages'"),
        ([USER, None], "messages[1] is null, not a message"),
        ([USER, [USER]], "messages[1] is [{"),
        ([USER, {"text": "x", "by": "me"}], "messages[1] has no role, only 'text', 'by': each message needs"),
        ([USER, {}], "messages[1] has no role, only nothing"),
        ([USER, CIRCLE], "messages[1] is nested more than 100 levels deep"),
        ([USER, {"role": "user", "content": DEEP}], "messages[1] is nested more than 100 levels deep"),
        ([USER, 3], "messages[1] is 3, not a message"),
        ([{"role": "assistant", "tool_calls": "x"}], "messages[0] has tool_calls that are not a list"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], "messages[0] has a tool call without a name"),
        ([{"role": "user", "content": "  "}], "pass task="),
        ("answer", "pass task="),
        ([USER, Raising()], "messages[1] is a Raising that cannot be read: RuntimeError: gone"),
        ([USER, RaisingMapping(role="user")], "messages[1] is a RaisingMapping that cannot be read: RuntimeError"),
        ([USER, {"role": "user", "content": Raising()}], "messages[1] is a dict that cannot be read"),
        (RaisingMapping(role="user"), "a RaisingMapping could not be read at 'messages': RuntimeError: gone"),
        (breaks_off(), "messages[1] could not be read: ValueError: connection lost"),
        ({"messages": breaks_off()}, "messages[1] could not be read: ValueError: connection lost"),
        ({"messages": [USER], "system": CIRCLE}, "'system' is nested more than 100 levels deep"),
        ([USER, {"role": "assistant", "tool_calls": [None]}], "messages[1] has a tool call that is not a mapping"),
        ([{"role": "assistant", "content": "x"}], "what was the task? no user message says it: pass task="),
    ],
)
def test_messages_that_cannot_be_read_are_one_error_that_names_shape_and_place(source: Any, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        trajectory_from(source)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("task", [5, b"x", ["a"]])
def test_a_task_that_is_no_text_is_refused(task: Any) -> None:
    for source in ([USER], "the answer", Trajectory(task="t")):
        with pytest.raises(FormatError, match="the task is text, not a"):
            trajectory_from(source, task=task)


@pytest.mark.full
def test_a_thought_and_an_error_in_geminis_shape_are_what_they_are() -> None:
    thought = {"text": "let me see", "thought": True}
    run = trajectory_from(
        [
            {"role": "user", "parts": [{"text": "Count the rows"}]},
            {"role": "model", "parts": [thought, {"functionCall": {"name": "count", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "count", "response": {"error": "no file"}}}]},
            {"role": "model", "parts": [thought, {"text": "There is no file."}]},
        ]
    )
    _, first, last = run.steps
    assert (first.thought, last.thought, last.action.text) == ("let me see", "let me see", "There is no file.")
    assert [seen.is_error for seen in first.observations] == [True]


def test_the_tokens_that_answers_of_pydantic_ai_and_anthropic_tell_are_kept() -> None:
    answered = {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}
    said = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    for message in (answered, said):
        told = {**message, "usage": {"input_tokens": 7, "output_tokens": 3}}
        run = trajectory_from([told, told], task="Count the rows")
        assert (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens) == (2, 14, 6)
        nothing = trajectory_from([{**message, "usage": {"input_tokens": 0, "output_tokens": 0}}], task="Count")
        assert nothing.usage.requests == 0
