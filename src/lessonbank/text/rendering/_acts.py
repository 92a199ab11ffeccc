"""Puts what the agent did first: every action keeps one line, with the element it touched by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lessonbank.contracts.records import Trajectory

from ._pages import is_page, read_page
from ._scenes import Block, Line, Rank, Scene, observed

_DEED = re.compile(r"^\W{0,3}(\w+\(.{0,400}\))\W{0,3}$")
_TARGET = re.compile(r"""\(\s*['"]?(\w+)['"]?|"(?:bid|ref|element|element_id|index|uid)":\s*"?(\w+)""")


def acts(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """The line that says what was done gets the first rank, in every step."""
    names: dict[str, str] = {}
    told: list[Scene] = []
    for scene in scenes:
        called = any(block.kind == "call" for block in scene.blocks)
        blocks = tuple(_deed(block, names, spoken=not called) for block in scene.blocks)
        told.append(replace(scene, blocks=blocks))
        for _, block in observed([scene]):
            if is_page(text := block.text):
                names = read_page(text.split("\n")).names
    return told


def _deed(block: Block, names: dict[str, str], /, *, spoken: bool) -> Block:
    if block.kind == "call":
        first = block.lines[0]
        return replace(block, lines=(_named(first, names), *block.lines[1:]))
    if block.kind != "text" or not spoken:
        return block
    at = next((i for i in range(len(block.lines) - 1, -1, -1) if _DEED.match(block.lines[i].text)), 0)
    deed = _named(block.lines[at]._replace(rank=Rank.MUST), names)
    return replace(block, lines=(*block.lines[:at], deed, *block.lines[at + 1 :]))


def _named(line: Line, names: dict[str, str], /) -> Line:
    found = (names.get(target[1] or target[2]) for target in _TARGET.finditer(line.text))
    name = next(filter(None, found), None)
    return line._replace(text=f"{line.text} ({name})") if name else line
