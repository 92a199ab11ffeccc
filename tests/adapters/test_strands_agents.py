from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load
from pydantic import BaseModel

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.contracts.records import Usage
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import DELEGATE, LESSON, TASK, TOOL, Raises

pytest.importorskip("strands", reason="strands-agents is not installed")

from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent
from strands.memory import MemoryManager
from strands.models.model import Model
from strands.multiagent import Swarm
from strands.session.file_session_manager import FileSessionManager

from lessonbank.adapters.strands_agents import ReasoningBankPlugin, ReasoningBankStore

pytestmark = pytest.mark.full


class Rows(BaseModel):
    """What was counted."""

    count: int


class Scripted(Model):
    """A model of Strands that the script of the contract speaks through."""

    def __init__(self, model: ScriptedAgentModel) -> None:
        self._model = model
        self.config: dict[str, Any] = {"model_id": "scripted"}

    def update_config(self, **config: Any) -> None:
        self.config.update(config)

    def get_config(self) -> dict[str, Any]:
        return self.config

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: str | None = None, **_: Any
    ) -> AsyncIterator[Any]:
        reply = self._model.reply(request(messages, system_prompt))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, Calls):
            use = {"name": reply.tool, "toolUseId": f"call-{len(messages)}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(reply.arguments))}}}}
        else:
            assert isinstance(reply, Says)
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply.text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(reply, Calls) else "end_turn"}}
        usage = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def request(messages: Any, system_prompt: str | None) -> Request:
    told: list[tuple[str, str]] = []
    for message in messages:
        for block in message["content"]:
            role = "tool" if "toolResult" in block else message["role"]
            told.append((role, block["text"] if "text" in block else json.dumps(block, sort_keys=True)))
    return Request(system_prompt or "", tuple(told))


@tool
def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@tool
def broken() -> str:
    """Fail."""
    raise OSError("the disk is full")


class Program:
    """An agent for each run: an agent of Strands does one thing at a time."""

    def __init__(self, model: ScriptedAgentModel, plugins: list[Any]) -> None:
        self._model, self._plugins = Scripted(model), plugins
        self.plugin: Any = plugins[0] if plugins else None
        self.stored: list[Any] = []

    def agent(self, **options: Any) -> Agent:
        @tool(name=DELEGATE, context=True)
        async def delegate(task: str, tool_context: ToolContext) -> str:
            """Let another agent do it."""
            part = Agent(model=self._model, callback_handler=None, plugins=self._plugins)
            return str(await part.invoke_async(task, invocation_state=tool_context.invocation_state)).strip()

        tools = [lookup, broken, delegate, *options.pop("tools", ())]
        made = {"system_prompt": "be terse", "callback_handler": None, "plugins": self._plugins, **options}
        return Agent(model=self._model, tools=tools, **made)

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        agent, state = self.agent(), {"user": user}
        if stream:
            events = [event async for event in agent.stream_async(task, invocation_state=state)]
            done = events[-1]["result"]
        else:
            done = await agent.invoke_async(task, invocation_state=state)
        self.stored += agent.messages
        return str(done).strip()

    async def stop_early(self, task: str, /) -> None:
        events = self.agent().stream_async(task, invocation_state={"user": "ana"})
        async for event in events:
            if "toolResult" in str(event.get("message")):
                break
        await events.aclose()

    def history(self) -> str:
        return repr(self.stored)


