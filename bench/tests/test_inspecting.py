"""A bank around a solver of Inspect AI: run for real where Inspect AI is installed, with its own mock model."""

from __future__ import annotations

import gc
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lessonbank
from lessonbank import Experience, ReasoningBank
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.inspecting import KEPT, passed, remembering, run_of, with_memory

LESSON = """# Memory Lesson 1
## Title Ring before opening
## Description When a door has a bell
## Content Ring the bell first and wait for an answer, then try the handle."""
HERE = importlib.util.find_spec("inspect_ai") is not None
needs_inspect = pytest.mark.skipif(not HERE, reason="inspect-ai is not installed")


@pytest.fixture
def bank() -> Iterator[ReasoningBank]:
    writes = ScriptedModel(lambda _: LESSON)
    with lessonbank.connect(
        ":memory:", scope="inspect", embedder="lexical", profile="paper", model={"extractor": writes}
    ) as made:
        yield made


def said(role: str, text: str, **more: Any) -> Any:
    return SimpleNamespace(role=role, text=text, content=text, id=f"id of {text}", **more)


def state(*messages: Any, **more: Any) -> Any:
    told = {"input_text": "Open the door", "sample_id": 3, "epoch": 1, "uuid": "u", "metadata": {}}
    return SimpleNamespace(messages=list(messages), **{**told, **more})


# without Inspect AI


def test_a_run_is_the_messages_without_what_memory_said() -> None:
    call = SimpleNamespace(id="c", function="press", arguments={"what": "bell"})
    thinking = [
        SimpleNamespace(type="reasoning", reasoning="a bell?", redacted=False),
        SimpleNamespace(type="reasoning", reasoning="sealed", redacted=True),
        SimpleNamespace(type="text", text="I ring."),
    ]
    asking = SimpleNamespace(role="assistant", text="I ring.", content=thinking, id="a", tool_calls=[call])
    error = SimpleNamespace(type="timeout", message="nobody came")
    run = run_of(
        state(
            said("system", "You open doors."),
            said("system", "MEMORY"),
            said("user", "Open the door"),
            asking,
            said("tool", "", error=error, tool_call_id="c", function="press"),
            said("assistant", "I give up.", tool_calls=None),
            metadata={"template": "doors"},
        ),
        told="id of MEMORY",
        error="stopped",
    )
    assert run.instructions == "You open doors."
    assert "MEMORY" not in run.model_dump_json()
    assert "sealed" not in run.model_dump_json()
    assert [step.thought for step in run.steps if step.action.calls] == ["a bell?"]
    assert run.steps[1].action.calls[0].arguments == {"what": "bell"}
    assert run.steps[1].observations[0].text == "timeout: nobody came"
    assert (run.answer, run.error) == ("I give up.", "stopped")
    assert run.metadata == {"inspect": {"sample": "3", "epoch": 1}, "template": "doors"}
    assert run.id == run_of(state(said("assistant", "x", tool_calls=None))).id  # of the sample, so that it counts once


@pytest.mark.skipif(HERE, reason="inspect-ai is installed")
def test_without_inspect_the_extra_is_named(bank: ReasoningBank) -> None:
    with pytest.raises(MissingExtra, match=r"lessonbank-bench\[inspect\]"):
        remembering(bank, [])
    with pytest.raises(MissingExtra, match=r"lessonbank-bench\[inspect\]"):
        with_memory(bank, SimpleNamespace(solver=[]))


def test_another_way_to_learn_is_refused(bank: ReasoningBank) -> None:
    with pytest.raises(UsageError, match="learns is 'scored', 'judged' or None"):
        remembering(bank, [], learns="always")  # type: ignore[arg-type]


def test_scores_that_are_no_single_value_say_nothing() -> None:
    for value in (float("nan"), {"a": 1}, [1], None):
        assert passed([SimpleNamespace(value=value)]) is None
    assert passed([]) is None


# with Inspect AI


DOORS = [("Open the red door", "ring"), ("Open the red gate", "ring"), ("Open the blue door", "knock")]


