"""Chooses the lines that fit a budget, what decides first, and tells them in their order, with marks where it cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from ._excerpt import block, width
from ._scenes import Block, Line, Rank, Scene, split_line

_MARK = 40  # bytes of "[… 1,234,567 characters cut …]" and its line break
_FRAME = 28  # bytes of a step's heading and of the blank lines around it
_BRIEF_CUT = 20  # bytes more where it says how much of the step was cut
_LABELS = 60  # bytes more of a step that is more than its action: the action's label and mark
_GAP = 44  # bytes of a note about steps left out
_DEEDS = 0.48
_TURNS = (
    (Rank.MUST, Rank.MUST, _DEEDS),
    (Rank.RESULT, Rank.RESULT, 0.1),
    (Rank.DECIDES, Rank.STATE, 1.0),
    (Rank.MUST, Rank.OLD, 1.0),
)
"""From which rank to which lines get their place, turn after turn, and in which share of the room: actions leave room
for what decides."""
_LEAST, _MOST = 40, 200  # characters of an action that its one line keeps in any case
_START = 2  # steps at the start that count as near the end
_BRIEF = 2  # lines beside the action itself that a step told in brief may have
_TRIES = 3
_MISSED = 200  # lines in a row that did not fit, after which no more are tried
_NOTED = 200  # characters of a step whose cut is worth a note at the end
_MOST_NOTED = 40
_FOOT = 220  # bytes of that note

Mask: TypeAlias = list[list[bool]]
"""Of each text of a step, which lines are told."""
_Spot: TypeAlias = tuple[int, int, int, int, int]
"""A line by its rank, its distance from the end, its step, its text and its place."""


@dataclass(slots=True)
class _Choice:
    """Which lines are told. `opened`: the steps that are told, and whether beyond their action and its result."""

    scenes: Sequence[Scene]
    masks: list[Mask]
    opened: dict[int, bool] = field(default_factory=dict[int, bool])

    def take(self, spot: _Spot, left: int, /) -> int:
        """Keeps a line if it fits into `left` bytes, and says what it costs."""
        rank, _, i, j, k = spot
        part, own = self.scenes[i].blocks[j], self.masks[i][j]
        cost = _cost(part.lines[k]) + (0 if i in self.opened else _FRAME + _BRIEF_CUT)
        if rank > Rank.RESULT:
            near = (k > 0 and own[k - 1]) + (k + 1 < len(own) and own[k + 1])
            cost += _MARK * (1 - near) * part.marked + (0 if any(own) else width(part.label) + 1 + _MARK)
            cost += 0 if self.opened.get(i) else _LABELS
        if cost > left:
            return 0
        self.opened[i] = self.opened.get(i, False) or rank > Rank.RESULT
        own[k] = True
        return cost


def demand(scenes: Sequence[Scene], /) -> int:
    """Bytes that all lines take."""
    return sum(
        _FRAME + sum(width(part.label) + 1 + sum(map(_cost, part.lines)) for part in scene.blocks) for scene in scenes
    )


def fit(scenes: Sequence[Scene], room: int, /, *, gaps: bool = True) -> list[str]:
    """The steps as texts, in at most `room` bytes. `gaps`: what has no room is named as left out."""
    unread = any(not part.marked or any(line.hidden for line in part.lines) for s in scenes for part in s.blocks)
    if demand(scenes) + _FOOT * unread <= room:
        whole = [[[not line.hidden for line in part.lines] for part in scene.blocks] for scene in scenes]
        return list(_render_scenes(scenes, whole, gaps=gaps))
    deeds = sum(line.rank == Rank.MUST for scene in scenes for part in scene.blocks for line in part.lines)
    most = max(int(room * _DEEDS / max(deeds, 1)) - _FRAME - _BRIEF_CUT, _LEAST)
    most = min(most, _MOST)
    scenes = [replace(s, blocks=tuple(_shorter(part, most) for part in s.blocks)) for s in scenes]
    limit, best = room - _FOOT - _GAP, list[str]()
    # Prices are estimates (marks that meet are one mark), so what is left over is offered again.
    for _ in range(_TRIES):
        texts = list(_render_scenes(scenes, _choose(scenes, limit), gaps=gaps))
        spare = room - sum(width(text) + 2 for text in texts)
        best = texts if spare >= 0 else best
        if 0 <= spare < room // 20 or (spare < 0 and best):
            break
        limit += spare
    return best


def _cost(line: Line, /) -> int:
    return width(line.text) + 3 + _MARK * (line.hidden > 0)


def _shorter(part: Block, most: int, /) -> Block:
    """Return a block with no more than `most` characters of an action in the line that is told in any case."""
    lines = (split_line(line, most, line.rank) if line.rank == Rank.MUST else (line,) for line in part.lines)
    return replace(part, lines=tuple(chain.from_iterable(lines)))


def _choose(scenes: Sequence[Scene], room: int, /) -> list[Mask]:
    """The lines that fit, rank after rank and from the end on; a result only where its step is told."""
    choice = _Choice(scenes, [[[False] * len(part.lines) for part in scene.blocks] for scene in scenes])
    order = sorted(
        (line.rank, 3 if scene.number <= _START else scene.left, i, j, k)
        for i, scene in enumerate(scenes)
        for j, part in enumerate(scene.blocks)
        for k, line in enumerate(part.lines)
        if not line.hidden and line.rank < Rank.NOISE
    )
    left = room
    for first, last, share in _TURNS:
        spots = [spot for spot in order if first <= spot[0] <= last]
        if last == Rank.RESULT:
            spots = [spot for spot in spots if spot[2] in choice.opened]
        left -= _fill(choice, spots, min(left, int(room * share)))
    return choice.masks


def _fill(choice: _Choice, spots: Sequence[_Spot], room: int, /) -> int:
    """Keeps the lines that fit into `room` bytes, first come first served, and says what they take."""
    left, missed = room, 0
    for spot in spots:
        _, _, i, j, k = spot
        if choice.masks[i][j][k]:
            continue
        cost = choice.take(spot, left)
        left -= cost
        missed = 0 if cost else missed + 1
        if missed > _MISSED:
            break
    return room - left


def _render_scenes(scenes: Sequence[Scene], masks: list[Mask], /, *, gaps: bool) -> Iterator[str]:
    expected = 1
    cut: list[tuple[int, int]] = []
    for scene, own in zip(scenes, masks, strict=True):
        if not any(map(any, own)) and any(part.lines for part in scene.blocks):
            continue
        if gaps:
            yield from _gap(expected, scene.number - 1)
        expected = scene.number + 1
        lost = sum(map(_count_lost, scene.blocks, own))
        if brief := _is_brief(scene, own, lost):
            yield "\n".join((f"[step {scene.number}, in brief, {lost:,} characters cut]", *_briefly(scene, own)))
        else:
            yield "\n".join((f"[step {scene.number}]", *_in_full(scene, own)))
        compared = any(not part.marked for part in scene.blocks)
        if (lost > _NOTED or compared) and not brief:
            cut.append((lost, scene.number))
    if gaps and scenes:
        yield from _gap(expected, scenes[-1].number)
    yield from _foot(sorted(number for _, number in sorted(cut, reverse=True)[:_MOST_NOTED]))


def _gap(start: int, stop: int, /) -> Iterator[str]:
    if start <= stop:
        yield f"[step {start} left out]" if start == stop else f"[steps {start}–{stop} left out]"


def _count_lost(part: Block, flags: list[bool], /) -> int:
    """Characters of a text that are not told and may matter."""
    return sum(
        len(line.text) + line.hidden
        for line, is_shown in zip(part.lines, flags, strict=True)
        if not is_shown and (line.rank < Rank.OLD or (line.rank < Rank.NOISE and part.marked) or line.hidden)
    )


def _is_brief(scene: Scene, mask: Mask, lost: int, /) -> bool:
    """Whether so little of a step is told that it needs no labels, and one mark for all that was cut."""
    pairs = (pair for part, own in zip(scene.blocks, mask, strict=True) for pair in zip(part.lines, own, strict=True))
    beyond = [line.rank for line, is_shown in pairs if is_shown and line.rank > Rank.RESULT]
    return bool(lost) and len(beyond) <= _BRIEF and all(rank > Rank.DECIDES for rank in beyond)


def _briefly(scene: Scene, mask: Mask, /) -> Iterator[str]:
    for part, own in zip(scene.blocks, mask, strict=True):
        texts: list[str] = []
        after = False  # whether the line before is told
        for line, keep in zip(part.lines, own, strict=True):
            if line.joined and after and texts:
                texts[-1] += line.text if keep else "…"
            elif keep and line.text.strip():
                texts.append(f"| → {line.text.strip()}" if part.kind == "seen" else f"| {line.text}")
            after = keep
        yield from texts


def _in_full(scene: Scene, mask: Mask, /) -> Iterator[str]:
    label = ""
    for part, own in zip(scene.blocks, mask, strict=True):
        if part.lines and not any(own):
            continue
        if part.kind != "call" or part.label != label:
            yield part.label
        label = part.label
        yield from _lines(part, own)


def _lines(part: Block, flags: list[bool], /) -> Iterator[str]:
    """The kept lines, each behind `| `, and a mark where others stood."""
    texts: list[str] = []
    left: list[Line] = []
    for line, keep in zip(part.lines, flags, strict=True):
        if not keep:
            left.append(line)
        elif left:
            yield from _flush(texts)
            yield from _cut(left) if part.marked or line.joined or left[-1].joined else ()
            left, texts = [], [line.text]
        elif line.joined and texts:
            texts[-1] += line.text
        else:
            texts.append(line.text)
    yield from _flush(texts)
    if left and (part.marked or left[0].joined):
        yield from _cut(left)


def _flush(texts: list[str], /) -> Iterator[str]:
    if texts:
        yield block("\n".join(texts)) or "| "


def _cut(left: list[Line], /) -> Iterator[str]:
    size = sum(len(line.text) + (not line.joined) + line.hidden for line in left)
    if sum(map(_cost, left)) < _MARK and not any(line.hidden for line in left):
        yield block("\n".join(line.text for line in left))
    elif size > 0:
        yield f"[… {size:,} characters cut …]"


def _foot(numbers: Sequence[int], /) -> Iterator[str]:
    """Which steps that are told lost most: those that are left out or told in brief say so themselves."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    if spans:
        text = ", ".join(str(first) if first == stop else f"{first}–{stop}" for first, stop in spans)
        yield f"[not told whole: step{'s' if len(numbers) > 1 else ''} {text}]"
