"""Takes a run apart into steps, texts and lines, so that each choice can say of a line how much it decides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from lessonbank.contracts.records import Json, Observation, Step, ToolCall, Trajectory
from lessonbank.text.bounded_json import parse

from ._excerpt import error_places, is_troubled, unify

Kind: TypeAlias = Literal["thought", "text", "call", "seen"]
Lines: TypeAlias = "tuple[Line, ...]"

_SEGMENT = 300  # characters of a line from which it is taken in pieces, so that it can be told in part
_SPEECH = 4_000  # characters of a user's turn from which it is rather a page or a file handed on than speech
_NAME = 48
_NOT_IN_A_NAME = re.compile(r"[^\w.:-]+")
_ACT = re.compile(r"^\W{0,3}(\w+\(.{0,400}\))\W{0,3}$")
"""A line that is an action, of an agent that writes its calls."""
_FIRST, _LAST = 2, 6  # lines of an output that say what it is, and how it went
_SHELL = {"command", "cmd", "code", "script", "input"}  # the names of an argument that is the whole call
_READ = 1_000_000  # characters of a run that are looked at line by line; of a longer one texts are cut before
_SHORT = 25  # characters of a line on average, below which the number of lines counts and not their length
_TABLE = 500  # characters from which data is laid out row by row
_FIELD = 160
_LEVELS = 4
_FIRST_STEPS, _LAST_STEPS = 400, 1_600  # steps of a very long run that are looked at
_LEAST_READ = 2_000
_MOST_READ = 200_000


class Rank(IntEnum):
    """How much a line decides: the lower, the earlier it gets its place."""

    MUST = 0
    """What was done, in one line."""
    RESULT = 1
    """How a command went, in a line or two: told wherever the step is told, also in brief."""
    DECIDES = 2
    STATE = 3
    CHANGE = 4
    CONTEXT = 5
    SAID = 6
    REST = 7
    OLD = 8
    NOISE = 9


class Line(NamedTuple):
    """A line of a text, or a piece of a long one. `joined`: it goes on where the line before it ended."""

    text: str
    rank: Rank = Rank.REST
    joined: bool = False
    hidden: int = 0
    """Characters that this line stands for and that nobody read: they count as cut."""


@dataclass(frozen=True, slots=True)
class Block:
    """A text of a step under a label of ours. `marked` false: what is left out needs no mark, the label says it."""

    label: str
    kind: Kind
    lines: Lines
    source: str = ""
    marked: bool = True

    def with_ranks(self, rank: Callable[[Line], Rank], /) -> Block:
        """Return the block, every line with the rank that `rank` gives."""
        return replace(self, lines=tuple(line._replace(rank=rank(line)) for line in self.lines))

    @property
    def text(self) -> str:
        """The block's lines as one text."""
        return "".join(line.text if line.joined else f"\n{line.text}" for line in self.lines)[1:]


@dataclass(frozen=True, slots=True)
class Scene:
    """A step of the run: its number and its texts."""

    number: int
    blocks: tuple[Block, ...]
    left: int
    """Steps after this one."""

    @property
    def acts(self) -> str:
        """What the agent did in it, as text."""
        calls = "\n".join(block.text for block in self.blocks if block.kind == "call")
        return calls or "\n".join(block.text for block in self.blocks if block.kind == "text")

    def seen(self, change: Callable[[Block], Block], /) -> Scene:
        """Return the block, with `change` applied to what was observed."""
        return self.only("seen", change)

    def only(self, kind: Kind, change: Callable[[Block], Block], /) -> Scene:
        """Return the block, with `change` applied to the texts of a kind."""
        return replace(self, blocks=tuple(change(block) if block.kind == kind else block for block in self.blocks))


Choice: TypeAlias = Callable[[Sequence[Scene], Trajectory], Sequence[Scene]]
"""A pure step of the pipeline: scenes to scenes."""


