"""Puts a bank around a crew of CrewAI: `ReasoningBankCrew(Crew(…), bank).kickoff()`."""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Unpack, cast

from pydantic import PrivateAttr

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Usage
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless, safely

try:
    from crewai import BaseLLM
    from crewai.agents.parser import AgentAction, OutputParserError, parse
    from crewai.tools.tool_failure import active_tool_failures
    from crewai.types.usage_metrics import UsageMetrics
except ImportError as missing:
    raise MissingExtra("the adapter of CrewAI", extra="crewai") from missing

_RESULT: Final = "\nObservation:"
"""What stands before the result of a tool where a model without tool calls works with text."""


@dataclass(slots=True)
class _Open:
    """A run that is not over. `messages` are those of all its attempts: CrewAI tries a task again by itself."""

    run: FollowedRun
    task: Any
    messages: list[object] = field(default_factory=list[object])
    attempts: int = 0
    requests: int = 0
    tokens: Any = field(default_factory=UsageMetrics)
    _asked: object = None
    _noted: list[object] = field(default_factory=list[object])

    def has(self, asked: Mapping[str, Any], task: Any) -> bool:
        """Whether a request is of this run. CrewAI does not say so when it asks for the last answer."""
        if self.run.text and self.run.text in str(asked["content"]):  # a model may call itself with what it was given
            return False
        if getattr(task, "id", None) != self.task.id and asked["content"] != self._asked:
            return False
        self._asked = asked["content"]
        self.requests += 1
        return True

    def note(self, agent: Any) -> None:
        """Take over what an attempt left in the agent's executor, which the next attempt clears."""
        self.run.can_call(lambda: getattr(agent.agent_executor, "original_tools", None))
        messages: list[object] = [*(getattr(agent.agent_executor, "messages", None) or ())]
        if messages == self._noted:
            return
        failures = active_tool_failures() or ()
        self.messages += [turn for message in messages for turn in _turns(message, failures)]
        self._noted = messages

    def usage(self) -> Usage:
        """What the models of this run said they used."""
        cost = self.tokens
        return Usage(requests=self.requests, input_tokens=cost.prompt_tokens, output_tokens=cost.completion_tokens)


_open: ContextVar[_Open | None] = ContextVar("open", default=None)
_ours: Final = set[type]()
"""The subclasses that are made here."""