def counted(kind: str, *said: Any) -> Any:
    """An answer of the mock model with its tokens, which it would else count with a file from the network."""
    from inspect_ai.model import ModelOutput, ModelUsage

    output = getattr(ModelOutput, kind)("mockllm", *said)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def played(
    bank: ReasoningBank,
    folder: Path,
    answer: Callable[[Sequence[Any]], str],
    /,
    *,
    solver: Any = None,
    limits: dict[str, Any] | None = None,
    **more: Any,
) -> Any:
    """The log of an evaluation in which `answer` is the model, of the messages it is sent."""
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, system_message

    task = inspect_ai.Task(
        dataset=[Sample(input=asked, target=right, id=n) for n, (asked, right) in enumerate(DOORS)],
        solver=solver or [system_message("You open doors."), generate()],
        scorer=includes(),
        **(limits or {}),
    )
    model = get_model(
        "mockllm/model",
        custom_outputs=lambda messages, *_: counted("from_content", answer(messages)),
        memoize=False,
    )
    logs = inspect_ai.eval(
        with_memory(bank, task, **more), model=model, max_samples=1, display="none", log_dir=str(folder)
    )
    assert logs[0].status == "success", logs[0].error
    return logs[0]


def kept(log: Any) -> list[dict[str, Any]]:
    return [sample.store[KEPT] for sample in log.samples]


pytestmark = pytest.mark.filterwarnings("ignore")  # another project's warnings are not ours


