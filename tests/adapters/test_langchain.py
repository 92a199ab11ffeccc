from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from examples_of import load

pytest.importorskip("langchain.agents", reason="langchain is not installed: pip install -e '.[langchain]'")

from blockbuster import BlockingError, blockbuster_ctx
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.adapters.langchain import ReasoningBankMiddleware
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, TOOL, Raises

from .conftest import kept

pytestmark = pytest.mark.full

USED: Any = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


@dataclass
class Context:
    user: str = "ana"


class Scripted(BaseChatModel):
    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        said = self._answer(messages)
        chunks = [{"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"]} for c in said.tool_calls]
        yield ChatGenerationChunk(message=AIMessageChunk(said.text, tool_call_chunks=chunks))

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        reply = self.script.reply(request(messages))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        if isinstance(reply, Calls):
            call = {"name": reply.tool, "args": dict(reply.arguments), "id": f"call_{len(messages)}"}
            return AIMessage("", tool_calls=[call], usage_metadata=USED)
        assert isinstance(reply, Says)
        return AIMessage(reply.text, usage_metadata=USED)


def request(messages: list[BaseMessage]) -> Request:
    roles = {"human": "user", "ai": "assistant"}
    told = [(roles.get(m.type, m.type), m.text or str(getattr(m, "tool_calls", ""))) for m in messages]
    return Request(
        "\n".join(text for role, text in told if role == "system"), tuple(m for m in told if m[0] != "system")
    )


@tool
def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@tool
def broken() -> str:
    """Fail."""
    raise ToolException("the disk is full")


broken.handle_tool_error = True


class Program:
    def __init__(self, model: ScriptedAgentModel, memory: ReasoningBankMiddleware | None, **more: Any) -> None:
        llm, middleware = Scripted(script=model), [memory] if memory else []
        part = create_agent(llm, middleware=middleware, context_schema=Context)

        @tool
        async def delegate(task: str) -> str:
            """Do a part."""
            said = await part.ainvoke({"messages": [("user", task)]}, context=get_runtime(Context).context)
            return said["messages"][-1].text

        tools = [lookup, broken, delegate, *more.pop("tools", ())]
        self.saver = InMemorySaver()
        agent = create_agent(
            llm,
            tools,
            system_prompt="be terse",
            middleware=[*middleware, *more.pop("middleware", ())],
            context_schema=Context,
            checkpointer=self.saver,
            **more,
        )
        self.agent = memory.follow(agent) if memory else agent
        self.threads = 0

    def thread(self) -> dict[str, Any]:
        self.threads += 1
        return {"configurable": {"thread_id": str(self.threads)}}

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False, config: Any = None) -> str:
        config, context = config or self.thread(), Context(user)
        asked: Any = {"messages": [("user", task)]}
        if stream:
            async for _ in self.agent.astream(asked, config, context=context, stream_mode="messages"):
                pass
        else:
            await self.agent.ainvoke(asked, config, context=context)
        return (await self.agent.aget_state(config)).values["messages"][-1].text

    async def stop_early(self, task: str, /) -> None:
        asked: Any = {"messages": [("user", task)]}
        events = self.agent.astream(asked, self.thread(), context=Context(), stream_mode="values")
        async for values in events:
            if isinstance(values["messages"][-1], AIMessage):
                break
        await events.aclose()

    def history(self) -> str:
        stored = repr(self.saver.storage) + repr(self.saver.writes) + repr(self.saver.blobs)
        assert "three rows" in stored
        return stored


def scope(runtime: Runtime[Context]) -> str:
    return scope_of("acme", runtime.context.user)


@pytest.mark.anyio
class TestLangChain(AdapterContract):
    source = "langchain"

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        return Program(model, ReasoningBankMiddleware(bank, scope=scope, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    async def test_a_hand_off_is_part_of_the_run(self, tmp_path: Path) -> None:
        """Agents hand off where they are nodes of a graph."""
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("transfer"), Calls(TOOL, {"page": 1}), Says("three rows")]})
            await graph_of(ReasoningBankMiddleware(bank, scope=scope), model).ainvoke(asked(), context=Context())
            (run,) = kept(bank.scoped(self.scope()))
            assert run.trajectory.answer == "three rows"
            assert [c.name for step in run.trajectory.steps for c in step.action.calls] == ["transfer", TOOL]
            assert all(sent.words.count(LESSON) == 1 for sent in model.requests[TASK])
            assert len(bank.scoped(self.scope()).recalls.list()) == 1


WORK = [Calls(TOOL, {"page": 1}), Says("three rows")]


def asked(task: str = TASK) -> Any:
    return {"messages": [("user", task)]}


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_without_asyncio_is_kept(bank: lessonbank.ReasoningBank, stream: bool) -> None:
    model, memory = ScriptedAgentModel({TASK: list(WORK)}), ReasoningBankMiddleware(bank)
    agent = memory.follow(create_agent(Scripted(script=model), [lookup], middleware=[memory]))
    if stream:
        assert len(list(agent.stream(asked(), stream_mode="updates"))) > 2
    else:
        assert "lessonbank" not in repr(agent.invoke(asked()))
    (run,) = kept(bank)
    assert run.trajectory.answer == "three rows"
    assert run.recall_id
    assert all(LESSON in r.words for r in model.requests[TASK])


