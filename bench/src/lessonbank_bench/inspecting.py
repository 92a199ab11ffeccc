"""Puts a bank around a solver of Inspect AI: what past samples taught is shown to it, and how it went is learned.

Inspect AI (`pip install 'lessonbank-bench[inspect]'`) is loaded when a solver is made,
not when this module is imported.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, cast

import anyio.to_thread

from lessonbank import ReasoningBank, Trajectory
from lessonbank.contracts.records import Learned, Outcome, Recall
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank.text.messages import trajectory_from
from lessonbank_bench.extras import missing_extra

Learns: TypeAlias = Literal["scored", "judged"]
Passed: TypeAlias = Callable[[Sequence[Any]], bool | None]
"""Whether a sample succeeded, from the scores of the task's scorers in their order; `None`: they do not tell."""
KEPT = "lessonbank"
"""Where the store of a sample, which the log keeps, says what was shown and learned."""


class Solving(Protocol):
    """What is used of Inspect AI's `Solver`."""

    def __call__(self, state: Any, generate: Any, /) -> Awaitable[Any]: ...


def passed(scores: Sequence[Any], /) -> bool | None:
    """Whether the first score is 1 or more, where it is a single value that Inspect AI can read as a number."""
    value = scores[0].value if scores else None
    if value is None or (isinstance(value, float) and math.isnan(value)) or not isinstance(value, str | int | float):
        return None
    return cast("float", _part("scorer").value_to_float()(value)) >= 1.0


def remembering(
    bank: ReasoningBank,
    solver: Any,
    /,
    *,
    limit: int | None = None,
    learns: Learns | None = "scored",
    passed: Passed = passed,
) -> Solving:
    """A solver that shows memory to `solver`, lets it work, and learns from the sample.

    The memory text is a system message of its own, after those that are there when the solver begins; what the solver
    adds itself comes after it. The run that is learned is the messages without it. What was shown, and what was
    learned, is in the sample's store under `lessonbank`. A sample that a limit of Inspect AI stops is learned too. One
    whose solver raises anything else is not: that says nothing about the task.

    Args:
        bank: whose memory; its methods run in a thread, so that the evaluation's loop is not held up.
        solver: a solver, an agent, or a list of them, as `Task(solver=…)` takes it.
        limit: experiences that are recalled; the bank's own by default.
        learns: `scored`: told the scores of the task's scorers, which are asked once more for it. `judged`: left to the
            bank's judge. `None`: memory is shown and stays as it is.
        passed: reads success from the scores.

    Raises:
        MissingExtra: Inspect AI is not installed.
        UsageError: `learns` is something else.
    """
    if learns not in ("scored", "judged", None):
        raise UsageError(f"learns is 'scored', 'judged' or None; got {learns!r}")
    inner: Solving = _part("solver").chain(solver)
    stopped = cast("type[Exception]", _part("util").LimitExceededError)

    async def solve(state: Any, generate: Any) -> Any:
        told = str(state.input_text)
        recall = await _in_thread(bank.retrieve, told, limit=limit)
        shown = _show(state, recall)
        try:
            state = await inner(state, generate)
        except stopped as limit_reached:
            await learn(state, recall, shown, f"stopped by a limit: {one_line(str(limit_reached), limit=300)}")
            raise
        await learn(state, recall, shown, None)
        return state

    async def learn(state: Any, recall: Recall, shown: str, error: str | None) -> None:
        learned: Learned | None = None
        if learns is not None:
            run = run_of(state, told=shown, task=recall.task, error=error)
            outcome = await _outcome(state, passed, error) if learns == "scored" else None
            learned = await _in_thread(bank.learn, run, recall=recall, outcome=outcome)
        state.store.set(KEPT, _kept(recall, learned))

    return _registered(solve)


def with_memory(
    bank: ReasoningBank,
    task: Any,
    /,
    *,
    limit: int | None = None,
    learns: Learns | None = "scored",
    passed: Passed = passed,
) -> Any:
    """The task of Inspect AI with `remembering` around its solver; `task` itself is changed, as `task_with` does.

    For the rest see `remembering`.
    """
    solver = remembering(bank, task.solver, limit=limit, learns=learns, passed=passed)
    return _part("").task_with(task, solver=solver)


def run_of(state: Any, /, *, told: str = "", task: str | None = None, error: str | None = None) -> Trajectory:
    """The run that the messages of a sample record.

    Args:
        state: the `TaskState` after the solver.
        told: the id of the message that memory was shown in; it is left out.
        task: what was asked; the sample's input by default.
        error: what stopped it.
    """
    messages = [_message(one) for one in state.messages if not told or one.id != told]
    run = trajectory_from(messages, task=task or str(state.input_text))
    where = {"sample": str(state.sample_id), "epoch": int(state.epoch)}
    template = cast("Mapping[str, Any]", state.metadata or {}).get("template")
    named = {"template": template} if isinstance(template, str) else {}
    return run.model_copy(
        update={
            "id": digest(f"inspect {state.uuid}")[:32],
            "error": error,
            "metadata": {**run.metadata, "inspect": where, **named},
        }
    )


def _show(state: Any, recall: Recall) -> str:
    """Adds the memory text to the messages; the id of the message, or nothing where there is no text."""
    if not recall.text:
        return ""
    message: Any = _part("model").ChatMessageSystem(content=recall.text)
    before: list[Any] = list(state.messages)
    at = next((n for n, one in enumerate(before) if one.role != "system"), len(before))
    state.messages = [*before[:at], message, *before[at:]]
    return str(message.id)


async def _outcome(state: Any, passed: Passed, error: str | None) -> Outcome | None:
    """What the scorers say. After a limit they may be out of means as well: then nobody says anything."""
    try:
        found = passed(await _part("scorer").score(state))
    except Exception:
        if error is None:
            raise
        return None
    return None if found is None else "success" if found else "failure"


def _message(one: Any) -> dict[str, Any]:
    """A message of Inspect AI in the shape of OpenAI's chat, which the bank reads."""
    message: dict[str, Any] = {"role": one.role, "content": one.text}
    if one.role == "tool":
        problem = f"{one.error.type}: {one.error.message}" if one.error else ""
        content = "\n".join(part for part in (problem, one.text) if part)
        return {**message, "content": content, "tool_call_id": one.tool_call_id, "name": one.function}
    if one.role != "assistant":
        return message
    thoughts = [part.reasoning for part in _parts(one.content) if part.type == "reasoning" and not part.redacted]
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if one.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": call.arguments}}
            for call in one.tool_calls
        ]
    return message


def _parts(content: Any) -> Iterable[Any]:
    return () if isinstance(content, str) else content


def _kept(recall: Recall, learned: Learned | None) -> dict[str, Any]:
    return {
        "recall": recall.id,
        "text_digest": recall.text_digest,
        "shown": [lesson.title for lesson in recall.shown],
        "learned": [lesson.title for lesson in learned.lessons] if learned else [],
        "verdicts": [verdict.outcome for verdict in learned.verdicts] if learned else [],
        "notes": list(learned.notes) if learned else [],
    }


async def _in_thread(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    return await anyio.to_thread.run_sync(partial(call, *args, **more))


def _registered(solve: Solving) -> Solving:
    """Under a name, without arguments: the log would else try to write the bank down."""

    def made() -> Solving:
        return solve

    return cast("Solving", _part("solver").solver(name="lessonbank")(made)())


def _part(name: str) -> Any:
    try:
        return importlib.import_module(f"inspect_ai.{name}".rstrip("."))
    except ModuleNotFoundError as missing:
        raise missing_extra("the wrapper for Inspect AI", extra="inspect") from missing
