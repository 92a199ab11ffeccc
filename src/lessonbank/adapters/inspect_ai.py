"""Puts a bank into evaluations of Inspect AI: `Task(…, solver=ReasoningBankMemory(bank).solver(react()))`."""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false
# pyright: reportUntypedClassDecorator=false, reportUnknownParameterType=false

from __future__ import annotations

import functools
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, Unpack

import anyio.to_thread

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Json, Usage
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless, open_run

try:
    from inspect_ai.hooks import BeforeModelGenerate, Hooks, SampleEnd, SampleStart, hooks
    from inspect_ai.log import transcript
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import value_to_float
    from inspect_ai.solver import chain, solver
    from inspect_ai.util import LimitExceededError, current_span_id
except ImportError as missing:
    raise MissingExtra("the adapter of Inspect AI", extra="inspect-ai") from missing

Reward: TypeAlias = "Callable[[Mapping[str, Any]], float | None]"
"""The reward of a sample from 0 to 1, from its scores by the names of their scorers; `None`: they do not tell."""
_waiting: Final[dict[str, list[Callable[[Mapping[str, Any]], None]]]] = {}
"""The runs of the samples that are being evaluated: they end when their sample has its scores."""


def first_score(scores: Mapping[str, Any], /) -> float | None:
    """The first score, as Inspect AI makes a number of it; `None` where it is no single value."""
    value = next((score.value for score in scores.values()), None)
    if not isinstance(value, str | int | float) or (isinstance(value, float) and math.isnan(value)):
        return None
    return min(1.0, max(0.0, float(value_to_float()(value))))


