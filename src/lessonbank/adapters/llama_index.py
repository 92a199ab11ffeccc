"""Puts a bank around a workflow agent of LlamaIndex: `ReasoningBankAgent(FunctionAgent(…), bank).run("…")`."""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final, Unpack

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, current_run, harmless

try:
    from llama_index.core.llms import ChatMessage
    from workflows.errors import WorkflowCancelledByUser
except ImportError as missing:
    raise MissingExtra("the adapter of LlamaIndex", extra="llama-index") from missing

_TOKENS: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_token_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidates_token_count"),
}
"""What providers call them."""


class ReasoningBankAgent:
    """An agent of LlamaIndex that is shown lessons, and whose runs are kept and learned from.

    It does everything that the agent does; `run` gives the handler of LlamaIndex, to be awaited or streamed. The text
    is a user message before the one of the run, and only in the requests: neither the memory nor the context of the
    agent holds it.

    Args:
        agent: a `FunctionAgent`, a `ReActAgent`, a `CodeActAgent`, or an `AgentWorkflow` of several: then a hand-off
            is part of the run. Agents are taken over: what runs them without this object has no memory all the same.
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the keywords of `run`: `lambda told: scope_of("acme", told["user"])`, for
            `agent.run("…", user="u-17")`. Without it, the scope of the bank.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, agent: Any, bank: ReasoningBank, /, **options: Unpack[Options[Mapping[str, Any]]]) -> None:
        self.agent = agent
        self.runs = RunFollower(bank, "llama-index", **options)
        self._agents = list(getattr(agent, "agents", {"": agent}).values())
        for member in self._agents:
            if not hasattr(member.take_step, "lessonbank"):  # a program may put a bank around one agent in each request
                # An agent is a pydantic model, which takes no other fields.
                object.__setattr__(member, "take_step", _step(member, member.take_step))
                object.__setattr__(
                    member, "handle_tool_call_results", _results(member, member.handle_tool_call_results)
                )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["agent"], name)

    def run(self, *args: Any, **options: Any) -> Any:
        """Begin a run, as the agent's own `run` does. Its id is `handler.lessonbank_run`."""
        id = new_id()
        scope = self.runs.scoped(options)
        run = self.runs.start(_task(args, options), run=id, scope=scope, parent=current_run())
        before = _here.set(self)
        try:
            with run.running():
                handler = self.agent.run(*args, **options)
        finally:
            _here.reset(before)
        handler.lessonbank_run = id
        # Before anybody who awaits the handler goes on: whoever has the answer may close the bank.
        handler._result_task.add_done_callback(partial(_ended, run))  # pyright: ignore[reportPrivateUsage]
        return handler

    def run_of(self, agent: Any, /) -> FollowedRun | None:
        """The run in which this code runs, if it is one of this object and the agent works in it."""
        return self.runs.get(current_run() or "") if any(member is agent for member in self._agents) else None


_here: ContextVar[ReasoningBankAgent | None] = ContextVar("here", default=None)


def _run_of(agent: Any) -> tuple[FollowedRun | None, RunFollower | None]:
    here = _here.get()
    return (here.run_of(agent), here.runs) if here else (None, None)


def _step(agent: Any, take: Any) -> Any:
    @wraps(take)
    async def take_step(ctx: Any, llm_input: list[Any], tools: Any, memory: Any) -> Any:
        run, runs = _run_of(agent)
        if run is None or runs is None:
            return await take(ctx, llm_input, tools, memory)
        if not run.has_observed:
            run.observe(*(_message(message) for message in llm_input if message.role == "system"))
            run.observe({"role": "user", "content": run.task})
        await runs.begin(run.task, run=run.id)
        run.can_call(lambda: [tool.metadata for tool in tools], _definition)
        output = await take(ctx, _with_text(llm_input, run), tools, memory)
        run.observe(_message(output.response, output.tool_calls) | _cost(output.raw))
        return output

    setattr(take_step, "lessonbank", True)  # noqa: B010 - a function has no such attribute by its type
    return take_step


def _results(agent: Any, handle: Any) -> Any:
    @wraps(handle)
    async def handle_tool_call_results(ctx: Any, results: list[Any], memory: Any) -> Any:
        if run := _run_of(agent)[0]:
            run.observe(*(_result(result) for result in results))
            for result in results:
                with harmless("the end of a tool"):
                    await _follow(result, run)
        return await handle(ctx, results, memory)

    return handle_tool_call_results


def _task(args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    """The user's message, or the last one of the conversation that is handed over in its place."""
    asked = options.get("user_msg") or next(
        (argument for argument in args[:1] if isinstance(argument, str | ChatMessage)), None
    )
    if asked is None:
        history = options.get("chat_history") or ()
        asked = next((message for message in reversed(history) if message.role == "user"), "")
    return asked if isinstance(asked, str) else str(asked.content or "")


def _with_text(messages: list[Any], run: FollowedRun) -> list[Any]:
    """At the same place in each step: before the message that asks for the task."""
    if not run.text:
        return messages
    places = [n for n, message in enumerate(messages) if message.role == "user"]
    asked = [n for n in places if run.task in str(messages[n].content or "")]
    place = next(reversed(asked or places), len(messages))
    return [*messages[:place], ChatMessage(role="user", content=run.text), *messages[place:]]


def _definition(tool: Any) -> object:
    return {"name": tool.name, "description": tool.description, "parameters": tool.get_parameters_dict()}


def _message(message: Any, calls: Any = ()) -> dict[str, Any]:
    made = [
        {"id": call.tool_id, "type": "function", "function": {"name": call.tool_name, "arguments": call.tool_kwargs}}
        for call in calls
    ]
    return {"role": str(message.role.value), "content": message.content or "", **({"tool_calls": made} if made else {})}


def _cost(raw: Any) -> dict[str, Any]:
    """The tokens of a request, where the answer of the provider, as LlamaIndex hands it on, tells them."""
    with harmless("the tokens of a request"):
        usage = _field(raw, "usage") or _field(raw, "usage_metadata")
        counts = {kind: next((n for name in names if (n := _field(usage, name))), 0) for kind, names in _TOKENS.items()}
        return {"usage_metadata": counts} if any(counts.values()) else {}
    return {}


def _field(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _result(result: Any) -> dict[str, Any]:
    output = result.tool_output
    fields = {"tool_call_id": result.tool_id, "name": result.tool_name, "is_error": bool(output.is_error)}
    return {"role": "tool", "content": str(output.content), **fields}


async def _follow(result: Any, run: FollowedRun) -> None:
    """Follow a failure by what got past it before."""
    output, arguments = result.tool_output, result.tool_kwargs
    failed = bool(output.is_error) or None
    if text := await run.came_back(result.tool_id, result.tool_name, arguments, str(output.content), failed):
        output.content = f"{output.content}\n\n{text}"


def _ended(run: FollowedRun, result: asyncio.Task[Any]) -> None:
    error = None if result.cancelled() else result.exception()
    if result.cancelled() or isinstance(error, WorkflowCancelledByUser):
        run.stop(reason="cancelled")
    elif error is not None:
        run.fail(error)
    else:
        response = getattr(getattr(result.result(), "result", None), "response", None)
        run.finish(answer=str(response.content or "") if response else None)