def test_a_crash_without_asyncio_is_kept(bank: lessonbank.ReasoningBank) -> None:
    memory = ReasoningBankMiddleware(bank)
    llm = Scripted(script=ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Raises("gone")]}))
    agent = memory.follow(create_agent(llm, [lookup], middleware=[memory]))
    with pytest.raises(RuntimeError, match="gone"):
        agent.invoke(asked())
    (run,) = kept(bank)
    assert run.trajectory.error == "RuntimeError: gone"
    assert "page 1: 3 rows" in run.trajectory.model_dump_json()


def test_a_tool_that_crashes_the_run_leaves_its_call_behind(bank: lessonbank.ReasoningBank) -> None:
    @tool
    def crash() -> str:
        """Crash."""
        raise OSError("no space left")

    memory = ReasoningBankMiddleware(bank)
    llm = Scripted(script=ScriptedAgentModel({TASK: [Calls("crash")]}))
    agent = memory.follow(create_agent(llm, [crash], middleware=[memory]))
    with pytest.raises(OSError, match="no space"):
        agent.invoke(asked())
    (run,) = kept(bank)
    assert run.trajectory.error == "OSError: no space left"
    assert [c.name for step in run.trajectory.steps for c in step.action.calls] == ["crash"]


@pytest.mark.anyio
async def test_the_middleware_alone_keeps_runs_that_end_well(bank: lessonbank.ReasoningBank) -> None:
    memory = ReasoningBankMiddleware(bank)
    agent = create_agent(Scripted(script=ScriptedAgentModel({TASK: list(WORK)})), [lookup], middleware=[memory])
    await agent.ainvoke(asked())
    (run,) = kept(bank)
    assert run.trajectory.answer == "three rows"


@pytest.mark.anyio
async def test_a_checkpoint_holds_nothing_of_the_memory_and_goes_on_without_it(bank: lessonbank.ReasoningBank) -> None:
    memory = ReasoningBankMiddleware(bank)
    program = Program(ScriptedAgentModel({TASK: list(WORK)}), memory)
    config = {"configurable": {"thread_id": "1"}, "run_id": uuid4()}
    await program.run(TASK, config=config)
    values = (await program.agent.aget_state(config)).values  # type: ignore[arg-type]
    assert values.keys() == {"messages"}
    assert kept(bank)[0].trajectory.id == str(config["run_id"])
    assert not memory._open
    assert not memory._graphs._parents
    stored = repr(program.saver.blobs) + repr(program.saver.writes)
    assert str(config["run_id"]) not in stored
    plain = Program(ScriptedAgentModel({"Say hello": [Says("hello")]}), None)
    plain.agent.checkpointer = program.saver
    assert await plain.run("Say hello", config={"configurable": {"thread_id": "1"}}) == "hello"


def test_a_call_that_nobody_awaits_is_kept_under_the_id_of_its_caller(bank: lessonbank.ReasoningBank) -> None:
    memory, id = ReasoningBankMiddleware(bank), uuid4()
    llm = Scripted(script=ScriptedAgentModel({TASK: list(WORK)}))
    memory.follow(create_agent(llm, [lookup], middleware=[memory])).invoke(asked(), {"run_id": id})
    assert [run.trajectory.id for run in kept(bank)] == [str(id)]


def test_an_agent_that_crashes_inside_a_chain_is_kept(bank: lessonbank.ReasoningBank) -> None:
    memory, llm = ReasoningBankMiddleware(bank), Scripted(script=ScriptedAgentModel({TASK: [Raises("gone")]}))
    chain = RunnableLambda(asked) | memory.follow(create_agent(llm, [lookup], middleware=[memory]))
    with pytest.raises(RuntimeError, match="gone"):
        chain.invoke(TASK)
    (run,) = kept(bank)
    assert run.trajectory.error == "RuntimeError: gone"


@pytest.mark.anyio
async def test_in_a_thread_the_text_stands_before_the_message_of_this_run(bank: lessonbank.ReasoningBank) -> None:
    model = ScriptedAgentModel({"Say hello": [Says("hello")], TASK: list(WORK)})
    program = Program(model, ReasoningBankMiddleware(bank))
    thread = program.thread()
    await program.run("Say hello", config=thread)
    await program.run(TASK, config=thread)
    for sent in model.requests[TASK]:
        assert [text for _, text in sent.messages[:2]] == ["Say hello", "hello"]
        assert LESSON in sent.messages[2][1]
        assert sent.messages[3] == ("user", TASK)
    runs = {run.trajectory.task: run.trajectory for run in kept(bank)}
    assert {task: run.answer for task, run in runs.items()} == {"Say hello": "hello", TASK: "three rows"}
    assert "hello" not in runs[TASK].model_dump_json()