def scenes_of(run: Trajectory, /, wanted: Collection[int] = ()) -> list[Scene]:
    """The steps of a run as scenes, ranked by who speaks and by how near the end it is.

    Of thousands of steps the first and the last are looked at, and those that are `wanted` by number.
    """
    last = len(run.steps) - 1
    looked = [
        (i, step)
        for i, step in enumerate(run.steps)
        if i < _FIRST_STEPS or last - i < _LAST_STEPS or (wanted and i + 1 in wanted)
    ]
    texts = sum(len(step.observations) + len(step.action.calls) + 2 for _, step in looked)
    size = sum(len(seen.text) for _, step in looked for seen in step.observations)
    most = _MOST_READ if size <= _READ else min(max(_READ // max(texts, 1), _LEAST_READ), _MOST_READ)
    task = unify(run.task)
    return [Scene(i + 1, tuple(_blocks(step, last - i, most, task)), last - i) for i, step in looked]


def _blocks(step: Step, left: int, most: int, task: str, /) -> Iterator[Block]:
    if thought := unify(step.thought):
        yield Block("agent thinks:", "thought", tuple(lines_of(thought, most, Rank.SAID if left < 3 else Rank.REST)))
    if text := unify(step.action.text):
        alone = not step.action.calls
        lines = tuple(lines_of(text, most, Rank.SAID if alone or left < 3 else Rank.REST))
        yield Block("agent:", "text", _rank_act(lines) if alone else lines)
    for call in step.action.calls:
        yield Block("agent calls:", "call", tuple(_call_lines(call, most)))
    for observation in step.observations:
        yield _observation(observation, left, most, task)


def _rank_act(lines: Lines, /) -> Lines:
    """The lines, the last that is an action first in rank; else the first line."""
    at = next((i for i in range(len(lines) - 1, -1, -1) if _ACT.match(lines[i].text)), 0)
    return (*lines[:at], lines[at]._replace(rank=Rank.MUST), *lines[at + 1 :])


def _call_lines(call: ToolCall, most: int, /) -> Iterator[Line]:
    """A call: its name and short arguments on the first line, then each long argument on lines of its own."""
    given = call.arguments
    key, only = next(iter(given.items())) if isinstance(given, dict) and len(given) == 1 else ("", None)
    given = only if key in _SHELL and isinstance(only, str) else given
    if isinstance(given, str):
        yield from _deed(unify(f"{call.name} {given}"), most)
        return
    long = {
        key: value
        for key, value in given.items()
        if isinstance(value, str) and (len(value) > _SEGMENT // 2 or "\n" in value)
    }
    short = {key: value for key, value in given.items() if key not in long}
    yield from _deed(unify(f"{call.name} {as_json(short)}"), most)
    for key, value in long.items():
        yield Line(f"  {' '.join(key[:_SEGMENT].split())}:", Rank.SAID)
        yield from (
            line._replace(text=line.text if line.joined else f"    {line.text}")
            for line in lines_of(unify(value), most, Rank.SAID)
        )


def _deed(text: str, most: int, /) -> Iterator[Line]:
    """Split an action: the first line is what was done, the rest is how."""
    first, *rest = lines_of(text, most, Rank.SAID)
    yield first._replace(rank=Rank.MUST)
    yield from rest


def _speaker(observation: Observation, /) -> str:
    """Who speaks, on a line of ours: of a name, which may be a stranger's, only what names are made of."""
    name = _NOT_IN_A_NAME.sub("_", (observation.name or "")[:200].strip())[:_NAME]
    who = f"{observation.source} {name}".strip()
    return f"{who} (error):" if observation.is_error else f"{who}:"


def as_json(value: Json, /) -> str:
    """A value on one line: JSON escapes only some of the signs that begin another."""
    try:
        return " ".join(json.dumps(value, ensure_ascii=False).splitlines())
    except RecursionError:
        return "(nested too deeply to show)"


def _observation(observation: Observation, left: int, most: int, task: str, /) -> Block:
    text = unify(observation.text)
    label = _speaker(observation)
    if not text or text == task:
        return Block(f"{label} ({'the same text as the task' if text else 'empty'})", "seen", (), observation.source)
    if observation.source == "user" and len(text) < _SPEECH:
        return Block(label, "seen", tuple(lines_of(text, most, Rank.DECIDES)), "user")
    lines = list(lines_of(text, most, Rank.REST))
    return Block(label, "seen", _by_place(lines, left, troubled=is_troubled(text)), observation.source)


def _by_place(lines: list[Line], left: int, /, *, troubled: bool) -> Lines:
    """An end says how it went, a start what it is; lines about errors explain; the last state decides."""
    count = len(lines)
    end = (Rank.STATE, Rank.CHANGE, Rank.CONTEXT)[left] if left < 3 else Rank.SAID

    def rank(index: int, line: Line) -> Rank:
        if troubled and is_troubled(line.text):
            return min(end, Rank.CHANGE)
        return end if index < _FIRST or index >= count - _LAST else Rank.REST

    return tuple(line._replace(rank=rank(i, line)) for i, line in enumerate(lines))


def lines_of(text: str, most: int, rank: Rank, /) -> Iterator[Line]:
    """The lines of a text, long ones in pieces; of one above `most` characters only head, tail and error lines."""
    lines = text.count("\n") + 1
    if (many := lines / max(most // _SHORT, 1)) > 1:
        most = min(most, int(len(text) / many))
    if len(text) <= most:
        yield from pieces(text, rank)
        return
    at, end = most // 3, len(text) - most // 2
    yield from pieces(text[:at], rank)
    for start, stop in error_places(text, at, end):
        yield Line("", Rank.NOISE, hidden=start - at)
        yield from pieces(text[start:stop], rank)
        at = stop
    yield Line("", Rank.NOISE, hidden=end - at)
    yield from pieces(text[end:], rank)


def pieces(text: str, rank: Rank, /) -> Iterator[Line]:
    """The lines of a text, long ones in pieces that go on where the one before ended."""
    for line in text.split("\n"):
        if len(line) <= _SEGMENT:
            yield Line(line, rank)
            continue
        for at in range(0, len(line), _SEGMENT):
            yield Line(line[at : at + _SEGMENT], rank, joined=at > 0)


def split_line(line: Line, most: int, rank: Rank, /) -> Iterator[Line]:
    """Split a line: the first `most` characters with a rank of their own, then the rest."""
    yield line._replace(text=line.text[:most], rank=rank)
    if rest := line.text[most:]:
        yield Line(rest, Rank.CONTEXT, joined=True)


def observations(scenes: Iterable[Scene], /) -> Iterator[tuple[Scene, Block]]:
    """Every text that came back, with its step."""
    return ((scene, block) for scene in scenes for block in scene.blocks if block.kind == "seen")


def results(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """Long results in JSON: short fields on one line, then a row a line, of which the first shows the fields."""
    return [scene.seen(_lay_out) for scene in scenes]


def _lay_out(block: Block, /) -> Block:
    if block.source == "user" or not block.lines or block.lines[0].text[:1] not in ("{", "["):
        return block
    text = block.text
    if len(text) < _TABLE or any(line.hidden for line in block.lines):
        return block
    try:
        value = parse(text)
    except ValueError:
        return block
    near = min(line.rank for line in block.lines)
    return replace(block, lines=tuple(_rows(value, "", near, 0))) if isinstance(value, dict | list) else block


def _rows(value: Json, name: str, near: Rank, level: int, /) -> Iterator[Line]:
    """The lines of a value; `name` is ours to repeat before what belongs to it."""
    whole = as_json(value)
    if level >= _LEVELS or len(whole) < _TABLE or not isinstance(value, dict | list):
        yield from pieces(f"{name}{whole}", near)
    elif isinstance(value, dict):
        sizes = {key: len(as_json(part)) for key, part in value.items()}
        short = {key: part for key, part in value.items() if sizes[key] < _FIELD}
        long = {key: _placeholder(part, sizes[key]) for key, part in value.items() if key not in short}
        # What a record is: the fields that rules ask for are short; the lines of the long ones may be left out.
        yield from pieces(f"{name}{as_json({**short, **long})}", Rank.CHANGE)
        for key, part in value.items():
            if key not in short:
                yield from _rows(part, f"{name}{' '.join(key.split())}: ", near, level + 1)
    else:
        yield Line(f"{name}{len(value)} rows", Rank.CONTEXT)
        for i, row in enumerate(value):
            yield from pieces(f"  {as_json(row)}", max(near, Rank.SAID) if i else Rank.CONTEXT)


def _placeholder(value: Json, size: int, /) -> str:
    """What stands for a long field in its record, so that a reader misses it where its own lines are left out."""
    return f"… {len(value)} rows, {size:,} characters" if isinstance(value, list) else f"… {size:,} characters"
