"""Chooses the lines that fit a budget, what decides first, and tells them in their order, with marks where it cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ._excerpt import block, width
from ._scenes import Block, Line, Rank, Scene
from ._short import LEAST, in_short, length_for, size_of

_MARK = 40  # bytes of "[… 1,234,567 characters cut …]" and its line break
_FRAME = 28  # bytes of a step's heading and of the blank lines around it
_BRIEF_CUT = 20  # bytes more where it says how much of the step was cut
_GAP = 44  # bytes of a note about steps left out
_DEEDS = 0.48  # the share of the room that the one-line forms of the actions may take before what decides
_NEAR = 0.4  # the same share, where the steps far from the end are told in short
_RESULTS = 0.1  # the share that the results of commands may take next, in steps that are told
_START = 2  # steps at the start that count as near the end
_BRIEF = 2  # lines beside the action itself that a step told in brief may have
_TRIES = 3
_MISSED = 200  # lines in a row that did not fit, after which no more are tried
_NOTED = 200  # characters of a step whose cut is worth a note at the end
_MOST_NOTED = 24
_FOOT = 220  # bytes of that note
_LARGEST = {Rank.DECIDES: 0.6, Rank.CHANGE: 0.4, Rank.CONTEXT: 0.2, Rank.SAID: 0.15}
"""The share of the room that the lines of one text may take which are above the rank before and up to that one."""


_Spot: TypeAlias = tuple[int, int, int, int, int]
"""A line by its rank, its distance from the end, its step, its text and its place."""


@dataclass(slots=True)
class Selection:
    """Which lines of which text are told."""

    scenes: Sequence[Scene]
    kept: list[list[list[bool]]] = field(default_factory=list[list[list[bool]]])


def wanted(scenes: Sequence[Scene], /) -> int:
    """Bytes that all lines take."""
    return sum(
        _FRAME + sum(width(one.label) + 1 + sum(_cost(line) for line in one.lines) for one in scene.blocks)
        for scene in scenes
    )


def fit(scenes: Sequence[Scene], room: int, /, *, gaps: bool = True) -> list[str]:
    """The steps as texts, in at most `room` bytes. `gaps`: what has no room is told in short, or named as left out."""
    whole = [[[not line.hidden for line in one.lines] for one in scene.blocks] for scene in scenes]
    unread = any(line.hidden for scene in scenes for one in scene.blocks for line in one.lines)
    if wanted(scenes) + _FOOT * unread <= room:
        return list(_told(Selection(scenes, whole), gaps=gaps))
    scenes = [replace(s, blocks=tuple(_bounded(one, room) for one in s.blocks)) for s in scenes]
    short = length_for(_far(scenes, int(room * _NEAR)), room) if gaps else 0
    for length in dict.fromkeys((short, min(short, LEAST), 0)):
        if told := _within(scenes, room, length, gaps=gaps):
            return told
    return []


def _within(scenes: Sequence[Scene], room: int, length: int, /, *, gaps: bool) -> list[str]:
    """The steps in at most `room` bytes; those without room of their own in lines of `length` characters."""
    limit = room - _FOOT - _GAP
    best: list[str] = []
    # Prices are estimates (marks that meet are one mark), so what is left over is offered again.
    for _ in range(_TRIES):
        told = list(_told(_chosen(scenes, limit, length), gaps=gaps, length=length))
        spare = room - sum(width(text) + 2 for text in told)
        best = told if spare >= 0 else best
        if 0 <= spare < room // 20 or (spare < 0 and best):
            break
        limit += spare
    return best


def _cost(line: Line, /) -> int:
    return width(line.text) + 3 + _MARK * (line.hidden > 0)


def _bounded(one: Block, room: int, /) -> Block:
    """It, with the middle of what would take more than its share of the room ranked last."""
    above = Rank.RESULT
    for highest, share in _LARGEST.items():
        limit = int(room * share / 2)
        sizes = [_cost(line) if above < line.rank <= highest else 0 for line in one.lines]
        above = highest
        if sum(sizes) <= 2 * limit:
            continue
        before, after = 0, sum(sizes)
        lines: list[Line] = []
        for line, size in zip(one.lines, sizes, strict=True):
            after -= size
            far = size and before + size > limit and after + size > limit
            lines.append(line._replace(rank=max(line.rank, Rank.OLD)) if far else line)
            before += size
        one = replace(one, lines=tuple(lines))
    return one


def _chosen(scenes: Sequence[Scene], room: int, length: int, /) -> Selection:
    selection = Selection(scenes, [[[False] * len(one.lines) for one in scene.blocks] for scene in scenes])
    order = sorted(
        (line.rank, 3 if scene.number <= _START else scene.left, i, j, k)
        for i, scene in enumerate(scenes)
        for j, one in enumerate(scene.blocks)
        for k, line in enumerate(one.lines)
        if not line.hidden and line.rank < Rank.NOISE
    )
    deeds = sum(
        _FRAME + _BRIEF_CUT + _cost(line)
        for scene in scenes
        for one in scene.blocks
        for line in one.lines
        if line.rank == Rank.MUST
    )
    all_told = deeds <= room * _DEEDS
    share = _NEAR if length else _DEEDS
    room -= 0 if all_told else size_of(_far(scenes, int(room * share)), length)
    first, opened = room if all_told else int(room * share), dict[int, bool]()
    frame = _FRAME + _BRIEF_CUT + (0 if all_told else _GAP)
    left = room - first + _fill(selection, [spot for spot in order if spot[0] == Rank.MUST], first, opened, frame)
    results = [spot for spot in order if spot[0] == Rank.RESULT and spot[2] in opened]
    most = min(left, int(room * _RESULTS))
    left += _fill(selection, results, most, opened, frame) - most
    left = _fill(selection, [spot for spot in order if Rank.RESULT < spot[0] <= Rank.STATE], left, opened, frame)
    _fill(selection, order, left, opened, frame)
    return selection


def _far(scenes: Sequence[Scene], room: int, /) -> Sequence[Scene]:
    """The steps that are too far from the end for a line of their own in `room` bytes: an estimate."""
    costs = [
        _FRAME
        + _BRIEF_CUT
        + _GAP
        + sum(_cost(line) for one in scene.blocks for line in one.lines if line.rank == Rank.MUST)
        for scene in scenes
    ]
    for place in range(len(scenes) - 1, -1, -1):
        room -= costs[place]
        if room < 0:
            return scenes[: place + 1]
    return ()


def _fill(selection: Selection, order: Sequence[_Spot], left: int, opened: dict[int, bool], frame: int, /) -> int:
    """Keeps the lines that fit into `left` bytes, first come first served, and says what is left."""
    missed = 0
    for spot in order:
        if selection.kept[spot[2]][spot[3]][spot[4]]:
            continue
        cost = _take(selection, spot, left, opened, frame)
        left -= cost
        missed = 0 if cost else missed + 1
        if missed > _MISSED:
            break
    return left


def _take(selection: Selection, spot: _Spot, left: int, opened: dict[int, bool], frame: int, /) -> int:
    """Keeps a line if it fits, and says what it costs. `opened`: the steps that are told, and whether beyond a line."""
    rank, _, i, j, k = spot
    cost = _cost(selection.scenes[i].blocks[j].lines[k])
    if i not in opened:
        cost += frame
    if rank > Rank.RESULT:
        cost += _marks(selection, i, j, k) + (0 if opened.get(i) else _labels(selection, i))
    if cost > left:
        return 0
    opened[i] = opened.get(i, False) or rank > Rank.RESULT
    selection.kept[i][j][k] = True
    return cost


def _labels(selection: Selection, i: int, /) -> int:
    """What the labels cost of texts that are told in any case, once their step is more than one line."""
    texts = zip(selection.scenes[i].blocks, selection.kept[i], strict=True)
    return sum(width(one.label) + 1 + 2 * _MARK * any(kept) for one, kept in texts if any(kept) or not one.lines)


def _marks(selection: Selection, i: int, j: int, k: int, /) -> int:
    """What the label and the marks cost that the line makes needed."""
    one, kept = selection.scenes[i].blocks[j], selection.kept[i][j]
    neighbours = (k > 0 and kept[k - 1]) + (k + 1 < len(kept) and kept[k + 1])
    label = 0 if neighbours or any(kept) else width(one.label) + 1 + _MARK
    return label + (_MARK * (1 - neighbours) if one.marked else 0)


def _told(selection: Selection, /, *, gaps: bool, length: int = 0) -> Iterator[str]:
    shown = {scene.number for scene, kept in zip(selection.scenes, selection.kept, strict=True) if any(map(any, kept))}
    seen = {scene.number for scene, kept in zip(selection.scenes, selection.kept, strict=True) if _is_seen(scene, kept)}
    last = selection.scenes[-1].number if selection.scenes else 0
    expected = 1
    cut: list[tuple[int, int]] = []
    for scene, kept in zip(selection.scenes, selection.kept, strict=True):
        if not _is_shown(scene, shown):
            continue
        if gaps:
            yield from _gap(selection.scenes, expected, scene.number - 1, length)
        expected = scene.number + 1
        lost = sum(_lost(one, own) for one, own in zip(scene.blocks, kept, strict=True))
        yield (told := _step(scene, kept, seen, lost=lost))
        gone = any(one.twin and one.twin not in seen for one in scene.blocks)
        if (lost > _NOTED or gone) and ", in brief," not in told.partition("\n")[0]:
            cut.append((lost, scene.number))
    if gaps:
        yield from _gap(selection.scenes, expected, last, length)
    yield from _foot(cut)


def _is_shown(scene: Scene, shown: set[int], /) -> bool:
    return scene.number in shown or not any(one.lines or one.twin for one in scene.blocks)


def _is_seen(scene: Scene, kept: list[list[bool]], /) -> bool:
    """Whether anything is told of what came back: else it is no place to look for a text."""
    return any(one.kind == "seen" and any(own) for one, own in zip(scene.blocks, kept, strict=True))


def _step(scene: Scene, kept: list[list[bool]], seen: set[int], /, *, lost: int) -> str:
    """The step under its heading; where little of it is told, in brief: without labels, one mark for all.

    `seen`: the steps of which it is told what came back.
    """
    texts = list(zip(scene.blocks, kept, strict=True))
    beyond = [
        line
        for one, own in texts
        for line, told in zip(one.lines, own, strict=True)
        if told and line.rank > Rank.RESULT
    ]
    if lost and len(beyond) <= _BRIEF and all(line.rank > Rank.DECIDES for line in beyond):
        return "\n".join((f"[step {scene.number}, in brief, {lost:,} characters cut]", *_briefly(texts, seen)))
    told = [f"[step {scene.number}]"]
    label = ""
    for one, own in texts:
        if one.twin and one.twin not in seen:
            told.append(f"{one.label.rpartition(' (')[0]} (left out)")
        elif any(own) or not one.lines:
            if one.kind != "call" or one.label != label:
                told.append(one.label)
            label = one.label
            told.extend(_lines(one, own))
    return "\n".join(told)


def _briefly(texts: Sequence[tuple[Block, list[bool]]], seen: set[int], /) -> Iterator[str]:
    for one, own in texts:
        if one.twin in seen:
            yield one.label
        told: list[str] = []
        after = False  # whether the line before is told
        for line, kept in zip(one.lines, own, strict=True):
            if line.joined and after and told:
                told[-1] += line.text if kept else "…"
            elif kept and line.text.strip():
                told.append(f"| → {line.text.strip()}" if one.kind == "seen" else f"| {line.text}")
            after = kept
        yield from told


def _lines(one: Block, kept: list[bool], /) -> Iterator[str]:
    """The kept lines, each behind `| `, and a mark where others stood."""
    told: list[str] = []
    left: list[Line] = []
    for line, keep in zip(one.lines, kept, strict=True):
        if not keep:
            left.append(line)
            continue
        if left:
            yield from _flush(told)
            yield from _cut(left) if one.marked or line.joined or left[-1].joined else ()
            left, told = [], [line.text]
        elif line.joined and told:
            told[-1] += line.text
        else:
            told.append(line.text)
    yield from _flush(told)
    if left and (one.marked or left[0].joined):
        yield from _cut(left)


def _flush(told: list[str], /) -> Iterator[str]:
    if told:
        yield block("\n".join(told)) or "| "


def _cut(left: list[Line], /) -> Iterator[str]:
    size = sum(len(line.text) + (not line.joined) + line.hidden for line in left)
    if sum(map(_cost, left)) < _MARK and not any(line.hidden for line in left):
        yield block("\n".join(line.text for line in left))
    elif size > 0:
        yield f"[… {size:,} characters cut …]"


def _lost(one: Block, kept: list[bool], /) -> int:
    """Characters of a text that are not told and may matter."""
    return sum(
        len(line.text) + line.hidden
        for line, told in zip(one.lines, kept, strict=True)
        if not told and (line.rank < Rank.OLD or (line.rank < Rank.NOISE and one.marked) or line.hidden)
    )


def _gap(scenes: Sequence[Scene], start: int, stop: int, length: int, /) -> Iterator[str]:
    between = [scene for scene in scenes if start <= scene.number <= stop] if length and start <= stop else []
    if between:
        yield "\n".join(in_short(between, start, stop, length))
    elif start <= stop:
        yield f"[step {start} left out]" if start == stop else f"[steps {start}–{stop} left out]"


def _foot(cut: list[tuple[int, int]], /) -> Iterator[str]:
    """Which steps that are told lost most: those that are left out or told in brief say so themselves."""
    numbers = sorted(number for _, number in sorted(cut, reverse=True)[:_MOST_NOTED])
    if not numbers:
        return
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    told = ", ".join(str(first) if first == stop else f"{first}–{stop}" for first, stop in spans)
    yield f"[not told whole: step{'s' if len(numbers) > 1 else ''} {told}]"
