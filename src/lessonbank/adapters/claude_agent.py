"""Puts a bank around the Claude Agent SDK: `ReasoningBankClaude(bank).query(prompt=…)` instead of `query(prompt=…)`."""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Final, Unpack, cast

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import SECONDS, Json
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, current_run, harmless

try:
    from claude_agent_sdk import (
        AssistantMessage,
        ClaudeAgentOptions,
        ClaudeSDKClient,
        HookMatcher,
        Message,
        ResultMessage,
        ServerToolResultBlock,
        ServerToolUseBlock,
        SystemMessage,
        TaskNotificationMessage,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
        Transport,
        UserMessage,
        query,
    )

    from ._claude_sessions import SessionMirror, usage_of
except ImportError as missing:
    raise MissingExtra("the adapter of the Claude Agent SDK", extra="claude-agent") from missing

log = logging.getLogger("lessonbank")
_MOST: Final = 9_000
"""Characters of a hook's answer. Claude Code puts a longer one (from 10,000) into a file, and cuts the fence off."""
_RESULTS: Final = 4096
"""Results whose run can be asked for."""
_NOTICE: Final = "<task-notification>"
"""How the prompt begins that the host gives itself when a background agent is done."""
_DONE: Final = re.compile("<tool-use-id>([^<]+)</tool-use-id>")
"""Which agents such a prompt names, by the calls that started them."""


@dataclass(slots=True)
class _Open:
    """A run that is not over: its messages, and its sub-agents that still work."""

    run: FollowedRun
    names: dict[str, None]
    """The ids of its prompts, or that of the agent: the transcript has its lines under them."""
    messages: list[dict[str, Any]]
    session: str | None
    began: float = field(default_factory=monotonic)
    last_id: str | None = None
    """The id of the last message of the model: the host gives each block of it as a message of its own."""
    working: set[str] = field(default_factory=set[str])
    """The calls of agents that are not done, or of whose end the model was not told yet."""
    answered: set[str] = field(default_factory=set[str])
    """The calls that the model has a result of. Where an agent still works then, a prompt will tell that it is done."""
    due: int = 1
    """How many results are still to come: each prompt has its own. Hooks are called before messages are read."""
    result: ResultMessage | None = None

    def add(self, role: str, content: str | list[Any], id: str | None = None) -> None:
        blocks = content if isinstance(content, str) else [_plain(block) for block in content]
        if id and id == self.last_id:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})
        self.last_id = id

    def go_on(self, prompt: str, id: str | None) -> None:
        """Another prompt belongs to this run."""
        self.add("user", prompt)
        self.due += id is not None and id not in self.names
        self.names.update({id: None} if id else {})
        self.working.difference_update(_DONE.findall(prompt) if prompt.startswith(_NOTICE) else ())


