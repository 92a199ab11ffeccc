from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, Raises

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer

from lessonbank.adapters.llama_index import ReasoningBankAgent

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
    # LlamaIndex looks at every attribute of its agents, also at pydantic's old ones.
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
]


class Counting(MockFunctionCallingLLM):
    """Hands on what a provider says of tokens."""

    async def astream_chat(self, *args: Any, **kwargs: Any) -> Any:
        told = await super().astream_chat(*args, **kwargs)

        async def counted() -> Any:
            async for response in told:
                response.raw = {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}
                yield response

        return counted()


def model_of(scripted: ScriptedAgentModel) -> MockFunctionCallingLLM:
    """LlamaIndex's mock model, answering by the script."""

    def answer(messages: Any, **_: Any) -> ChatMessage:
        reply = scripted.reply(request(messages))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        if isinstance(reply, Says):
            return ChatMessage(role="assistant", blocks=[TextBlock(text=reply.text)])
        name, told = "handoff", {"to_agent": getattr(reply, "to", ""), "reason": "so be it"}
        if isinstance(reply, Calls):
            name, told = reply.tool, dict(reply.arguments)
        return ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="c", tool_name=name, tool_kwargs=told)])

    return Counting(response_generator=answer, is_chat_model=True)


def request(messages: Any) -> Request:
    told = [(str(m.role.value), m.content or repr(m.blocks)) for m in messages]
    return Request(
        "".join(text for role, text in told if role == "system"), tuple(one for one in told if one[0] != "system")
    )


class Program:
    """Two agents that may hand over, and a third one that is a tool."""

    def __init__(self, model: ScriptedAgentModel, with_memory: Callable[[Any], Any]) -> None:
        self._llm, self._with_memory = model_of(model), with_memory
        self._stored: list[Any] = []
        self.agent = self._with_memory(self._several())
        self._part = self._with_memory(FunctionAgent(name="part", description="part", tools=[], llm=self._llm))

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        memory = ChatMemoryBuffer.from_defaults(token_limit=100_000, tokenizer_fn=str.split)
        handler = self.agent.run(task, memory=memory, user=user)
        if stream:
            assert [type(event) async for event in handler.stream_events() if isinstance(event, AgentStream)]
        result = await handler
        self._stored += memory.get_all()
        return str(result.response.content)

    async def stop_early(self, task: str, /) -> None:
        handler = self.agent.run(task, user="ana")
        async for event in handler.stream_events():
            if type(event).__name__ == "ToolCallResult":
                break
        await handler.cancel_run()

    def history(self) -> str:
        return repr(self._stored)

    def _several(self) -> Any:
        clerk = FunctionAgent(name="clerk", description="counts", tools=[self.lookup], llm=self._llm)
        first = FunctionAgent(
            name="first",
            description="leads",
            system_prompt="be terse",
            tools=[self.lookup, self.broken, self.delegate],
            llm=self._llm,
        )
        return AgentWorkflow(agents=[first, clerk], root_agent="first")

    async def lookup(self, page: int) -> str:
        """Look a page up."""
        return f"page {page}: 3 rows"

    async def broken(self) -> str:
        """Fail."""
        raise RuntimeError("the disk is full")

    async def delegate(self, task: str) -> str:
        """Let another agent do a part."""
        return str((await self._part.run(task, user="ana")).response.content)


@pytest.mark.anyio
class TestLlamaIndex(AdapterContract):
    source = "llama-index"

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda told: scope_of("acme", told["user"]))
        return Program(model, lambda plain: ReasoningBankAgent(plain, bank, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, lambda plain: plain)

    async def test_the_text_stands_before_the_task_and_after_what_was_said_before(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({"First task": [Says("<one>")], TASK: [Says("<two>")]})
            options = {"scope": lambda told: self.scope()}
            agent = ReasoningBankAgent(FunctionAgent(name="one", tools=[], llm=model_of(model)), bank, **options)
            memory = ChatMemoryBuffer.from_defaults(token_limit=100_000, tokenizer_fn=str.split)
            await agent.run("First task", memory=memory)
            await agent.run(TASK, memory=memory)
            bank.drain()
            texts = [text for _, text in model.requests[TASK][0].messages]
            place = next(n for n, text in enumerate(texts) if LESSON in text)
            assert texts[place + 1] == TASK
            assert texts[place - 1] == "<one>"
            assert LESSON not in repr(memory.get_all())

    async def test_an_agent_that_writes_its_calls_as_text_is_followed_too(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("Thought: I know.\nAnswer: three rows")]})
            react = ReActAgent(name="one", tools=[], llm=model_of(model))
            handler = ReasoningBankAgent(react, bank, scope=lambda told: self.scope()).run(TASK)
            assert "three rows" in str(await handler)
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.id == handler.lessonbank_run
            assert "three rows" in (run.trajectory.answer or "")
            assert model.requests[TASK][0].words.count(LESSON) == 1

    async def test_a_bank_may_be_put_around_one_agent_in_every_request(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows"), Says("two rows")]})
            agent = FunctionAgent(name="one", tools=[], llm=model_of(model))
            many = [ReasoningBankAgent(agent, bank, scope=lambda told: self.scope()) for _ in range(1000)]
            answers = [str(await one.run(TASK)) for one in (many[0], many[-1])]
            bank.drain()
            assert answers == ["three rows", "two rows"]
            assert sorted(str(run.trajectory.answer) for run in self._runs(bank)) == sorted(answers)
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1]


@pytest.mark.anyio
async def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = await load("llama_index_agent").main()
    assert "make changelog" in shown
