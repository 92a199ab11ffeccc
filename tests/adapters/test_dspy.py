from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import LESSON, TASK, TOOL, Raises

pytest.importorskip("dspy", reason="DSPy is not installed")

import dspy
from dspy.utils.dummies import DummyLM

from lessonbank.adapters.dspy import ReasoningBankModule

pytestmark = [
    pytest.mark.full,
    # DSPy's own dummy model is written in the way that DSPy is about to leave.
    pytest.mark.filterwarnings("ignore:Implementing custom LMs:DeprecationWarning"),
]
USER: ContextVar[str] = ContextVar("user", default="ana")


class Scripted(DummyLM):
    """DSPy's dummy model, answering by the script."""

    def __init__(self, model: ScriptedAgentModel) -> None:
        super().__init__([])
        self._model, self._said = model, ""

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.answers = iter([self._fields(messages)])
        if dspy.settings.usage_tracker:  # the dummy counts no tokens; models of providers tell them in this way
            dspy.settings.usage_tracker.add_usage(self.model, {"prompt_tokens": 10, "completion_tokens": 2})
        return super().forward(prompt=prompt, messages=messages, **kwargs)

    def _fields(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """A tool call of ReAct; its answer takes a request to finish and one to extract it."""
        if "[[ ## answer ## ]]" in messages[-1]["content"].rpartition("Respond with")[2]:
            return {"reasoning": "so be it", "answer": self._said}
        system, *others = messages
        reply = self._model.reply(Request(system["content"], tuple((m["role"], m["content"]) for m in others)))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        name, told = "finish", {}
        if isinstance(reply, Calls):
            name, told = reply.tool, dict(reply.arguments)
        else:
            self._said = reply.text
        return {"next_thought": "so be it", "next_tool_name": name, "next_tool_args": told}


def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


def broken() -> str:
    """Fail."""
    raise RuntimeError("the disk is full")


class Program:
    def __init__(self, model: ScriptedAgentModel, options: Mapping[str, Any] | None) -> None:
        self._model, self._options = model, options
        self._part = self._with_memory(dspy.ReAct("question -> answer", tools=[lookup]))
        signature = dspy.Signature("question -> answer", "be terse")
        self.module = self._with_memory(dspy.ReAct(signature, tools=[lookup, broken, self.delegate]))

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        USER.set(user)
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=Scripted(self._model), adapter=adapter):
            if stream:
                return str((await asyncio.to_thread(self.module, question=task)).answer)
            return str((await self.module.acall(question=task)).answer)

    async def stop_early(self, task: str, /) -> None:
        async def lookup(page: int) -> str:
            called.set()
            return str(await asyncio.Event().wait())

        called = asyncio.Event()
        self.module = self._with_memory(dspy.ReAct("question -> answer", tools=[lookup]))
        running = asyncio.create_task(self.run(task))
        await asyncio.wait_for(called.wait(), 30)
        running.cancel()
        await asyncio.wait([running])

    def history(self) -> str:
        return repr(self.module.dump_state())

    async def delegate(self, task: str) -> str:
        """Let another program do a part."""
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=Scripted(self._model), adapter=adapter):
            return str((await self._part.acall(question=task)).answer)

    def _with_memory(self, program: Any) -> Any:
        if self._options is None:
            return program
        options = {key: value for key, value in self._options.items() if key != "bank"}
        return ReasoningBankModule(program, self._options["bank"], **options)


@pytest.mark.anyio
class TestDSPy(AdapterContract):
    source = "dspy"
    grows = False  # all that was done stands in one message
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "a program calls another one as a tool",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda inputs: scope_of("acme", USER.get()))
        return Program(model, {"bank": bank, **options})

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    async def test_the_prefix_of_a_request_stays_for_the_cache(self, tmp_path: Path) -> None:
        """ReAct writes all that it did into one message, anew each time: its beginning stays."""
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            await self.program(bank, model).run(TASK)
            starts = {r.messages[0][1].partition("[[ ## trajectory")[0] for r in model.requests[TASK]}
            (start,) = starts
            assert start.startswith("[[ ## lessons ## ]]\n")
            assert start.index(LESSON) < start.index(TASK)
            assert LESSON not in model.requests[TASK][0].system

    async def test_a_program_can_be_copied_and_saved_as_without_memory(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            plain = dspy.ChainOfThought("question -> answer")
            module = ReasoningBankModule(plain, bank)
            assert [name for name, _ in module.deepcopy().named_predictors()] == ["program.predict"]
            assert module.dump_state()["program.predict"] == plain.dump_state()["predict"]

    async def test_the_truth_can_be_told_by_the_id_on_the_prediction(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            module = ReasoningBankModule(dspy.Predict("question -> answer"), bank, scope=lambda inputs: self.scope())
            with dspy.context(lm=DummyLM([{"answer": "three"}])):
                told = module(question=TASK)
            module.runs.tell(told.lessonbank_run, outcome="failure")
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.trajectory.answer, run.verdict.source) == ("three", "ground_truth")


@pytest.mark.parametrize("answer", ["three rows", ["three", "rows"], None])
def test_a_program_that_returns_no_prediction_is_followed_too(tmp_path: Path, answer: Any) -> None:
    class Own(dspy.Module):
        def forward(self, question: str) -> Any:
            dspy.Predict("question -> answer")(question=question)
            return answer

    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        with dspy.context(lm=DummyLM([{"answer": "three rows"}])):
            assert ReasoningBankModule(Own(), bank)(question=TASK) == answer
        bank.drain()
        (run,) = bank.runs.list()
        assert run.trajectory.answer == str(answer) if answer else run.trajectory.steps


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = load("dspy_program").main()
    assert "make changelog" in shown