class ReasoningBankMemory:
    """Makes solvers and agents of Inspect AI that are shown lessons, and whose runs are kept and learned from.

    The text is a user message before the first user message of the sample. It is taken out of the state when the
    solver has ended, so scorers do not see it; the events of the log show each request as it was.

    The scores of a sample are the truth about its run. A sample that a limit stops is a failure, unless it has a score.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the state: `lambda state: scope_of("evals", state.metadata["user"])`. Without
            it, the scope of the bank.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a run that no score tells about. It beats the judge.
        reward: reads the reward from the scores.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(
        self, bank: ReasoningBank, /, *, reward: Reward = first_score, **options: Unpack[Options[Any]]
    ) -> None:
        self.runs = RunFollower(bank, "inspect-ai", **options)
        self._reward = reward

    def solver(self, *solvers: Any) -> Any:
        """A solver that is `solvers` with memory: solvers, agents, or lists of them, as `Task(solver=…)` takes them."""
        inner = chain(*solvers)

        async def solve(state: Any, generate: Any) -> Any:
            async with self._followed(state, str(state.input_text), uuid=state.uuid) as ended:
                ended.append(await inner(state, generate))
            return ended[-1]

        # Under a name and without arguments: the log would try to write the bank down.
        return solver(name="lessonbank")(lambda: solve)()

    def agent(self, agent: Any, /) -> Any:
        """The agent with memory, for `as_tool`, `handoff` and `run`: it keeps its name, and has runs of its own."""

        @functools.wraps(agent)
        async def execute(state: Any, *args: Any, **options: Any) -> Any:
            asked = next((m.text for m in reversed(state.messages) if m.role == "user"), "")
            async with self._followed(state, asked, uuid="") as ended:
                ended.append(await agent(state, *args, **options))
            return ended[-1]

        return execute

    @asynccontextmanager
    async def _followed(self, state: Any, task: str, *, uuid: str) -> AsyncGenerator[list[Any]]:
        scope = self.runs.scoped(state)
        begin = partial(self.runs.begin_waiting, task, scope=scope, parent=current_run())
        run = await anyio.to_thread.run_sync(begin)  # Inspect AI runs on asyncio or trio
        shown, earlier, own = _show(state, run.text), len(transcript().events), current_span_id()
        ended = [state]

        def over() -> Any:
            run.can_call(partial(_tools, earlier))
            return _hidden(ended[-1], shown)

        def keep(sample: str, error: BaseException | None = None) -> None:
            with harmless("the end of a run"):
                state = over()
                usage = _usage_of_sample() if uuid in _waiting else _usage_within(own, earlier)
                self._finish(run, state, sample, usage, error=error)

        try:
            with run.running():
                yield ended
        except LimitExceededError as limit:
            keep(uuid, limit)
            raise
        except Exception as error:
            keep("", error)
            raise
        except BaseException as stopped:  # cancelled, or left
            with harmless("the end of a run"):
                run.fail(stopped, _source(over()))
            raise
        keep(uuid)

    def _finish(
        self, run: FollowedRun, state: Any, uuid: str, usage: Usage, *, error: BaseException | None = None
    ) -> None:
        """Now, or when the sample has its scores."""
        source, where = _source(state), _where(state)

        def finish(scores: Mapping[str, Any]) -> None:
            reward = None
            with harmless("reward="):  # the caller's own code: without it the judge decides
                reward = self._reward(scores)
            run.finish(source, error=error, reward=reward, usage=usage, metadata=where)

        if uuid in _waiting:
            _waiting[uuid].append(finish)
        else:
            run.finish(source, error=error, usage=usage, metadata=where)


@hooks(name="lessonbank", description="Tells lessonbank how samples were scored.")
class _Samples(Hooks):
    """Inspect AI keeps one for the process. An error in it is a warning of Inspect AI."""

    async def on_sample_start(self, data: SampleStart) -> None:
        _waiting[data.sample_id] = []

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        """Follow a failure by what got past it before: in the request alone, with the same bytes in each."""
        if run := open_run():
            with harmless("a request"):
                results = list(_results(data.input))
                cures = await anyio.to_thread.run_sync(run.follow_failures_waiting, results)
                data.input[:] = [_followed_by(message, cures) for message in data.input]

    async def on_sample_end(self, data: SampleEnd) -> None:
        for finish in _waiting.pop(data.sample_id, ()):
            finish(data.sample.scores or {})


def _show(state: Any, text: str) -> str:
    """Add the text to the messages; the id of its message, or nothing where there is no text."""
    if not text:
        return ""
    before = list(state.messages)
    place = next((n for n, message in enumerate(before) if message.role == "user"), len(before))
    id = new_id()
    state.messages = [*before[:place], ChatMessageUser(content=text, id=id), *before[place:]]
    return id


def _results(messages: Sequence[Any]) -> Iterator[ToolResult]:
    calls = {call.id: call for message in messages if message.role == "assistant" for call in message.tool_calls or ()}
    for message in messages:
        if message.role == "tool" and (call := calls.get(message.tool_call_id)):
            output = message.error.message if message.error else message.text
            yield ToolResult(call.id, call.function, call.arguments, output, bool(message.error) or None)


def _followed_by(message: Any, cures: Mapping[str, str]) -> Any:
    """The message, with what got past its failure; a request that is made again has it already."""
    text = cures.get(message.tool_call_id or "") if message.role == "tool" else None
    if not text or text in message.text:
        return message
    output = message.error.message if message.error else message.text
    return message.model_copy(update=_with_text(message, f"{output}\n\n{text}"))


def _with_text(message: Any, text: str) -> dict[str, Any]:
    """Where a tool failed, the model reads the error and not the content."""
    if message.error:
        return {"content": text, "error": replace(message.error, message=text)}
    return {"content": text}


def _hidden(state: Any, shown: str) -> Any:
    if shown:
        state.messages = [message for message in state.messages if message.id != shown]
    return state


def _tools(earlier: int) -> Sequence[Any]:
    """Return the tools of the first request after so many events."""
    called = (event for event in transcript().events[earlier:] if event.event == "model")
    return getattr(next(called, None), "tools", ())


def _where(state: Any) -> dict[str, Json]:
    sample = getattr(state, "sample_id", None)
    return {} if sample is None else {"sample": str(sample), "epoch": int(state.epoch)}


def _usage_of_sample() -> Usage:
    """What the calls of the sample cost so far, those of agents within it too."""
    return _usage(event.output for event in transcript().events if event.event == "model")


def _usage_within(span: str | None, earlier: int) -> Usage:
    """What the calls in a span and in the spans within it cost, after so many events."""
    events, inside = transcript().events[earlier:], {span}
    for event in events:
        if event.event == "span_begin" and event.parent_id in inside:
            inside.add(event.id)
    return _usage(event.output for event in events if event.event == "model" and event.span_id in inside)


def _usage(outputs: Iterable[Any]) -> Usage:
    called = list(outputs)
    costs = [output.usage for output in called if output.usage]
    return Usage(
        requests=len(called),
        input_tokens=sum(cost.input_tokens for cost in costs),
        output_tokens=sum(cost.output_tokens for cost in costs),
    )


def _source(state: Any) -> list[object]:
    return [_message(message) for message in state.messages]


def _message(original: Any) -> dict[str, Any]:
    """A message in the shape of OpenAI's chat."""
    message: dict[str, Any] = {"role": original.role, "content": original.text}
    if original.role == "tool":
        fields = {
            "tool_call_id": original.tool_call_id,
            "name": original.function,
            "is_error": original.error is not None,
        }
        return {**message, "content": original.error.message if original.error else original.text, **fields}
    if original.role != "assistant":
        return message
    parts = [] if isinstance(original.content, str) else original.content
    thoughts = [part.reasoning for part in parts if part.type == "reasoning" and not part.redacted]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": call.arguments}}
        for call in original.tool_calls or ()
    ]
    more = {"reasoning_content": "\n".join(thoughts), "tool_calls": calls}
    return {**message, **{key: value for key, value in more.items() if value}}
