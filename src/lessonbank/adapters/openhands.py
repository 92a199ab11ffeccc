"""Puts a bank around a conversation of OpenHands: `ReasoningBankConversation(Conversation(…), bank).run()`."""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, Unpack

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Usage
from lessonbank.errors import MissingExtra, UsageError

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless, safely

try:
    from openhands.sdk import LocalConversation
    from openhands.sdk.conversation.response_utils import get_agent_final_response
    from openhands.sdk.conversation.state import ConversationExecutionStatus
    from openhands.sdk.event import (
        ActionEvent,
        AgentErrorEvent,
        InterruptEvent,
        MessageEvent,
        ObservationBaseEvent,
        PauseEvent,
        SystemPromptEvent,
    )
    from openhands.sdk.event.conversation_error import ConversationErrorEvent
    from openhands.sdk.llm import TextContent, content_to_str
    from openhands.sdk.tool import ToolDefinition
    from openhands.sdk.tool.builtins.finish import FinishAction, FinishTool
except ImportError as missing:
    raise MissingExtra("the adapter of OpenHands", extra="openhands") from missing

_FAILED: Final = {ConversationExecutionStatus.ERROR, ConversationExecutionStatus.STUCK}
_BREAKS: Final = (ConversationErrorEvent, InterruptEvent, PauseEvent)
_EXIT_CODE: Final = re.compile(r"completed with exit code (\d{1,3})\b")
"""How OpenHands tells the model that a command failed."""
_ours: Final = set[type]()
"""The subclasses that are made here."""


@dataclass(slots=True)
class _Open:
    """A run that is not over."""

    run: FollowedRun
    conversation: str
    asked: Any
    """The content of the user's message, as requests hold it."""
    start: int
    """The number of the message's event."""
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, response: Any) -> None:
        """Add what a response says that it used."""
        self.requests += 1
        used = getattr(response.raw_response, "usage", None)
        self.input_tokens += getattr(used, "prompt_tokens", None) or getattr(used, "input_tokens", None) or 0
        self.output_tokens += getattr(used, "completion_tokens", None) or getattr(used, "output_tokens", None) or 0

    def usage(self) -> Usage:
        """What the models of this run said they used."""
        return Usage(requests=self.requests, input_tokens=self.input_tokens, output_tokens=self.output_tokens)


_open: ContextVar[_Open | None] = ContextVar("open", default=None)


