from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load
from unreadable_end import ENDS, check_nobody_notices, fails

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import BROKEN, LESSON, TASK, TOOL, Raises

pytest.importorskip("smolagents", reason="smolagents is not installed")

from smolagents import CodeAgent, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import LogLevel, TokenUsage

from lessonbank.adapters.smolagents import ReasoningBankAgent

pytestmark = pytest.mark.full
PLAN = "Plan first"


@tool
def lookup(page: int) -> str:
    """Look a page up.

    Args:
        page: its number
    """
    return f"page {page}: 3 rows"


@tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("the disk is full")


class Scripted(Model):
    """Tool calls as smolagents' own models return them; or code, for an agent that writes code."""

    def __init__(self, model: ScriptedAgentModel, *, code: bool = False) -> None:
        super().__init__(model_id="scripted")
        self._model, self._code = model, code

    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        reply = self._model.reply(request(messages))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        name, arguments = "final_answer", {"answer": getattr(reply, "text", "")}
        if isinstance(reply, Calls):
            name, arguments = reply.tool, dict(reply.arguments)
        usage = TokenUsage(10, 2)
        if self._code:
            told = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            code = f"Thought: so be it.\n<code>\nprint({name}({told}))\n</code>"
            return ChatMessage(role=MessageRole.ASSISTANT, content=code, token_usage=usage)
        call = ChatMessageToolCall(
            id="call", type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments)
        )
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call], token_usage=usage)


def request(messages: list[ChatMessage]) -> Request:
    system = "".join(words(m) for m in messages if m.role == MessageRole.SYSTEM)
    roles = {"tool-call": "assistant", "tool-response": "tool"}
    others = [m for m in messages if m.role != MessageRole.SYSTEM]
    return Request(system, tuple((roles.get(str(m.role.value), str(m.role.value)), words(m)) for m in others))


def words(message: ChatMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content or ())


class Program:
    """An agent for each run: an agent of smolagents does one at a time."""

    def __init__(self, model: ScriptedAgentModel, with_memory: Callable[[Any], Any]) -> None:
        self.model, self._with_memory = model, with_memory
        self.agents: list[Any] = []

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        agent, told = self.agent(), {"additional_args": {"user": user}}
        if not stream:
            return str(await asyncio.to_thread(agent.run, task, **told))
        return str(await asyncio.to_thread(lambda: list(agent.run(task, stream=True, **told))[-1].output))

    async def stop_early(self, task: str, /) -> None:
        steps = self.agent().run(task, stream=True, additional_args={"user": "ana"})
        for step in steps:
            if type(step).__name__ == "ActionStep":
                break
        steps.close()

    def history(self) -> str:
        return repr([agent.memory.get_succinct_steps() for agent in self.agents])

    def agent(self, kind: Any = ToolCallingAgent, **more: Any) -> Any:
        model = Scripted(self.model, code=kind is CodeAgent)
        part = self._noted(
            ToolCallingAgent(
                tools=[], model=model, name="delegate", description="does a part", verbosity_level=LogLevel.OFF
            )
        )
        made = {"instructions": "be terse", "managed_agents": [part], "verbosity_level": LogLevel.OFF, **more}
        return self._noted(kind(tools=[lookup, broken], model=model, **made))

    def _noted(self, agent: Any) -> Any:
        self.agents.append(agent)
        return self._with_memory(agent)


@pytest.mark.anyio
class TestSmolagents(AdapterContract):
    source = "smolagents"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "an agent calls another one as a tool",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda agent: scope_of("acme", agent.state.get("user", "ana")))
        return Program(model, lambda plain: ReasoningBankAgent(plain, bank, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, lambda plain: plain)

    async def test_an_agent_that_writes_code_is_followed_too(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Calls(BROKEN), Says("three rows")]})
            program = self.program(bank, model)
            assert program.agent(CodeAgent).run(TASK) == "three rows"
            bank.drain()
            (run,) = self._runs(bank)
            codes = [call.arguments for step in run.trajectory.steps for call in step.action.calls]
            assert "lookup(page=1)" in str(codes[0])
            told = [o for step in run.trajectory.steps for o in step.observations if o.source == "tool"]
            assert "page 1: 3 rows" in told[0].text
            assert "the disk is full" in told[1].text
            assert told[1].is_error
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1, 1]
            assert (run.trajectory.usage.requests, run.trajectory.usage.input_tokens) == (3, 30)

    async def test_the_next_turn_of_a_conversation_is_a_run_of_its_own(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({"First task": [Says("one")], TASK: [Says("two")]})
            agent = self.program(bank, model).agent()
            agent.run("First task")
            agent.run(TASK, reset=False)
            bank.drain()
            kept = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert "First task" not in kept[TASK].model_dump_json()
            texts = [text for _, text in model.requests[TASK][0].messages]
            place = next(n for n, text in enumerate(texts) if LESSON in text)
            assert TASK in texts[place + 1]
            assert any("First task" in text for text in texts[:place])

    async def test_the_limit_of_steps_is_a_failure_though_there_is_an_answer(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("")]})
            self.program(bank, model).agent(max_steps=1).run(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.error == "Reached max steps."
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "framework_error")

    async def test_an_interrupted_run_is_unfinished(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1})]})
            agent = self.program(bank, model).agent(step_callbacks=[lambda step, agent: agent.interrupt()])
            with pytest.raises(Exception, match="interrupted"):
                agent.run(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            assert run.status == "unfinished"
            assert "page 1: 3 rows" in run.trajectory.model_dump_json()

    @pytest.mark.parametrize("replies", ENDS)
    async def test_an_end_that_cannot_be_read_changes_nothing_for_the_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, replies: Any
    ) -> None:
        monkeypatch.setattr("lessonbank.adapters.smolagents._messages", fails)
        with self._bank(tmp_path) as bank:
            agent = self.program(bank, ScriptedAgentModel({TASK: replies})).agent()
            check_nobody_notices(lambda: agent.run(TASK), replies, caplog)

    async def test_the_agent_is_as_it_was_after_the_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            agent = self.program(bank, ScriptedAgentModel({TASK: [Says("done")]})).agent()
            agent.run(TASK)
            assert "write_memory_to_messages" not in vars(agent.agent)
            assert agent.max_steps == agent.agent.max_steps


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = load("smolagents_agent").main()
    assert "make changelog" in shown