class ReasoningBankClaude:
    """Runs prompts with the Claude Agent SDK, shows lessons to each, and learns from each.

    The text comes as the context of a hook. Claude Code puts that into a message of the role system, so that only
    trusted lessons are shown. It also writes it into the transcript of the session, as it does for every hook.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of the runs, from the options: `lambda options: scope_of("acme", str(options.cwd))`. Without
            it, the scope of the bank. If it fails, there is no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, bank: ReasoningBank, /, **options: Unpack[Options[ClaudeAgentOptions]]) -> None:
        self.runs = RunFollower(bank, "claude-agent-sdk", True, **options)
        self._results = OrderedDict[str, str]()

    async def query(
        self,
        *,
        prompt: str | AsyncIterable[dict[str, Any]],
        options: ClaudeAgentOptions | None = None,
        transport: Transport | None = None,
    ) -> AsyncGenerator[Message]:
        """What `claude_agent_sdk.query` does, with memory."""
        session = self._session(options)
        messages: Any = query(prompt=prompt, options=session.options, transport=transport)
        reason = "the stream ended without a result"
        try:
            async with aclosing(messages):
                async for message in messages:
                    session.note(message)
                    yield message
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt) as stopped:
            reason = type(stopped).__name__
            raise
        except Exception as error:
            session.fail(error)
            raise
        finally:
            session.close(reason)

    def client(self, options: ClaudeAgentOptions | None = None, transport: Transport | None = None) -> ClaudeSDKClient:
        """A `ClaudeSDKClient` with memory: each prompt is a run."""
        return _Client(self._session(options), transport)

    def run_of(self, result: ResultMessage, /) -> str | None:
        """The id of the run that ended with this result, for `runs.tell`."""
        return self._results.get(result.uuid or "")

    def ended(self, result: ResultMessage, run: FollowedRun, /) -> None:
        """Remember which run a result belongs to."""
        if result.uuid:
            self._results[result.uuid] = run.id
        if len(self._results) > _RESULTS:
            self._results.popitem(last=False)

    def _session(self, options: ClaudeAgentOptions | None) -> Session:
        asked = options or ClaudeAgentOptions()
        return Session(self, asked, self.runs.scoped(asked))


class Session:
    """One connection to Claude Code: its hooks begin runs, and its messages end them."""

    def __init__(self, memory: ReasoningBankClaude, options: ClaudeAgentOptions, scope: str | None) -> None:
        self._memory, self._runs, self._scope = memory, memory.runs, scope
        self._system = _instructions(options.system_prompt)
        self._parent = current_run()
        self._tools: Sequence[str] = ()
        self._turns = deque[_Open]()
        self._parts = dict[str, _Open]()
        """Sub-agents that work, by the call that started them."""
        self._starting = list[tuple[str, _Open]]()
        self._agents = dict[str, _Open]()
        hooks = {
            "UserPromptSubmit": HookMatcher(hooks=[self._on_prompt]),
            "PreToolUse": HookMatcher(matcher="Agent|Task", hooks=[self._on_delegation]),
            "SubagentStart": HookMatcher(hooks=[self._on_agent]),
            "PostToolUse": HookMatcher(hooks=[self._on_result]),
            "PostToolUseFailure": HookMatcher(hooks=[self._on_result]),
        }
        theirs = cast("dict[str, list[HookMatcher]]", options.hooks or {})
        ours = {event: [*theirs.get(event, []), matcher] for event, matcher in hooks.items()}
        self._mirror = SessionMirror(options.session_store)
        self._ended_parts = list[tuple[_Open, TaskNotificationMessage, float]]()
        """Sub-agents that are done: the lines of their transcripts come with the result of the prompt."""
        mirrored = {} if options.enable_file_checkpointing else {"session_store": self._mirror}  # the SDK takes one
        self.options = replace(options, hooks=cast("Any", {**theirs, **ours}), **cast("Any", mirrored))

    # -- hooks: the SDK calls them while it reads, before the caller sees the messages --------------------------------

    async def _on_prompt(self, hook_input: Any, _tool: str | None, _more: Any) -> Any:
        prompt, id = str(hook_input.get("prompt") or ""), hook_input.get("prompt_id")
        if self._goes_on(prompt, id):
            self._turns[-1].go_on(prompt, id)
            return {}
        if self._turns and self._turns[-1].result:
            self._finish(self._turns.pop())
        if prompt.startswith(_NOTICE):
            return {}
        run = await self._runs.begin(prompt, scope=self._scope, parent=self._parent)
        run.can_call(lambda: self._tools)
        asked = [{"role": "user", "content": prompt}]
        self._turns.append(_Open(run, {id: None} if id else {}, asked, hook_input.get("session_id")))
        return _context("UserPromptSubmit", run.text)

    def _goes_on(self, prompt: str, id: str | None) -> bool:
        """Whether a prompt belongs to the run before: it came while that ran, or says that its sub-agent is done."""
        last = self._turns[-1] if self._turns else None
        return last is not None and (id in last.names or prompt.startswith(_NOTICE))

    async def _on_delegation(self, hook_input: Any, tool: str | None, _more: Any) -> Any:
        task = hook_input["tool_input"].get("prompt")
        boss = self._working(hook_input)
        if boss is None or not tool or not isinstance(task, str):
            return {}
        run = await self._runs.begin(task, scope=self._scope, parent=boss.run.id)
        asked = [{"role": "user", "content": task}]
        part = self._parts[tool] = _Open(run, {}, asked, hook_input.get("session_id"))
        self._starting.append((str(hook_input["tool_input"].get("subagent_type") or ""), part))
        self._turns[-1].working.add(tool)
        return {}

    async def _on_result(self, hook_input: Any, tool: str | None, _more: Any) -> Any:
        """Follow a failure by what got past it before."""
        event, turn = hook_input["hook_event_name"], self._working(hook_input)
        if turn is None or not tool:
            return {}
        failed = event == "PostToolUseFailure"
        error = str(hook_input.get("error") or "") if failed else ""
        return _context(
            event, await turn.run.came_back(tool, hook_input["tool_name"], hook_input["tool_input"], error, failed)
        )

    def _working(self, hook_input: Any) -> _Open | None:
        """The run of the agent that a hook is about."""
        return self._agents.get(hook_input.get("agent_id") or "") or (self._turns[-1] if self._turns else None)

    async def _on_agent(self, hook_input: Any, _tool: str | None, _more: Any) -> Any:
        kind, waiting = hook_input.get("agent_type"), self._starting
        place = next((at for at, (name, _) in enumerate(waiting) if name == kind), 0)
        if not waiting:
            return {}
        part = self._agents[hook_input["agent_id"]] = waiting.pop(place)[1]
        part.names[hook_input["agent_id"]] = None
        return _context("SubagentStart", part.run.text)

    # -- messages: in the order in which the caller sees them ---------------------------------------------------------

    def note(self, message: Message) -> None:
        """Take a message in."""
        with harmless(type(message).__name__):
            self._take(message)

    def _take(self, message: Message) -> None:
        if isinstance(message, AssistantMessage | UserMessage):
            self._add_message(message)
        elif isinstance(message, TaskNotificationMessage):
            self._part_ended(message)
        elif isinstance(message, SystemMessage) and message.subtype == "init":
            self._tools = message.data.get("tools") or ()
            for turn in self._turns:
                turn.run.can_call(lambda: self._tools)
        elif isinstance(message, ResultMessage) and self._turns:
            self._end_parts()
            turn = self._turns[0]
            turn.result, turn.due = message, turn.due - 1
            self._memory.ended(message, turn.run)
            if not turn.working and turn.due <= 0:
                self._finish(self._turns.popleft())

    def fail(self, error: Exception) -> None:
        """The connection broke."""
        self._end_parts()
        for turn in self._all():
            turn.run.finish(self._source(turn), error=error, metadata=_session(turn))

    def close(self, reason: str) -> None:
        """Nothing comes any more."""
        self._end_parts()
        for turn in self._all():
            with harmless("the end of a run"):
                if turn.result:
                    self._finish(turn)
                else:
                    turn.run.stop(self._source(turn), reason=reason, metadata=_session(turn))

    def _all(self) -> list[_Open]:
        turns = [*self._parts.values(), *self._turns]
        self._parts.clear()
        self._turns.clear()
        return turns

    def _add_message(self, message: AssistantMessage | UserMessage) -> None:
        turn = self._parts.get(message.parent_tool_use_id or "")
        if message.parent_tool_use_id is None and self._turns:
            turn = self._turns[0]
        if turn is None:
            return
        if isinstance(message, UserMessage):
            turn.add("user", message.content)
            turn.answered |= {b.tool_use_id for b in message.content if isinstance(b, ToolResultBlock)}
        elif not message.error:  # the words of an error are no answer of the model; the result has them
            turn.add("assistant", message.content, message.message_id)

    def _part_ended(self, message: TaskNotificationMessage) -> None:
        part = self._parts.pop(message.tool_use_id or "", None)
        if part is None:
            return
        for turn in self._turns:
            if message.tool_use_id not in turn.answered:
                turn.working.discard(message.tool_use_id or "")
        self._ended_parts.append((part, message, monotonic()))

    def _end_parts(self) -> None:
        for part, message, at in self._ended_parts:
            with harmless("the end of a sub-agent"):
                self._end_part(part, message, {**_session(part), SECONDS: round(at - part.began, 3)})
        self._ended_parts.clear()

    def _end_part(self, part: _Open, message: TaskNotificationMessage, metadata: dict[str, Json]) -> None:
        usage = next((self._mirror.usage(name) for name in part.names), None)
        source = self._source(part)
        if message.status == "completed":
            part.run.finish(source, answer=message.summary, usage=usage, metadata=metadata)
        elif message.status == "failed":
            part.run.finish(source, error=message.summary, usage=usage, metadata=metadata)
        else:
            part.run.stop(source, reason=message.status, metadata=metadata)

    def _finish(self, turn: _Open) -> None:
        result, source, metadata = turn.result, self._source(turn), _session(turn)
        usage = usage_of([result.usage or {}], result.num_turns) if result else None
        if result is None or (result.terminal_reason or "").startswith("aborted"):
            turn.run.stop(source, reason=result.terminal_reason or "" if result else "no result", metadata=metadata)
        elif result.is_error:
            error = "; ".join(result.errors or []) or result.result or result.subtype
            turn.run.finish(source, error=error, usage=usage, metadata=metadata)
        elif any(message["role"] == "assistant" for message in turn.messages):
            turn.run.finish(source, answer=result.result, usage=usage, metadata=metadata)
        else:
            turn.run.stop(source, reason="the model was not asked", metadata=metadata)

    def _source(self, turn: _Open) -> object:
        """The run as the program saw it, or as Claude Code wrote it down, if that is more."""
        written = self._mirror.messages(turn.names)
        self._mirror.forget(turn.names)
        return {"system": self._system, "messages": max(turn.messages, written, key=_size)}


class _Client(ClaudeSDKClient):
    """The SDK's client; what it receives is followed."""

    def __init__(self, session: Session, transport: Transport | None) -> None:
        super().__init__(session.options, transport)
        self._followed = session

    async def receive_messages(self) -> AsyncGenerator[Message]:
        messages: Any = super().receive_messages()
        try:
            async with aclosing(messages):
                async for message in messages:
                    self._followed.note(message)
                    yield message
        except Exception as error:
            self._followed.fail(error)
            raise

    async def disconnect(self) -> None:
        try:
            await super().disconnect()  # the last lines of the transcript come with it
        finally:
            self._followed.close("the client disconnected")


def _context(event: str, text: str) -> dict[str, Any]:
    if len(text) > _MOST:
        log.warning("the agent works without memory: %d characters are too many for Claude Code", len(text))
    if not text or len(text) > _MOST:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _session(turn: _Open) -> dict[str, Json]:
    return {"session": turn.session} if turn.session else {}


def _size(messages: list[dict[str, Any]]) -> int:
    """How much the agent said and did: what it was asked may stand there twice."""
    return sum(message["role"] == "assistant" and len(message["content"]) for message in messages)


def _instructions(prompt: Any) -> str:
    if isinstance(prompt, dict):
        return str(prompt.get("append") or prompt.get("prompt") or "")
    return prompt or ""


def _plain(block: Any) -> dict[str, Any]:
    """A block of the SDK in the form of the Messages API."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ThinkingBlock):
        return {"type": "thinking", "thinking": block.thinking}
    if isinstance(block, ToolUseBlock | ServerToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, ToolResultBlock | ServerToolResultBlock):
        is_error = bool(getattr(block, "is_error", False))
        return {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": block.content, "is_error": is_error}
    return {"type": "text", "text": f"[{type(block).__name__}]"}
