"""Takes a run apart into labelled texts, each with a weight that says how much it decides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lessonbank.contracts.records import Json, Observation, Step, ToolCall

from ._excerpt import block_size, clip, error_line, is_troubled, unify, width

_REPEAT = 300  # characters from which naming the earlier step is shorter to read than the text again
SPEECH = 4_000  # characters of a user's turn from which it is rather a page or a file handed on than speech
_LINE = 160
_NAME = 48
_NOT_IN_A_NAME = re.compile(r"[^\w.:-]+")


@dataclass(frozen=True, slots=True)
class Part:
    """A labelled text. `label` is ours and safe to stand alone on a line; `text` is the run's."""

    label: str
    text: str
    weight: float

    @property
    def size(self) -> int:
        """Bytes it takes whole, with a line break after label and text."""
        return width(self.label) + 1 + (block_size(self.text) + 1 if self.text else 0)

    def fit(self, limit: int, /) -> str:
        """It, in at most `limit` bytes, or nothing where not even its label fits."""
        body = clip(self.text, limit - width(self.label) - 2)
        if body:
            return f"{self.label}\n{body}" if self.label else body
        return self.label if not self.text and self.size <= limit else ""


def step_parts(steps: Sequence[Step], /, *, task: str, observed: bool) -> list[list[Part]]:
    """The parts of each step; a long observation that was seen before names the step instead."""
    seen: dict[str, int] = {unify(task): 0}
    last = len(steps) - 1
    return [[*_acted(step), *(_observed(step, i, last - i, seen) if observed else ())] for i, step in enumerate(steps)]


def _acted(step: Step, /) -> Iterator[Part]:
    if thought := unify(step.thought):
        yield Part("agent thinks:", thought, 1.5)
    if text := unify(step.action.text):
        yield Part("agent:", text, 3)
    if step.action.calls:
        yield Part("agent calls:", unify("\n".join(map(call_text, step.action.calls))), 6)


def _observed(step: Step, index: int, left: int, seen: dict[str, int], /) -> Iterator[Part]:
    for observation in step.observations:
        label, text = speaker(observation), unify(observation.text)
        before = seen.get(text)
        if not text:
            yield Part(f"{label} (empty)", "", 1)
        elif before is not None and (before == 0 or (len(text) > _REPEAT and left > 1)):
            yield Part(f"{label} (the same text as {f'in step {before}' if before else 'the task'})", "", 1)
        else:
            seen.setdefault(text, index + 1)
            yield Part(label, text, _weight(observation, left))


def _weight(observation: Observation, left: int, /) -> float:
    """The end state decides, and what people said; errors explain."""
    spoken = observation.source == "user" and len(observation.text) < SPEECH
    base = 6 if spoken else 3 if observation.is_error else 1
    return max(base, 16 / 2**left if left < 5 else 0)


def speaker(observation: Observation, /) -> str:
    """Who speaks, on a line of ours: of a name, which may be a stranger's, only what names are made of."""
    name = _NOT_IN_A_NAME.sub("_", (observation.name or "")[:200].strip())[:_NAME]
    who = f"{observation.source} {name}".strip()
    return f"{who} (error):" if observation.is_error else f"{who}:"


def call_text(call: ToolCall, /) -> str:
    """A call on one line, its arguments as JSON; arguments of several lines (code) are laid out below the name."""
    given = call.arguments
    if isinstance(given, str):
        return f"{call.name}\n{_indented(given)}" if "\n" in given else f"{call.name} {given}"
    if not any(isinstance(value, str) and "\n" in value for value in given.values()):
        return f"{call.name} {as_json(given)}"
    return "\n".join((call.name, *(_argument(key, value) for key, value in given.items())))


def _argument(key: str, value: Json, /) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"  {key}:\n  {_indented(value).replace(chr(10), chr(10) + '  ')}"
    return f"  {key}: {as_json(value)}"


def _indented(text: str, /) -> str:
    return "  " + text.replace("\n", "\n  ")


def as_json(value: Json, /) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to show)"


def is_notable(step: Step, /) -> bool:
    """Whether somebody spoke to the agent in this step, or something went wrong."""
    return any(o.is_error or o.source == "user" or is_troubled(o.text) for o in step.observations)


def brief(step: Step, /, *, observed: bool) -> str:
    """The step in a few short lines: its calls (or first words), what the user said, the first error."""
    calls = step.action.calls
    lines = [f"calls {_one_line(call.name + ' ' + _start(call))}" for call in calls[:3]]
    if len(calls) > 3:
        lines.append(f"and {len(calls) - 3} more calls")
    if not lines:
        lines.extend(filter(None, [_one_line(step.action.text or step.thought)]))
    for observation in step.observations[:3] if observed else ():
        said = observation.text if observation.source == "user" else error_line(observation.text)
        lines.extend([f"{observation.source}: {line}"] if (line := _one_line(said)) else [])
    return "\n".join(lines)


def _start(call: ToolCall, /) -> str:
    return call.arguments if isinstance(call.arguments, str) else as_json(call.arguments)


def _one_line(text: str, /) -> str:
    line = " ".join(text[: 4 * _LINE].split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