@pytest.mark.anyio
async def test_a_run_that_waits_for_a_person_is_one_run_with_the_same_text(bank: lessonbank.ReasoningBank) -> None:
    model = ScriptedAgentModel({TASK: list(WORK)})
    person = HumanInTheLoopMiddleware(interrupt_on={TOOL: True})
    program = Program(model, ReasoningBankMiddleware(bank), middleware=[person])
    thread: Any = program.thread()
    first = await program.agent.ainvoke(asked(), thread, context=Context())
    assert first["__interrupt__"]
    assert not kept(bank)
    decided: Any = Command(resume={"decisions": [{"type": "approve"}]})
    await program.agent.ainvoke(decided, thread, context=Context())
    (run,) = kept(bank)
    assert (run.trajectory.answer, run.trajectory.error) == ("three rows", None)
    assert "page 1: 3 rows" in run.trajectory.model_dump_json()
    shown = [[text for _, text in r.messages if LESSON in text] for r in model.requests[TASK]]
    assert len(shown) == 2
    assert shown[0] == shown[1]


@pytest.mark.anyio
async def test_a_run_that_nobody_resumes_is_kept_as_unfinished(bank: lessonbank.ReasoningBank) -> None:
    model = ScriptedAgentModel({TASK: list(WORK), "Say hello": [Says("hello")]})
    person = HumanInTheLoopMiddleware(interrupt_on={TOOL: True})
    program = Program(model, ReasoningBankMiddleware(bank), middleware=[person])
    thread = program.thread()
    await program.agent.ainvoke(asked(), thread, context=Context())  # type: ignore[arg-type]
    await program.run("Say hello", config=thread)
    assert {run.trajectory.task: run.status for run in kept(bank)}[TASK] == "unfinished"


@pytest.mark.anyio
async def test_a_run_that_another_process_resumes_is_kept_there(
    bank: lessonbank.ReasoningBank,
) -> None:
    model = ScriptedAgentModel({TASK: list(WORK)})
    person = HumanInTheLoopMiddleware(interrupt_on={TOOL: True})
    program = Program(model, ReasoningBankMiddleware(bank), middleware=[person])
    thread: Any = program.thread()
    await program.agent.ainvoke(asked(), thread, context=Context())
    other = Program(model, ReasoningBankMiddleware(bank), middleware=[person])
    other.agent.checkpointer = program.saver
    await other.agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), thread, context=Context())  # type: ignore[arg-type]
    (run,) = kept(bank)
    assert (run.trajectory.task, run.trajectory.answer) == (TASK, "three rows")


def graph_of(memory: ReasoningBankMiddleware, model: ScriptedAgentModel) -> Any:
    """Two agents in a graph: the first hands the conversation to the second."""

    @tool
    def transfer() -> Command[Any]:
        """Hand over; the other agent sees the task alone."""
        return Command(goto="clerk", graph=Command.PARENT)

    llm = Scripted(script=model)
    graph = StateGraph(AgentState, context_schema=Context)
    graph.add_node("greeter", create_agent(llm, [transfer], middleware=[memory], name="greeter"))
    graph.add_node("clerk", create_agent(llm, [lookup], middleware=[memory], name="clerk"))
    graph.add_edge(START, "greeter")
    return memory.follow(graph.compile())


@pytest.mark.anyio
async def test_a_part_that_crashes_is_a_failed_run_with_its_parent(bank: lessonbank.ReasoningBank) -> None:
    part = "Look at the second page"
    model = ScriptedAgentModel({TASK: [Calls("delegate", {"task": part})], part: [Raises("gone")]})
    with pytest.raises(RuntimeError, match="gone"):
        await Program(model, ReasoningBankMiddleware(bank)).run(TASK)
    runs = {run.trajectory.task: run.trajectory for run in kept(bank)}
    assert (runs[part].error, runs[TASK].error) == ("RuntimeError: gone", "RuntimeError: gone")
    assert runs[part].parent_run == runs[TASK].id


@pytest.mark.anyio
async def test_the_event_loop_is_never_blocked(bank: lessonbank.ReasoningBank) -> None:
    model = ScriptedAgentModel({TASK: list(WORK), "Crash": [Raises()]})
    program = Program(model, ReasoningBankMiddleware(bank))
    with blockbuster_ctx():
        assert await program.run(TASK) == "three rows"
        with pytest.raises(RuntimeError):
            await program.run("Crash")
        with pytest.raises(BlockingError):
            time.sleep(0.001)  # the guard is on
    assert {run.trajectory.task for run in kept(bank)} == {TASK, "Crash"}
    assert LESSON in model.requests[TASK][0].words


@pytest.mark.anyio
async def test_an_error_inside_the_middleware_never_ends_a_run(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise AttributeError("another version")

    memory = ReasoningBankMiddleware(bank)
    monkeypatch.setattr(memory._graphs, "here", fails)
    assert await Program(ScriptedAgentModel({TASK: list(WORK)}), memory).run(TASK) == "three rows"
    assert "the memory failed in _asked: AttributeError" in caplog.text


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = load("langchain_agent").main()
    assert "make changelog" in shown