class ReasoningBankConversation:
    """A conversation of OpenHands whose agent is shown lessons. Each task in it is a run that is learned from.

    It does everything that the conversation does; only `run` and `arun` are different. A run begins with the user's
    message and ends when the agent has finished. While an action waits for the user's confirmation, it goes on. The
    text stands before the user's message, and only in the requests: no event holds it.

    Args:
        conversation: a local `Conversation` whose agent asks a model itself.
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the conversation: `lambda one: scope_of("acme", one.state.tags["user"])`.
            Without it, the scope of the bank. If it fails, the run has no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, a patience that cannot be, or a conversation whose model is asked elsewhere.
    """

    def __init__(self, conversation: Any, bank: ReasoningBank, /, **options: Unpack[Options[Any]]) -> None:
        if not isinstance(conversation, LocalConversation) or not conversation.agent.supports_openhands_tools:
            raise UsageError("only a local conversation can be followed: put `lessonbank proxy` before any other model")
        self.conversation: Any = conversation
        self.runs = RunFollower(bank, "openhands", **options)
        self.last: FollowedRun | None = None
        """The last run: `conversation.runs.tell(conversation.last.id, outcome=…)`."""
        self._waiting: _Open | None = None
        self.conversation.switch_llm = partial(_switch_llm, conversation)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["conversation"], name)

    def run(self) -> None:
        """Work until the agent has finished or waits for the user, as the conversation's own `run` does."""
        open = self._opened()
        if open is None:
            return self.conversation.run()
        self.runs.begin_waiting(open.run.task, run=open.run.id)
        with self._followed(open):
            return self.conversation.run()

    async def arun(self) -> None:
        """`run` for a program that awaits."""
        open = self._opened()
        if open is None:
            return await self.conversation.arun()
        await self.runs.begin(open.run.task, run=open.run.id)
        with self._followed(open):
            return await self.conversation.arun()

    def close(self) -> None:
        """Close the conversation. A run that waits for a confirmation is kept as unfinished."""
        if self._waiting:
            self._end(self._waiting, stopped="closed")
        self.conversation.close()

    @safely
    def _opened(self) -> _Open | None:
        """The run that waits, or a new one; none where the agent has nothing to do."""
        state, events = self.conversation.state, self.conversation.state.events
        start = None if state.execution_status is ConversationExecutionStatus.FINISHED else _last_task(events)
        if self._waiting or start is None:
            return self._waiting
        task, scope = _text(events[start].llm_message), self.runs.scoped(self.conversation)
        run = self.last = self.runs.start(task, scope=scope, parent=current_run())
        return _Open(run, str(self.conversation.id), _words(events[start].to_llm_message()), start)

    @contextmanager
    def _followed(self, open: _Open) -> Generator[None]:
        with harmless("the beginning of a run"):
            _show(self.conversation.agent.llm)
        token, self._waiting = _open.set(open), None
        try:
            with open.run.running():
                yield
        except Exception as error:
            self._end(open, error=getattr(error, "original_exception", error))
            raise
        except BaseException as stopped:
            self._end(open, stopped=type(stopped).__name__)
            raise
        else:
            self._end(open)
        finally:
            _open.reset(token)

    @safely
    def _end(self, open: _Open, *, error: BaseException | None = None, stopped: str | None = None) -> None:
        state = self.conversation.state
        status = state.execution_status
        if not (error or stopped) and status is ConversationExecutionStatus.WAITING_FOR_CONFIRMATION:
            self._waiting = open
            return
        events = list(state.events)
        turns = _turns(
            [*(event for event in events[: open.start] if isinstance(event, SystemPromptEvent)), *events[open.start :]]
        )
        metadata = {"conversation": open.conversation}
        prompts = [prompt for prompt in events if isinstance(prompt, SystemPromptEvent)]
        open.run.can_call(lambda: [tool for prompt in prompts for tool in prompt.tools], ToolDefinition.to_mcp_tool)
        if stopped or status is ConversationExecutionStatus.PAUSED:
            open.run.stop(turns, reason=stopped or "paused", metadata=metadata)
            return
        failed = error or (_failure(events, status) if status in _FAILED else None)
        answer = None if failed else get_agent_final_response(events[open.start :])
        open.run.finish(turns, answer=answer, error=failed, usage=open.usage(), metadata=metadata)


def _last_task(events: Sequence[Any]) -> int | None:
    """The number of the user's message to work on: the first one after the end of the task before."""
    task_number = None
    for number in reversed(range(len(events))):
        event = events[number]
        if isinstance(event, MessageEvent) and event.source == "user":
            task_number = number
        elif task_number is not None and _ends(event):
            break
    return task_number


def _ends(event: Any) -> bool:
    if isinstance(event, MessageEvent):
        return event.source == "agent"
    return isinstance(getattr(event, "action", None), FinishAction) or isinstance(event, _BREAKS)


def _failure(events: Sequence[Any], status: Any) -> str:
    """Why a conversation stopped that raised nothing: a limit, or an agent that goes in circles."""
    event: Any = events[-1]
    return (
        f"{event.code}: {event.detail}" if isinstance(event, ConversationErrorEvent) else f"the agent is {status.value}"
    )


def _switch_llm(conversation: Any, llm: Any) -> None:
    """Change the model, also in the middle of a run, as a tool of the agent may."""
    type(conversation).switch_llm(conversation, llm)
    with harmless("a change of the model"):
        _show(conversation.agent.llm)


def _show(llm: Any) -> None:
    """Let a model put the text of the open run into its requests."""
    if type(llm) not in _ours:
        llm.__class__ = _class_with_text(type(llm))


