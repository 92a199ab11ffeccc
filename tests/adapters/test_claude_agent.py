"""The real Claude Code that the SDK brings along, against a model server on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.contracts.records import Usage
from lessonbank.testing import AdapterContract, Calls, Request, ScriptedAgentModel
from lessonbank.testing.adapter_contract import DELEGATE, LESSON, TASK, TOOL, HandsOff, Raises, Says
from lessonbank.testing.model_server import Fault, ModelServer

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    HookMatcher,
    InMemorySessionStore,
    ResultMessage,
    TaskNotificationMessage,
    Transport,
    UserMessage,
    create_sdk_mcp_server,
    get_session_messages,
    query,
    tool,
)
from claude_agent_sdk.testing import run_session_store_conformance

from lessonbank.adapters.claude_agent import ReasoningBankClaude

pytestmark = pytest.mark.full


@tool("lookup", "Look a page up.", {"page": int})
async def lookup(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"page {arguments['page']}: 3 rows"}]}


@tool("broken", "Fail.", {})
async def broken(arguments: dict[str, Any]) -> dict[str, Any]:
    raise OSError("the disk is full")


def sse(*events: dict[str, Any]) -> Fault:
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Fault(status=200, headers={"content-type": "text/event-stream"}, body=body.encode())


def message(reply: Calls | Says, number: int) -> Fault:
    """An answer of the Messages API, streamed."""
    if isinstance(reply, Calls):
        args: dict[str, Any] = dict(reply.arguments)
        if reply.tool == DELEGATE:
            args = {"description": "a part", "prompt": args["task"], "subagent_type": "general-purpose"}
        name = "Agent" if reply.tool == DELEGATE else f"mcp__office__{reply.tool}"
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(args)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 100, "output_tokens": 10}
    stop = {"stop_reason": "tool_use" if isinstance(reply, Calls) else "end_turn", "stop_sequence": None}
    return sse(
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    )


def blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def request(body: dict[str, Any]) -> Request:
    """What the model was sent. The first block of the system prompt is a checksum of the host over all the rest."""
    told: list[tuple[str, str]] = []
    for said in body["messages"]:
        for block in blocks(said["content"]):
            role = "tool" if block["type"] == "tool_result" else said["role"]
            kept = {key: value for key, value in block.items() if key != "cache_control"}
            told.append((role, block["text"] if block["type"] == "text" else json.dumps(kept, sort_keys=True)))
    system = [b["text"] for b in blocks(body.get("system", [])) if not b["text"].startswith("x-anthropic-billing")]
    return Request("\n".join(system), tuple(told))


WAITS = Says("I wait")


class Patient(ScriptedAgentModel):
    """Says that it waits only when the agent in the background is done."""

    def __init__(self, scripts: dict[str, list[Any]]) -> None:
        super().__init__(scripts)
        self.done = threading.Event()

    def reply(self, request: Request, /) -> Any:
        said = super().reply(request)
        assert said is not WAITS or self.done.wait(timeout=120)
        return said


class Program:
    def __init__(self, folder: Path, model: ScriptedAgentModel, memory: ReasoningBankClaude | None) -> None:
        self._folder, self._model, self.memory = folder, model, memory
        self.sessions: list[str] = []
        self.server = ModelServer(default=self.answer)
        self._numbers = iter(range(10_000))
        self._down: Raises | None = None
        self._room = asyncio.Semaphore(5)  # each run is a process of 250 MB

    def answer(self, body: dict[str, Any]) -> Fault:
        if not body.get("tools"):  # a title, a summary
            return message(Says("ok"), next(self._numbers))
        reply = self._down or self._model.reply(request(body))
        if isinstance(reply, Raises):
            self._down = reply  # Claude Code asks again
            error = {"type": "error", "error": {"type": "api_error", "message": reply.words}}
            return Fault(status=500, body=json.dumps(error).encode())
        assert not isinstance(reply, HandsOff)
        return message(reply, next(self._numbers))

    def options(self, user: str = "ana", **more: Any) -> ClaudeAgentOptions:
        home = self._folder / "home"
        office = create_sdk_mcp_server("office", tools=[lookup, broken])
        environment = {
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "ANTHROPIC_BASE_URL": self.server.base_url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "none",
            "HTTPS_PROXY": "http://127.0.0.1:9",  # nothing leaves the machine
            "NO_PROXY": "127.0.0.1",
            "ENABLE_TOOL_SEARCH": "false",
            "ACME_USER": user,
        }
        flags = ("NONESSENTIAL_TRAFFIC", "BACKGROUND_TASKS")
        environment |= {f"CLAUDE_CODE_DISABLE_{flag}": "1" for flag in flags} | {"DISABLE_AUTOUPDATER": "1"}
        environment |= {"CLAUDE_CODE_MAX_RETRIES": "0", **more.pop("env", {})}
        place = self._folder / "project"
        place.mkdir(exist_ok=True)
        return ClaudeAgentOptions(
            system_prompt="be terse",
            env=environment,
            cwd=place,
            setting_sources=[],
            mcp_servers={"office": office},
            allowed_tools=["mcp__office__lookup", "mcp__office__broken", "Agent"],
            **more,
        )

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        async with self._room:
            return await self._run(task, self.options(user, include_partial_messages=stream))

    async def _run(self, task: str, options: ClaudeAgentOptions) -> str:
        self._down = None
        if self.memory and options.include_partial_messages:
            async with self.memory.client(options) as client:
                await client.query(task)
                found = [said async for said in client.receive_response()]
        else:
            asked = self.memory.query if self.memory else query
            found = [said async for said in asked(prompt=task, options=options)]
        result = next(said for said in found if isinstance(said, ResultMessage))
        self.sessions.append(result.session_id)
        return result.result or ""

    async def answer_with(self, task: str, /, **options: Any) -> str:
        """Run a task with these options of the SDK."""
        return await self._run(task, self.options(**options))

    async def stop_early(self, task: str, /) -> None:
        assert self.memory
        async with self.memory.client(self.options()) as client:
            await client.query(task)
            async for said in client.receive_response():
                if isinstance(said, UserMessage):
                    break

    def history(self) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLAUDE_CONFIG_DIR", str(self._folder / "home" / ".claude"))
            stored = [get_session_messages(id, directory=str(self._folder / "project")) for id in self.sessions]
        assert all(stored)
        return repr(stored)


# With a session store, the SDK itself leaves pipes open where its client is left before the result.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.anyio
class TestClaudeAgent(AdapterContract):
    source = "claude-agent-sdk"
    channel = "system"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "Claude Code has sub-agents, and no hand-offs",
    }
    pairs = 7  # each run is a process

    @pytest.fixture(autouse=True)
    def _closing(self, tmp_path: Path) -> Iterator[None]:
        with ExitStack() as self._stack, pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "600000")  # ms to start, on a busy machine
            self._folder = tmp_path
            yield
        gc.collect()

    def signature(self) -> str:
        """Claude Code tells no more than the names."""
        return self.name_of_tool(TOOL)

    def name_of_tool(self, tool: str, /) -> str:
        return f"mcp__office__{tool}"

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        scope = options.pop("scope", lambda asked: scope_of("acme", asked.env["ACME_USER"]))
        return self._started(model, ReasoningBankClaude(bank, scope=scope, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return self._started(model, None)

    def _started(self, model: ScriptedAgentModel, memory: ReasoningBankClaude | None) -> Program:
        program = Program(self._folder, model, memory)
        self._stack.enter_context(program.server)
        return program

    # -- what only this host has --------------------------------------------------------------------------------------

    async def test_each_prompt_of_a_client_is_a_run_and_its_outcome_can_be_told(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({"First": [Says("one")], "Second": [Says("two")]}))
            memory = program.memory
            async with memory.client(program.options()) as client:
                for task in ("First", "Second"):
                    await client.query(task)
                    *_, result = [said async for said in client.receive_response()]
                    run = memory.run_of(result)
                    memory.runs.tell(run or "", outcome="success" if task == "First" else "failure")
            bank.drain()
            kept = {run.trajectory.task: (run.trajectory.answer, run.verdict.outcome) for run in self._runs(bank)}
            assert kept == {"First": ("one", "success"), "Second": ("two", "failure")}
            assert {run.trajectory.usage for run in self._runs(bank)} == {
                Usage(requests=1, input_tokens=100, output_tokens=10)
            }

    async def test_a_run_that_is_interrupted_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]}))
            async with program.memory.client(program.options()) as client:
                await client.query(TASK)
                async for said in client.receive_response():
                    if isinstance(said, AssistantMessage):
                        await client.interrupt()
            bank.drain()
            (run,) = self._runs(bank)
            assert run.status == "unfinished"
            assert str(run.trajectory.metadata["stopped"]).startswith("aborted")

    async def test_a_run_goes_on_until_its_agents_in_the_background_are_done(self, tmp_path: Path) -> None:
        part = "Count the rows of page two"
        with self._bank(tmp_path) as bank:
            script = {
                TASK: [Calls(DELEGATE, {"task": part}), Says("I wait"), Says("six rows")],
                part: [Calls(TOOL, {"page": 2}), Says("three rows there")],
            }
            model = ScriptedAgentModel(script)
            program = self.program(bank, model)
            options = program.options(env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": ""})
            async for _ in program.memory.query(prompt=TASK, options=options):
                pass
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert (runs[TASK].answer, runs[part].answer) == ("six rows", "three rows there")
            assert runs[part].parent_run == runs[TASK].id
            assert "page 2: 3 rows" in runs[part].model_dump_json()
            assert [LESSON in request.words for request in model.requests[part]] == [True, True]

    async def test_a_run_goes_on_where_its_agent_in_the_background_was_done_before_the_first_result(
        self, tmp_path: Path
    ) -> None:
        part = "Count the rows of page two"
        with self._bank(tmp_path) as bank:
            model = Patient({TASK: [Calls(DELEGATE, {"task": part}), WAITS, Says("six rows")], part: [Says("three")]})
            program = self.program(bank, model)
            assert program.memory
            async with program.memory.client(
                program.options(env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": ""})
            ) as client:
                await client.query(TASK)
                async for said in client.receive_messages():
                    if isinstance(said, TaskNotificationMessage):
                        model.done.set()
                    if isinstance(said, ResultMessage) and said.result == "six rows":
                        break
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert (runs[TASK].answer, runs[part].answer) == ("six rows", "three")

    # -- what Claude Code writes into its transcripts -----------------------------------------------------------------

    async def test_the_last_words_of_a_sub_agent_and_its_cost_are_in_its_run(self, tmp_path: Path) -> None:
        part = "Count the rows of page two"
        with self._bank(tmp_path) as bank:
            script = {
                TASK: [Calls(DELEGATE, {"task": part}), Says("six rows")],
                part: [Calls(TOOL, {"page": 2}), Says("three rows there")],
            }
            program = self.program(bank, ScriptedAgentModel(script))
            await program.run(TASK)
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs[part].steps[-1].action.text == "three rows there"
            assert runs[part].usage == Usage(requests=2, input_tokens=200, output_tokens=20)
            assert runs[part].metadata["session"] == runs[TASK].metadata["session"] == program.sessions[0]

    async def test_a_run_whose_messages_are_not_read_to_the_end_is_kept_with_what_was_done(
        self, tmp_path: Path
    ) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]}))
            store = Waited("three rows")
            async with program.memory.client(program.options(session_store=store)) as client:
                await client.query(TASK)
                async for _ in client.receive_response():
                    break
                await store.seen.wait()
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.trajectory.metadata["stopped"]) == ("unfinished", "the client disconnected")
            assert "page 1: 3 rows" in run.trajectory.model_dump_json()

    async def test_the_session_store_of_the_program_stays_and_a_session_is_resumed_from_it(
        self, tmp_path: Path
    ) -> None:
        again = "Count the rows once more"
        with self._bank(tmp_path) as bank:
            script = {TASK: [Calls(TOOL, {"page": 1}), Says("three rows")], again: [Says("three still")]}
            program = self.program(bank, ScriptedAgentModel(script))
            store = InMemorySessionStore()
            await program.answer_with(TASK, session_store=store)
            assert store.size == 1
            elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
            await program.answer_with(again, session_store=store, resume=program.sessions[0], env=elsewhere)
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs[again].steps[-1].action.text == "three still"
            assert "page 1" not in runs[again].model_dump_json()
            assert runs[again].metadata["session"] == runs[TASK].metadata["session"]
            assert LESSON not in runs[again].model_dump_json()

    async def test_a_store_that_fails_and_is_asked_again_doubles_nothing(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            memory = ReasoningBankClaude(bank, scope=lambda _: self.scope())
            options = ClaudeAgentOptions(session_store=Broken())
            client = memory.client(options, Host(prompted(TASK, "p1"), said(text("3"), "m1"), ended()))
            store: Any = client.options.session_store
            asked = {"type": "user", "uuid": "u1", "promptId": "p1", "message": {"role": "user", "content": TASK}}
            thought = {"id": "m1", "role": "assistant", "content": [text("I count them twice: 3 rows"), text("3")]}
            for _ in range(2):
                with pytest.raises(OSError, match="no room"):
                    key = {"project_key": "p", "session_id": "s1"}
                    await store.append(key, [asked, {"type": "assistant", "uuid": "u2", "message": thought}])
            async with client:
                await client.query(TASK)
                assert [one async for one in client.receive_response()]
            bank.drain()
            (run,) = self._runs(bank)
            assert str(run.trajectory.steps).count("I count them twice") == 1

    @pytest.mark.parametrize("store", [None, InMemorySessionStore()])
    async def test_the_mirror_is_a_session_store_as_the_sdk_wants_it(self, store: Any) -> None:
        if store is None:  # it keeps no session: Claude Code has its own files
            mirror: Any = self._store_of(None)
            assert await mirror.load({"project_key": "p", "session_id": "s"}) is None
            assert await mirror.list_sessions("p") == []
            assert not hasattr(mirror, "delete")
        else:
            await run_session_store_conformance(lambda: self._store_of(InMemorySessionStore()))

    def _store_of(self, store: Any) -> Any:
        """What the SDK is given where the program has this store, or none."""
        with lessonbank.connect(":memory:", scope="t") as bank:
            return ReasoningBankClaude(bank).client(ClaudeAgentOptions(session_store=store)).options.session_store

    async def test_a_program_that_takes_checkpoints_of_files_works_as_before(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            program = self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]}))
            assert await program.answer_with(TASK, enable_file_checkpointing=True) == "three rows"
            bank.drain()
            assert len(self._runs(bank)) == 1

    # -- the same program, with the host played by a script: what cannot be timed with the real one -------------------

    async def test_a_prompt_that_comes_in_the_middle_belongs_to_the_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            host = Host(
                prompted(TASK, "p1"),
                said(text("Well…"), "m1"),
                prompted("Be quick", "p1"),
                said(text("3"), "m2"),
                ended(),
            )
            await self._play(bank, host)
            (run,) = self._runs(bank)
            assert (run.trajectory.task, run.trajectory.answer) == (TASK, "done")
            assert "Be quick" in run.trajectory.model_dump_json()
            assert [LESSON in answer for answer in host.answers] == [True, False]

    async def test_a_run_has_the_last_answer_where_a_notice_comes_before_the_result_is_read(
        self, tmp_path: Path
    ) -> None:
        with self._bank(tmp_path) as bank:
            waits, knows = said(text("I wait"), "m1"), said(text("six rows"), "m2")
            notice = prompted("<task-notification>page two: 3 rows", "p2")
            host = Host(prompted(TASK, "p1"), waits, notice, ended("I wait"), knows, ended("six rows"))
            await self._play(bank, host)
            (run,) = self._runs(bank)
            assert (run.trajectory.task, run.trajectory.answer) == (TASK, "six rows")

    async def test_hooks_of_the_program_stay(self, tmp_path: Path) -> None:
        seen: list[str] = []

        async def own(told: Any, tool: str | None, context: Any) -> Any:
            seen.append(told["prompt"])
            return {}

        with self._bank(tmp_path) as bank:
            host = Host(prompted(TASK, "p1"), said(text("3"), "m1"), ended())
            options = ClaudeAgentOptions(hooks={"UserPromptSubmit": [HookMatcher(hooks=[own])]})
            await self._play(bank, host, options)
            assert seen == [TASK]
            assert len(self._runs(bank)) == 1

    async def test_a_text_that_the_host_would_cut_is_not_shown(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        long = lessonbank.Retrieval(budget=9000, limit=9)
        made = {"retrieval": long, "evidence": lessonbank.Evidence(holdout=None), "embedder": "lexical"}
        with lessonbank.connect(tmp_path / "bank.db", scope="acme", **made) as bank:
            scoped = bank.scoped(self.scope())
            for page in range(9):
                content = f"Look at page {page}. " * 120
                scoped.lessons.add(title=f"{LESSON} {page}", content=content, task=f"{TASK} {page}", by="Ana")
            host = Host(prompted(TASK, "p1"), said(text("3"), "m1"), ended())
            await self._play(bank, host)
            assert LESSON not in host.answers[0]
            assert "too many for Claude Code" in caplog.text

    async def test_a_connection_that_breaks_is_a_failed_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            host = Host(prompted(TASK, "p1"), said(text("Well…"), "m1"), OSError("the pipe is gone"))
            with pytest.raises(Exception, match="the pipe is gone"):
                await self._play(bank, host)
            bank.drain()
            (run,) = self._runs(bank)
            assert "the pipe is gone" in (run.trajectory.error or "")

    async def test_a_stream_that_nobody_reads_to_its_end_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            memory = ReasoningBankClaude(bank, scope=lambda _: self.scope())
            host = Host(prompted(TASK, "p1"), said(text("Well…"), "m1"), ended())
            messages = memory.query(prompt=TASK, transport=host)
            await anext(messages)
            await messages.aclose()
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.trajectory.metadata["stopped"]) == ("unfinished", "GeneratorExit")

    async def test_a_prompt_that_another_hook_refused_teaches_nothing(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._play(bank, Host(prompted(TASK, "p1"), ended("refused")))
            (run,) = self._runs(bank)
            assert run.status == "unfinished"

    async def _play(
        self, bank: lessonbank.ReasoningBank, host: Host, options: ClaudeAgentOptions | None = None
    ) -> None:
        memory = ReasoningBankClaude(bank, scope=lambda _: self.scope())
        async for _ in memory.query(prompt=TASK, options=options, transport=host):
            pass
        bank.drain()

    async def test_another_version_of_the_host_costs_the_memory_and_not_the_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def differs(*_: Any) -> Any:
            raise AttributeError("no such field")

        with self._bank(tmp_path) as bank:
            monkeypatch.setattr("lessonbank.adapters.claude_agent._plain", differs)
            await self._play(bank, Host(prompted(TASK, "p1"), said(text("3"), "m1"), ended()))
            assert "the memory failed in" in caplog.text

    def test_what_one_run_of_the_example_taught_stands_in_the_next(self) -> None:
        assert "cat: notes: No such file" in asyncio.run(load("claude_agent").main())


class Waited(InMemorySessionStore):
    """A store of the program that tells when the agent has said something."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words, self.seen = words, asyncio.Event()

    async def append(self, key: Any, entries: list[Any]) -> None:
        if any(line["type"] == "assistant" and self._words in json.dumps(line) for line in entries):
            self.seen.set()


