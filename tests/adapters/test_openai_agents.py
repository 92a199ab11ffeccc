from __future__ import annotations

import asyncio
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples_of import load

pytest.importorskip("agents.testing", reason="openai-agents is not installed: pip install -e '.[openai-agents]'")

from agents import (
    Agent,
    MaxTurnsExceeded,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.items import ModelResponse
from agents.mcp import MCPServerStdio
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs
from agents.testing import assistant_message, function_call
from agents.testing.model import ModelCall, ModelStep, ScriptedModel

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.adapters.openai_agents import ReasoningBankRunner
from lessonbank.contracts.records.tools import signatures
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, TOOL, HandsOff, Raises

from .conftest import kept

pytestmark = pytest.mark.full
set_tracing_disabled(True)


@dataclass
class Context:
    user: str = "ana"


class Endless(ScriptedModel):
    """The SDK's own scripted model, which asks our script for each step."""

    def __init__(self, script: ScriptedAgentModel) -> None:
        super().__init__()
        self.set_default_usage(Usage(requests=1, input_tokens=7, output_tokens=3, total_tokens=10))
        self._script = script

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.enqueue(ModelStep.respond(self._answer))
        return await super().get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        self.enqueue(ModelStep.respond(self._answer))
        async for event in super().stream_response(*args, **kwargs):
            yield event

    def _answer(self, call: ModelCall) -> Any:
        reply = self._script.reply(request(call))
        if isinstance(reply, Raises):
            return RuntimeError(reply.words)
        if isinstance(reply, Says):
            return [assistant_message(reply.text)]
        if isinstance(reply, HandsOff):
            return [function_call(f"transfer_to_{reply.to}", {}, call_id="c0")]
        arguments = {"input": reply.arguments["task"]} if reply.tool == "delegate" else dict(reply.arguments)
        return [function_call(reply.tool, arguments, call_id=f"c{len(call.input)}")]


def request(call: ModelCall) -> Request:
    told: list[tuple[str, str]] = []
    for item in call.input:
        content = item.get("content")
        words = content if isinstance(content, str) else "".join(part["text"] for part in content or ())
        role = "tool" if item.get("type") == "function_call_output" else item.get("role", "assistant")
        told.append((role, words or str(item.get("output") or f"{item.get('name')} {item.get('arguments')}")))
    return Request(call.system_instructions or "", tuple(told))


@function_tool
def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@function_tool
def broken() -> str:
    """Fail."""
    raise OSError("the disk is full")


def explained(failed: ToolErrorFormatterArgs[Any]) -> str:
    return f"{failed.default_message} {failed.error}"


class Program:
    def __init__(self, model: ScriptedAgentModel, runner: Any, **more: Any) -> None:
        llm = Endless(model)
        part = Agent(name="part", model=llm)
        clerk = Agent(name="clerk", model=llm, tools=[lookup])
        delegate = part.as_tool("delegate", "Do a part.")
        tools = [lookup, broken, delegate, *more.pop("tools", ())]
        self.agent = Agent(name="counter", model=llm, instructions="be terse", tools=tools, handoffs=[clerk], **more)
        self.runner = runner
        self._stored = ""

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False, **options: Any) -> str:
        with closing(SQLiteSession(task)) as session:
            config = RunConfig(tool_error_formatter=explained)
            options = {"context": Context(user), "session": session, "run_config": config, **options}
            if stream:
                result = self.runner.run_streamed(self.agent, task, **options)
                async for _ in result.stream_events():
                    pass
            else:
                result = await self.runner.run(self.agent, task, **options)
            self._stored += repr(await session.get_items()) + repr(result.to_input_list())
            return result.final_output

    async def stop_early(self, task: str, /) -> None:
        result = self.runner.run_streamed(self.agent, task, context=Context())
        async for event in result.stream_events():
            if event.type == "run_item_stream_event":
                break
        result.cancel()
        with suppress(asyncio.CancelledError):
            await result.run_loop_task

    def history(self) -> str:
        assert "three rows" in self._stored
        return self._stored


