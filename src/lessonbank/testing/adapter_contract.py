"""What every adapter must do: subclass it, build an agent of the real framework with it, and run it with pytest.

The agent's model is a `ScriptedAgentModel`: the subclass turns a request of its framework into a `Request`, asks
`reply`, and turns the answer back. Everything else of the program is real.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pytest

import lessonbank
from lessonbank.contracts.records import Experience, Lesson, Outcome, Run, Trajectory
from lessonbank.contracts.records.tools import signatures
from lessonbank.guard.scope import scope_of
from lessonbank.importers import failure_of

from ._obstacles import BrokenRetriever, Standstill, WaitingJudge

TASK = "Count the rows of the report"
LESSON = "Ask for the second page before you count"
_CONTENT = "The report has a second page, and most rows stand there."
_END_WITHIN, _ROUNDS = 0.005, 4
"""Seconds that memory may add to the end of a run, and how often that is measured before it counts as longer."""
ADDED = "added at the end, median ms"
"""The property of a test report under which the check tells what it measured."""
TOOL, BROKEN, DELEGATE = "lookup", "broken", "delegate"


@dataclass(frozen=True, slots=True)
class Says:
    """The model answers with text, and the run ends."""

    text: str


@dataclass(frozen=True, slots=True)
class Calls:
    """The model calls a tool."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Raises:
    """The model fails."""

    words: str = "the model is gone"


@dataclass(frozen=True, slots=True)
class HandsOff:
    """The model hands the conversation to another agent of the program."""

    to: str = "clerk"


Reply: TypeAlias = Says | Calls | Raises | HandsOff


@dataclass(frozen=True, slots=True)
class Request:
    """What a model was sent: the instructions, and the messages as (role, text) in order."""

    system: str
    messages: tuple[tuple[str, str], ...]

    @property
    def words(self) -> str:
        """All of it."""
        return "\n".join((self.system, *(text for _, text in self.messages)))


class ScriptedAgentModel:
    """Answers each request by a script, found by the task that the request is about, and remembers the requests."""

    def __init__(
        self, scripts: Mapping[str, Sequence[Reply]], /, *, at_end: Callable[[], object] | None = None
    ) -> None:
        self._at_end = at_end
        self._scripts = {task: list(replies) for task, replies in scripts.items()}
        self._lock = threading.Lock()
        self.requests: dict[str, list[Request]] = {task: [] for task in scripts}
        self.replied_at = 0.0
        """When the last reply was given, by the clock of `time.perf_counter`."""

    def reply(self, request: Request, /) -> Reply:
        """What the model does next. The last task that a message of the request names is the one it is about."""
        spoken = [text for role, text in request.messages if role == "user"]
        task = next(task for text in reversed(spoken) for task in self._scripts if task in text)
        with self._lock:
            self.requests[task].append(request)
            reply = self._scripts[task].pop(0)
            if self._at_end and not self._scripts[task]:
                self._at_end()
            self.replied_at = time.perf_counter()
            return reply


class Program(Protocol):
    """An agent program of the real framework, with the adapter in it."""

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        """Do a task and give the answer. What the framework raises comes out."""
        ...

    async def stop_early(self, task: str, /) -> None:
        """Begin a task, and leave it in the middle, as a caller may."""
        ...

    def history(self) -> str:
        """All that the framework stored of its conversations, as text."""
        ...