@pytest.fixture(scope="module", autouse=True)
def no_company() -> Iterator[None]:
    """Before a sample begins, Inspect AI loads what it knows of two companies' models: seconds, and none is asked."""
    with pytest.MonkeyPatch.context() as patch:
        if HERE:
            internal = importlib.import_module("inspect_ai.model._assistant_internal")
            patch.setattr(internal, "_HAS_OPENAI", False, raising=False)
            patch.setattr(internal, "_HAS_ANTHROPIC", False, raising=False)
        yield


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What Inspect AI leaves to the garbage collector warns now, while warnings are not errors; older things stay."""
    gc.freeze()
    yield
    if HERE:
        gc.collect()
    gc.unfreeze()


@needs_inspect
def test_what_a_sample_taught_is_shown_to_the_next_one(bank: ReasoningBank, tmp_path: Path) -> None:
    asked: list[list[Any]] = []

    def answer(messages: Sequence[Any]) -> str:
        asked.append(list(messages))
        return "I ring the bell."

    log = played(bank, tmp_path, answer)
    assert len(asked) == 3
    first, second, _ = [[m.text for m in messages if m.role == "system"] for messages in asked]
    assert first == ["You open doors."]
    assert len(second) == 2
    assert "Ring the bell first" in second[0]  # the solver adds its own system message later
    assert [one["verdicts"] for one in kept(log)] == [["success"], ["success"], ["failure"]]
    assert kept(log)[0]["shown"] == []
    assert kept(log)[1]["shown"] == kept(log)[0]["learned"] == ["Ring before opening"]
    counts = bank.admin.counts()
    assert (counts.trajectories, counts.recalls_with_a_run, counts.pending) == (3, 3, 0)
    assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(2 / 3)
    for experience in _experiences(bank):
        run = bank.runs.get(experience.attempts[0].trajectory_id).trajectory
        assert run.instructions == "You open doors."  # what memory said is no part of the run


@needs_inspect
def test_memory_is_shown_and_stays_as_it_is_where_nothing_is_learned(bank: ReasoningBank, tmp_path: Path) -> None:
    played(bank, tmp_path, lambda _: "I ring the bell.")
    before = bank.admin.counts()
    log = played(bank, tmp_path, lambda _: "I ring the bell.", learns=None)
    assert all(one["shown"] for one in kept(log))
    assert [one["learned"] for one in kept(log)] == [[], [], []]
    assert bank.admin.counts().trajectories == before.trajectories


@needs_inspect
def test_without_a_score_the_bank_judges_or_waits(bank: ReasoningBank, tmp_path: Path) -> None:
    log = played(bank, tmp_path, lambda _: "I ring the bell.", learns="judged")
    assert [one["verdicts"] for one in kept(log)] == [["unknown"]] * 3
    assert bank.admin.counts().pending == 3


@needs_inspect
def test_what_counts_as_success_can_be_said(bank: ReasoningBank, tmp_path: Path) -> None:
    log = played(bank, tmp_path, lambda _: "I ring the bell.", passed=lambda scores: scores[0].value == "I")
    assert [one["verdicts"] for one in kept(log)] == [["failure"], ["failure"], ["success"]]


@needs_inspect
def test_a_sample_that_a_limit_stops_is_learned(bank: ReasoningBank, tmp_path: Path) -> None:
    from inspect_ai.solver import generate, user_message

    solver = [generate(), user_message("and then?"), generate(), user_message("and then?"), generate()]
    log = played(bank, tmp_path, lambda _: "I wait.", solver=solver, limits={"message_limit": 3})
    assert all(sample.limit is not None for sample in log.samples)
    assert [one["verdicts"] for one in kept(log)] == [["failure"]] * 3
    runs = [bank.runs.get(e.attempts[0].trajectory_id).trajectory for e in _experiences(bank)]
    assert all("limit" in (run.error or "") for run in runs)


@needs_inspect
def test_a_solver_that_breaks_teaches_nothing(bank: ReasoningBank, tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import solver

    @solver
    def broken() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            raise OSError("the door is not there")

        return solve

    task = inspect_ai.Task(dataset=[Sample(input="Open it", target="x")], solver=broken())
    logs = inspect_ai.eval(with_memory(bank, task), model="mockllm/model", display="none", log_dir=str(tmp_path))
    assert logs[0].status == "error"
    assert bank.admin.counts().trajectories == 0


@needs_inspect
def test_an_agent_with_tools_is_wrapped_and_learned_from(bank: ReasoningBank, tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.agent import react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import tool

    @tool
    def press() -> Any:
        async def execute(what: str) -> str:
            """Press something.

            Args:
                what: the thing to press.
            """
            return f"{what}: it rings"

        return execute

    outputs = [
        counted("for_tool_call", "press", {"what": "bell"}),
        counted("for_tool_call", "submit", {"answer": "ring"}),
    ]
    task = inspect_ai.Task(
        dataset=[Sample(input="Open the door", target="ring")], solver=react(tools=[press()]), scorer=includes()
    )
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    logs = inspect_ai.eval(with_memory(bank, task), model=model, display="none", log_dir=str(tmp_path))
    assert logs[0].status == "success", logs[0].error
    (experience,) = _experiences(bank)
    run = bank.runs.get(experience.attempts[0].trajectory_id).trajectory
    assert experience.attempts[0].verdict.outcome == "success"
    called = [(call.name, call.arguments) for step in run.steps for call in step.action.calls]
    assert ("press", {"what": "bell"}) in called
    assert any(seen.text == "bell: it rings" for step in run.steps for seen in step.observations)


def _experiences(bank: ReasoningBank) -> list[Experience]:
    """Oldest first."""
    added = [moment.entry for moment in bank.history.list() if moment.entry.kind == "add"]
    return [entry.experience for entry in reversed(added)]


@needs_inspect
def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.model import get_model

    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "environments" / "inspect.md").read_text(encoding="utf-8")
    (tmp_path / "doors.py").write_text(page.split("```python\n")[1].split("```")[0])
    model = get_model(
        "mockllm/model", custom_outputs=lambda *_: counted("from_content", "I ring the bell."), memoize=False
    )
    for _ in range(2):
        log = inspect_ai.eval("doors.py", model=model, max_samples=1, display="none", log_dir="logs")[0]
        assert log.status == "success", log.error
        assert [one["verdicts"] for one in kept(log)] == [["success"], ["success"], ["failure"]]
    with lessonbank.connect("doors.db", scope="inspect/doors", embedder="lexical") as bank:
        assert bank.admin.counts().trajectories == 6