class ReasoningBankCrew:
    """A crew of CrewAI whose agents are shown lessons. Each task that an agent does is a run that is learned from.

    It does everything that the crew does: `kickoff` and its other forms, streaming, training. The text stands at the
    beginning of the task's own message, and only in the requests: no agent and no output holds it. Work that an agent
    delegates is a run of its own, with the run of that agent as parent.

    The tasks and the agents of the crew are followed from now on.

    Args:
        crew: a `Crew`, also that of a `@CrewBase` class.
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the inputs of the kickoff: `lambda inputs: scope_of("acme", inputs["user"])`.
            Without it, the scope of the bank. If it fails, the run has no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, crew: Any, bank: ReasoningBank, /, **options: Unpack[Options[Mapping[str, Any]]]) -> None:
        self.crew = crew
        self.runs = RunFollower(bank, "crewai", **options)
        self._memory = _Memory(self.runs)
        for task in crew.tasks:
            self._memory.follow(task, _followed_task)
        for agent in crew.agents:
            self._memory.follow(agent, _followed_agent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["crew"], name)

    @property
    def last(self) -> FollowedRun | None:
        """The last run: `crew.runs.tell(crew.last.id, outcome=…)`."""
        return self._memory.last


class _Memory:
    """What the tasks and agents of a crew know of its bank."""

    def __init__(self, runs: RunFollower) -> None:
        self.runs, self.last = runs, cast("FollowedRun | None", None)

    def __deepcopy__(self, _: object) -> _Memory:
        return self

    def follow(self, target: Any, made: Callable[[Any], type]) -> None:
        """Give a task or an agent the methods that follow it. Each knows the bank that it was given last."""
        kind = type(target)
        if kind not in _ours:
            target.__class__ = made(kind)
        target._lessonbank = self

    async def begun(self, task: Any, agent: Any) -> str | None:
        """The id of a run whose recall is made without holding up the event loop."""
        if _is_open(task):
            return None
        id = new_id()
        await self.runs.begin(task.description, run=id, scope=self._scope_of(agent), parent=current_run())
        return id

    @contextmanager
    def followed(self, task: Any, agent: Any, id: str | None = None) -> Generator[tuple[_Open, list[Any]]]:
        """The run of a task. What CrewAI does again for the same task belongs to it, too."""
        answer: list[Any] = []
        current = _open.get()
        if current and _is_open(task):
            yield current, answer
            return
        scope = self._scope_of(agent)
        run = self.last = self.runs.begin_waiting(task.description, run=id, scope=scope, parent=current_run())
        open = _Open(run, task)
        token = _open.set(open)
        try:
            with run.running():
                yield open, answer
        except BaseException as error:
            _end(open, agent, error=error)
            raise
        else:
            _end(open, agent, answer=answer[0])
        finally:
            _open.reset(token)

    def _scope_of(self, agent: Any) -> str | None:
        return self.runs.scoped(getattr(getattr(agent, "crew", None), "_inputs", None) or {})


@cache
def _followed_task(kind: Any) -> type:
    """A subclass, because CrewAI copies tasks and agents with their class, for `kickoff_for_each` and more."""

    def _execute_core(task: Any, agent: Any, context: Any, tools: Any) -> Any:
        agent = agent or task.agent
        memory = _memory_of(task, agent)
        if memory is None:
            return kind._execute_core(task, agent, context, tools)
        with memory.followed(task, agent) as (_, answer):
            answer.append(kind._execute_core(task, agent, context, tools))
        return answer[0]

    async def _aexecute_core(task: Any, agent: Any, context: Any, tools: Any) -> Any:
        agent = agent or task.agent
        memory = _memory_of(task, agent)
        if memory is None:
            return await kind._aexecute_core(task, agent, context, tools)
        id = await memory.begun(task, agent)
        with memory.followed(task, agent, id) as (_, answer):
            answer.append(await kind._aexecute_core(task, agent, context, tools))
        return answer[0]

    return _subclass(kind, _linked(kind, {"_execute_core": _execute_core, "_aexecute_core": _aexecute_core}))


@cache
def _followed_agent(kind: Any) -> type:
    def execute_task(agent: Any, task: Any, *args: Any, **options: Any) -> Any:
        memory = _memory_of(agent)
        if memory is None:
            return kind.execute_task(agent, task, *args, **options)
        with memory.followed(task, agent) as (open, answer), _attempt(open, agent):
            answer.append(kind.execute_task(agent, task, *args, **options))
        return answer[0]

    async def aexecute_task(agent: Any, task: Any, *args: Any, **options: Any) -> Any:
        memory = _memory_of(agent)
        if memory is None:
            return await kind.aexecute_task(agent, task, *args, **options)
        id = await memory.begun(task, agent)
        with memory.followed(task, agent, id) as (open, answer), _attempt(open, agent):
            answer.append(await kind.aexecute_task(agent, task, *args, **options))
        return answer[0]

    return _subclass(kind, _linked(kind, {"execute_task": execute_task, "aexecute_task": aexecute_task}))


def _memory_of(target: Any, agent: Any = None) -> _Memory | None:
    """Whose it is; nobody's where a caller made it of a class that is here. The manager of a crew comes with a task."""
    memory: _Memory | None = target._lessonbank
    if memory and agent is not None and type(agent) not in _ours:
        with harmless("the beginning of a run"):
            memory.follow(agent, _followed_agent)
    return memory


def _linked(kind: Any, body: dict[str, Any]) -> dict[str, Any]:
    """What is copied from a followed one is followed, too."""

    def copy(original: Any, *args: Any, **options: Any) -> Any:
        made = kind.copy(original, *args, **options)
        made._lessonbank = original._lessonbank
        return made

    return {**body, "copy": copy, "_lessonbank": PrivateAttr(default=None)}


def _subclass(kind: Any, body: dict[str, Any]) -> type:
    """Make a class that others take for the original, with another `body`."""
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    ours = type(kind)(kind.__name__, (kind,), named | body)
    _ours.add(ours)
    return ours


def _is_open(task: Any) -> bool:
    current = _open.get()
    return current is not None and current.task.id == task.id


@contextmanager
def _attempt(open: _Open, agent: Any) -> Generator[None]:
    with harmless("the beginning of a run"):
        if open.attempts:
            open.note(agent)
        open.attempts += 1
        kind = type(agent.llm)
        if isinstance(agent.llm, BaseLLM) and kind not in _ours:
            agent.llm.__class__ = _class_with_text(kind)
    try:
        yield
    finally:
        with harmless("the end of a run"):
            open.note(agent)


@cache
def _class_with_text(kind: Any) -> type:
    """A class of models that puts the text of the open run into a request, and changes nothing outside of runs."""

    def call(llm: Any, messages: Any, *args: Any, **options: Any) -> Any:
        open, shown = _with_text(messages, options)
        if open:
            with harmless("a request"):
                shown = _with_cures(shown, open.run.follow_failures_waiting(_results(messages)))
        return kind.call(llm, shown, *args, **options)

    async def acall(llm: Any, messages: Any, *args: Any, **options: Any) -> Any:
        open, shown = _with_text(messages, options)
        if open:
            with harmless("a request"):
                shown = _with_cures(shown, await open.run.follow_failures(_results(messages)))
        return await kind.acall(llm, shown, *args, **options)

    def _track_token_usage_internal(llm: Any, usage_data: dict[str, Any]) -> None:
        open = _open.get()
        with harmless("the usage of a request"):
            if open and (cost := UsageMetrics.from_provider_dict(usage_data)):
                open.tokens.add_usage_metrics(cost)
        kind._track_token_usage_internal(llm, usage_data)

    for method in (call, acall):  # the model's own methods try again where there was a rate limit
        cast("Any", method)._crewai_rate_limit_wrapped = True
    return _subclass(kind, {"call": call, "acall": acall, "_track_token_usage_internal": _track_token_usage_internal})


