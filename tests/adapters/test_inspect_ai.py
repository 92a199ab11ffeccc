from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, TOOL, HandsOff, Raises

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="Inspect AI is not installed"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),  # tenacity's
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),  # what an evaluation leaves open
]
USER: ContextVar[str] = ContextVar("user", default="ana")


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """To import it takes two seconds: whoever runs these tests does so, and not each worker that collects them."""
    global inspect_ai, AgentState, agent, as_tool, handoff, react, run, Sample
    global ChatMessage, ChatMessageSystem, Model, ModelOutput, ModelUsage, execute_tools, get_model
    global includes, generate, system_message, ToolError, tool, ReasoningBankMemory, first_score

    import inspect_ai
    from inspect_ai.agent import AgentState, agent, as_tool, handoff, react, run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageSystem,
        Model,
        ModelOutput,
        ModelUsage,
        execute_tools,
        get_model,
    )
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, system_message
    from inspect_ai.tool import ToolError, tool

    from lessonbank.adapters.inspect_ai import ReasoningBankMemory, first_score


@pytest.fixture(autouse=True)
def logs_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def nothing_left_open() -> Iterator[None]:
    """What Inspect AI leaves to the garbage collector warns now, while that is no error; older things stay."""
    gc.freeze()
    yield
    gc.collect()
    gc.unfreeze()


