"""Finds the lines that later acts, the task or the answer rest on: they name the same rare things."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lessonbank.contracts.records import Trajectory

from ._scenes import Block, Line, Rank, Scene, observed

_WORD = re.compile(r"[^\W_]*\d[\w.:-]*\w|[^\W\d_][\w'-]{3,40}")
_ACT = 300
_RARE = 0.02


def used_later(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """A line with a number or several rare words that are used later rises."""
    named: dict[str, int] = {}
    for scene in scenes:
        named.update(dict.fromkeys(_WORD.findall(scene.acts[:_ACT].lower()), scene.number))
    end = (scenes[-1].number if scenes else 0) + 1
    named.update(dict.fromkeys(_WORD.findall(f"{run.task}\n{run.answer or ''}"[: 20 * _ACT].lower()), end))
    words = {
        (scene.number, id(block)): [named.keys() & _WORD.findall(line.text.lower()) for line in block.lines]
        for scene, block in observed(scenes)
    }
    lines = Counter(word for texts in words.values() for line in texts for word in line)
    most = max(3, int(_RARE * sum(map(len, words.values()))))
    rare = {word: number for word, number in named.items() if lines[word] <= most}
    return [
        scene.seen(lambda block, number=scene.number: _raised(block, words[number, id(block)], rare, number))
        for scene in scenes
    ]


def _raised(block: Block, words: list[set[str]], rare: dict[str, int], number: int, /) -> Block:
    hits = [[word for word in line if rare.get(word, 0) > number] for line in words]
    ranks = map(_rank, block.lines, hits)
    return replace(block, lines=tuple(line._replace(rank=r) for line, r in zip(block.lines, ranks, strict=True)))


def _rank(line: Line, hits: list[str], /) -> Rank:
    if line.rank <= Rank.STATE or line.rank == Rank.NOISE or not hits:
        return line.rank
    telling = len(hits) > 2 or any(len(hit) > 2 and any(map(str.isdigit, hit)) for hit in hits)
    return min(line.rank, Rank.CHANGE) if telling else Rank(line.rank - 1)