def _with_text(messages: Any, options: Mapping[str, Any]) -> tuple[_Open | None, Any]:
    """The open run, if a request is of it, and the messages with the text before the words of the task."""
    open = _open.get()
    with harmless("a request"):
        asked = None if open is None or isinstance(messages, str) else next(filter(_asks, messages), None)
        if open and asked and open.has(asked, options.get("from_task")):
            text, content = open.run.text, asked["content"]
            shown = {**asked, "content": _before(content, text)} if text else asked
            return open, [shown if message is asked else message for message in messages]
    return None, messages


def _results(messages: Sequence[Mapping[str, Any]]) -> Generator[ToolResult]:
    """What tools gave, by the id of the call, or by its place where the model writes calls as text."""
    failures, calls = active_tool_failures() or (), dict[str, Any]()
    for place, message in enumerate(messages):
        calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or () if "id" in call}
        *_, result = _turns(message, failures)
        last_turn = cast("dict[str, Any]", result)
        if last_turn["role"] != "tool":
            continue
        written = cast("Any", _turns(message, failures)[0]).get("tool_calls") or ()
        id = message.get("tool_call_id") or f"{place}"
        if call := calls.get(id) or next((tool_call["function"] for tool_call in written), None):
            arguments = call["arguments"]
            arguments = _arguments(arguments) if isinstance(arguments, str) else arguments
            yield ToolResult(id, call["name"], arguments, last_turn["content"], last_turn["is_error"] or None)


def _with_cures(messages: Any, cures: Mapping[str, str]) -> Any:
    """The messages, each failure of a tool followed by what got past it before."""
    return [
        {**message, "content": f"{message['content']}\n\n{text}"}
        if (text := cures.get(message.get("tool_call_id") or f"{place}"))
        else message
        for place, message in enumerate(messages)
    ]


def _asks(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user"


def _before(content: Any, text: str) -> Any:
    return [{"type": "text", "text": text}, *content] if isinstance(content, list) else f"{text}\n\n{content or ''}"


def _turns(message: Any, failures: Sequence[Any]) -> list[object]:
    """A message of an executor in the shape that `learn` reads."""
    content = message.get("content")
    if message.get("role") == "tool":
        called = {"role": "tool", "content": content, "tool_call_id": message.get("tool_call_id")}
        return [{**called, "is_error": _failed(message.get("name"), content, failures)}]
    if message.get("role") == "assistant" and isinstance(content, str) and _RESULT in content:
        text, _, result = content.partition(_RESULT)
        return _action(text, result.strip(), failures)
    return [{key: message[key] for key in ("role", "content", "tool_calls") if key in message}]


def _action(text: str, result: str, failures: Sequence[Any]) -> list[object]:
    """A call that a model without tool calls wrote as text, and what came back."""
    name = None
    message: dict[str, Any] = {"role": "assistant", "content": text}
    with suppress(OutputParserError):
        action: Any = parse(text)
        if isinstance(action, AgentAction):
            name = action.tool
            called = {"name": name, "arguments": _arguments(action.tool_input)}
            message["tool_calls"] = [{"type": "function", "function": called}]
    return [message, {"role": "tool", "content": result, "is_error": _failed(name, result, failures)}]


def _arguments(written: str) -> Any:
    try:
        arguments = json.loads(written or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"input": written}


def _failed(tool: Any, result: Any, failures: Sequence[Any]) -> bool:
    return any(failure.tool_name == tool and failure.message in str(result) for failure in failures)


def _about(task: Any, agent: Any) -> dict[str, Any]:
    fields = {"agent": getattr(agent, "role", None), "task": getattr(task, "name", None)}
    return {key: value for key, value in fields.items() if value}


@safely
def _end(open: _Open, agent: Any, *, answer: Any = None, error: BaseException | None = None) -> None:
    about = _about(open.task, agent)
    if error is not None:
        usage = open.usage() if isinstance(error, Exception) else None
        open.run.fail(error, open.messages, usage=usage, metadata=about)
    else:
        open.run.finish(open.messages, answer=_text_of(answer), usage=open.usage(), metadata=about)


def _text_of(result: Any) -> str:
    result = getattr(result, "raw", result)
    return result.model_dump_json() if hasattr(result, "model_dump_json") else str(result)
