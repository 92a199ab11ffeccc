"""Puts a bank into PydanticAI: `Agent(…, capabilities=[ReasoningBankCapability(bank)])`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final, Unpack

from lessonbank.bank.sync import ReasoningBank
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, current_run

try:
    from pydantic_ai import DeferredToolRequests, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolRetryError
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition
except ImportError as missing:
    raise MissingExtra("the adapter of PydanticAI", extra="pydantic-ai") from missing


_MOST_WAITING: Final = 1000


class ReasoningBankCapability(AbstractCapability[Any]):
    """Shows lessons in the requests of each run of an agent, and learns from each run.

    The text stands in a user message before the prompt of the run, and only in the request: neither the message
    history nor the instructions change.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from its context: `lambda ctx: scope_of("acme", ctx.deps.user)`. Without it, the
            scope of the bank. If it fails, the run has no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, bank: ReasoningBank, /, **options: Unpack[Options[RunContext[Any]]]) -> None:
        self.runs = RunFollower(bank, "pydantic-ai", **options)
        self._run: FollowedRun | None = None
        self._ids: frozenset[str | None] = frozenset()
        """PydanticAI's runs that are this one: each time that it waited for a person another one began."""
        self._waiting = OrderedDict[str, tuple[FollowedRun, list[ModelMessage]]]()
        """The runs that wait for a person: the copies share them."""
        self._messages: Sequence[ModelMessage] = ()

    async def for_run(self, ctx: RunContext[Any]) -> ReasoningBankCapability:
        """A copy for each run, so that runs at the same time do not mix."""
        return copy(self)

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Begin before the run, and keep it however it ends."""
        run = self._run = await self._begun(ctx)
        with run.followed(lambda: self._own(self._messages)):
            result = await handler()
        messages = self._own(result.all_messages())
        if isinstance(result.output, DeferredToolRequests):
            self._wait(run, messages)
        else:
            run.finish(messages)
        return result

    async def _begun(self, ctx: RunContext[Any]) -> FollowedRun:
        """The run that waited for a person, where it goes on; else another one."""
        before, prompt = ctx.messages, ctx.prompt
        start = next((n for n in reversed(range(len(before))) if _prompt(before[n]) is not None), len(before))
        own = before[start:]
        waited = self._waiting.pop(own[0].run_id or "", None) if own else None
        if waited and prompt is None:
            self._ids = frozenset((ctx.run_id, *(message.run_id for message in own)))
            return waited[0]
        if waited:
            waited[0].stop(waited[1], reason="the user went on with something else")
        self._ids = frozenset((ctx.run_id,))
        words = _words(_prompt(own[0]) if own and prompt is None else prompt)
        return await self.runs.begin(words, run=ctx.run_id, scope=self.runs.scoped(ctx), parent=current_run())

    def _wait(self, run: FollowedRun, messages: list[ModelMessage]) -> None:
        self._waiting[run.id] = run, messages
        if len(self._waiting) > _MOST_WAITING:
            _, (old, messages) = self._waiting.popitem(last=False)
            old.stop(messages, reason="nobody told its end")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the text before the prompt of this run: at the same place with the same bytes in each request."""
        self._messages = ctx.messages
        if self._run:
            self._run.can_call(lambda: request_context.model_request_parameters.function_tools)
        if self._run is None or not self._run.text:
            return request_context
        messages = request_context.messages
        own = (place for place, message in enumerate(messages) if message.run_id in self._ids)
        place = next(own, 0)
        shown = ModelRequest([UserPromptPart(self._run.text)])
        return replace(request_context, messages=[*messages[:place], shown, *messages[place:]])

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Keep the history in sight: a crash leaves no result to read it from."""
        self._messages = ctx.messages
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Follow a failure by what got past it before: a text that opens with an error, or a `ModelRetry`."""
        try:
            result = await handler(args)
        except ToolRetryError as error:
            part = error.tool_retry
            if text := await self._cure(call, args, part.content, failed=True):
                raise ToolRetryError(replace(part, content=f"{part.content}\n\n{text}")) from error
            raise
        text = await self._cure(call, args, result)
        return f"{result}\n\n{text}" if text else result

    async def _cure(
        self, call: ToolCallPart, args: dict[str, Any], output: object, *, failed: bool | None = None
    ) -> str:
        return await self._run.came_back(call.tool_call_id, call.tool_name, args, output, failed) if self._run else ""

    def _own(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        return [message for message in messages if message.run_id in self._ids]


def _prompt(message: ModelMessage) -> str | Sequence[UserContent] | None:
    return next((part.content for part in message.parts if isinstance(part, UserPromptPart)), None)


def _words(prompt: str | Sequence[UserContent] | None) -> str:
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return "\n".join(part for part in prompt if isinstance(part, str))
