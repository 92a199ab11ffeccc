"""Takes a run apart into steps, texts and lines, so that each choice can say of a line how much it decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from lessonbank.contracts.records import Observation, Step, ToolCall, Trajectory

from ._excerpt import error_places, is_troubled, unify
from ._parts import SPEECH, as_json, speaker

Kind: TypeAlias = Literal["thought", "text", "call", "seen"]
Lines: TypeAlias = "tuple[Line, ...]"

_SEGMENT = 300
"""Characters of a line from which it is taken in pieces, so that a page on one line can be told in part."""
_FIRST, _LAST = 2, 6  # lines of an output that say what it is, and how it went
_DEED = 200
"""Characters of a call that its one line keeps in any case."""
_SHELL = {"command", "cmd", "code", "script", "input"}
"""The names of an argument that is the whole call."""
_READ = 1_000_000
"""Characters of a run that are looked at line by line; a longer run has its long texts cut before."""
_SHORT = 25
"""Characters of a line on average, below which the number of lines counts and not their length."""
_FIRST_STEPS, _LAST_STEPS = 400, 1_600
"""Steps of a very long run that are looked at."""
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


def _at(line: Line, rank: Rank, /) -> Line:
    return line if line.rank == rank else Line(line.text, rank, line.joined, line.hidden)


@dataclass(frozen=True, slots=True)
class Block:
    """A text of a step under a label of ours. `told` false: what is left out needs no mark, the label says it."""

    label: str
    kind: Kind
    lines: Lines
    source: str = ""
    marked: bool = True
    twin: int = 0
    """The step that shows the same text; then this has no lines."""

    def ranked(self, rank: Callable[[Line], Rank], /) -> Block:
        """It, every line with the rank that `rank` gives."""
        ranks = map(rank, self.lines)
        return replace(self, lines=tuple(map(_at, self.lines, ranks)))

    @property
    def text(self) -> str:
        """Its lines as one text."""
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
        """It, with `change` applied to what was observed."""
        return self.only("seen", change)

    def only(self, kind: Kind, change: Callable[[Block], Block], /) -> Scene:
        """It, with `change` applied to the texts of a kind."""
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
    return [Scene(i + 1, tuple(_blocks(step, last - i, most)), last - i) for i, step in looked]


def _blocks(step: Step, left: int, most: int, /) -> Iterator[Block]:
    if thought := unify(step.thought):
        yield Block("agent thinks:", "thought", _spoken(thought, most, Rank.SAID if left < 3 else Rank.REST))
    if text := unify(step.action.text):
        alone = not step.action.calls
        yield Block("agent:", "text", _spoken(text, most, Rank.SAID if alone or left < 3 else Rank.REST))
    for call in step.action.calls:
        yield Block("agent calls:", "call", tuple(_called(call, most)))
    for observation in step.observations:
        yield _observed(observation, left, most)


def _spoken(text: str, most: int, rank: Rank, /) -> Lines:
    return tuple(lines_of(text, most, rank))


def _called(call: ToolCall, most: int, /) -> Iterator[Line]:
    """A call: its name and short arguments on the first line, then each long argument on lines of its own."""
    given = call.arguments
    if (
        isinstance(given, dict)
        and len(given) == 1
        and isinstance(given.get(shell := next(iter(given))), str)
        and shell in _SHELL
    ):
        given = str(given[shell])
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
        yield Line(f"  {_one_line(key)}:", Rank.SAID)
        yield from (
            line._replace(text=line.text if line.joined else f"    {line.text}")
            for line in lines_of(unify(value), most, Rank.SAID)
        )


def _deed(text: str, most: int, /) -> Iterator[Line]:
    """Its start is what was done, the rest is how."""
    first, *rest = lines_of(text, most, Rank.SAID)
    yield first._replace(text=first.text[:_DEED], rank=Rank.MUST)
    if over := first.text[_DEED:]:
        yield Line(over, Rank.CONTEXT, joined=True)
    yield from rest


def _one_line(text: str, /) -> str:
    return " ".join(text[:_DEED].split())


def _observed(observation: Observation, left: int, most: int, /) -> Block:
    text = unify(observation.text)
    label = speaker(observation)
    if not text:
        return Block(f"{label} (empty)", "seen", (), observation.source)
    if observation.source == "user" and len(text) < SPEECH:
        return Block(label, "seen", tuple(lines_of(text, most, Rank.DECIDES)), "user")
    lines = list(lines_of(text, most, Rank.REST))
    return Block(label, "seen", _by_place(lines, left, troubled=is_troubled(text)), observation.source)


def _by_place(lines: list[Line], left: int, /, *, troubled: bool) -> Lines:
    """An end says how it went, a start what it is; lines about errors explain; the last state decides."""
    count = len(lines)
    end = (Rank.STATE, Rank.CHANGE, Rank.CONTEXT)[left] if left < 3 else Rank.SAID
    rest = Rank.SAID if left < 2 else Rank.REST

    def rank(index: int, line: Line) -> Rank:
        if troubled and is_troubled(line.text):
            return min(end, Rank.CHANGE)
        return end if index < _FIRST or index >= count - _LAST else rest

    return tuple(_at(line, rank(i, line)) for i, line in enumerate(lines))


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


def observed(scenes: Iterable[Scene], /) -> Iterator[tuple[Scene, Block]]:
    """Every text that came back, with its step."""
    return ((scene, block) for scene in scenes for block in scene.blocks if block.kind == "seen")