def model_of(scripted: ScriptedAgentModel) -> Model:
    """Inspect AI's mock model, answering by the script."""

    def answer(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        reply = scripted.reply(request(messages))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        if isinstance(reply, HandsOff):
            output = ModelOutput.for_tool_call("mockllm", f"transfer_to_{reply.to}", {})
        elif isinstance(reply, Calls):
            told = dict(reply.arguments)
            told = {"input": told["task"]} if "task" in told else told
            output = ModelOutput.for_tool_call("mockllm", reply.tool, told)
        else:
            output = ModelOutput.from_content("mockllm", reply.text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def request(messages: list[ChatMessage]) -> Request:
    system = "".join(m.text for m in messages if m.role == "system")
    return Request(system, tuple((m.role, m.text) for m in messages if m.role != "system"))


class Program:
    def __init__(self, model: ScriptedAgentModel, options: Mapping[str, Any] | None) -> None:
        self._model, self._states = model_of(model), list[Any]()
        self._memory = ReasoningBankMemory(options["bank"], **_without_bank(options)) if options else None
        self._blocks, self._called = False, asyncio.Event()
        self.agent = self._with_memory(self._worker())

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        USER.set(user)
        state = await run(self.agent, task)
        self._states.append(state)
        return str(state.output.completion)

    async def stop_early(self, task: str, /) -> None:
        self._blocks = True
        running = asyncio.create_task(self.run(task))
        await asyncio.wait_for(self._called.wait(), 30)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def history(self) -> str:
        return repr([state.messages for state in self._states])

    def _with_memory(self, plain: Any) -> Any:
        return self._memory.agent(plain) if self._memory else plain

    def _worker(self) -> Any:
        program = self

        @tool
        def lookup() -> Any:
            async def execute(page: int) -> str:
                """Look a page up.

                Args:
                    page: its number
                """
                if program._blocks:
                    program._called.set()
                    await asyncio.Event().wait()
                return f"page {page}: 3 rows"

            return execute

        @tool
        def broken() -> Any:
            async def execute() -> str:
                """Fail."""
                raise ToolError("the disk is full")

            return execute

        delegate = worker("delegate", self._model)
        clerk = worker("clerk", self._model, lookup())
        tools = [lookup(), broken(), as_tool(self._with_memory(delegate)), handoff(clerk)]
        return worker("worker", self._model, *tools, prompt="be terse")


def worker(name: str, model: Model, *tools: Any, prompt: str = "") -> Any:
    """An agent that works outside an evaluation, too; `react` does not."""

    @agent(name=name, description="works")
    def made() -> Any:
        async def execute(state: AgentState) -> AgentState:
            if prompt:
                state.messages.insert(0, ChatMessageSystem(content=prompt))
            while True:
                state.output = await model.generate(state.messages, tools=list(tools))
                state.messages.append(state.output.message)
                if not state.output.message.tool_calls:
                    return state
                state.messages.extend((await execute_tools(state.messages, list(tools))).messages)

        return execute

    return made()


def _without_bank(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "bank"}


@pytest.mark.anyio
class TestInspectAI(AdapterContract):
    source = "inspect-ai"
    cannot: ClassVar = {
        "test_a_streamed_run_is_kept_like_any_other": "an evaluation does not stream",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda state: scope_of("acme", USER.get()))
        return Program(model, {"bank": bank, **options})

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    async def test_a_hand_off_is_part_of_the_run(self, tmp_path: Path) -> None:
        """The conversation comes back to the first agent, which is asked once more."""
        with self._bank(tmp_path) as bank:
            script = [HandsOff(), Calls(TOOL, {"page": 1}), Says("rows: three"), Says("three rows")]
            model = ScriptedAgentModel({TASK: script})
            assert await self.program(bank, model).run(TASK) == "three rows"
            bank.drain()
            (kept,) = self._runs(bank)
            assert kept.trajectory.answer == "three rows"
            assert "page 1: 3 rows" in kept.trajectory.model_dump_json()
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1, 1, 1]

    async def test_an_agent_keeps_its_name_for_the_tools_that_are_made_of_it(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            plain = react(name="clerk", description="counts")
            with_memory = ReasoningBankMemory(bank).agent(plain)
            told = [registered(one) for one in (handoff(plain), handoff(with_memory))]
            assert told[0] == told[1] == "transfer_to_clerk"


def registered(made: Any) -> str:
    from inspect_ai._util.registry import registry_unqualified_name

    return registry_unqualified_name(made)


def evaluated(
    bank: lessonbank.ReasoningBank,
    scripts: Mapping[str, list[Any]],
    target: str,
    /,
    *,
    solver: Any = None,
    reward: Any = None,
    **more: Any,
) -> tuple[Any, ScriptedAgentModel]:
    """The log of an evaluation with a sample for each script."""
    model = ScriptedAgentModel(scripts)
    memory = ReasoningBankMemory(
        bank, scope=lambda state: scope_of("acme", state.metadata["user"]), reward=reward or first_score
    )
    samples = [Sample(input=task, target=target, id=n, metadata={"user": "ana"}) for n, task in enumerate(scripts)]
    chosen = solver or [system_message("be terse"), generate()]
    task = inspect_ai.Task(dataset=samples, solver=memory.solver(chosen), scorer=includes())
    (log,) = inspect_ai.eval(task, model=model_of(model), display="none", fail_on_error=False, **more)
    bank.drain()
    return log, model


@pytest.mark.usefixtures("nothing_left_open")
def test_the_score_of_a_sample_is_the_truth_about_its_run(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        log, model = evaluated(bank, {TASK: [Says("three rows")], "Count the lines": [Says("none")]}, "three")
        assert log.status == "success"
        runs = {kept.trajectory.task: kept for kept in contract._runs(bank)}
        ended = {task: (kept.verdict.outcome, kept.verdict.source) for task, kept in runs.items()}
        assert ended == {TASK: ("success", "ground_truth"), "Count the lines": ("failure", "ground_truth")}
        assert model.requests[TASK][0].words.count(LESSON) == 1
        assert LESSON not in repr([sample.messages for sample in log.samples])
        kept = runs[TASK].trajectory
        assert (kept.instructions, kept.answer) == ("be terse", "three rows")
        assert (kept.metadata["sample"], kept.metadata["epoch"]) == ("0", 1)
        assert (kept.usage.requests, kept.usage.input_tokens) == (1, 10)


@pytest.mark.usefixtures("nothing_left_open")
def test_epochs_are_runs_of_their_own(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        evaluated(bank, {TASK: [Says("three rows"), Says("none")]}, "three", epochs=2, max_samples=1)
        runs = contract._runs(bank)
        assert sorted(kept.verdict.outcome for kept in runs) == ["failure", "success"]
        assert sorted(str(kept.trajectory.metadata["epoch"]) for kept in runs) == ["1", "2"]


@pytest.mark.usefixtures("nothing_left_open")
def test_a_sample_that_breaks_is_a_failed_run_with_its_error(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        log, _ = evaluated(bank, {TASK: [Raises("the model is gone")]}, "three")
        assert log.samples[0].error
        (kept,) = contract._runs(bank)
        assert "the model is gone" in (kept.trajectory.error or "")
        assert (kept.verdict.outcome, kept.verdict.source) == ("failure", "framework_error")


@pytest.mark.usefixtures("nothing_left_open")
def test_a_limit_is_an_error_and_a_score_beats_it(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        script = {TASK: [Says("three rows")]}
        evaluated(bank, script, "three", token_limit=5)
        (kept,) = contract._runs(bank)
        assert "limit" in (kept.trajectory.error or "")
        assert kept.verdict.source == "ground_truth"


@pytest.mark.usefixtures("nothing_left_open")
def test_without_scores_the_run_ends_with_the_sample_all_the_same(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        evaluated(bank, {TASK: [Says("three rows")]}, "three", score=False)
        (kept,) = contract._runs(bank)
        assert (kept.trajectory.answer, kept.verdict.outcome) == ("three rows", "unknown")


@pytest.mark.usefixtures("nothing_left_open")
def test_a_reward_that_fails_costs_the_reward_and_not_the_run(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        evaluated(bank, {TASK: [Says("three rows")]}, "three", reward=lambda scores: scores["no such scorer"].value)
        (kept,) = contract._runs(bank)
        assert (kept.trajectory.answer, kept.verdict.outcome) == ("three rows", "unknown")


@pytest.mark.usefixtures("nothing_left_open")
def test_the_react_agent_is_followed_as_a_solver(tmp_path: Path) -> None:
    contract = TestInspectAI()
    with contract._bank(tmp_path) as bank:
        evaluated(bank, {TASK: [Says("three rows")]}, "three", solver=react(prompt="be terse", submit=False))
        (kept,) = contract._runs(bank)
        assert "be terse" in kept.trajectory.instructions
        assert (kept.trajectory.answer, kept.verdict.source) == ("three rows", "ground_truth")


@pytest.mark.usefixtures("nothing_left_open")
def test_the_lesson_that_somebody_wrote_for_the_example_changes_its_score() -> None:
    assert load("inspect_eval").main() == ["I", "C"]