class Broken(InMemorySessionStore):
    """A store of the program that cannot keep anything."""

    async def append(self, key: Any, entries: list[Any]) -> None:
        raise OSError("no room")


def prompted(prompt: str, id: str) -> dict[str, Any]:
    return {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": prompt, "prompt_id": id}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def said(block: dict[str, Any], id: str) -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "session_id": "s1", "message": message, "parent_tool_use_id": None}


def ended(result: str = "done") -> dict[str, Any]:
    counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "is_error": False}
    return {"type": "result", "subtype": "success", "session_id": "s1", "result": result, "uuid": "u1", **counts}


class Host(Transport):
    """Plays Claude Code: calls hooks and sends messages in the order of its script."""

    def __init__(self, *script: dict[str, Any] | Exception) -> None:
        self._script, self._frames = list(script), asyncio.Queue[dict[str, Any] | Exception | None]()
        self._hooks: dict[str, Any] = {}
        self.answers: list[str] = []

    async def connect(self) -> None: ...

    async def write(self, data: str) -> None:
        told = json.loads(data)
        if told["type"] == "control_request":
            self._hooks = told["request"]["hooks"]
            answer = {"subtype": "success", "request_id": told["request_id"], "response": {}}
            await self._frames.put({"type": "control_response", "response": answer})
            return
        if told["type"] == "control_response":
            self._waiting -= 1
            if "additionalContext" in data or self._waiting == 0:
                self.answers.append(data)
        if told["type"] == "user" or self._waiting == 0:
            await self._go_on()

    async def _go_on(self) -> None:
        while self._script:
            frame = self._script.pop(0)
            if isinstance(frame, Exception) or "hook_event_name" not in frame:
                await self._frames.put(frame)
                continue
            ids = [id for hook in self._hooks[frame["hook_event_name"]] for id in hook["hookCallbackIds"]]
            self._waiting = len(ids)
            for id in ids:
                asked = {"subtype": "hook_callback", "callback_id": id, "tool_use_id": None, "input": frame}
                await self._frames.put({"type": "control_request", "request_id": f"r-{id}", "request": asked})
            return
        await self._frames.put(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while frame := await self._frames.get():
            if isinstance(frame, Exception):
                raise frame
            yield frame

    async def close(self) -> None:
        await self._frames.put(None)

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None: ...
