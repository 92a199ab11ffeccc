"""Says once what a run holds many times: the goal in every step, a text seen before, lines that stand on every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lessonbank.contracts.records import Trajectory

from ._excerpt import unify
from ._scenes import Block, Line, Rank, Scene

_REPEAT = 300  # characters from which naming the other step is shorter to read than the text again
_LINE = 24  # characters from which a line that stood before says nothing new


def without_task(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """The task is told once, at the top: where an observation repeats it, a note stands for it."""
    task = unify(run.task).split("\n")
    return [scene.seen(lambda block: _without(block, task)) for scene in scenes]


def _without(block: Block, task: list[str], /) -> Block:
    texts = [line.text for line in block.lines]
    start, size = next((i for i, text in enumerate(texts) if text == task[0]), -1), len(task)
    if start < 0 or texts[start : start + size] != task:
        return block
    if len(texts) == size:
        return replace(block, label=f"{block.label} (the same text as the task)", lines=())
    note = Line("(the task)", Rank.REST)
    return replace(block, lines=(*block.lines[:start], note, *block.lines[start + size :]))


def repeats(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """Of equal long texts the last one stays, as the end decides; the others name its step."""
    last: dict[tuple[str, str], int] = {}
    for scene in scenes:
        for block in scene.blocks:
            if len(text := block.text) > _REPEAT:
                last[block.kind, text] = scene.number
    return [
        replace(scene, blocks=tuple(_named(block, scene.number, last) for block in scene.blocks)) for scene in scenes
    ]


def _named(block: Block, number: int, last: dict[tuple[str, str], int], /) -> Block:
    other = last.get((block.kind, block.text), number)
    if other == number:
        return block
    if block.kind == "call":
        return replace(block, lines=block.lines[:1], marked=False)
    return replace(block, label=f"{block.label} (the same text as in step {other})", lines=(), twin=other)


def old_lines(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """A line of an earlier step, read again, comes after what is new."""
    seen: dict[str, int] = {}
    told: list[Scene] = []
    for scene in scenes:

        def rank(line: Line, number: int = scene.number) -> Rank:
            first = seen.setdefault(line.text, number) if len(line.text) >= _LINE else number
            return line.rank if first == number or line.rank <= Rank.CHANGE else Rank(min(line.rank + 1, Rank.NOISE))

        told.append(scene.seen(lambda block, rank=rank: block.ranked(rank) if block.marked else block))
    return told
