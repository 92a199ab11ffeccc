"""Tells in one short line each the steps that have no room of their own, so that every action of a run is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ._excerpt import block, width
from ._scenes import Rank, Scene

SHARE = 0.14
"""The share of the room that these lines may take, where there is no room for all actions in full."""
LEAST, _MOST = 20, 72
"""Characters of a line: with fewer it says nothing, and with more it is no longer short."""
_NUMBER = 9
"""Bytes of a line beside the action."""
_FIRST = re.compile(r"^(?:(?:bash|shell|sh|terminal|execute_bash|run_command) (?!\{))?(?:cd \S+ && )?")
_LISTED = re.compile(r"^\[steps? (\d+)(?:–(\d+))?, in one line(?: each)?\]$", re.MULTILINE)


def length_for(scenes: Sequence[Scene], room: int, /) -> int:
    """Characters of each short line, or 0 where there are so many steps that they would say nothing."""
    lines = len(_lines(scenes, LEAST))
    if not lines or (LEAST + _NUMBER) * lines > 3 * SHARE * room:
        return 0
    return max(LEAST, min(_MOST, int(SHARE * room / lines) - _NUMBER))


def size_of(scenes: Sequence[Scene], length: int, /) -> int:
    """Bytes that the short lines of these steps take, without their heading."""
    return sum(_NUMBER + width(line) for _, _, line in _lines(scenes, length)) if length else 0


def in_short(scenes: Sequence[Scene], start: int, stop: int, length: int, /) -> Iterator[str]:
    """The steps from `start` to `stop` under one heading; equal neighbours stand in one line."""
    lines = [f"{_span(first, last)} {line}" for first, last, line in _lines(scenes, length)]
    yield f"[step {start}, in one line]" if start == stop else f"[steps {start}–{stop}, in one line each]"
    yield block("\n".join(lines))


def _lines(scenes: Sequence[Scene], length: int) -> list[tuple[int, int, str]]:
    """The first and the last step of each line, and what it says."""
    told: list[tuple[int, int, str]] = []
    for scene in scenes:
        line = _cut(_deed(scene), length)
        if told and told[-1][1] == scene.number - 1 and told[-1][2] == line:
            told[-1] = (told[-1][0], scene.number, line)
        else:
            told.append((scene.number, scene.number, line))
    return told


def listed(rendered: str, /) -> Iterator[int]:
    """The numbers of the steps that a rendered run tells in one short line each."""
    for first, last in _LISTED.findall(rendered):
        yield from range(int(first), int(last or first) + 1)


def _deed(scene: Scene) -> str:
    """What was done, in one line: of a command neither the name of the shell nor the folder it goes to first."""
    lines = [line.text for one in scene.blocks for line in one.lines if line.rank == Rank.MUST]
    return _FIRST.sub("", " ".join(" ".join(lines).split())) or "(no action)"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
