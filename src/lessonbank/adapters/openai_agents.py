"""Puts a bank into the OpenAI Agents SDK: `ReasoningBankRunner(bank).run(agent, …)` for `Runner.run(agent, …)`."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

from lessonbank.bank.sync import ReasoningBank
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless, last_asked, safely

try:
    from agents import Agent, Handoff, RunConfig, RunHooks, Runner, RunResult, RunResultStreaming
    from agents.items import ModelResponse, RunItem
    from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
except ImportError as missing:
    raise MissingExtra("the adapter of the OpenAI Agents SDK", extra="openai-agents") from missing

_STORED_BY_SERVER: Final = ("conversation_id", "previous_response_id", "auto_previous_response_id")
"""Options with which a request holds only what is new: the server has the rest."""
_PAUSED: Final = "_lessonbank_run"
"""Where a run that waits for an approval stays, on the context that the SDK takes along."""


class ReasoningBankRunner:
    """Runs agents as `Runner` does, shows lessons in the requests of each run, and learns from each run.

    `run`, `run_sync` and `run_streamed` take what those of `Runner` take, and `run_id`, by which `runs.tell` finds the
    run. The text stands in a user message before the input of the run, and only in the request: neither the session
    nor the result has it.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the `context=` of the run: `lambda context: scope_of("acme", context.user)`.
            Without it, the scope of the bank. If it fails, the run has no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, bank: ReasoningBank, /, **options: Unpack[Options[Any]]) -> None:
        self.runs = RunFollower(bank, "openai-agents", **options)

    async def run(
        self, starting_agent: Agent[Any], input: Any, *, run_id: str | None = None, **options: Any
    ) -> RunResult:
        """`Runner.run`, with memory."""
        if not (record := self._record(input, run_id, options)):
            return await Runner.run(starting_agent, input, **options)
        with record.ending():
            result = await Runner.run(starting_agent, input, **record.options)
        record.ended(result)
        return result

    def run_sync(
        self, starting_agent: Agent[Any], input: Any, *, run_id: str | None = None, **options: Any
    ) -> RunResult:
        """`Runner.run_sync`, with memory."""
        if not (record := self._record(input, run_id, options)):
            return Runner.run_sync(starting_agent, input, **options)
        with record.ending():
            result = Runner.run_sync(starting_agent, input, **record.options)
        record.ended(result)
        return result

    def run_streamed(
        self, starting_agent: Agent[Any], input: Any, *, run_id: str | None = None, **options: Any
    ) -> RunResultStreaming:
        """`Runner.run_streamed`, with memory. The run ends with its task, also when nobody reads the events."""
        if not (record := self._record(input, run_id, options)):
            return Runner.run_streamed(starting_agent, input, **options)
        with record.ending():
            result = Runner.run_streamed(starting_agent, input, **record.options)
        if result.run_loop_task:
            result.run_loop_task.add_done_callback(partial(record.stream_ended, result))
        return result

    @safely
    def _record(self, input: Any, run_id: str | None, options: dict[str, Any]) -> _Record:
        context = getattr(input, "_context", None)  # of a run that goes on
        record = getattr(context, _PAUSED, None)
        if record is None:
            user_context = context.context if context else options.get("context")
            record = _Record(self.runs, scope=self.runs.scoped(user_context), parent=current_run())
            record.start(_items(getattr(input, "_original_input", input)), run_id)
        record.take(options)
        return record