@pytest.mark.anyio
class TestStrands(AdapterContract):
    source = "strands"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "an agent hands over by calling another one as a tool, "
        "or inside a Swarm: each agent has an invocation of its own"
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        scope = options.pop("scope", lambda event: scope_of("acme", event.invocation_state["user"]))
        return Program(model, [ReasoningBankPlugin(bank, scope=scope, **options)])

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, [])

    # -- what only this host has --------------------------------------------------------------------------------------

    def test_an_agent_that_is_called_without_await_is_followed_too(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            agent = self.program(bank, model).agent()
            assert str(agent(TASK, invocation_state={"user": "ana"})).strip() == "three rows"
            bank.drain()
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1]
            (run,) = self._runs(bank)
            assert run.trajectory.answer == "three rows"
            assert run.trajectory.usage == Usage(requests=2, input_tokens=200, output_tokens=20)

    async def test_the_text_stands_in_the_message_of_the_prompt_and_before_its_words(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows"), Says("three rows, as before")]})
            agent = self.program(bank, model).agent()
            for _ in range(2):
                await agent.invoke_async(TASK, invocation_state={"user": "ana"})
            roles = [(role, LESSON in text) for role, text in model.requests[TASK][1].messages]
            assert roles == [("user", False), ("assistant", False), ("user", True), ("user", False)]

    async def test_nothing_stands_before_the_result_of_a_tool(self, tmp_path: Path) -> None:
        asked = {"role": "user", "content": [{"text": TASK}]}
        call = {"toolUse": {"name": TOOL, "toolUseId": "c1", "input": {"page": 1}}}
        result = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "3 rows"}]}}
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            agent = self.program(bank, model).agent(messages=[asked, {"role": "assistant", "content": [call]}])
            await agent.invoke_async([{"role": "user", "content": [result]}], invocation_state={"user": "ana"})
            assert LESSON not in model.requests[TASK][0].words
            bank.drain()
            assert [run.trajectory.task for run in self._runs(bank)] == [TASK]

    async def test_a_session_keeps_nothing_of_what_was_shown(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            session = FileSessionManager(session_id="s1", storage_dir=str(tmp_path / "sessions"))
            await (
                self.program(bank, model)
                .agent(session_manager=session)
                .invoke_async(TASK, invocation_state={"user": "ana"})
            )
            written = "".join(p.read_text() for p in (tmp_path / "sessions").rglob("*.json"))
            assert TASK in written
            assert LESSON not in written
            assert LESSON in model.requests[TASK][0].words

    async def test_an_agent_as_a_tool_is_a_run_with_a_parent_and_has_its_scope(self, tmp_path: Path) -> None:
        part = "Count the rows of page two"
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("clerk", {"input": part})], part: [Says("three")]})
            program = self.program(bank, model)
            clerk = program.agent(name="clerk", description="Looks pages up").as_tool(delegate=True)
            await program.agent(tools=[clerk]).invoke_async(TASK, invocation_state={"user": "ana"})
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs[part].parent_run == runs[TASK].id
            assert runs[TASK].answer == "three"
            assert LESSON in model.requests[part][0].words

    async def test_a_stream_that_nobody_reads_to_its_end_is_no_parent(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({"First": [Says("one")], "Second": [Says("two")]})
            program = self.program(bank, model)
            events = program.agent().stream_async("First", invocation_state={"user": "ana"})
            await anext(events)
            await program.run("Second")
            await events.aclose()
            bank.drain()
            runs = {run.trajectory.task: run for run in self._runs(bank)}
            assert runs["Second"].trajectory.parent_run is None
            assert (runs["First"].status, runs["Second"].trajectory.answer) == ("unfinished", "two")

    async def test_streams_that_are_read_by_turns_do_not_mix(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            tasks = {"First": 1, "Second": 2}
            script = {task: [Calls(TOOL, {"page": page}), Says(f"rows of {page}")] for task, page in tasks.items()}
            program = self.program(bank, ScriptedAgentModel(script))
            streams = [program.agent().stream_async(task, invocation_state={"user": "ana"}) for task in tasks]
            while streams:
                for stream in list(streams):
                    if await anext(stream, None) is None:
                        streams.remove(stream)
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            for task, page in tasks.items():
                assert runs[task].answer == f"rows of {page}"
                assert f"page {page}: 3 rows" in runs[task].model_dump_json()
                assert runs[task].parent_run is None

    async def test_a_run_that_asks_a_person_and_goes_on_is_one_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            agent = self.program(bank, model).agent()
            agent.add_hook(lambda event: event.interrupt("may I?") and None, BeforeToolCallEvent)
            asked = await agent.invoke_async(TASK, invocation_state={"user": "ana"})
            assert asked.stop_reason == "interrupt"
            answers = [{"interruptResponse": {"interruptId": i.id, "response": "yes"}} for i in asked.interrupts]
            await agent.invoke_async(answers, invocation_state={"user": "ana"})
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.answer == "three rows"
            assert "page 1: 3 rows" in run.trajectory.model_dump_json()
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1]

    async def test_a_cancelled_run_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            agent = self.program(bank, model).agent()
            agent.add_hook(lambda _: agent.cancel(), BeforeToolCallEvent)
            done = await agent.invoke_async(TASK, invocation_state={"user": "ana"})
            assert done.stop_reason == "cancelled"
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.trajectory.metadata["stopped"]) == ("unfinished", "cancelled")

    async def test_an_error_that_somebody_else_handles_just_now_is_not_that_of_the_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]}))
            try:
                raise KeyError("before")
            except KeyError:
                await program.run(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.error is None

    async def test_every_agent_of_a_swarm_is_a_run_of_its_own(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            hand_off = Calls("handoff_to_agent", {"agent_name": "clerk", "message": "Look at page 2"})
            model = ScriptedAgentModel({"Look at page 2": [Says("six rows")], TASK: [hand_off, Says("handed over")]})
            program = self.program(bank, model)
            swarm = Swarm([program.agent(name=name) for name in ("desk", "clerk")])
            await swarm.invoke_async(TASK, invocation_state={"user": "ana"})
            bank.drain()
            assert {run.trajectory.answer for run in self._runs(bank)} == {"handed over", "six rows"}

    async def test_another_version_of_the_host_costs_the_memory_and_not_the_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def differs(*_: Any) -> Any:
            raise AttributeError("no such field")

        with self._bank(tmp_path) as bank:
            monkeypatch.setattr("lessonbank.adapters.strands_agents._place", differs)
            await self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]})).run(TASK)
            assert "the memory failed in" in caplog.text

    def test_what_one_run_of_the_example_taught_stands_in_the_next(self) -> None:
        (shown,) = load("strands_agent").main()
        assert "make changelog" in shown

    @pytest.mark.parametrize(("user", "found"), [("ana", 1), ("bob", 0)])
    async def test_an_agent_searches_the_lessons_of_its_own_user_with_the_tool_of_the_memory_manager(
        self, tmp_path: Path, user: str, found: int
    ) -> None:
        with self._bank(tmp_path) as bank:
            asked = Calls("search_memory", {"query": TASK})
            model = ScriptedAgentModel({TASK: [asked, asked, Says("three rows")]})
            program = self.program(bank, model)
            manager = MemoryManager(stores=[ReasoningBankStore(program.plugin)], injection=False)
            await program.agent(plugins=[program.plugin, manager]).invoke_async(TASK, invocation_state={"user": user})
            results = [text for role, text in model.requests[TASK][2].messages if role == "tool"]
            assert [text.count(LESSON) for text in results] == [found, found]
            assert [len(set(re.findall("<<<lessons [0-9a-f]+>>>", "".join(results))))] == [found]

    async def test_a_search_outside_of_a_run_has_the_memory_of_the_bank_or_none(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            for plugin in (ReasoningBankPlugin(bank.scoped(scope_of("acme", "ana"))), ReasoningBankPlugin(bank)):
                found = await ReasoningBankStore(plugin).search(TASK)
                assert [entry.content.count(LESSON) for entry in found] == [1] * (plugin.runs.bank is not bank)
            by_user = ReasoningBankPlugin(bank.scoped(scope_of("acme", "ana")), scope=lambda _: scope_of("acme", "ana"))
            assert await ReasoningBankStore(by_user).search(TASK) == []

    async def test_a_structured_answer_is_part_of_the_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("Rows", {"count": 3})]})
            done = (
                await self.program(bank, model)
                .agent()
                .invoke_async(TASK, structured_output_model=Rows, invocation_state={"user": "ana"})
            )
            assert done.structured_output == Rows(count=3)
            bank.drain()
            assert '"count":3' in self._runs(bank)[0].trajectory.model_dump_json()
