"""Tells a run as it was recorded, under a budget: the published method's form, heads and tails of long texts kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.errors import UsageError

from ._ends import last_words
from ._excerpt import BYTES_PER_TOKEN, clip, unify
from ._parts import Part, brief, is_notable, step_parts
from ._share import FLOOR, Claim, Cost, choose, share

View: TypeAlias = Literal["full", "recorded", "thoughts", "messages"]
"""`full`: what decides. `recorded`: all as it was recorded, long texts by head and tail. `thoughts`: what the agent
thought and did, no instructions and no observations (the paper's web runs). `messages`: as recorded, without the
instructions (the paper's code runs)."""

_FRAME = 72  # bytes of a step's heading, of a note about steps left out, and of the blank lines around both
TINY = 400
"""Bytes below which there is room for the task only."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A step as it will be told: its number, its heading and its parts."""

    number: int
    heading: str
    parts: tuple[Part, ...]


def render_recorded(trajectory: Trajectory, /, *, room: int, view: View) -> str:
    """The run in at most `room` bytes: task, instructions (`recorded`), steps, answer, error."""
    if room < TINY:
        return only_task(trajectory, room)
    first = [Part("[task]", unify(trajectory.task), 60)]
    if view == "recorded" and trajectory.instructions.strip():
        first.append(Part("[instructions the agent was given]", unify(trajectory.instructions), 40))
    return _compose(first, trajectory, list(last_words(trajectory)), room=room, view=view)


def render_steps(trajectory: Trajectory, /, *, budget: int, view: View = "messages") -> str:
    """The numbered steps alone, as recorded, for prompts that have a place of their own for the task and the answer.

    Raises:
        UsageError: `budget` is not positive.
    """
    room = room_of(budget)
    return _compose([], trajectory, [], room=room, view=view) if room >= 3 * _FRAME else ""


def room_of(budget: int, /) -> int:
    """The bytes of a budget in tokens.

    Raises:
        UsageError: `budget` is not positive.
    """
    if budget < 1:
        raise UsageError(f"A rendering budget is a positive number of tokens, not {budget}.")
    return budget * BYTES_PER_TOKEN


def only_task(trajectory: Trajectory, room: int, /) -> str:
    """The task in `room` bytes: there is no room for more."""
    return Part("[task]", unify(trajectory.task), 1).fit(room) or clip(unify(trajectory.task), room)


def _compose(first: list[Part], trajectory: Trajectory, last: list[Part], /, *, room: int, view: View) -> str:
    steps = trajectory.steps
    parts = step_parts(steps, task=trajectory.task, observed=view != "thoughts")
    framed = [*first, *last]
    whole = sum(part.size + 1 for part in framed) + sum(_FRAME + sum(part.size for part in own) for own in parts)
    if whole + 2 * _FRAME <= room:
        told = [_Told(i, f"[step {i}]", tuple(own)) for i, own in enumerate(parts, 1)]
    else:
        floors = sum(_floor(part, room) for part in framed)
        told = _chosen(steps, parts, room - floors - 2 * _FRAME, observed=view != "thoughts")
    sizes = _sizes(framed, told, room)
    blocks = [*_fit(first, sizes), *_tell(told, len(steps), sizes), *_fit(last, sizes)]
    return "\n\n".join(blocks)


def _chosen(steps: Sequence[Step], parts: list[list[Part]], room: int, /, *, observed: bool) -> list[_Told]:
    briefs = [brief(step, observed=observed) for step in steps]
    costs = [
        Cost(
            full=_FRAME + sum(min(part.size, FLOOR) for part in own),
            brief=_FRAME + Part("", short, 1).size,
            rank=_rank(step, i, len(steps)),
        )
        for i, (step, own, short) in enumerate(zip(steps, parts, briefs, strict=True))
    ]
    full, short = choose(costs, room)
    return [
        _Told(i + 1, f"[step {i + 1}]", tuple(parts[i]))
        if i in full
        else _Told(i + 1, f"[step {i + 1}, in brief]", (Part("", briefs[i], 1),))
        for i in sorted(full | short)
    ]


def _rank(step: Step, index: int, total: int, /) -> int:
    if total - index <= 3:
        return 0
    if index < 2:
        return 1
    if is_notable(step):
        return 2
    return 3 if step.action.calls else 4


def _floor(part: Part, room: int, /) -> int:
    return min(part.size, room // 5 if part.weight > 30 else room // 10)


def _sizes(framed: Sequence[Part], told: Sequence[_Told], room: int, /) -> dict[int, int]:
    """Bytes for each part, by its identity."""
    claims = {id(part): Claim(part.size, part.weight, _floor(part, room)) for part in framed}
    for step in told:
        claims.update({id(part): Claim(part.size, part.weight, min(part.size, FLOOR)) for part in step.parts})
    frames = _FRAME * (len(told) + 2) + len(framed)
    return dict(zip(claims, share(list(claims.values()), room - frames), strict=True))


def _fit(parts: Sequence[Part], sizes: dict[int, int], /) -> list[str]:
    return [text for part in parts if (text := part.fit(sizes[id(part)]))]


def _tell(told: Sequence[_Told], total: int, sizes: dict[int, int], /) -> Iterator[str]:
    expected = 1
    for step in told:
        yield from _gap(expected, step.number - 1)
        yield "\n".join((step.heading, *_fit(step.parts, sizes)))
        expected = step.number + 1
    yield from _gap(expected, total)


def _gap(start: int, stop: int, /) -> Iterator[str]:
    if start == stop:
        yield f"[step {start} left out]"
    elif start < stop:
        yield f"[steps {start}–{stop} left out]"