@cache
def _class_with_text(kind: Any) -> type:
    """A class of models that puts the text of the open run into a request, and changes nothing outside of runs."""

    def generate(llm: Any, messages: Any, *args: Any, **options: Any) -> Any:
        open = _of_run(options)
        shown = _with_text(open, messages)
        if open:
            with harmless("a request"):
                shown = _with_cures(shown, open.run.follow_failures_waiting(_results(messages)))
        response = kind.generate(llm, shown, *args, **options)
        _count(open, response)
        return response

    async def agenerate(llm: Any, messages: Any, *args: Any, **options: Any) -> Any:
        open = _of_run(options)
        shown = _with_text(open, messages)
        if open:
            with harmless("a request"):
                shown = _with_cures(shown, await open.run.follow_failures(_results(messages)))
        response = await kind.agenerate(llm, shown, *args, **options)
        _count(open, response)
        return response

    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    ours = type(kind)(kind.__name__, (kind,), {**named, "generate": generate, "agenerate": agenerate})
    _ours.add(ours)
    return ours


def _of_run(options: dict[str, Any]) -> _Open | None:
    """The open run, if the request is one of its agent. A sub-agent's model is a copy that asks inside the same run."""
    open = _open.get()
    asks = getattr(options.get("call_context"), "session_id", None)
    return open if open and open.conversation == asks else None


@safely
def _count(open: _Open | None, response: Any) -> None:
    if open:
        open.count(response)


def _with_text(open: _Open | None, messages: Any) -> Any:
    """The messages with the text before the user's words."""
    with harmless("a request"):
        if open and open.run.text:
            asked = max(
                number
                for number, message in enumerate(messages)
                if message.role == "user" and _words(message) == open.asked
            )
            content = [TextContent(text=open.run.text), *messages[asked].content]
            return [*messages[:asked], messages[asked].model_copy(update={"content": content}), *messages[asked + 1 :]]
    return messages


def _results(messages: Any) -> Generator[ToolResult]:
    calls = {call.id: call for message in messages for call in message.tool_calls or ()}
    for message in messages:
        if message.role == "tool" and (call := calls.get(message.tool_call_id)):
            output = _text(message)
            code = _EXIT_CODE.search(output)
            yield ToolResult(call.id, call.name, _arguments(call), output, int(code[1]) if code else None)


def _arguments(call: Any) -> Any:
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def _with_cures(messages: Any, cures: Mapping[str, str]) -> Any:
    """The messages, each failure of a tool followed by what got past it before."""
    return [
        message.model_copy(update={"content": [*message.content, TextContent(text=text)]})
        if message.role == "tool" and (text := cures.get(message.tool_call_id))
        else message
        for message in messages
    ]


def _words(message: Any) -> list[str]:
    return content_to_str(message.content)


def _text(message: Any) -> str:
    return "\n".join(part.text for part in message.content if isinstance(part, TextContent))


def _turns(events: Sequence[Any]) -> list[object]:
    """The events of a run in the shape that `learn` reads. What follows an action is of the agent's surroundings."""
    turns, replies = list[Any](), dict[str, list[Any]]()
    for event in events:
        if not isinstance(event, ActionEvent):
            turns += _turn(event)
        elif not isinstance(event.action, FinishAction):
            if event.llm_response_id not in replies:  # the calls of one reply are one turn
                calls = replies[event.llm_response_id] = []
                thought = "\n".join(part.text for part in event.thought)
                turns.append({"role": "assistant", "content": thought, "tool_calls": calls})
            replies[event.llm_response_id].append(_call(event.tool_call))
    return turns


def _turn(event: Any) -> list[Any]:
    if isinstance(event, SystemPromptEvent):
        return [{"role": "system", "content": _text(event.to_llm_message())}]
    if isinstance(event, ObservationBaseEvent) and event.tool_name != FinishTool.name:
        failed = isinstance(event, AgentErrorEvent) or getattr(getattr(event, "observation", None), "is_error", False)
        message = {"role": "tool", "content": _text(event.to_llm_message()), "tool_call_id": event.tool_call_id}
        return [{**message, "is_error": failed}]
    if isinstance(event, MessageEvent):
        role = {"agent": "assistant", "user": "user"}.get(event.source, "environment")
        return [{"role": role, "content": _text(event.to_llm_message())}]
    return []


def _call(call: Any) -> dict[str, Any]:
    return {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
