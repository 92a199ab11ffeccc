"""What every adapter stands on, without a framework."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args
from weakref import ref

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

import lessonbank
from lessonbank.adapters.browsergym import ReasoningBankAgent
from lessonbank.adapters.following import FollowedRun, RunFollower, current_run, scope_of
from lessonbank.contracts.records import Found
from lessonbank.contracts.records.tools import signatures
from lessonbank.contracts.settings import TrustPolicy
from lessonbank.errors import UsageError
from lessonbank.testing._obstacles import BrokenRetriever

SAID = [{"role": "user", "content": "Count"}, {"role": "assistant", "content": "Three"}]


SCHEMA = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}


class Sheet(BaseModel):
    page: int


@dataclass
class Tool:
    """A tool as a framework has it."""

    name: str
    description: str
    args_schema: object


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[lessonbank.ReasoningBank]:
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank:
        bank.lessons.add(title="Begin at page two", content="The first page is a title.", task="Count", by="Ana")
        yield bank


def kept(bank: lessonbank.ReasoningBank) -> list[lessonbank.Run]:
    bank.drain()
    return list(bank.runs.list())


def test_a_run_that_is_finished_twice_is_one_run(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    run = follower.begin_waiting("Count", run="r1")
    run.finish(SAID, outcome="success")
    run.finish(SAID, outcome="failure")
    run.stop(reason="too late")
    (only,) = kept(bank)
    assert (only.trajectory.id, only.verdict.outcome, only.status) == ("r1", "success", "learned")


def test_the_recall_of_a_run_is_made_once(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    first, again = follower.begin_waiting("Count", run="r1"), follower.begin_waiting("Count", run="r1")
    assert first is again
    assert "Begin at page two" in first.text
    assert len(bank.recalls.list()) == 1


def test_an_outcome_that_is_told_later_settles_the_receipt(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    run = follower.begin_waiting("Count", run="r1")
    run.finish(SAID)
    follower.tell("r1", reward=1.0)
    (only,) = kept(bank)
    assert (only.verdict.outcome, only.verdict.source) == ("success", "ground_truth")
    assert run.recall is not None
    assert only.recall_id == run.recall.id


def test_what_is_told_while_a_run_is_learned_is_the_last_word(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    for number in range(10):
        follower.begin_waiting("Count", run=f"r{number}").finish(SAID, outcome="failure")
        follower.tell(f"r{number}", outcome="success")
    assert [run.verdict.outcome for run in kept(bank) if run.verdict] == ["success"] * 10


def test_an_outcome_of_a_run_that_another_process_followed_is_told_with_its_scope(
    bank: lessonbank.ReasoningBank,
) -> None:
    RunFollower(bank, "mine").begin_waiting("Count", run="r1", scope="acme/ana").finish(SAID)
    bank.drain()
    RunFollower(bank, "mine").tell("r1", outcome="success", scope="acme/ana")
    bank.drain()
    assert bank.scoped("acme/ana").runs.get("r1").status == "learned"


def test_an_outcome_that_is_told_before_the_end_counts(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    run = follower.begin_waiting("Count", run="r1")
    follower.tell("r1", outcome="failure")
    run.finish(SAID)
    (only,) = kept(bank)
    assert (only.verdict.outcome, only.verdict.source) == ("failure", "ground_truth")


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "count", "description": "Counts.", "parameters": SCHEMA}},
        {"type": "function", "name": "count", "description": "Counts.", "parameters": SCHEMA, "strict": True},
        {"name": "count", "description": "Counts.", "input_schema": SCHEMA},
        {"functionDeclarations": [{"name": "count", "description": "Counts.", "parametersJsonSchema": SCHEMA}]},
        {
            "function_declarations": [
                {
                    "name": "count",
                    "description": "Counts.",
                    "parameters": {"properties": {"page": {"type": "INTEGER"}}, "required": ["page"]},
                }
            ]
        },
        {"toolSpec": {"name": "count", "description": "Counts.", "inputSchema": {"json": SCHEMA}}},
        Tool("count", "Counts.", Sheet),
        Tool("count", "Counts.", lambda: SCHEMA),
        "count(page: integer) - Counts.",
    ],
    ids=["chat", "responses", "messages", "gemini", "gemini-old", "bedrock", "class", "method", "line"],
)
def test_a_tool_of_any_form_is_kept_by_its_signature(bank: lessonbank.ReasoningBank, tool: object) -> None:
    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.can_call(lambda: [tool])
    run.can_call(lambda: [tool, {"type": "web_search"}])
    run.finish(SAID)
    (only,) = kept(bank)
    assert signatures(only.trajectory.tools) == ("count(page: integer) - Counts.", "web_search()")


def test_a_tool_that_cannot_be_read_costs_no_other_tool(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        page: RunFollower

    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.can_call(lambda: [Tool("count", "Counts.", Sheet), Tool("odd", "Fails.", Odd), "b()"])
    run.finish(SAID)
    (only,) = kept(bank)
    assert signatures(only.trajectory.tools) == ("b()", "count(page: integer) - Counts.")
    assert len(caplog.messages) == 1


def test_nothing_holds_the_tools_of_a_run_that_is_over(bank: lessonbank.ReasoningBank) -> None:
    run, tools = RunFollower(bank, "mine").begin_waiting("Count"), [Tool("count", "Counts.", Sheet)]
    run.can_call(lambda: tools)
    run.finish(SAID)
    seen = ref(tools.pop())
    (only,) = kept(bank)
    gc.collect()
    assert only.trajectory.tools
    assert seen() is None


@pytest.mark.parametrize("where", ["now", "at the end"])
def test_tools_that_cannot_be_read_do_not_cost_the_run(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError("there is no such tool")

    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.can_call(broken if where == "now" else lambda: [Tool("count", "Counts.", broken)])
    run.finish(SAID)
    (only,) = kept(bank)
    assert only.trajectory.answer == "Three"
    assert not signatures(only.trajectory.tools)
    assert [line for line in caplog.messages if "there is no such tool" in line] == caplog.messages
    assert len(caplog.messages) == 1


def test_what_was_observed_is_the_run_where_none_is_given(bank: lessonbank.ReasoningBank) -> None:
    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.observe(*SAID)
    run.finish(error=ValueError("no such page"))
    (only,) = kept(bank)
    assert only.trajectory.error == "ValueError: no such page"
    assert only.trajectory.steps[-1].action.text == "Three"


@pytest.mark.parametrize("name", ["", None])
def test_a_call_without_a_name_costs_the_run_nothing_else(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture, name: str | None
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.finish([SAID[0], {"role": "assistant", "content": None, "tool_calls": [call]}, *SAID[1:]])
    (only,) = kept(bank)
    assert only.trajectory.answer == SAID[-1]["content"]
    assert "tool call without a name" in caplog.text


def test_messages_that_nobody_can_read_cost_the_lesson_and_not_the_run(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture
) -> None:
    RunFollower(bank, "mine").begin_waiting("Count").finish([object()])
    assert not kept(bank)
    assert "nothing was learned from this run" in caplog.text


@pytest.mark.parametrize("left", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_an_error_fails_a_run_and_somebody_who_leaves_ends_it_early(
    bank: lessonbank.ReasoningBank, left: type[BaseException]
) -> None:
    follower = RunFollower(bank, "mine")
    for run, error in (("broken", RuntimeError("no model")), ("left", left())):
        with pytest.raises(type(error)), follower.begin_waiting("Count", run=run).followed(lambda: SAID):
            assert current_run() == run
            raise error
    runs = {run.trajectory.id: run.trajectory for run in kept(bank)}
    assert (runs["broken"].error, runs["broken"].answer) == ("RuntimeError: no model", "Three")
    assert (runs["left"].error, runs["left"].metadata["stopped"]) == (None, left.__name__)


def test_a_list_that_the_host_goes_on_writing_into_is_kept_as_it_was(bank: lessonbank.ReasoningBank) -> None:
    said = list(SAID)
    run = RunFollower(bank, "mine").begin_waiting("Count")
    run.finish(said)
    said.append({"role": "assistant", "content": "Four"})
    (only,) = kept(bank)
    assert only.trajectory.answer == "Three"


def test_a_scope_that_cannot_be_means_no_memory(
    bank: lessonbank.ReasoningBank, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> str:
        raise KeyError("user")

    follower = RunFollower(bank, "mine", scope=fails)
    run = follower.begin_waiting("Count", scope=follower.scoped())
    assert run.text == ""
    run.finish(SAID)
    assert not kept(bank)
    assert "scope= failed" in caplog.text


def test_where_instructions_stand_no_user_of_an_adapter_widens_what_is_shown(bank: lessonbank.ReasoningBank) -> None:
    with pytest.raises(UsageError, match="trusted=False: mine puts lessons where instructions stand"):
        RunFollower(bank, "mine", True, trusted=False)
    with pytest.raises(TypeError, match="colour"):
        ReasoningBankAgent(None, bank, colour="red")  # type: ignore[call-arg]


class Namer:
    """Names the scope of a run; nothing is kept in it yet, so it counts as false."""

    def __len__(self) -> int:
        return 0

    def __call__(self) -> str:
        return "acme/ana"


def test_a_function_of_the_callers_own_names_the_scope_also_where_it_counts_as_false(
    bank: lessonbank.ReasoningBank,
) -> None:
    assert RunFollower(bank, "mine", scope=Namer()).scoped() == "acme/ana"


def test_ctrl_c_reaches_the_caller_and_ends_the_run_also_where_its_cost_is_unknown(
    bank: lessonbank.ReasoningBank,
) -> None:
    def unknown() -> NoReturn:
        raise AttributeError("the host has no counter")

    run = RunFollower(bank, "mine").begin_waiting("Count")
    with pytest.raises(KeyboardInterrupt), run.followed(lambda: SAID, usage=unknown):
        raise KeyboardInterrupt
    failed = RunFollower(bank, "mine").begin_waiting("Count two")
    with pytest.raises(ValueError, match="the host"), failed.followed(usage=unknown):
        raise ValueError("the host")
    ended = {one.trajectory.task: one for one in kept(bank)}
    assert ended["Count"].trajectory.metadata["stopped"] == "KeyboardInterrupt"
    assert ended["Count two"].trajectory.error == "ValueError: the host"


def test_a_task_without_words_is_not_looked_up(bank: lessonbank.ReasoningBank) -> None:
    assert RunFollower(bank, "mine").begin_waiting(" ").text == ""
    assert not bank.recalls.list()


def test_a_run_inside_another_one_has_it_as_its_parent(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    with follower.begin_waiting("Count", run="outer").running():
        part = follower.begin_waiting("Count the second", run="inner", parent=current_run())
    assert current_run() is None
    part.finish(SAID)
    (only,) = kept(bank)
    assert only.trajectory.parent_run == "outer"


def test_runs_that_never_end_do_not_fill_the_memory(bank: lessonbank.ReasoningBank) -> None:
    follower = RunFollower(bank, "mine")
    for number in range(5000):
        follower.begin_waiting("", run=str(number))
    assert follower.get("0") is None
    assert isinstance(follower.get("4999"), FollowedRun)


@pytest.mark.anyio
async def test_an_async_bank_is_refused(tmp_path: Path) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="acme") as bank:
        with pytest.raises(lessonbank.LessonbankError, match=r"lessonbank\.connect"):
            RunFollower(bank, "mine")  # pyright: ignore[reportArgumentType]


NAMES = st.lists(any_text(min_size=1, max_size=8), min_size=1, max_size=3)


@given(NAMES, NAMES)
def test_other_ids_never_give_the_same_scope(one: list[str], other: list[str]) -> None:
    assert (scope_of(*one) == scope_of(*other)) == (one == other)


def test_an_empty_id_gives_no_scope() -> None:
    with pytest.raises(lessonbank.LessonbankError, match="empty"):
        scope_of("acme", "")


def called(name: str, id: str, said: str, **arguments: Any) -> list[dict[str, Any]]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": said},
    ]


DENIED = "error: the customer is not verified"


async def played(follower: RunFollower, *calls: tuple[str, str, str, dict[str, Any]]) -> tuple[list[str], FollowedRun]:
    """A run of these calls (tool, id, what came back, arguments): what followed each, and the run."""
    run = await follower.begin("Cancel the order")
    told = [await run.came_back(id, tool, arguments, said, None) for tool, id, said, arguments in calls]
    messages = [m for tool, id, said, arguments in calls for m in called(tool, id, said, **arguments)]
    run.finish([{"role": "user", "content": "Cancel the order"}, *messages, {"role": "assistant", "content": "ok"}])
    follower.bank.drain()
    return told, run


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("then", "cure"),
    [
        ([("verify", "b", "ok", {"user": "u1"}), ("cancel", "c", "done", {"order": 7})], "`verify(user)` went through"),
        ([("cancel", "c", "done", {"order": 7, "reason": "late"})], "`cancel(order, reason)` went through."),
        ([("cancel", "c", "done", {"order": 8})], ""),
        ([("get_user", "b", "ok", {"user": "u1"}), ("cancel", "c", "done", {"order": 7})], ""),
    ],
)
async def test_a_call_that_failed_before_is_followed_by_what_got_past_it_in_names_alone(
    bank: lessonbank.ReasoningBank, then: list[tuple[str, str, str, dict[str, Any]]], cure: str
) -> None:
    follower = RunFollower(bank, "mine")
    first = ("cancel", "a", DENIED, {"order": 7})
    told, _ = await played(follower, first, *then)
    assert not any(told)
    (said, *_), run = await played(follower, ("cancel", "x", DENIED, {"order": 9}))
    assert (cure in said) if cure else not said
    assert "u1" not in said and "late" not in said
    assert "went through" not in bank.runs.get(run.id).model_dump_json()


@pytest.mark.anyio
async def test_one_setting_and_the_papers_profile_look_up_no_cures(bank: lessonbank.ReasoningBank) -> None:
    steps: list[tuple[str, str, str, dict[str, Any]]] = [
        ("cancel", "a", DENIED, {"o": 7}),
        ("verify", "b", "ok", {}),
        ("cancel", "c", "done", {"o": 7}),
    ]
    for cures in (True, False):
        told, _ = await played(RunFollower(bank, "mine", cures=cures), *steps)
        assert not any(told)
    with lessonbank.connect(":memory:", scope="x", embedder="lexical", profile="paper") as paper:
        for _ in range(2):
            told, _ = await played(RunFollower(paper, "mine"), *steps)
        assert not any(told)


@pytest.mark.parametrize("is_instruction", [True, False])
@pytest.mark.parametrize("trust", get_args(TrustPolicy))
def test_what_an_agent_noted_is_shown_to_no_framework_under_any_policy(
    tmp_path: Path, trust: TrustPolicy, is_instruction: bool
) -> None:
    unmeasured, safety = lessonbank.Evidence(holdout=None), lessonbank.Safety(trust=trust)
    with lessonbank.connect(
        tmp_path / "x.db", scope="x", embedder="lexical", evidence=unmeasured, safety=safety
    ) as bank:
        with bank.attempt("Count the rows") as attempt:
            attempt.note("Count the rows from page two.")
            attempt.finish(outcome="success")
        (noted,) = bank.lessons.list(state="quarantined")
        assert noted.provenance.trajectory_ids == (attempt.run_id,)
        assert "page two" not in RunFollower(bank, "mine", is_instruction).begin_waiting("Count the rows").text
        bank.lessons.approve(noted.id, by="Ana")
        assert "page two" in RunFollower(bank, "mine", is_instruction).begin_waiting("Count the rows").text


class SlowForFailures(BrokenRetriever):
    """Finds nothing for a task, and never answers about a failure."""

    asked = 0

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        if "failed:" not in task:
            return Found()
        self.asked += 1
        return await super().__call__(task, scope=scope, limit=limit)


@pytest.mark.anyio
async def test_a_look_that_comes_too_late_is_the_last_one_of_its_run(caplog: pytest.LogCaptureFixture) -> None:
    retriever = SlowForFailures(waits=True)
    parts = lessonbank.Parts(retriever=retriever)
    with lessonbank.connect(":memory:", scope="x", embedder="lexical", parts=parts) as bank:
        run = await RunFollower(bank, "mine", patience=0.1).begin("Cancel the order")
        assert await run.came_back("a", "cancel", {}, DENIED, True) == ""
        assert run.came_back_waiting("b", "cancel", {}, DENIED, True) == ""
        assert retriever.asked == 1
        assert len([r for r in caplog.records if "second look" in r.getMessage()]) == 1
