"""A model that acts by tool calls written as JSON, so that any model can play a benchmark of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any, NamedTuple, NoReturn, cast

from lessonbank._base.checks import replace_surrogates
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Action, Json, Observation, Speaker, Step, ToolCall, Usage
from lessonbank.guard import clean

NO_CALL = 'That reply has no call in it. End with one JSON object: {"name": "...", "arguments": {...}}'
"""What an agent is told whose reply holds no call."""
FULL = 1.0 - 1e-6
"""A reward from here on is a success: both benchmarks multiply floats."""
SEEN = 8_000
"""Characters of one answer that go to the agent and into the record."""
_READ = 20_000
_BRACKETS = 200
"""A call has no deeper nest; more is a reply made to break readers."""


class Call(NamedTuple):
    """A tool call, and what was said before it."""

    name: str
    arguments: dict[str, Json]
    thought: str = ""

    @property
    def text(self) -> str:
        """As JSON, the way it was asked for."""
        return json.dumps({"name": self.name, "arguments": self.arguments})


class Caller:
    """Plays one task as a conversation: it is told what came back, and replies."""

    def __init__(self, model: LanguageModel, /, *, temperature: float) -> None:
        self._model, self._temperature = model, temperature
        self.start("", "")

    def start(self, told: str, memory: str, /) -> None:
        """Begin a task: `told` is what it is told once and for all, `memory` what past tasks taught."""
        system = f"{told}\n\n{memory}" if memory else told
        self._messages = [Message(role="system", content=system)]
        self.usage = Usage()

    def reply(self, seen: str, /) -> str:
        """What the model says to `seen`, at most as much as is read.

        Raises:
            ModelError: the service failed.
        """
        self._messages.append(Message(role="user", content=seen))
        completion = run_sync(self._model.generate(self._messages, temperature=self._temperature))
        self.usage += completion.usage
        text = replace_surrogates(completion.text[-_READ:].strip()) or "(no reply)"
        self._messages.append(Message(role="assistant", content=text))
        return text


def read_call(reply: str, /) -> Call | None:
    """The last object with a `name` in a reply: reasoning comes before the answer. `None` where there is none."""
    found = None
    for start, value in _objects(reply[-_READ:]):
        name, arguments = value.get("name"), value.get("arguments", {})
        if isinstance(name, str) and name and isinstance(arguments, dict):
            thought = clean(reply[-_READ:][:start]).strip().removesuffix("```json").removesuffix("```").rstrip()
            found = Call(name, cast("dict[str, Json]", replace_surrogates(arguments)), thought)
    return found


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Where the outermost JSON objects begin, and what they hold; few are tried, so that time stays linear."""
    decoder, at = JSONDecoder(parse_constant=_refuse), 0
    for _ in range(_BRACKETS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if text.count("{", at, end) + text.count("[", at, end) <= _BRACKETS:
            yield at, cast("dict[str, Any]", value)
        at = end


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def step_of(reply: str, call: Call | None, seen: str, /, *, source: Speaker) -> Step:
    """A turn as the record has it."""
    if call is None:
        return Step(action=clean(reply), observation=seen)
    return Step(
        thought=call.thought,
        action=Action(calls=(ToolCall(name=call.name, arguments=call.arguments),)),
        observation=Observation(text=seen, source=source, name=call.name if source == "tool" else None),
    )


def tools_as_text(tools: list[dict[str, Any]], /) -> str:
    """Tools in the form of function calling (`name`, `description`, `parameters`), one JSON object a line."""
    return "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
