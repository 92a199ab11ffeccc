from __future__ import annotations

import asyncio
import json
import threading
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from examples_of import load
from pydantic import PrivateAttr

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import BROKEN, DELEGATE, LESSON, TASK, TOOL, Raises, Reply

if find_spec("crewai") is None:  # without an import: CrewAI reads the settings below when it is imported
    pytest.skip("CrewAI is not installed", allow_module_level=True)

OFFLINE = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
    for name, value in OFFLINE.items():
        patch.setenv(name, value)
    from crewai import Agent, BaseLLM, Crew, Process, Task
    from crewai.tools import tool

    from lessonbank.adapters.crewai import ReasoningBankCrew

pytestmark = [
    pytest.mark.full,
    # What CrewAI and its own libraries warn about is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
DELEGATE_WORK = "delegate_work_to_coworker"


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**OFFLINE, "CREWAI_STORAGE_DIR": str(tmp_path), "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)


@tool
def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("the disk is full")


def speaks_of_rows(output):  # type: ignore[no-untyped-def] # CrewAI reads the words of a type that is written out
    return "rows" in output.raw, output.raw


class Scripted(BaseLLM):
    """Tool calls as CrewAI's own models return them; or text, for a model without tool calls."""

    _script: ScriptedAgentModel = PrivateAttr()
    _calls_tools: bool = PrivateAttr()

    def __init__(self, script: ScriptedAgentModel, *, calls_tools: bool = True) -> None:
        super().__init__(model="scripted")
        self._script, self._calls_tools = script, calls_tools

    def supports_function_calling(self) -> bool:
        return self._calls_tools

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        reply = self._script.reply(request(messages))
        self._track_token_usage_internal({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12})
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        return self._native(reply) if self._calls_tools else self._text(reply)

    async def acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self.call, messages, *args, **options)

    def _native(self, reply: Reply) -> Any:
        if not isinstance(reply, Calls):
            return getattr(reply, "text", "")
        name, arguments = reply.tool, dict(reply.arguments)
        if name == DELEGATE:
            name, arguments = DELEGATE_WORK, {**arguments, "context": "the report", "coworker": "part"}
        return [{"id": uuid4().hex, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]

    @staticmethod
    def _text(reply: Reply) -> str:
        if isinstance(reply, Calls):
            return f"Thought: so be it\nAction: {reply.tool}\nAction Input: {json.dumps(dict(reply.arguments))}"
        return f"Thought: done\nFinal Answer: {getattr(reply, 'text', '')}"


class Twice(Scripted):
    """Calls itself with what it was given, as CrewAI's own models do after some errors."""

    _again: bool = PrivateAttr(default=False)

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self._again = not self._again
        return self.call(messages, *args, **options) if self._again else super().call(messages, *args, **options)


def request(messages: Any) -> Request:
    system = "".join(words(m) for m in messages if m["role"] == "system")
    return Request(system, tuple((m["role"], words(m)) for m in messages if m["role"] != "system"))


def words(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "") + "".join(
        str(call["function"]) for call in message.get("tool_calls") or ()
    )


class Program:
    """A crew for each run: an agent of CrewAI does one task at a time."""

    def __init__(self, model: ScriptedAgentModel, options: Mapping[str, Any] | None) -> None:
        self.model, self._options = model, options
        self.crews: list[Any] = []

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        output = await self.crew(task, stream=stream).kickoff_async(inputs={"user": user})
        if stream:
            async for _ in output:
                pass
            output = output.result
        return output.raw

    async def stop_early(self, task: str, /) -> None:
        waiting, go_on = threading.Event(), threading.Event()

        @tool("lookup")
        def patient(page: int) -> str:
            """Look a page up."""
            waiting.set()
            go_on.wait()
            return f"page {page}: 3 rows"

        running = asyncio.create_task(self.crew(task, tools=[patient, broken]).akickoff(inputs={"user": "ana"}))
        await asyncio.to_thread(waiting.wait)
        running.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    def history(self) -> str:
        agents = [agent for crew in self.crews for agent in crew.agents]
        stored = [agent.agent_executor.messages for agent in agents if agent.agent_executor]
        return repr([stored, [agent.last_messages for agent in agents], [crew.tasks for crew in self.crews]])

    def crew(self, *tasks: str, tools: Any = (lookup, broken), calls_tools: bool = True, **more: Any) -> Any:
        model = more.pop("llm", None) or Scripted(self.model, calls_tools=calls_tools)
        made = {"goal": "to count", "backstory": "be terse", "llm": model}
        own = {"max_retry_limit": more.pop("max_retry_limit", 0), "max_iter": more.pop("max_iter", 25)}
        clerk = Agent(role="clerk", tools=list(tools), allow_delegation=True, **own, **made)
        part = Agent(role="part", **made)
        guard = more.pop("guardrail", None)
        does_it = None if "manager_llm" in more else clerk
        does = [Task(description=one, expected_output="a number", agent=does_it, guardrail=guard) for one in tasks]
        crew = Crew(agents=[clerk, part], tasks=does, **more)
        self.crews.append(crew)
        if self._options is None:
            return crew
        options = {key: value for key, value in self._options.items() if key != "bank"}
        return ReasoningBankCrew(crew, self._options["bank"], **options)


@pytest.mark.anyio
class TestCrewAI(AdapterContract):
    source = "crewai"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "an agent delegates work as a tool",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda inputs: scope_of("acme", inputs["user"]))
        return Program(model, {"bank": bank, **options})

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    async def test_a_model_that_calls_tools_by_text_is_followed_too(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Calls(BROKEN), Says("three rows")]})
            crew = self.program(bank, model).crew(TASK, calls_tools=False)
            assert (await crew.kickoff_async(inputs={"user": "ana"})).raw == "three rows"
            bank.drain()
            self._check_the_work(bank)
            (run,) = self._runs(bank)
            told = [o for step in run.trajectory.steps for o in step.observations if o.source == "tool"]
            assert [o.is_error for o in told] == [False, True]
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1, 1]

    @pytest.mark.parametrize("start", ["kickoff_async", "akickoff"])
    async def test_each_task_of_a_crew_is_a_run_with_what_it_cost(self, tmp_path: Path, start: str) -> None:
        with self._bank(tmp_path) as bank:
            other = "Write a letter"
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("<three>")], other: [Says("<dear>")]})
            program = self.program(bank, model)
            await getattr(program.crew(TASK, other), start)(inputs={"user": "ana"})
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert {task: run.answer for task, run in runs.items()} == {TASK: "<three>", other: "<dear>"}
            assert (runs[TASK].usage.requests, runs[TASK].usage.input_tokens, runs[TASK].usage.output_tokens) == (
                2,
                20,
                4,
            )
            assert runs[other].usage.requests == 1
            assert "page 1: 3 rows" not in runs[other].model_dump_json()
            assert (runs[TASK].metadata["agent"], runs[other].parent_run) == ("clerk", None)
            assert LESSON not in program.history()

    def test_a_crew_that_works_for_each_input_is_followed_each_time(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({f"{TASK} of {user}": [Says(f"<{user}>")] for user in ("ana", "ben")})
            crew = self.program(bank, model).crew(f"{TASK} of {{user}}")
            crew.kickoff_for_each(inputs=[{"user": "ana"}, {"user": "ben"}])
            bank.drain()
            for user, is_shown in (("ana", True), ("ben", False)):
                (run,) = self._runs(bank, user)
                assert (run.trajectory.task, run.trajectory.answer) == (f"{TASK} of {user}", f"<{user}>")
                assert (LESSON in model.requests[run.trajectory.task][0].words) == is_shown

    def test_what_crewai_tries_again_is_one_run_with_all_its_attempts(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            script = [Calls(TOOL, {"page": 1}), Raises(), Calls(TOOL, {"page": 2}), Says("few"), Says("three rows")]
            model = ScriptedAgentModel({TASK: script})
            crew = self.program(bank, model).crew(TASK, max_retry_limit=1, guardrail=speaks_of_rows)
            assert crew.kickoff(inputs={"user": "ana"}).raw == "three rows"
            bank.drain()
            (run,) = self._runs(bank)
            pages = [call.arguments["page"] for step in run.trajectory.steps for call in step.action.calls]
            assert (pages, run.trajectory.answer, run.trajectory.usage.requests) == ([1, 2], "three rows", 5)
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1] * 5

    def test_the_manager_of_a_crew_is_followed_and_what_it_delegates_has_its_scope(self, tmp_path: Path) -> None:
        part = "Look at the second page"
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(DELEGATE, {"task": part}), Says("six")], part: [Says("three")]})
            program = self.program(bank, model)
            crew = program.crew(TASK, process=Process.hierarchical, manager_llm=Scripted(model))
            assert crew.kickoff(inputs={"user": "ana"}).raw == "six"
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs[part].parent_run == runs[TASK].id
            assert LESSON in model.requests[TASK][0].words

    def test_the_request_after_the_last_step_has_the_lessons_too(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            crew = self.program(bank, model).crew(TASK, max_iter=1)
            assert crew.kickoff(inputs={"user": "ana"}).raw == "three rows"
            bank.drain()
            first, last = model.requests[TASK]
            assert last.messages[: len(first.messages)] == first.messages
            assert last.words.count(LESSON) == 1
            assert self._runs(bank)[0].trajectory.usage.requests == 2

    def test_a_model_that_calls_itself_is_shown_lessons_once(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            crew = self.program(bank, model).crew(TASK, llm=Twice(model))
            crew.kickoff(inputs={"user": "ana"})
            bank.drain()
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1]
            assert self._runs(bank)[0].trajectory.usage.requests == 2

    def test_tasks_that_run_beside_each_other_are_runs_of_their_own(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            other = "Write a letter"
            model = ScriptedAgentModel({TASK: [Says("<three>")], other: [Says("<dear>")]})
            crew = self.program(bank, model).crew(TASK, other)
            first, second = crew.tasks
            first.async_execution, second.context, second.agent = True, [], crew.agents[1]
            crew.kickoff(inputs={"user": "ana"})
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert {task: run.answer for task, run in runs.items()} == {TASK: "<three>", other: "<dear>"}
            assert not any(run.parent_run for run in runs.values())

    def test_what_is_told_of_the_last_run_counts(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            crew = self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]})).crew(TASK)
            crew.kickoff(inputs={"user": "ana"})
            crew.runs.tell(crew.last.id, outcome="failure")
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "ground_truth")

    def test_an_agent_that_is_not_of_the_crew_is_not_followed(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            followed = self.program(bank, model).crew(TASK).agents[0]
            other = type(followed)(role="other", goal="to count", backstory="", llm=Scripted(model))
            task = Task(description=TASK, expected_output="a number", agent=other)
            assert Crew(agents=[other], tasks=[task]).kickoff().raw == "three rows"
            bank.drain()
            assert LESSON not in model.requests[TASK][0].words
            assert not self._runs(bank)

    def test_inputs_that_name_no_scope_mean_no_memory(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            assert self.program(bank, model).crew(TASK).kickoff().raw == "three rows"
            bank.drain()
            assert LESSON not in model.requests[TASK][0].words
            assert not self._runs(bank)


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = load("crewai_crew").main()
    assert "make changelog" in shown
