from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.contracts.records import Usage
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import DELEGATE, LESSON, TASK, TOOL, Raises

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatContext,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    chat_middleware,
    tool,
)

from lessonbank.adapters.microsoft_agent_framework import ReasoningBankMiddleware

pytestmark = pytest.mark.full


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that the script of the contract speaks through."""

    def __init__(self, model: ScriptedAgentModel) -> None:
        super().__init__(function_invocation_configuration={"include_detailed_errors": True})
        self._model, self._calls = model, iter(range(10_000))

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        if not stream:
            return self._answer(messages, options)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            answer = await self._answer(messages, options)
            yield ChatResponseUpdate(role="assistant", contents=answer.messages[0].contents)

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def _answer(self, messages: Sequence[Message], options: Any) -> ChatResponse:
        reply = self._model.reply(request(messages, options))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        if isinstance(reply, Calls):
            id, arguments = f"call-{next(self._calls)}", json.dumps(dict(reply.arguments))
            content = Content.from_function_call(id, reply.tool, arguments=arguments)
        else:
            assert isinstance(reply, Says)
            content = Content.from_text(reply.text)
        usage = {"input_token_count": 100, "output_token_count": 10}
        return ChatResponse(messages=[Message("assistant", [content])], usage_details=usage)


def request(messages: Sequence[Message], options: Any) -> Request:
    told: list[tuple[str, str]] = []
    for message in messages:
        for part in message.contents:
            kept = [getattr(part, name, None) for name in ("type", "call_id", "name", "arguments", "result")]
            told.append((str(message.role), part.text if part.type == "text" else json.dumps(kept, default=str)))
    return Request(str(options.get("instructions") or ""), tuple(told))


@tool
def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@tool
def broken() -> str:
    """Fail."""
    raise OSError("the disk is full")


@tool(approval_mode="always_require")
def erase(page: int) -> str:
    """Erase a page."""
    return f"page {page} is gone"


class Program:
    def __init__(self, model: ScriptedAgentModel, middleware: list[Any]) -> None:
        client = Scripted(model)
        self.part = Agent(client, name="part", middleware=middleware)

        @tool(name=DELEGATE)
        async def delegate(task: str) -> str:
            """Let another agent do it."""
            return (await self.part.run(task)).text

        tools = [lookup, broken, delegate, self.part.as_tool(name="clerk")]
        self.agent = Agent(client, "be terse", tools=tools, middleware=middleware)
        self.sessions: list[Any] = []

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        session = self.agent.create_session()
        told: dict[str, Any] = {"session": session, "function_invocation_kwargs": {"user": user}}
        if stream:
            updates = self.agent.run(task, stream=True, **told)
            assert [update async for update in updates]
            done = await updates.get_final_response()
        else:
            done = await self.agent.run(task, **told)
        self.sessions.append(session.to_dict())
        return done.text

    async def stop_early(self, task: str, /) -> None:
        updates = self.agent.run(task, stream=True, function_invocation_kwargs={"user": "ana"})
        async for update in updates:
            if any(part.type == "function_result" for part in update.contents):
                break
        if hasattr(updates, "close"):  # before 1.21 a stream can only be dropped
            await updates.close()
        del updates
        gc.collect()

    def history(self) -> str:
        assert all(TASK in str(session) for session in self.sessions)
        return repr(self.sessions)


@pytest.mark.anyio
class TestMicrosoftAgentFramework(AdapterContract):
    source = "microsoft-agent-framework"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "hand-offs are workflows of another package, "
        "and each agent of a workflow has a run of its own",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        scope = options.pop("scope", lambda context: scope_of("acme", context.function_invocation_kwargs["user"]))
        return Program(model, [ReasoningBankMiddleware(bank, scope=scope, **options)])

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, [])

    # -- what only this host has --------------------------------------------------------------------------------------

    async def test_the_text_stands_before_the_prompt_of_this_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows"), Says("three rows, as before")]})
            program = self.program(bank, model)
            session = program.agent.create_session()
            for _ in range(2):
                await program.agent.run(TASK, session=session, function_invocation_kwargs={"user": "ana"})
            roles = [(role, LESSON in text) for role, text in model.requests[TASK][1].messages]
            assert roles == [("user", False), ("assistant", False), ("user", True), ("user", False)]

    async def test_an_agent_as_a_tool_is_a_run_with_a_parent_and_has_its_scope(self, tmp_path: Path) -> None:
        part = "Count the rows of page two"
        with self._bank(tmp_path) as bank:
            script = {TASK: [Calls("clerk", {"task": part}), Says("six")], part: [Says("three")]}
            model = ScriptedAgentModel(script)
            assert await self.program(bank, model).run(TASK, stream=True) == "six"
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs[part].parent_run == runs[TASK].id
            assert LESSON in model.requests[part][0].words

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_run_that_waits_for_a_person_is_one_run_with_the_same_text(
        self, tmp_path: Path, stream: bool
    ) -> None:
        async def ask(what: Any) -> Any:
            told: dict[str, Any] = {"session": session, "function_invocation_kwargs": {"user": "ana"}}
            if not stream:
                return await agent.run(what, **told)
            updates = agent.run(what, stream=True, **told)
            assert [update async for update in updates]
            return await updates.get_final_response()

        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("erase", {"page": 2}), Says("it is erased")]})
            program = self.program(bank, model)
            agent = Agent(Scripted(model), "be terse", tools=[erase], middleware=program.agent.middleware)
            session = agent.create_session()
            waits = await ask(TASK)
            bank.drain()
            assert not self._runs(bank)
            (question,) = waits.user_input_requests
            assert (await ask(Message("user", [question.to_function_approval_response(True)]))).text == "it is erased"
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.trajectory.task, run.trajectory.answer) == (TASK, "it is erased")
            assert [seen.text for step in run.trajectory.steps for seen in step.observations] == [
                TASK,
                "page 2 is gone",
            ]
            assert run.trajectory.usage.requests == 2
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1]

    async def test_a_run_that_nobody_lets_go_on_is_unfinished_when_the_user_asks_for_something_else(
        self, tmp_path: Path
    ) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("erase", {"page": 2})], "Go home": [Says("home")]})
            agent = Agent(Scripted(model), tools=[erase], middleware=self.program(bank, model).agent.middleware)
            session, told = agent.create_session(), {"function_invocation_kwargs": {"user": "ana"}}
            assert (await agent.run(TASK, session=session, **told)).user_input_requests
            assert (await agent.run("Go home", session=session, **told)).text == "home"
            bank.drain()
            runs = {(run.trajectory.task, run.trajectory.unfinished) for run in self._runs(bank)}
            assert runs == {(TASK, True), ("Go home", False)}

    async def test_a_stream_that_somebody_drops_is_kept_as_unfinished_and_is_no_parent(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({"First": [Says("one")], "Second": [Says("two")]}))
            updates = program.agent.run("First", stream=True, function_invocation_kwargs={"user": "ana"})
            await anext(updates)
            del updates
            await program.run("Second")
            gc.collect()
            bank.drain()
            runs = {run.trajectory.task: run for run in self._runs(bank)}
            assert runs["Second"].trajectory.parent_run is None
            assert (runs["First"].status, runs["Second"].trajectory.answer) == ("unfinished", "two")

    async def test_a_cancelled_run_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({TASK: [Calls("wait")]}))
            begun = asyncio.Event()

            async def wait() -> str:
                begun.set()
                await asyncio.Event().wait()
                return ""

            kwargs = {"user": "ana"}
            work = asyncio.ensure_future(program.agent.run(TASK, tools=[wait], function_invocation_kwargs=kwargs))
            await begun.wait()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.trajectory.metadata["stopped"]) == ("unfinished", "CancelledError")
            assert "wait" in run.trajectory.model_dump_json()

    async def test_other_middleware_of_the_program_stays(self, tmp_path: Path) -> None:
        seen: list[str] = []

        @chat_middleware
        async def own(context: ChatContext, call_next: Any) -> None:
            seen.append(context.messages[-1].text)
            await call_next()

        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            memory = ReasoningBankMiddleware(bank, scope=lambda _: self.scope())
            await Program(model, [own, memory]).run(TASK)
            assert seen == [TASK]
            assert LESSON in model.requests[TASK][0].words

    async def test_what_a_run_cost_is_kept(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            assert self._runs(bank)[0].trajectory.usage == Usage(requests=3, input_tokens=300, output_tokens=30)

    async def test_a_stream_that_fails_is_a_failed_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Raises("the model is gone")]})
            with pytest.raises(RuntimeError, match="the model is gone"):
                await self.program(bank, model).run(TASK, stream=True)
            bank.drain()
            (run,) = self._runs(bank)
            assert "the model is gone" in (run.trajectory.error or "")
            assert "page 1: 3 rows" in run.trajectory.model_dump_json()

    async def test_another_version_of_the_host_costs_the_memory_and_not_the_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def differs(*_: Any) -> Any:
            raise AttributeError("no such field")

        with self._bank(tmp_path) as bank:
            monkeypatch.setattr("lessonbank.adapters.microsoft_agent_framework._plain", differs)
            await self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]})).run(TASK)
            assert "the memory failed in" in caplog.text

    def test_what_one_run_of_the_example_taught_stands_in_the_next(self) -> None:
        (shown,) = asyncio.run(load("microsoft_agent_framework").main())
        assert "make changelog" in shown
