"""Which lessons a file gets, in which order: those that may be shown, by their evidence, as many as there is room."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lessonbank._base.iterate import closing
from lessonbank.bank.scoped_bank import ScopedBank
from lessonbank.contracts.records import Experience, Lesson, Topic, target_of
from lessonbank.contracts.records.ids import digest, new_id
from lessonbank.contracts.records.repeats import taught_in
from lessonbank.errors import UsageError
from lessonbank.evidence.effects import LessonLift, Standing
from lessonbank.evidence.groups import topic_names
from lessonbank.files.block import INTRODUCTION, Entry, written
from lessonbank.guard.wording import wording_of
from lessonbank.text.rendering import estimate_tokens

_MADE: Final = re.compile(r"[0-9a-f]{32}")
_LEAST: Final = 8
"""Characters of an id's end that name a lesson, as in every table."""
_OTHER: Final = re.compile(r"[^\w-]|_")
_LONGEST: Final = 60
_RANK: Final[dict[Standing, int]] = {"helps": 0, "likely helps": 1, "no evidence yet": 2, "likely harms": 3, "harms": 4}
_SHOWN_TO_HARM: Final = "shown to harm"


@dataclass(frozen=True, slots=True)
class Holdings:
    """Everything a scope holds that matters for files, as of one moment."""

    scope: str
    lessons: Mapping[str, tuple[Lesson, Experience]]
    repeats: Counter[str]
    """How often a lesson came again."""
    by_wording: dict[str, Lesson]
    """The lesson that has this wording; proposals to change one are not among them."""
    proposals: dict[tuple[str, str], Lesson]
    """Proposals to change a lesson, by its id and their text."""
    _topics: dict[str, Topic]
    _by_end: Mapping[str, list[str]]

    @classmethod
    async def read(cls, bank: ScopedBank, /) -> Holdings:
        """All of it, from the store."""
        lessons, repeats = dict[str, tuple[Lesson, Experience]](), Counter[str]()
        async with closing(bank.store.scan(scope=bank.scope)) as every:
            async for experience in every:
                lessons |= {lesson.id: (lesson, experience) for lesson in experience.lessons}
                repeats.update({id: len(taught_in(experience, id)) for id in experience.repeats})
        by_wording = {wording_of(lesson): lesson for lesson, owner in lessons.values() if target_of(owner) is None}
        proposals = {
            (id, lesson.text): lesson for lesson, owner in lessons.values() if (id := target_of(owner)) is not None
        }
        ends = defaultdict[str, list[str]](list)
        for id in lessons:
            ends[_hex(id)[-_LEAST:]].append(id)
        names = topic_names(lesson for lesson, _ in lessons.values())
        topics = {name.casefold(): Topic(id=id, name=name) for id, name in names.items()}
        return cls(bank.scope, lessons, repeats, by_wording, proposals, topics, ends)

    def find(self, end: str, /) -> tuple[Lesson, Experience] | None:
        """The lesson whose id ends so, if there is exactly one."""
        ids = [id for id in self._by_end.get(end[-_LEAST:], ()) if _hex(id).endswith(end)]
        return self.lessons[ids[0]] if len(ids) == 1 else None

    def topic(self, heading: str, /) -> Topic | None:
        """The topic of that name, or a new one; `None` for no name."""
        name = " ".join(_OTHER.sub(" ", heading.rpartition(" / ")[2]).split())[:_LONGEST].strip()
        return self._topics.setdefault(name.casefold(), Topic(id=digest(new_id())[:8], name=name)) if name else None

    def short(self, id: str, /) -> str:
        """The end of an id that names one lesson."""
        whole = _hex(id)
        others = list(map(_hex, self._by_end[whole[-_LEAST:]]))
        ends = (whole[-size:] for size in (_LEAST, 16))
        return next((end for end in ends if sum(other.endswith(end) for other in others) == 1), whole)


def _hex(id: str) -> str:
    """An id that somebody made up need not be of 32 hex digits, and a file may hold nothing else."""
    return id if _MADE.fullmatch(id) else digest(id)[:32]


async def ranked_entries(bank: ScopedBank, holdings: Holdings, /, *, every: bool) -> list[Entry]:
    """The lessons that may stand in a file, the best first; with `every`, those on probation, too, and marked.

    First what is shown to help, by how much; then what came again most often, what a person approved, what is newest.
    """
    lifts = await _read_lift(bank)
    names = topic_names(lesson for lesson, _ in holdings.lessons.values() if not lesson.hidden)
    chosen = [lesson for lesson, _ in holdings.lessons.values() if not lesson.hidden]
    entries = list[Entry]()
    for lesson in sorted(chosen, key=lambda lesson: rank(lesson, lifts.get(lesson.id), holdings.repeats[lesson.id])):
        mark = _mark(lesson, lifts.get(lesson.id))
        if every or not mark:
            name = names[lesson.topic.id] if lesson.topic else ""
            topic = name[:1].upper() + name[1:]
            entries.append(Entry.of(lesson, id=holdings.short(lesson.id), topic=topic, mark=mark))
    return entries


async def _read_lift(bank: ScopedBank) -> dict[str, LessonLift]:
    try:
        lift = await bank.parts.ledger.lift(scope=bank.scope, level=0.95)
    except UsageError:  # a bank that measures nothing
        return {}
    return {lesson.lesson_id: lesson for lesson in lift.lessons}


def _mark(lesson: Lesson, lift: LessonLift | None) -> str:
    if lift is not None and lift.standing == "harms":
        return _SHOWN_TO_HARM
    return "" if lesson.state == "active" else "on probation"


def rank(lesson: Lesson, lift: LessonLift | None, repeats: int) -> tuple[float, float, int, bool, float, str]:
    """Smaller is better. The size of an effect counts only with a verdict: other estimates move with every task."""
    rank = _RANK[lift.standing if lift else "no evidence yet"]
    known = lift is not None and rank < _RANK["no evidence yet"]
    value = lift.success.value if lift and known else None
    return rank, -round(value or 0.0, 2), -repeats, not lesson.approved, -lesson.created_at.timestamp(), lesson.id


def within_budget(entries: Iterable[Entry], /, *, budget: int, topic_cost: int = 0) -> list[Entry]:
    """As many of the entries as `budget` tokens take, the best first.

    `topic_cost`: the tokens of what a file begins with, where each topic has a file of its own.
    """
    room = budget if topic_cost else budget - estimate_tokens(written([]) + INTRODUCTION)
    topics, selection = set[str](), list[Entry]()
    for entry in entries:
        cost = estimate_tokens(f"{entry.text} {entry.id}:{entry.digest}")
        if entry.topic not in topics:
            cost += estimate_tokens(f"### {entry.topic}\n\n") + topic_cost
        if cost <= room:
            room -= cost
            topics.add(entry.topic)
            selection.append(entry)
    return selection