class _Record:
    """One run: what the SDK is given to show the lessons, and what is seen of the run."""

    def __init__(self, runs: RunFollower, /, *, scope: str | None, parent: str | None, is_part: bool = False) -> None:
        self.run: FollowedRun | None = None
        self._runs, self._scope, self._parent, self._is_part = runs, scope, parent, is_part
        self._own: Sequence[Any] = ()
        self._is_stored = False
        self._filter: CallModelInputFilter | None = None
        self._instructions: dict[str, None] = {}
        self._agents: set[int] = set()
        self._seen: list[Any] = []
        self._parts: dict[str, _Record] = {}
        self.options: dict[str, Any] = {}

    def start(self, items: Sequence[Any], run_id: str | None = None) -> FollowedRun:
        """Begin with what was asked: the input without what was said before."""
        self._own = items[last_asked([_role(item) == "user" for item in items]) :]
        asked = "\n".join(_text(item) for item in self._own)
        self.run = self._runs.start(asked, run=run_id, scope=self._scope, parent=self._parent)
        return self.run

    def take(self, options: dict[str, Any]) -> None:
        """Add the filter and the hooks to the options of the caller."""
        config = options.get("run_config") or RunConfig()
        config = RunConfig(**config) if isinstance(config, dict) else config
        self._filter = config.call_model_input_filter
        self._is_stored = any(options.get(name) for name in _STORED_BY_SERVER)
        hooks = _Hooks(options.get("hooks") or RunHooks(), self)
        self.options = {**options, "run_config": replace(config, call_model_input_filter=self.filter), "hooks": hooks}

    @contextmanager
    def ending(self) -> Generator[None]:
        """Keep the run if it does not return. What begins inside has it as its parent."""
        try:
            with self.run.running() if self.run else nullcontext():
                yield
        except BaseException as error:
            self.raised(error)
            raise

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Put the text before the input of this run: at the same place with the same bytes in each request."""
        sent = list(data.model_data.input)
        if self._filter:
            given = self._filter(data)
            data = replace(data, model_data=await given if inspect.isawaitable(given) else given)
        with harmless("filter"):  # the SDK ends the run when a filter fails
            model_data = await self._add_text(sent, data.model_data, data.agent)
            return replace(model_data, input=await self._with_cures(model_data.input))
        return data.model_data

    async def _with_cures(self, items: Sequence[Any]) -> list[Any]:
        """The items, each failure of a tool followed by what got past it before: the same bytes in each request."""
        if not self.run:
            return list(items)
        calls = {item.get("call_id"): item for item in items if isinstance(item, dict) and "name" in item}
        given = [item for item in items if isinstance(item, dict) and item.get("type") == "function_call_output"]
        results = [
            ToolResult(str(id), calls[id]["name"], _arguments(calls[id]), item.get("output"), _is_failure(item) or None)
            for item in given
            if (id := item["call_id"]) in calls
        ]
        cures = await self.run.follow_failures(results)
        return [_followed_by(item, cures.get(item.get("call_id"), "")) for item in items]

    async def _add_text(self, sent: list[Any], model_data: ModelInputData, agent: Any) -> ModelInputData:
        run = self.run or self.start(sent)
        run = await self._runs.begin(run.task, run=run.id)
        start = _place(sent, self._own)
        if start is None and self._is_part:  # the request of an agent below this one
            return model_data
        self._instructions[model_data.instructions or ""] = None
        if id(agent) not in self._agents:
            self._agents.add(id(agent))
            run.can_call(lambda: _callable(agent))
        if start is None and self._is_stored:  # the rest of a conversation that the server has
            self._seen += sent
            return model_data
        self._seen = sent[start or 0 :]
        place = _place(model_data.input, self._own) or 0
        shown: Any = [{"role": "user", "content": run.text}] if run.text else []
        return replace(model_data, input=[*model_data.input[:place], *shown, *model_data.input[place:]])

    @safely
    def answered(self, response: ModelResponse) -> None:
        """Keep the answer in sight: a crash leaves no result to read it from."""
        self._seen = [*self._seen, *response.to_input_items()]

    @safely
    def tool_begins(self, context: Any) -> None:
        """Give an agent that works as this tool a record of its own."""
        if self.run and getattr(context, "run_config", None):
            part = _Record(self._runs, scope=self._scope, parent=self.run.id, is_part=True)
            part.take({"run_config": replace(context.run_config, call_model_input_filter=self._filter)})
            context.run_config = part.options["run_config"]
            self._parts[context.tool_call_id] = part

    @safely
    def tool_ended(self, context: Any, result: object) -> None:
        """Keep the run of the agent that worked as this tool."""
        part = self._parts.pop(getattr(context, "tool_call_id", ""), None)
        if part and part.run:
            part.run.finish(part.messages([*part._seen, {"role": "assistant", "content": str(result)}]))

    @safely
    def ended(self, result: RunResult | RunResultStreaming) -> None:
        """Keep the run, unless it waits for an approval: then it stays with the context that the SDK takes along."""
        if result.interruptions:
            setattr(result.context_wrapper, _PAUSED, self)
            return
        messages = self.messages([*self._own, *_messages_of(result.new_items, result.raw_responses)])
        if self.run and _ran_out(result):
            self.run.finish(messages, error="MaxTurnsExceeded: the run had no turn left")
        elif self.run and result.final_output is None:
            self.run.stop(messages, reason="cancelled")
        elif self.run:
            self.run.finish(messages)

    @safely
    def raised(self, error: BaseException) -> None:
        """Keep a run that crashed or was left, and the agents that worked in it."""
        for part in self._parts.values():
            part.raised(error)
        if not self.run:
            return
        data = getattr(error, "run_data", None)  # errors of the SDK itself say what happened, but not in the last turn
        history = [*self._own, *_messages_of(data.new_items, data.raw_responses)] if data else []
        seen = max(history, self._seen, key=len)
        self.run.fail(error, self.messages(seen))

    @safely
    def stream_ended(self, result: RunResultStreaming, task: asyncio.Task[Any]) -> None:
        """Keep a streamed run, however its task ended."""
        if task.cancelled():
            self.raised(asyncio.CancelledError())
        elif error := task.exception():
            self.raised(error)
        else:
            self.ended(result)

    def messages(self, items: Sequence[Any]) -> list[Any]:
        """The items, after the instructions of the agents."""
        instructions = ({"role": "system", "content": text} for text in self._instructions if text)
        return [*instructions, *({**item, "is_error": True} if _is_failure(item) else item for item in items)]


class _Hooks(RunHooks[Any]):
    """The hooks of the caller, and after them ours."""

    def __init__(self, hooks: RunHooks[Any], record: _Record) -> None:
        self._hooks, self._record = hooks, record
        for name in ("on_llm_start", "on_agent_start", "on_agent_end", "on_handoff"):
            setattr(self, name, getattr(hooks, name))

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        """Keep the answer in sight."""
        await self._hooks.on_llm_end(context, agent, response)
        self._record.answered(response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Follow an agent that works as a tool."""
        await self._hooks.on_tool_start(context, agent, tool)
        self._record.tool_begins(context)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Keep the run of an agent that worked as a tool."""
        self._record.tool_ended(context, result)
        await self._hooks.on_tool_end(context, agent, tool, result)


def _callable(agent: Any) -> list[Any]:
    """What an agent can call, without asking anybody: an MCP server told the SDK its tools before this request."""
    tools = list(agent.tools)
    for other in agent.handoffs:
        if isinstance(other, Handoff):
            definition = (other.tool_name, other.tool_description, other.input_json_schema)
        else:
            definition = (Handoff.default_tool_name(other), Handoff.default_tool_description(other), {})
        tools.append(dict(zip(("name", "description", "parameters"), definition, strict=True)))
    if agent.mcp_config.get("include_server_in_tool_names"):  # under which names, only the SDK knows
        return tools
    return tools + [tool for server in agent.mcp_servers for tool in _told_by(server)]


def _told_by(server: Any) -> list[Any]:
    """The tools of an MCP server that the model may see; none where only a function of the program knows which."""
    wanted = getattr(server, "tool_filter", None)
    if wanted is not None and not isinstance(wanted, dict):
        return []
    allowed, blocked = ((wanted or {}).get(f"{kind}_tool_names") for kind in ("allowed", "blocked"))
    tools: list[Any] = server.cached_tools or []
    return [tool for tool in tools if (allowed is None or tool.name in allowed) and tool.name not in (blocked or ())]


def _ran_out(result: Any) -> bool:
    """Whether a streamed run had no turn left: only who reads its events gets the error."""
    turn, most = getattr(result, "current_turn", 0), getattr(result, "max_turns", None)
    return result.final_output is None and most is not None and turn > most


def _items(given: Any) -> list[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _place(items: Sequence[Any], own: Sequence[Any]) -> int | None:
    """Where the input of this run begins in a request."""
    first = own[0] if own else None
    same = (_role(first), _content(first))
    return next((p for p in reversed(range(len(items))) if (_role(items[p]), _content(items[p])) == same), None)


def _role(item: Any) -> object:
    return item.get("role") if isinstance(item, dict) else None


def _content(item: Any) -> object:
    return item.get("content") if isinstance(item, dict) else None


def _text(item: Any) -> str:
    content: Any = _content(item)
    parts: list[Any] = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _arguments(call: Any) -> Any:
    with suppress(ValueError):
        return json.loads(call.get("arguments") or "{}")
    return call.get("arguments")


def _followed_by(item: Any, text: str) -> Any:
    is_result = isinstance(item, dict) and item.get("type") == "function_call_output"
    return {**item, "output": f"{item['output']}\n\n{text}"} if text and is_result else item


def _is_failure(item: Any) -> bool:
    """Whether a tool failed: the SDK tells the model so in its own words, and notes it nowhere."""
    output = item.get("output") if isinstance(item, dict) else None
    return isinstance(output, str) and output.startswith("An error occurred while running the tool")


def _messages_of(items: Sequence[RunItem], responses: Sequence[ModelResponse]) -> list[Any]:
    """What was said and done in a run, with what each answer of the model cost."""
    used = {id(response.output[0]): response.usage for response in responses if response.output}
    messages: list[Any] = []
    for item in items:
        if item.type == "tool_approval_item":  # the call itself stands before it
            continue
        messages.append(item.to_input_item())
        if usage := used.get(id(item.raw_item)):
            counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            messages[-1] = {**messages[-1], "usage_metadata": counts}
    return messages
