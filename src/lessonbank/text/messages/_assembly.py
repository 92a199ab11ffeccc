"""Puts turns together into the steps of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from lessonbank.contracts.records import Action, Observation, Speaker, Step, ToolCall

from ._requests import first_request
from ._turns import Role, Turn

_SOURCES: dict[Role, Speaker] = {"tool": "tool", "user": "user", "environment": "environment"}


@dataclass(frozen=True, slots=True)
class Story:
    """What a list of turns amounts to."""

    instructions: str
    steps: tuple[Step, ...]
    answer: str | None
    request: str | None
    """The first thing a user said that asks for something."""


@dataclass(slots=True)
class _Open:
    """A step that may still grow; lists, because a run can hold a hundred thousand fragments."""

    fragment: bool = False
    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    observations: list[Observation] = field(default_factory=list[Observation])

    def takes(self, turn: Turn) -> bool:
        """Whether a fragment belongs to this step: reasoning, then a message, then calls are one turn."""
        if not (self.fragment and turn.fragment) or self.observations:
            return False
        return bool(turn.calls) or not (self.texts or self.calls)

    def add(self, turn: Turn) -> None:
        """Take a turn of the agent in."""
        self.fragment = turn.fragment
        self.texts.extend(filter(None, (turn.text,)))
        self.thoughts.extend(filter(None, (turn.thought,)))
        self.calls.extend(turn.calls)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def close(self) -> Step:
        return Step(
            thought="\n".join(self.thoughts),
            action=Action(text=self.text, calls=tuple(self.calls)),
            observations=tuple(self.observations),
        )


def assemble(turns: Iterable[Turn], /) -> Story:
    """The instructions, steps and answer of a run. Linear in the number of turns, of which none is kept."""
    instructions: dict[str, None] = {}
    steps: list[Step] = []
    open_: _Open | None = None
    last_act: _Open | None = None
    names: dict[str, str] = {}
    requests: list[str] = []
    for turn in turns:
        names.update({call.id: call.name for call in turn.calls if call.id})
        if turn.role == "instructions":
            instructions[turn.text] = None
            continue
        if turn.role == "user" and not turn.call_id:
            requests.append(turn.text)
        acts = turn.role == "assistant"
        if open_ is None or (acts and not open_.takes(turn)):
            steps += [open_.close()] if open_ else []
            open_ = _Open()
        if acts:
            open_.add(turn)
            last_act = open_
        else:
            open_.observations.append(_observation(turn, names))
    steps += [open_.close()] if open_ else []
    return Story("\n\n".join(filter(None, instructions)), tuple(steps), _answer(last_act), first_request(requests))


def _answer(last: _Open | None) -> str | None:
    return last.text if last and last.text.strip() and not last.calls else None


def _observation(turn: Turn, names: dict[str, str]) -> Observation:
    return Observation(
        text="\n".join(filter(None, (turn.text, *map(_call_text, turn.calls)))),
        source=_SOURCES[turn.role],
        name=turn.name or names.get(turn.call_id or ""),
        call_id=turn.call_id,
        is_error=turn.is_error,
        is_success=turn.is_success,
    )


def _call_text(call: ToolCall) -> str:
    """A call somebody else made (a user with tools of their own) is part of what the agent faced, as text."""
    shown = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return f"[calls {call.name}({shown})]"
