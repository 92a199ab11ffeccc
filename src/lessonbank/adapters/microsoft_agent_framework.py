"""Puts a bank into Microsoft Agent Framework: `Agent(client, middleware=[ReasoningBankMiddleware(bank)])`."""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Unpack
from weakref import finalize

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Usage
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless

try:
    from agent_framework import (
        AgentContext,
        AgentMiddleware,
        AgentResponse,
        ChatContext,
        ChatMiddleware,
        ChatResponse,
        Content,
        Message,
        ResponseStream,
    )
except ImportError as missing:
    raise MissingExtra("the adapter of Microsoft Agent Framework", extra="microsoft-agent-framework") from missing


_MOST_WAITING: Final = 1000
"""Questions to a person that are open at once."""


@dataclass(slots=True, eq=False)
class _Open:
    """A run that is not over: what was asked, and what its last request held of it."""

    run: FollowedRun
    asked: Sequence[Message]
    messages: Sequence[Message]
    wait: Callable[[_Open, Sequence[Any]], None]
    """Keeps a run that waits for a person, with what it asks."""
    instructions: str = ""
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    has_waited: bool = False

    def source(self, *more: Message) -> object:
        """The run, in a shape that `learn` reads."""
        messages = [plain for message in [*(self.asked if more else self.messages), *more] for plain in _plain(message)]
        return {"system": self.instructions, "messages": messages} if messages else []

    def add(self, response: ChatResponse[Any]) -> None:
        """Note what the model said: its tools may break off the run."""
        self.messages = [*self.messages, *response.messages]

    def finish(self, response: AgentResponse[Any]) -> None:
        with harmless("the end of a run"):
            usage: Any = response.usage_details or {}
            counts = {f"{kind}_tokens": usage.get(f"{kind}_token_count") or 0 for kind in ("input", "output")}
            self.usage, self.requests = self.usage + Usage(requests=self.requests, **counts), 0
            if response.user_input_requests:
                self.has_waited = True
                self.wait(self, response.user_input_requests)
            else:  # the answer to a person's word does not hold what came before
                messages = () if self.has_waited else response.messages
                self.run.finish(self.source(*messages), usage=self.usage)

    def fail(self, error: BaseException) -> None:
        with harmless("the end of a run"):
            self.run.fail(error, self.source())

    def stop(self, reason: str = "nobody read the stream to its end") -> None:
        with harmless("the end of a run"):
            self.run.stop(self.source(), reason=reason)


class ReasoningBankMiddleware(AgentMiddleware):
    """Shows lessons in the requests of each run of an agent, and learns from each run.

    The text stands in a user message before the prompt of the run, and only in the request: neither the session nor
    the instructions change.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from its context:
            `lambda context: scope_of("acme", context.function_invocation_kwargs["user"])`. Without it, the scope of
            the bank. If it fails, the run has no memory. An agent that runs as a tool has the scope of the run that
            called it.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, bank: ReasoningBank, /, **options: Unpack[Options[AgentContext]]) -> None:
        self.runs = RunFollower(bank, "microsoft-agent-framework", **options)
        self._waiting = OrderedDict[tuple[str, ...], _Open]()

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Begin before the agent works, and keep the run however it ends."""
        open = await self._begun(context)
        if open is None:
            await call_next()
            return
        try:
            with open.run.running():
                await call_next()
        except BaseException as error:
            open.fail(error)
            raise
        if isinstance(context.result, ResponseStream):
            with harmless("a stream"):
                _follow(context.result, open)
        elif context.result:
            open.finish(context.result)
        else:
            open.stop("another middleware ended it")

    async def _begun(self, context: AgentContext) -> _Open | None:
        with harmless("the beginning of a run"):
            parent = self.runs.get(current_run() or "")
            scope = parent.scope if parent else self.runs.scoped(context)
            where = scope or "", str(getattr(getattr(context, "session", None), "session_id", ""))
            open = self._answered(where, context.messages)
            if open is None:
                run = await self.runs.begin(_task(context.messages), scope=scope, parent=current_run())
                open = _Open(run, list(context.messages), list(context.messages), partial(self._wait, where))
            context.client_kwargs["middleware"] = [*(context.client_kwargs.get("middleware") or ()), _Requests(open)]
            return open
        return None

    def _wait(self, where: tuple[str, str], open: _Open, asking: Sequence[Any]) -> None:
        self._waiting.update({(*where, request.id): open for request in asking})
        for _ in range(len(self._waiting) - _MOST_WAITING):
            self._waiting.popitem(last=False)[1].stop("nobody answered")

    def _answered(self, where: tuple[str, str], messages: Sequence[Message]) -> _Open | None:
        """The run that waited for these answers of a person. Only who asks for it has its scope and its session."""
        answers = [
            content.id
            for message in messages
            for content in message.contents
            if content.type == "function_approval_response"
        ]
        open_run = next((open for id in answers if (open := self._waiting.get((*where, str(id))))), None)
        is_session = open_run is None and where[1]
        for key in [
            key for key, open in self._waiting.items() if open is open_run or (is_session and key[:2] == where)
        ]:
            if (open := self._waiting.pop(key)) is not open_run:
                open.stop("the user went on with something else")
        return open_run