class AdapterContract:
    """Subclass it under `@pytest.mark.anyio`, and override `program` and what is different.

    The agent has two tools: `lookup(page)`, which returns `page <page>: 3 rows`, and `broken()`, which fails with
    `the disk is full` so that the model sees an error.
    """

    channel: ClassVar[Literal["user", "system"]] = "user"
    """Where the host puts the text: `system` for a system or developer message."""
    grows: ClassVar[bool] = True
    """Whether each request of a run begins with the messages of the one before."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Checks that the host has nothing for, by the name of the method, and why."""
    source: ClassVar[str]
    """The name that the adapter keeps with its runs."""
    pairs: ClassVar[int] = 15
    """Runs with memory, and as many without, from which the median of their ends is taken. Odd, and less if slow."""

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        """The agent, with the adapter. `options` are those of the adapter: `patience`, `verify`."""
        raise NotImplementedError

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        """Return the agent without the adapter."""
        raise NotImplementedError

    def name_of_tool(self, tool: str, /) -> str:
        """What the host calls a tool of the agent, where it gives it a name of its own."""
        return tool

    def signature(self) -> str:
        """How the tool `lookup` stands among the tools that are kept: with its arguments, where the host tells them."""
        return f"{self.name_of_tool(TOOL)}(page: integer)"

    def scope(self, user: str = "ana") -> str:
        """The scope of a user's runs."""
        return scope_of("acme", user)

    # -- what goes in -------------------------------------------------------------------------------------------------

    async def test_lessons_are_shown_once_and_only_in_the_request(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            program = self.program(bank, model)
            assert await program.run(TASK) == "three rows"
            requests = model.requests[TASK]
            assert [request.words.count(LESSON) for request in requests] == [1, 1]
            assert LESSON not in program.history()
            if self.channel == "user":
                assert all(LESSON not in request.system for request in requests)
                assert all(role == "user" for r in requests for role, text in r.messages if LESSON in text)

    async def test_the_prefix_of_a_request_stays_for_the_cache(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Calls(TOOL, {"page": 2}), Says("six rows")]})
            await self.program(bank, model).run(TASK)
            for earlier, later in zip(model.requests[TASK], model.requests[TASK][1:], strict=False):
                assert later.system == earlier.system
                assert later.messages[: len(earlier.messages)] == earlier.messages

    async def test_the_task_is_not_changed(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            await self.program(bank, model).run(TASK)
            assert sum(text.count(TASK) for role, text in model.requests[TASK][0].messages if role == "user") == 1

    async def test_users_at_the_same_time_keep_their_scopes(self, tmp_path: Path) -> None:
        tasks = {f"{TASK} of {user}": user for user in ("ana", "ben")}
        with self._bank(tmp_path, users=("ana",)) as bank:
            model = ScriptedAgentModel({task: [Calls(TOOL, {"page": 1}), Says("done")] for task in tasks})
            program = self.program(bank, model)
            await asyncio.gather(*(program.run(task, user=user) for task, user in tasks.items()))
            bank.drain()
            shown = {user: LESSON in model.requests[task][0].words for task, user in tasks.items()}
            assert shown == {"ana": True, "ben": False}
            for task, user in tasks.items():
                assert [run.trajectory.task for run in self._runs(bank, user)] == [task]

    async def test_only_trusted_lessons_stand_where_instructions_stand(self, tmp_path: Path) -> None:
        if self.channel == "user":
            pytest.skip(f"{self.source}: the text stands in a user message")
        with self._bank(tmp_path, approved=False) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            await self.program(bank, model).run(TASK)
            assert LESSON not in model.requests[TASK][0].words

    # -- what is kept -------------------------------------------------------------------------------------------------

    async def test_calls_results_and_errors_are_kept_in_order(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank, stream=False)
            self._check_the_work(bank)

    async def test_an_error_of_a_tool_is_kept_as_an_error(self, tmp_path: Path) -> None:
        self._check("test_an_error_of_a_tool_is_kept_as_an_error")
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            steps = self._runs(bank)[0].trajectory.steps
            assert [o.is_error for s in steps for o in s.observations if o.source == "tool"] == [False, True]

    async def test_a_streamed_run_is_kept_like_any_other(self, tmp_path: Path) -> None:
        self._check("test_a_streamed_run_is_kept_like_any_other")
        with self._bank(tmp_path) as bank:
            await self._work(bank, stream=True)
            self._check_the_work(bank)

    async def test_the_instructions_are_kept(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            assert "terse" in self._runs(bank)[0].trajectory.instructions

    async def test_what_a_run_cost_is_kept(self, tmp_path: Path) -> None:
        self._check("test_what_a_run_cost_is_kept")
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            used = self._runs(bank)[0].trajectory.usage
            assert (used.input_tokens and used.output_tokens) or used.cost, used

    async def test_the_tools_of_the_agent_are_kept(self, tmp_path: Path) -> None:
        self._check("test_the_tools_of_the_agent_are_kept")
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            tools = signatures(self._runs(bank)[0].trajectory.tools)
            assert [line.startswith(self.signature()) for line in tools].count(True) == 1, tools

    async def test_only_this_run_is_kept(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({"First task": [Says("<one>")], "Second task": [Says("<two>")]})
            program = self.program(bank, model)
            await program.run("First task")
            await program.run("Second task")
            bank.drain()
            trajectories = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert trajectories.keys() == {"First task", "Second task"}
            assert trajectories["Second task"].answer == "<two>"
            assert "<one>" not in _texts(trajectories["Second task"])

    async def test_a_crash_is_a_failed_run_with_its_error(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Raises("the model is gone")]})
            failed = await _raised(self.program(bank, model), TASK)
            assert failed
            bank.drain()
            (run,) = self._runs(bank)
            assert "the model is gone" in (run.trajectory.error or "")
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "framework_error")
            assert "page 1: 3 rows" in _texts(run.trajectory)

    async def test_a_run_that_is_stopped_early_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        self._check("test_a_run_that_is_stopped_early_is_kept_as_unfinished")
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            await self.program(bank, model).stop_early(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.verdict.outcome) == ("unfinished", "unknown")
            assert run.trajectory.metadata["stopped"]

    async def test_a_hand_off_is_part_of_the_run(self, tmp_path: Path) -> None:
        self._check("test_a_hand_off_is_part_of_the_run")
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [HandsOff(), Calls(TOOL, {"page": 1}), Says("three rows")]})
            assert await self.program(bank, model).run(TASK) == "three rows"
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.answer == "three rows"
            assert "page 1: 3 rows" in _texts(run.trajectory)

    async def test_a_sub_agent_is_a_run_of_its_own(self, tmp_path: Path) -> None:
        self._check("test_a_sub_agent_is_a_run_of_its_own")
        part = "Look at the second page"
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(DELEGATE, {"task": part}), Says("six")], part: [Says("three")]})
            assert await self.program(bank, model).run(TASK) == "six"
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert runs.keys() == {TASK, part}
            assert runs[part].parent_run == runs[TASK].id
            assert runs[TASK].parent_run is None

    async def test_twenty_runs_at_once_do_not_mix(self, tmp_path: Path) -> None:
        tasks = [f"Count the rows of report <{number:02}>" for number in range(20)]
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel(
                {task: [Calls(TOOL, {"page": n}), Says(f"answer <{n:02}>")] for n, task in enumerate(tasks)}
            )
            program = self.program(bank, model)
            answers = await asyncio.gather(*(program.run(task) for task in tasks))
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            for number, task in enumerate(tasks):
                assert answers[number] == runs[task].answer == f"answer <{number:02}>"
                assert f"page {number}: 3 rows" in _texts(runs[task])
            assert len(runs) == 20

    async def test_nothing_that_was_shown_is_learned_back(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank)
            assert LESSON not in _texts(self._runs(bank)[0].trajectory)

    async def test_a_failure_that_was_seen_cured_is_followed_by_its_cure(self, tmp_path: Path) -> None:
        self._check("test_a_failure_that_was_seen_cured_is_followed_by_its_cure")
        script = [Calls(TOOL, {"page": 1}), Calls(BROKEN), Calls(TOOL, {"page": 2}), Says("six rows")]
        with self._bank(tmp_path) as bank:
            before, after = (ScriptedAgentModel({TASK: script}) for _ in range(2))
            await self.program(bank, before).run(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            seen = next(o.text for s in run.trajectory.steps for o in s.observations if "disk is full" in o.text)
            failure = failure_of(self.name_of_tool(BROKEN), seen)
            assert failure is not None
            cures = bank.scoped(f"{self.scope()}/@cures")
            lesson = replace(failure, cure="free_space").lesson(run.trajectory.id)
            cures.consolidate(Experience(scope=cures.aio.scope, task=failure.key, lessons=(lesson,)))
            if self.channel == "system":  # where instructions stand, what a person approved is shown alone
                cures.lessons.approve(lesson.id, by="Ana")
            await self.program(bank, after).run(TASK)
            bank.drain()
            counts = [request.words.count("`free_space` went through") for request in after.requests[TASK]]
            assert counts == [0, 0, 1, 1], [request.words for request in after.requests[TASK]]
            third, fourth = after.requests[TASK][2:4]
            if self.grows:
                assert fourth.messages[: len(third.messages)] == third.messages
            assert len({request.words.partition("`free_space` went through")[0] for request in (third, fourth)}) == 1
            (recall,) = cures.recalls.list()
            assert "free_space" in recall.text
            assert not any("free_space" in _texts(record.trajectory) for record in self._runs(bank))

    # -- how it ended -------------------------------------------------------------------------------------------------

    async def test_a_run_settles_its_receipt(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank, verify=_as_told)
            (run,) = self._runs(bank)
            scoped = bank.scoped(self.scope())
            (recall,) = scoped.recalls.list()
            assert run.recall_id == recall.id
            assert LESSON in recall.text

    async def test_a_run_that_is_handed_in_twice_is_one_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            await self._work(bank, verify=_as_told)
            (run,) = self._runs(bank)
            scoped = bank.scoped(self.scope())
            scoped.submit(run.trajectory, recall=run.recall_id, outcome="success")
            bank.drain()
            assert [record.trajectory.id for record in self._runs(bank)] == [run.trajectory.id]
            assert len(scoped.recalls.list(settled=True)) == 1

    async def test_what_is_told_beats_the_error_and_the_error_beats_the_judge(self, tmp_path: Path) -> None:
        judge = WaitingJudge()
        with self._bank(tmp_path, judge=judge) as bank:
            scripts = {"Told": [Raises()], "Crashed": [Raises()], "Judged": [Says("done")]}
            program = self.program(bank, ScriptedAgentModel(scripts), verify=_as_told)
            for task in scripts:
                await _raised(program, task)
            bank.drain()
            ended = {r.trajectory.task: (r.verdict.outcome, r.verdict.source) for r in self._runs(bank)}
            assert ended["Told"] == ("success", "ground_truth")
            assert ended["Crashed"] == ("failure", "framework_error")
            assert ended["Judged"] == ("success", "judge")
            assert judge.asked == ["Judged"]

    # -- memory does no harm ------------------------------------------------------------------------------------------

    async def test_without_the_bank_the_run_goes_on_with_one_warning(self, tmp_path: Path) -> None:
        retriever = BrokenRetriever(fails=True)
        with self._bank(tmp_path, retriever=retriever) as bank, _warnings() as warnings:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            assert await self.program(bank, model).run(TASK) == "three rows"
            assert [line for line in warnings if "without memory" in line] == warnings
            assert len(warnings) == 1

    async def test_a_slow_bank_is_not_waited_for(self, tmp_path: Path) -> None:
        retriever = BrokenRetriever(waits=True)
        with self._bank(tmp_path, retriever=retriever) as bank, _warnings() as warnings:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            assert await self.program(bank, model, patience=0.05).run(TASK) == "three rows"
            assert all(LESSON not in request.words for request in model.requests[TASK])
            assert [line for line in warnings if "no answer within" in line] == warnings
            assert len(warnings) == 1

    async def test_learning_does_not_hold_up_the_run(self, tmp_path: Path) -> None:
        judge = WaitingJudge(waits=True)
        with self._bank(tmp_path, judge=judge) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            assert await self.program(bank, model).run(TASK) == "three rows"
            assert not judge.has_answered
            judge.go_on()
            bank.drain()
            assert self._runs(bank)[0].verdict.source == "judge"

    async def test_the_end_of_a_run_waits_for_nothing_of_the_bank(self, tmp_path: Path) -> None:
        """After the last words of the model the bank does nothing at all, and the run ends all the same."""
        with self._bank(tmp_path) as bank, Standstill(bank) as standstill:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]}, at_end=standstill.begin)
            assert await self.program(bank, model).run(TASK) == "three rows"
            assert standstill.lasts
            standstill.end()
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.answer == "three rows"

    async def test_the_end_of_a_run_takes_no_longer(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        """At most 5 ms more from the last words of the model to the answer: the quickest of each kind is what counts.

        The report has the median. On a busy machine it is that of other programs: nobody can ask for 5 ms there.
        """
        without, with_memory, medians = list[float](), list[float](), list[float]()
        with self._bank(tmp_path) as bank:
            while len(medians) < _ROUNDS and min(medians, default=1) > _END_WITHIN:
                for times, took in zip((without, with_memory), await self._ends(bank), strict=True):
                    times.extend(took)
                medians.append(statistics.median(b - a for a, b in zip(without, with_memory, strict=True)))
        request.node.user_properties.append((ADDED, f"{min(medians) * 1000:.1f}"))
        assert min(with_memory) - min(without) <= _END_WITHIN, [f"{seconds:.4f} s" for seconds in medians]

    async def test_what_is_still_learned_is_finished_when_the_bank_is_closed(self, tmp_path: Path) -> None:
        judge = WaitingJudge(waits=True)
        with self._bank(tmp_path, judge=judge) as bank:
            await self.program(bank, ScriptedAgentModel({TASK: [Says("three rows")]})).run(TASK)
            assert not judge.has_answered
            threading.Timer(0.1, judge.go_on).start()
        with self._bank(tmp_path, users=()) as bank:
            assert [run.verdict.source for run in self._runs(bank)] == ["judge"]

    async def test_without_the_adapter_nothing_of_it_is_left(self, tmp_path: Path) -> None:
        script = {TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]}
        with self._bank(tmp_path) as bank:
            before, after = ScriptedAgentModel(script), ScriptedAgentModel(script)
            await self.plain(before).run(TASK)
            await self.program(bank, ScriptedAgentModel(script)).run(TASK)
            await self.plain(after).run(TASK)
            bank.drain()
            assert after.requests == before.requests
            assert len(self._runs(bank)) == 1

    async def test_with_an_empty_bank_a_request_is_as_it_was(self, tmp_path: Path) -> None:
        script = {TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]}
        with self._bank(tmp_path, users=()) as bank:
            plain, with_memory = ScriptedAgentModel(script), ScriptedAgentModel(script)
            await self.plain(plain).run(TASK)
            await self.program(bank, with_memory).run(TASK)
            assert with_memory.requests == plain.requests

    async def test_switched_off_it_neither_shows_nor_keeps(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self._bank(tmp_path):
            monkeypatch.setenv("LESSONBANK_OFF", "1")
        with self._bank(tmp_path, users=()) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            assert await self.program(bank, model).run(TASK) == "three rows"
            monkeypatch.delenv("LESSONBANK_OFF")
            assert LESSON not in model.requests[TASK][0].words
        with self._bank(tmp_path, users=()) as bank:
            assert not self._runs(bank)
            assert not bank.scoped(self.scope()).recalls.list()

    # -- what the checks share ----------------------------------------------------------------------------------------

    async def _ends(self, bank: lessonbank.ReasoningBank) -> tuple[list[float], list[float]]:
        """Seconds from the last words of the model to the answer, of runs without and with memory by turns."""
        script = [Calls(TOOL, {"page": 1}), Says("three rows")]
        without, with_memory = (ScriptedAgentModel({TASK: script * self.pairs}) for _ in range(2))
        ends = list[float](), list[float]()
        programs = (self.plain(without), without, ends[0]), (self.program(bank, with_memory), with_memory, ends[1])
        for _ in range(self.pairs):
            for program, model, took in programs:
                await program.run(TASK)
                took.append(time.perf_counter() - model.replied_at)
            bank.drain()
        return ends

    @contextmanager
    def _bank(
        self, path: Path, *, users: Sequence[str] = ("ana",), approved: bool = True, **parts: Any
    ) -> Generator[lessonbank.ReasoningBank]:
        """A bank with one lesson for each of `users`. Nothing is withheld in it."""
        unmeasured, made = lessonbank.Evidence(holdout=None), lessonbank.Parts(**parts)
        bank = lessonbank.connect(path / "bank.db", scope="acme", evidence=unmeasured, parts=made, embedder="lexical")
        with bank:
            for user in users:
                scoped = bank.scoped(self.scope(user))
                if approved:
                    scoped.lessons.add(title=LESSON, content=_CONTENT, task=TASK, by="Ana")
                else:
                    lesson = Lesson(title=LESSON, content=_CONTENT, kind="strategy")
                    scoped.consolidate(Experience(scope=scoped.aio.scope, task=TASK, lessons=(lesson,)))
            yield bank

    async def _work(self, bank: lessonbank.ReasoningBank, *, stream: bool = False, **options: Any) -> None:
        script = [Calls(TOOL, {"page": 1}), Calls(BROKEN), Says("three rows")]
        program = self.program(bank, ScriptedAgentModel({TASK: script}), **options)
        assert await program.run(TASK, stream=stream) == "three rows"
        bank.drain()

    def _check_the_work(self, bank: lessonbank.ReasoningBank) -> None:
        (run,) = self._runs(bank)
        calls = [call for step in run.trajectory.steps for call in step.action.calls]
        seen = [o for step in run.trajectory.steps for o in step.observations if o.source == "tool"]
        assert [(call.name, call.arguments) for call in calls] == [
            (self.name_of_tool(TOOL), {"page": 1}),
            (self.name_of_tool(BROKEN), {}),
        ]
        assert "page 1: 3 rows" in seen[0].text
        assert "the disk is full" in seen[1].text
        assert (run.trajectory.task, run.trajectory.answer) == (TASK, "three rows")
        assert run.status != "unfinished"
        assert run.trajectory.metadata["source"] == self.source

    def _runs(self, bank: lessonbank.ReasoningBank, user: str = "ana") -> list[Run]:
        return list(bank.scoped(self.scope(user)).runs.list(limit=100))

    def _check(self, name: str) -> None:
        """Skip a check that the host has nothing for, and say why."""
        if name in self.cannot:
            pytest.skip(f"{self.source}: {self.cannot[name]}")


@contextmanager
def _warnings() -> Generator[list[str]]:
    """The warnings of the package, as they come."""
    warnings, handler = list[str](), logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logger = logging.getLogger("lessonbank")
    logger.addHandler(handler)
    try:
        yield warnings
    finally:
        logger.removeHandler(handler)


def _as_told(run: Trajectory) -> Outcome:
    """A check that knows about some tasks only."""
    return "success" if run.task in {"Told", TASK} else "unknown"


async def _raised(program: Program, task: str) -> bool:
    try:
        await program.run(task)
    except Exception:  # noqa: BLE001 - whatever a framework makes of a model that fails
        return True
    return False


def _texts(run: Trajectory) -> str:
    return run.model_dump_json()
