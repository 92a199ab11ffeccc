from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load, main_loop

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, Raises


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """To import it takes most of a second: whoever runs these tests does so, and not each worker that collects them."""
    global Agent, DeferredToolRequests, DeferredToolResults, RunContext, ModelRetry, FunctionModel, DeltaToolCall
    global ModelRequest, ModelResponse, RetryPromptPart, SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart
    global ModelMessage, AgentInfo, ReasoningBankCapability

    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

    from lessonbank.adapters.pydantic_ai import ReasoningBankCapability


@dataclass
class Deps:
    user: str = "ana"


class Program:
    def __init__(self, model: ScriptedAgentModel, capabilities: list[Any]) -> None:
        self._stored: list[ModelMessage] = []
        functions = FunctionModel(self._answer, stream_function=self._stream)
        self._model, self._capabilities = model, capabilities
        self._agent = Agent(functions, deps_type=Deps, instructions="be terse", capabilities=capabilities)
        self._part = Agent(functions, deps_type=Deps, capabilities=capabilities)
        self._agent.tool_plain(self.lookup)
        self._agent.tool_plain(self.broken)
        self._agent.tool(self.delegate)

    async def lookup(self, page: int) -> str:
        return f"page {page}: 3 rows"

    async def broken(self) -> str:
        raise ModelRetry("the disk is full")

    async def delegate(self, ctx: RunContext[Deps], task: str) -> str:
        return (await self._part.run(task, deps=ctx.deps)).output

    def agent_that_asks(self) -> Agent[Deps, Any]:
        """An agent with a tool that a person has to allow."""
        functions, kinds = FunctionModel(self._answer), [str, DeferredToolRequests]
        agent = Agent(functions, deps_type=Deps, output_type=kinds, capabilities=self._capabilities)

        @agent.tool_plain(requires_approval=True)
        async def erase(page: int) -> str:
            return f"page {page} is gone"

        return agent

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        if stream:
            async with self._agent.run_stream(task, deps=Deps(user)) as result:
                said = await result.get_output()
                self._stored += result.all_messages()
                return said
        done = await self._agent.run(task, deps=Deps(user))
        self._stored += done.all_messages()
        return done.output

    async def stop_early(self, task: str, /) -> None:
        async with self._agent.iter(task, deps=Deps()) as run:
            async for _ in run:
                if len(run.all_messages()) > 1:
                    break

    def history(self) -> str:
        return repr(self._stored)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = self._model.reply(request(messages, info))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        if isinstance(reply, Calls):
            return ModelResponse([ToolCallPart(reply.tool, dict(reply.arguments))])
        assert isinstance(reply, Says)
        return ModelResponse([TextPart(reply.text)])

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for part in (await self._answer(messages, info)).parts:
            if isinstance(part, ToolCallPart):
                yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str())}
            elif isinstance(part, TextPart):
                yield part.content


def request(messages: list[ModelMessage], info: AgentInfo) -> Request:
    told: list[tuple[str, str]] = []
    for message in messages:
        for part in message.parts:
            role = "user" if isinstance(message, ModelRequest) else "assistant"
            role = "tool" if isinstance(part, ToolReturnPart | RetryPromptPart) else role
            role = "system" if isinstance(part, SystemPromptPart) else role
            call = isinstance(part, ToolCallPart)
            told.append((role, f"{part.tool_name} {part.args}" if call else str(getattr(part, "content", part))))
    return Request(info.instructions or "", tuple(told))


@pytest.mark.full
@pytest.mark.anyio
class TestPydanticAI(AdapterContract):
    source = "pydantic-ai"
    cannot: ClassVar = {"test_a_hand_off_is_part_of_the_run": "an agent calls another one as a tool"}

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        scope = options.pop("scope", lambda ctx: scope_of("acme", ctx.deps.user))
        return Program(model, [ReasoningBankCapability(bank, scope=scope, **options)])

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, [])

    async def test_a_run_that_waits_for_a_person_is_one_run_with_the_same_text(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            script = {TASK: [*[Calls("erase", {"page": page}) for page in (1, 2)], Says("they are erased")]}
            model = ScriptedAgentModel(script)
            program = self.program(bank, model)
            agent = program.agent_that_asks()
            done = await agent.run(TASK, deps=Deps())
            while isinstance(asked := done.output, DeferredToolRequests):
                bank.drain()
                assert not self._runs(bank)
                answers = DeferredToolResults(approvals={call.tool_call_id: True for call in asked.approvals})
                before = done.all_messages()
                done = await agent.run(message_history=before, deferred_tool_results=answers, deps=Deps())
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.trajectory.task, run.trajectory.answer) == (TASK, "they are erased")
            seen = [seen.text for step in run.trajectory.steps for seen in step.observations]
            assert seen == [TASK, "page 1 is gone", "page 2 is gone"]
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1, 1]

    async def test_a_run_that_nobody_lets_go_on_is_unfinished_when_the_user_asks_for_something_else(
        self, tmp_path: Path
    ) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("erase", {"page": 1})], "Go home": [Says("home")]})
            agent = self.program(bank, model).agent_that_asks()
            done = await agent.run(TASK, deps=Deps())
            await agent.run("Go home", message_history=done.all_messages()[:1], deps=Deps())
            bank.drain()
            assert {(run.trajectory.task, run.trajectory.unfinished) for run in self._runs(bank)} == {
                (TASK, True),
                ("Go home", False),
            }


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    with main_loop():
        (shown,) = load("pydantic_ai_agent").main()
    assert "make changelog" in shown