class _Requests(ChatMiddleware):
    """Puts the text before the prompt of its run: at the same place with the same bytes in each request."""

    def __init__(self, open: _Open) -> None:
        self._open = open

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        with harmless("a request"):
            self._show(context)
            cures = await self._open.run.follow_failures(_results(self._open.messages))
            context.messages = [_followed_by(message, cures) for message in context.messages]
        await call_next()
        if isinstance(context.result, ChatResponse):
            self._open.add(context.result)

    def _show(self, context: ChatContext) -> None:
        open = self._open
        context.stream_result_hooks.append(open.add)
        place = _place(context.messages, open.asked) if open.asked else None
        if place is None:
            return
        open.messages, open.requests = context.messages[place:], open.requests + 1
        options = context.options or {}
        open.instructions = str(options.get("instructions") or "")
        open.run.can_call(lambda: options.get("tools"))
        if open.run.text:
            shown = Message("user", [open.run.text])
            context.messages = [*context.messages[:place], shown, *context.messages[place:]]


def _follow(stream: ResponseStream[Any, Any], open: _Open) -> None:
    is_read = False  # to its end

    @contextmanager
    def pulled() -> Generator[None]:
        nonlocal is_read
        try:
            with open.run.running():
                yield
        except StopAsyncIteration:
            is_read = True
            raise
        except BaseException as error:
            open.fail(error)
            raise

    def ended(response: AgentResponse[Any] | None = None) -> None:
        if not is_read:  # the framework makes a response of a part, too
            open.stop()
        elif response:
            open.finish(response)

    stream.with_pull_context_manager(pulled).with_cleanup_hook(ended).with_result_hook(ended)
    finalize(stream, ended).atexit = False  # a caller may leave a stream without a word


def _task(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def _place(messages: Sequence[Message], asked: Sequence[Message]) -> int | None:
    """Where the first message of this run stands in a request, if it is sent at all."""
    alike = (
        at for at, message in enumerate(messages) if (message.role, message.text) == (asked[0].role, asked[0].text)
    )
    return max(alike, default=None)


def _results(messages: Sequence[Message]) -> Generator[ToolResult]:
    parts = [part for message in messages for part in message.contents]
    calls = {part.call_id: part for part in parts if part.type == "function_call"}
    for part in parts:
        if part.type == "function_result" and (call := calls.get(part.call_id)):
            failed, output = bool(part.exception) or None, part.exception or part.result
            yield ToolResult(part.call_id, call.name, call.parse_arguments(), output, failed)


def _followed_by(message: Message, cures: Mapping[str, str]) -> Message:
    """The message, each result of a tool in it followed by what got past its failure."""
    if not any(part.type == "function_result" and cures.get(part.call_id) for part in message.contents):
        return message
    copied = copy(message)
    copied.contents = [_with_cure(part, cures.get(part.call_id)) for part in message.contents]
    return copied


def _with_cure(part: Any, text: str | None) -> Any:
    if part.type != "function_result" or not text:
        return part
    output = part.result if isinstance(part.result, str) else f"{part.exception or ''}"
    return Content.from_function_result(part.call_id, result=f"{output}\n\n{text}", exception=part.exception)


def _plain(message: Message) -> Generator[dict[str, Any]]:
    """A message of the framework as messages that `learn` reads: each result of a tool is one of its own."""
    parts: list[Any] = []
    for part in message.contents:
        if part.type == "function_result":
            failed = {"is_error": True, "content": f"{part.exception}"} if part.exception else {"content": part.result}
            yield {"role": "tool", "tool_call_id": part.call_id, **failed}
        elif part.type == "function_call":
            parts.append({"type": "tool_use", "id": part.call_id, "name": part.name, "input": part.arguments})
        elif part.type in ("text", "text_reasoning"):
            parts.append({"type": "text" if part.type == "text" else "thinking", "text": part.text})
        elif not part.type.startswith("function_approval"):  # the call itself stands beside it
            parts.append({"type": part.type})
    if parts:
        yield {"role": str(message.role), "content": parts}
