"""Parts that behave as a test says, and remember what they were asked."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from lessonbank.contracts.ports import Completion, Message
from lessonbank.contracts.records import Usage
from lessonbank.learning.harm_check import Answers
from lessonbank.providers.embedders.hashing import HashingEmbedder as HashingEmbedder

Answer: TypeAlias = "str | Completion | BaseException"
_KEEP = json.dumps({"answers": [{"lesson": number, "answer": "keep"} for number in range(1, 100)]})
Scripted: TypeAlias = "Answer | Callable[[Sequence[Message]], Answer | Awaitable[Answer]]"


@dataclass(frozen=True, slots=True)
class Call:
    """One request a scripted model received."""

    messages: tuple[Message, ...]
    temperature: float
    schema: type[BaseModel] | None

    @property
    def prompt(self) -> str:
        """All message texts, a blank line between."""
        return "\n\n".join(message.content for message in self.messages)


class ScriptedModel:
    """A language model that gives the replies it was handed, in order.

    A reply is a string, a `Completion`, an exception to raise, or a function of the messages (async or not) that
    returns one of those. A single function in place of the list answers every call. Usage is counted roughly: one
    token for four characters.

    The question whether new lessons are harmful is asked after each run that teaches something. It is answered with
    `keep`, and neither takes a reply nor stands in `calls`; with `gate=False` it is a call like any other.

    Attributes:
        calls: every request, in the order they came.
    """

    def __init__(
        self, replies: Sequence[Scripted] | Callable[..., Any], /, *, name: str = "scripted", gate: bool = True
    ) -> None:
        if isinstance(replies, str):
            raise TypeError("the replies are a list (one reply is a list of one) or a function")
        self.calls: list[Call] = []
        self._replies = replies
        self._name = name
        self._gate = gate

    @property
    def name(self) -> str:
        """The name that the fake was given."""
        return self._name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The next reply.

        Raises:
            AssertionError: there is none left; it passes through code that survives a failing model.
        """
        if self._gate and schema is Answers:
            return Completion(text=_KEEP, usage=Usage(), model=self._name)
        self.calls.append(Call(tuple(messages), temperature, schema))
        reply = self._next()
        if callable(reply):
            reply = reply(messages)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Completion):
            return reply
        text = cast("str", reply)
        read = sum(len(m.content) for m in messages) // 4
        return Completion(
            text=text, usage=Usage(requests=1, input_tokens=read, output_tokens=len(text) // 4), model=self._name
        )

    def assert_all_used(self) -> None:
        """Fail if a scripted reply was never asked for."""
        if callable(self._replies) or len(self.calls) >= len(self._replies):
            return
        raise AssertionError(f"{self._name}: {len(self._replies) - len(self.calls)} scripted replies were never used")

    def _next(self) -> Any:
        if callable(self._replies):
            return self._replies
        if len(self.calls) > len(self._replies):
            prompt = self.calls[-1].prompt
            raise AssertionError(
                f"{self._name}: call {len(self.calls)} was not expected, {len(self._replies)} replies were scripted; "
                f"it asked: {prompt[:200]!r}"
            )
        return self._replies[len(self.calls) - 1]
