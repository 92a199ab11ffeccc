"""A thousand episodes of an agent that half the time writes down what memory had shown it: does any of it get in?"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import Extraction, Lesson, Recall, Run, Step, Trajectory
from lessonbank.contracts.settings import UNSET
from lessonbank.testing.settings import grouped

from .admitting import SETS, decide
from .places import cases
from .table import Row, counted, share

EPISODES = 1000
WAYS = ("verbatim", "as it stood in the block", "in another case and spacing", "put together of two", "reworded")
"""How a lesson that was shown is written down again."""
_CHANGES = {
    "when": "whenever", "before": "prior to", "use": "employ", "check": "look at", "first": "at the start",
    "ask": "request", "then": "after that", "only": "just", "because": "since", "if": "in case", "read": "go through",
    "each": "every", "instead": "rather", "open": "bring up", "keep": "retain", "must": "has to", "not": "not ever",
}  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


@dataclass
class ReviewSnapshot:
    """What became of the lessons of a simulation."""

    tried: Counter[str] = field(default_factory=Counter[str])
    entered: dict[str, list[str]] = field(default_factory=lambda: {way: [] for way in (*WAYS, "new")})
    lost_to: Counter[str] = field(default_factory=Counter[str])
    """Rules that turned a new lesson away."""


async def rows(every: int = 1) -> list[Row]:
    """Echoes that got in, by how they were written, and new lessons that were taken for one."""
    episodes = EPISODES // every
    told = await simulated(episodes)
    plain = WAYS[:4]
    entered = [f"{way}: {text}" for way in plain for text in told.entered[way]]
    number = sum(told.tried[way] for way in plain)
    said = ", ".join(f"{way} {len(told.entered[way])} of {told.tried[way]}" for way in plain)
    reworded, new = told.tried["reworded"], told.tried["new"]
    taken_for_one = [f"episode {n}" for n in range(told.lost_to["echo"])]
    return [
        counted("re-ingested echo", entered, cases=f"{number} echoes in {episodes} episodes ({said})"),
        share(
            "reworded echo that entered", told.entered["reworded"], of=reworded, what="echoes, a word in three changed"
        ),
        share(
            "new lessons that were taken for an echo",
            taken_for_one,
            of=new,
            what="new lessons, others in view",
            most=5.0,
        ),
    ]


async def simulated(episodes: int, *, guarded: bool = True) -> ReviewSnapshot:
    """Episodes through the public API: retrieve, act, learn with the receipt. `guarded=False` leaves the gate out."""
    chance, told, now = random.Random("echo"), ReviewSnapshot(), dict[str, Any]()

    async def draws(attempts: Sequence[Run], /) -> Extraction:
        return Extraction(lessons=(now["lesson"],))

    options: dict[str, Any] = {"admission": UNSET if guarded else None}
    async with await lessonbank.connect_async(
        ":memory:", scope="s", embedder="lexical", **grouped(holdout=None, limit=2, extractor=draws, **options)
    ) as bank:
        fresh, tasks = new_lessons(), list[str]()
        for number in range(episodes):
            if tasks and chance.random() < 0.5:
                await _echo(bank, f"{chance.choice(tasks)} ({number})", now, told, chance)
            else:
                task, now["lesson"] = next(fresh)
                tasks.append(task)
                await _episode(bank, f"{task} ({number})", await bank.retrieve(task), "new", now, told)
    return told


async def _echo(
    bank: AsyncReasoningBank, task: str, now: dict[str, Any], told: ReviewSnapshot, chance: random.Random
) -> None:
    recall = await bank.retrieve(task)
    if not recall.shown:
        return
    way = chance.choice(WAYS)
    now["lesson"] = echo_of(recall, way, chance)
    await _episode(bank, task, recall, way, now, told)


async def _episode(
    bank: AsyncReasoningBank, task: str, recall: Recall, way: str, now: dict[str, Any], told: ReviewSnapshot
) -> None:
    run = Trajectory(task=task, steps=(Step(action="look", observation="done"),))
    learned = await bank.learn(run, recall=recall, outcome="success")
    told.tried[way] += 1
    told.entered[way] += [lesson.content[:60] for lesson in learned.lessons]
    if way == "new" and not learned.lessons and learned.experience and learned.experience.rejected:
        told.lost_to[learned.experience.rejected[0].rule] += 1


def echo_of(recall: Recall, way: str, chance: random.Random) -> Lesson:
    """A lesson that was shown, written down again."""
    lesson = chance.choice(recall.shown)
    if way == "verbatim":
        return Lesson(title=lesson.title, description=lesson.description, content=lesson.content)
    if way == "as it stood in the block":
        lines = recall.text.split("<<<", 1)[1].split("\n")[2:-2]
        return Lesson(title="What helped", content="\n".join(lines) or lesson.content)
    if way == "in another case and spacing":
        return Lesson(title=lesson.title.upper(), content="  ".join(lesson.content.split(" ")).replace(". ", ".\n"))
    if way == "put together of two":
        parts = [p for i in recall.shown for p in _SENTENCE.split(i.content) if len(p.split()) > 3]
        return Lesson(
            title=lesson.title,
            content=" ".join(dict.fromkeys(chance.sample(parts, min(3, len(parts))))) or lesson.content,
        )
    return Lesson(title=f"On {lesson.title}", content=_reworded(lesson.content))


def _reworded(text: str) -> str:
    return re.sub(r"\b\w+\b", lambda m: _CHANGES.get(m[0].casefold(), m[0]), text)


def new_lessons() -> Iterator[tuple[str, Lesson]]:
    """Tasks and lessons that people wrote for the gate's tests, those that it keeps; then made ones."""
    for name in SETS:
        for case in cases(name):
            if case["label"] == "good" and decide({**case, "shown": []}).fate == "unchecked":
                yield (
                    case["task"],
                    Lesson(title=case["title"], description=case["description"], content=case["content"]),
                )
    yield from _made()


def _made() -> Iterator[tuple[str, Lesson]]:
    chance = random.Random("made")
    for number in range(10**6):
        tool, field_, place = (f"{chance.choice(_STEMS)}_{chance.choice(_STEMS)}" for _ in range(3))
        content = (
            f"`{tool}` leaves `{field_}` empty while the {place} job {number} runs; wait for its entry in the log, "
            f"or the {chance.choice(_STEMS)} of page {chance.randrange(900)} is lost."
        )
        task = f"Bring the {chance.choice(_STEMS)} {place} {number} up to date"
        yield task, Lesson(title=f"Wait for {place} before `{tool}`", content=content)


_STEMS = (
    "ledger", "harbour", "parcel", "ticket", "fare", "roster", "invoice", "branch", "queue", "sensor", "recipe",
    "tariff", "seat", "lens", "valve", "index", "voucher", "shelf", "route", "meter",
)  # fmt: skip
