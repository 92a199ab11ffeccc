"""A stream, task by task: a policy draws, the planted chances decide, a ledger takes note, reviews, and takes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

import numpy as np

from lessonbank.contracts.records import Candidate, GroupDraw, Recall, Settlement
from lessonbank.contracts.records.record import Record

from .stream import Flags, Floats, Stream
from .truth import Drawn

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = "stream"
R = TypeVar("R", bound=Record)
TRUTH, OPINION = "ground_truth", "judge"


@dataclass(frozen=True, slots=True)
class Come:
    """A recall, and what was told of its run."""

    stream: Stream
    task: int
    placed: list[int]
    drawn: Drawn
    shown: list[int]
    said: list[tuple[str, bool]]
    """By whom, and whether it was a success: by a judge, by the truth, by nobody."""


class Bank(Protocol):
    """What a stream is played with: the pure parts of a ledger, or a real bank."""

    def draw(self, task: int, stream: Stream, placed: Sequence[int], /) -> Drawn:
        """The draws for the lessons that have a place."""
        ...

    def note(self, come: Come, /) -> Iterable[int]:
        """Take in a recall and what became of it. Returns the lessons that are not found any more from now on."""
        ...


@dataclass(eq=False)
class Played:
    """What came of it, one entry per task."""

    stream: Stream
    drawn: list[Drawn | None] = field(default_factory=list["Drawn | None"])
    """`None` where nothing was found."""
    placed: list[list[int]] = field(default_factory=list[list[int]])
    shown: list[list[int]] = field(default_factory=list[list[int]])
    chance: Floats = field(default_factory=lambda: np.empty(0))
    """Of success, with what was shown."""
    outcome: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    out: dict[int, int] = field(default_factory=dict[int, int])
    """When each lesson was taken back, for those that were."""

    def lost(self) -> Flags:
        """The tasks that lost memory by the draw for the whole."""
        return np.array([one is not None and one.whole[0] for one in self.drawn], np.bool_)

    def bare(self) -> Flags:
        """The tasks that lost all of it, by whichever draws."""
        return np.array([bool(p) and not s for p, s in zip(self.placed, self.shown, strict=True)], np.bool_)

    def if_all_shown(self) -> Floats:
        """The chance of success with everything shown that had a place."""
        told = [self.stream.chance(task, placed, placed) for task, placed in enumerate(self.placed)]
        return np.array(told)


def play(stream: Stream, bank: Bank, /) -> Played:
    """All tasks of a stream. Each is settled before the next one comes."""
    count = len(stream)
    played = Played(stream, chance=np.zeros(count), outcome=np.zeros(count, np.bool_))
    out: set[int] = set()
    for task in range(count):
        placed = stream.placed(task, out)
        drawn = bank.draw(task, stream, placed) if placed else None
        shown = shown_of(stream, placed, drawn)
        hung, chance = stream.hung(task, shown), stream.chance(task, placed, shown)
        success = not hung and stream.lucks[task][0] < chance / stream.goes_on(shown)
        said = [] if hung else list(told_of(stream, task, shown, success=success))
        played.chance[task], played.outcome[task] = chance, success
        played.drawn.append(drawn)
        played.placed.append(placed)
        played.shown.append(shown)
        if drawn is None:
            continue
        for lesson in bank.note(Come(stream, task, placed, drawn, shown, said)):
            out.add(lesson)
            played.out.setdefault(lesson, task)
    return played


def shown_of(stream: Stream, placed: Sequence[int], drawn: Drawn | None, /) -> list[int]:
    """The lessons that no draw left out."""
    if drawn is None or drawn.whole[0]:
        return []
    gone = {group for group, (withheld, _) in drawn.groups.items() if withheld}
    return [
        n
        for n, (withheld, _) in zip(placed, drawn.lessons, strict=True)
        if not withheld and gone.isdisjoint(stream.lessons[n].groups)
    ]


def told_of(stream: Stream, task: int, shown: Sequence[int], /, *, success: bool) -> Iterable[tuple[str, bool]]:
    """Who says what of a run: nobody, the truth, a judge, or a judge and the truth after it."""
    _, verdict, audit, hush = stream.lucks[task]
    if hush < stream.silence[success]:
        return
    if stream.judge is None:
        yield TRUTH, success
        return
    yield OPINION, bool(verdict < stream.judge.likely(success=success, bare=not shown))
    if audit < stream.judge.told:
        yield TRUTH, success


def receipt(come: Come, /) -> Recall:
    """As the bank keeps it."""
    stream, drawn = come.stream, come.drawn
    candidates = tuple(
        _like(
            _CANDIDATE,
            lesson_id=stream.lessons[n].id,
            rank=rank,
            shown=n in come.shown,
            withheld=withheld,
            probability=probability,
            groups=stream.lessons[n].groups,
        )
        for rank, (n, (withheld, probability)) in enumerate(zip(come.placed, drawn.lessons, strict=True))
    )
    groups = drawn.groups.items()
    return _like(
        _RECALL,
        id=recall_id(come.task),
        task=stream.templates[come.task],
        candidates=candidates,
        groups=tuple(_like(_GROUP, group=name, withheld=out, probability=odds) for name, (out, odds) in groups),
        control=drawn.whole[0],
        control_probability=drawn.whole[1],
        created_at=BEGAN + timedelta(minutes=come.task),
    )


def recall_id(task: int, /) -> str:
    """The id of a task's receipt."""
    return f"task-{task}"


def settlement(come: Come, source: str, success: bool, /) -> Settlement:
    """What is told of a run, as the bank keeps it."""
    return _like(
        _SETTLEMENT,
        recall_id=recall_id(come.task),
        outcome="success" if success else "failure",
        source=source,
        judge="judge" if source == OPINION else "",
        template=come.stream.templates[come.task],
        at=BEGAN + timedelta(minutes=come.task, seconds=30),
    )


_CANDIDATE = Candidate(lesson_id="", experience_id="", score=1.0, rank=0, shown=True)
_GROUP = GroupDraw(group="", withheld=False, probability=0.0)
_RECALL = Recall(scope=SCOPE, task="")
_SETTLEMENT = Settlement(recall_id="", scope=SCOPE, outcome="success", steps=5)


def _like(pattern: R, /, **told: object) -> R:
    """The same record with other values. Nothing is checked: half of a run's time would go into that."""
    made = object.__new__(type(pattern))
    object.__setattr__(made, "__dict__", pattern.__dict__ | told)
    return made