@pytest.mark.anyio
class TestOpenAIAgents(AdapterContract):
    source = "openai-agents"

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        scope = options.pop("scope", lambda context: scope_of("acme", context.user))
        return Program(model, ReasoningBankRunner(bank, scope=scope, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, Runner)


def work() -> ScriptedAgentModel:
    return ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})


def test_a_run_without_asyncio_is_kept(bank: lessonbank.ReasoningBank) -> None:
    model, loop = work(), asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # the SDK leaves open the one that it makes
    with closing(loop):
        result = ReasoningBankRunner(bank).run_sync(Program(model, None).agent, TASK)
    asyncio.set_event_loop(None)
    assert result.final_output == "three rows"
    (run,) = kept(bank)
    assert run.trajectory.answer == "three rows"
    assert run.recall_id
    assert all(sent.words.count(LESSON) == 1 for sent in model.requests[TASK])


SERVER = """
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("office")

@server.tool()
def stamp(page: int) -> str:
    \"\"\"Stamp a page.\"\"\"
    return "stamped"

@server.tool()
def shred(page: int) -> str:
    \"\"\"Destroy a page.\"\"\"
    return "gone"

server.run()
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool_filter", "told"),
    [
        (None, ["shred(page: integer) - Destroy a page.", "stamp(page: integer) - Stamp a page."]),
        ({"blocked_tool_names": ["shred"]}, ["stamp(page: integer) - Stamp a page."]),
        (lambda context, tool: True, []),
    ],
)
async def test_the_tools_of_an_mcp_server_and_the_hand_offs_are_among_the_tools_of_the_run(
    bank: lessonbank.ReasoningBank, tmp_path: Path, tool_filter: Any, told: list[str]
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    words = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    archive = handoff(Agent(name="archive"), tool_name_override="to_the_archive")
    async with MCPServerStdio(words, tool_filter=tool_filter, client_session_timeout_seconds=120) as server:
        program = Program(work(), ReasoningBankRunner(bank), mcp_servers=[server])
        program.agent.handoffs.append(archive)
        await program.run(TASK)
    (run,) = kept(bank)
    tools = [line for line in signatures(run.trajectory.tools) if not line.startswith(("lookup", "broken", "delegate"))]
    assert [line for line in tools if line.startswith(("shred", "stamp"))] == told
    assert [line.partition("(")[0] for line in tools if "Handoff" in line] == ["to_the_archive", "transfer_to_clerk"]


@pytest.mark.anyio
async def test_a_streamed_run_that_crashes_is_kept(bank: lessonbank.ReasoningBank) -> None:
    model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Raises("gone")]})
    with pytest.raises(RuntimeError, match="gone"):
        await Program(model, ReasoningBankRunner(bank)).run(TASK, stream=True)
    (run,) = kept(bank)
    assert "gone" in (run.trajectory.error or "")
    assert "page 1: 3 rows" in run.trajectory.model_dump_json()


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_of_too_many_turns_is_kept_with_all_it_did(bank: lessonbank.ReasoningBank, stream: bool) -> None:
    model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Calls(TOOL, {"page": 2})]})
    with pytest.raises(MaxTurnsExceeded):
        await Program(model, ReasoningBankRunner(bank)).run(TASK, stream=stream, max_turns=2)
    (run,) = kept(bank)
    assert "MaxTurnsExceeded" in (run.trajectory.error or "")
    assert run.verdict.outcome == "failure"
    assert "page 2: 3 rows" in run.trajectory.model_dump_json()


@pytest.mark.anyio
async def test_a_tool_that_crashes_the_run_leaves_its_call_behind(bank: lessonbank.ReasoningBank) -> None:
    @function_tool(failure_error_function=None)
    def crash() -> str:
        """Crash."""
        raise OSError("no space left")

    model = ScriptedAgentModel({TASK: [Calls("crash")]})
    with pytest.raises(Exception, match="no space left"):
        await Program(model, ReasoningBankRunner(bank), tools=[crash]).run(TASK)
    (run,) = kept(bank)
    assert "no space left" in (run.trajectory.error or "")
    assert [c.name for step in run.trajectory.steps for c in step.action.calls] == ["crash"]


@pytest.mark.anyio
async def test_a_run_whose_task_is_cancelled_is_kept_as_unfinished(bank: lessonbank.ReasoningBank) -> None:
    called, forever = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        called.set()
        await forever.wait()
        return "never"

    model = ScriptedAgentModel({TASK: [Calls("wait")]})
    running = asyncio.create_task(Program(model, ReasoningBankRunner(bank), tools=[wait]).run(TASK))
    await called.wait()
    running.cancel()
    await asyncio.wait([running])
    (run,) = kept(bank)
    assert (run.status, run.verdict.outcome) == ("unfinished", "unknown")
    assert [c.name for step in run.trajectory.steps for c in step.action.calls] == ["wait"]


@pytest.mark.anyio
@pytest.mark.parametrize("has_session", [True, False])
async def test_in_a_conversation_the_text_stands_before_the_input_of_this_run(
    bank: lessonbank.ReasoningBank, has_session: bool
) -> None:
    model = ScriptedAgentModel({"Say hello": [Says("hello")], TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
    agent, runner = Program(model, None).agent, ReasoningBankRunner(bank)
    with closing(SQLiteSession("s")) as session:
        options: dict[str, Any] = {"session": session} if has_session else {}
        first = await runner.run(agent, "Say hello", **options)
        more: Any = TASK if has_session else [*first.to_input_list(), {"role": "user", "content": TASK}]
        await runner.run(agent, more, **options)
        assert LESSON not in repr(await session.get_items())
    for sent in model.requests[TASK]:
        assert [text for _, text in sent.messages[:2]] == ["Say hello", "hello"]
        assert LESSON in sent.messages[2][1]
        assert sent.messages[3] == ("user", TASK)
    runs = {run.trajectory.task: run.trajectory for run in kept(bank)}
    assert runs.keys() == {"Say hello", TASK}
    assert "hello" not in runs[TASK].model_dump_json()


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_waits_for_a_person_is_one_run_with_the_same_text(
    bank: lessonbank.ReasoningBank, stream: bool
) -> None:
    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def ran(given: Any) -> Any:
        if not stream:
            return await runner.run(agent, given)
        result = runner.run_streamed(agent, given)
        async for _ in result.stream_events():
            pass
        return result

    model = ScriptedAgentModel({TASK: [Calls("pay", {"amount": 3}), Says("three rows")]})
    agent, runner = Program(model, None, tools=[pay]).agent, ReasoningBankRunner(bank)
    result = await ran(TASK)
    assert not kept(bank)
    state = result.to_state()
    state.approve(result.interruptions[0])
    await ran(state)
    (run,) = kept(bank)
    assert (run.trajectory.task, run.trajectory.answer) == (TASK, "three rows")
    assert [c.name for step in run.trajectory.steps for c in step.action.calls] == ["pay"]
    assert "paid 3" in run.trajectory.model_dump_json()
    shown = [[text for _, text in sent.messages if LESSON in text] for sent in model.requests[TASK]]
    assert len(shown) == 2
    assert shown[0] == shown[1]


@pytest.mark.anyio
async def test_a_conversation_that_the_server_keeps_gets_the_text_once(bank: lessonbank.ReasoningBank) -> None:
    calls = [function_call(TOOL, {"page": 1}, call_id="c1")]
    model = ScriptedModel([calls, [assistant_message("three rows")]])
    agent = Agent(name="counter", model=model, tools=[lookup])
    await ReasoningBankRunner(bank).run(agent, TASK, conversation_id="conv_1")
    assert [str(call.input).count(LESSON) for call in model.calls] == [1, 0]
    (run,) = kept(bank)
    assert run.trajectory.answer == "three rows"


@pytest.mark.anyio
async def test_hooks_and_filter_of_the_caller_are_called_as_before(bank: lessonbank.ReasoningBank) -> None:
    called: list[str] = []

    class Mine(RunHooks[Any]):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                called.append(name)
            return super().__getattribute__(name)

    async def mine(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(data.model_data.input, f"{data.model_data.instructions} and kind")

    model = work()
    hooks, config = Mine(), RunConfig(call_model_input_filter=mine)
    await ReasoningBankRunner(bank).run(Program(model, None).agent, TASK, hooks=hooks, run_config=config)
    assert {name for name in dir(RunHooks) if name.startswith("on_")} - {"on_handoff"} <= set(called)
    assert all(sent.system == "be terse and kind" and LESSON in sent.words for sent in model.requests[TASK])
    assert config.call_model_input_filter is mine


@pytest.mark.anyio
async def test_a_run_in_a_tool_has_the_run_around_it_as_its_parent(bank: lessonbank.ReasoningBank) -> None:
    part = "Look at the second page"
    model = ScriptedAgentModel({TASK: [Calls("ask"), Says("six")], part: [Says("three")]})
    runner = ReasoningBankRunner(bank)

    @function_tool
    async def ask() -> str:
        """Ask."""
        return (await runner.run(Program(model, None).agent, part)).final_output

    await Program(model, runner, tools=[ask]).run(TASK)
    runs = {run.trajectory.task: run.trajectory for run in kept(bank)}
    assert runs[part].parent_run == runs[TASK].id


@pytest.mark.anyio
async def test_agents_two_levels_deep_do_not_mix(bank: lessonbank.ReasoningBank) -> None:
    deep, deeper = "Look at the second page", "Read the footnote"
    bank.lessons.add(title="Turn the page first", content="It lies face down.", task=deep, by="Ana")
    script = {TASK: [Calls("delegate", {"task": deep}), Says("six")]}
    script[deep] = [Calls("delegate", {"task": deeper}), Says("three")]
    script[deeper] = [Says("one")]
    model = ScriptedAgentModel(script)
    llm = Endless(model)
    inner = Agent(name="inner", model=llm).as_tool("delegate", "Do a part.")
    middle = Agent(name="middle", model=llm, tools=[inner]).as_tool("delegate", "Do a part.")
    result = await ReasoningBankRunner(bank).run(Agent(name="outer", model=llm, tools=[middle]), TASK)
    assert result.final_output == "six"
    runs = {run.trajectory.task: run.trajectory for run in kept(bank)}
    assert runs.keys() == {TASK, deep}
    assert runs[deep].answer == "three"
    assert deeper in runs[deep].model_dump_json()
    assert [["Turn the page" in sent.words for sent in model.requests[task]] for task in (deep, deeper)] == [
        [True, True],
        [False],
    ]
    assert runs[TASK].answer == "six"


@pytest.mark.anyio
async def test_tokens_are_kept(bank: lessonbank.ReasoningBank) -> None:
    program = Program(work(), ReasoningBankRunner(bank))
    await program.run(TASK)
    (run,) = kept(bank)
    assert (run.trajectory.usage.input_tokens, run.trajectory.usage.output_tokens) == (14, 6)


@pytest.mark.anyio
async def test_an_outcome_is_told_with_the_id_of_the_run(bank: lessonbank.ReasoningBank) -> None:
    runner = ReasoningBankRunner(bank)
    await Program(work(), runner).run(TASK, run_id="order-7")
    runner.runs.tell("order-7", reward=1.0)
    (run,) = kept(bank)
    assert (run.trajectory.id, run.verdict.source, run.verdict.outcome) == ("order-7", "ground_truth", "success")


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["start", "begin"])
async def test_an_error_inside_the_adapter_never_ends_a_run(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise AttributeError("another version")

    runner = ReasoningBankRunner(bank)
    monkeypatch.setattr(runner.runs, where, fails)
    assert await Program(work(), runner).run(TASK) == "three rows"
    assert "the memory failed in" in caplog.text


@pytest.mark.anyio
async def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = await load("openai_agents_agent").main()
    assert "make changelog" in shown
