"""Two sets of lessons from the same runs, read by somebody who does not know whose they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from lessonbank import wiring
from lessonbank._base.aio import gather
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Record, Usage
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.settings import Model
from lessonbank.errors import ModelError, UsageError
from lessonbank.guard import fence, nonce, one_line
from lessonbank.learning.agent_prefix import agent_prefix
from lessonbank.text.prompts import load_file
from lessonbank.text.rendering import render
from lessonbank.text.replies import fields_with, spoken
from lessonbank_bench.experiment.distributions import mcnemar

from .figures import Share
from .kept import Kept
from .labelled import Labelled

BUDGET = 8_000
"""Tokens of the run that a reader is shown."""
_PROMPT = Path(__file__).with_name("read_lessons.md")
Side = Literal["first", "second", "tie"]


class Told(Record):
    """A lesson as an agent would read it."""

    title: str
    description: str = ""
    content: str


class Drawn(Record):
    """The lessons of one run."""

    run: str
    source: str
    domain: str
    success: bool
    lessons: tuple[Told, ...] = ()
    usage: Usage = Usage()


class Preference(Record):
    """What a reader said of a pair: `first` is the set of `--out`, `second` that of `--against`."""

    run: str
    source: str
    better: Side
    false: tuple[int, int] = (0, 0)
    """Lessons of either set that the run does not bear out, or that mislead."""
    restated: tuple[int, int] = (0, 0)
    """Lessons that only repeat the agent's instructions."""
    swapped: bool = False
    """Whether the reader saw the second set first."""
    reason: str = ""
    usage: Usage = Usage()


class ReaderReply(BaseModel):
    """The form a reader is asked to answer in."""

    check: str
    reason: str
    better: str
    false_in_A: int  # noqa: N815 - as the prompt names it
    false_in_B: int  # noqa: N815
    restated_in_A: int  # noqa: N815
    restated_in_B: int  # noqa: N815


def pairs(runs: Sequence[Labelled], first: Sequence[Drawn], second: Sequence[Drawn], /) -> list[Pair]:
    """The runs that both sets have been drawn from, and one of them has a lesson of."""
    mine, theirs = ({row.run: row for row in rows} for rows in (first, second))
    found = [
        Pair(one, mine[one.run.id], theirs[one.run.id]) for one in runs if {one.run.id} <= mine.keys() & theirs.keys()
    ]
    return [pair for pair in found if pair.first.lessons or pair.second.lessons]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run and what two extractors drew from it."""

    one: Labelled
    first: Drawn
    second: Drawn

    @property
    def swapped(self) -> bool:
        """Which set stands first is drawn from the run's id: half of the pairs, and the same ones every time."""
        return int(digest(f"side of {self.one.run.id}")[:8], 16) % 2 == 1


async def read(todo: Sequence[Pair], file: Kept[Preference], model: Model, /, *, concurrency: int) -> str:
    """Have every pair read that the file has no preference of; why some were not, or nothing."""
    reader = wiring.resolve_models(model).judge
    if reader is None:
        raise UsageError("give --reader: who reads the lessons")
    known = {row.run for row in file.rows}
    calls = [partial(_read, reader, pair, file) for pair in todo if pair.one.run.id not in known]
    failed = [reason for reason in await gather(calls, limit=concurrency) if reason]
    return f"{len(failed)} pairs were not read: {failed[0]}" if failed else ""


async def _read(reader: LanguageModel, pair: Pair, file: Kept[Preference]) -> str:
    code = nonce()
    try:
        reply = await reader.generate(question(pair, code), temperature=0.0, schema=ReaderReply)
    except ModelError as error:
        return str(error)
    found = preference(reply.text, pair, code)
    if found is None:
        return f"no preference could be read from the reply: {one_line(reply.text[:200], limit=120)}"
    file.add(found.model_copy(update={"usage": reply.usage}))
    return ""


def question(pair: Pair, code: str, /) -> Sequence[Message]:
    """What a reader is asked: the run, how it ended, and the two sets as A and B."""
    sets = (pair.second, pair.first) if pair.swapped else (pair.first, pair.second)
    run = pair.one.hidden
    shown = render(run, budget=BUDGET, instructions=False)
    return load_file(_PROMPT).render(
        agent=agent_prefix(run, budget=BUDGET),
        run=fence(shown, label="run", nonce=code),
        outcome="success" if pair.one.success else "failure",
        a=fence(_listed(sets[0]), label="set A", nonce=code),
        b=fence(_listed(sets[1]), label="set B", nonce=code),
        check=code,
    )


def _listed(drawn: Drawn) -> str:
    """A set as it is shown: nothing in its form tells who drew it."""
    told = (f"{n}. {x.title}\n   {x.description}\n   {x.content}" for n, x in enumerate(drawn.lessons, 1))
    return "\n".join(told) or "(no lessons)"


def preference(text: str, pair: Pair, code: str, /) -> Preference | None:
    """What a reply says; `None` where it does not carry the code, or names no side."""
    fields = fields_with(code, spoken(text))
    if fields is None:
        return None
    said = re.sub(r"[^a-z]", "", str(fields.get("better", "")).lower().replace("set", ""))
    if said not in ("a", "b", "tie", "neither", "equal", "both"):
        return None
    sides: dict[str, Side] = {"a": "second", "b": "first"} if pair.swapped else {"a": "first", "b": "second"}

    def counted(name: str) -> tuple[int, int]:
        a, b = (_count(fields.get(f"{name}_in_{letter}")) for letter in "ab")
        return (b, a) if pair.swapped else (a, b)

    return Preference(
        run=pair.one.run.id,
        source=pair.one.source,
        better=sides.get(said, "tie"),
        false=counted("false"),
        restated=counted("restated"),
        swapped=pair.swapped,
        reason=one_line(str(fields.get("reason", ""))[:1000], limit=1000),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100 else 0


def lessons_table(name: str, rows: Sequence[Drawn], /) -> str:
    """How many lessons a set has, how long they are, and what they cost, as one row of Markdown for each source."""
    head = (
        "| set | source | runs | lessons | words of a lesson | tokens of a run |\n| --- | --- | --- | --- | --- | --- |"
    )
    sources = sorted({row.source for row in rows})
    parts = [(source, [row for row in rows if row.source == source]) for source in sources]
    lines = [_row(name, *part) for part in [("all", list(rows)), *(parts if len(parts) > 1 else [])]]
    return "\n".join([head, *lines])


def _row(name: str, source: str, rows: Sequence[Drawn]) -> str:
    told = [lesson for row in rows for lesson in row.lessons]
    words = sum(len(f"{x.title} {x.description} {x.content}".split()) for x in told) / max(len(told), 1)
    tokens = sum(row.usage.input_tokens for row in rows) / max(len(rows), 1)
    return f"| {name} | {source} | {len(rows)} | {len(told)} | {words:.0f} | {tokens:,.0f} |"


def preferred(first: str, second: str, rows: Sequence[Preference], /) -> str:
    """Which set a blind reader preferred, of each source too, with an exact sign test."""
    lines = [f"{first} against {second}, read blind on {len(rows)} runs:"]
    sources = sorted({row.source for row in rows})
    for source in ["all", *(sources if len(sources) > 1 else [])]:
        own = [row for row in rows if source in ("all", row.source)]
        won, lost = (sum(row.better == side for row in own) for side in ("first", "second"))
        share, p = Share(won, won + lost), mcnemar(won, lost)
        lines.append(f"{source}: preferred {won}, lost {lost}, tie {len(own) - won - lost}; {share}, p = {p:.3f}")
    for what in ("false", "restated"):
        mine, theirs = (sum(getattr(row, what)[side] for row in rows) for side in (0, 1))
        lines.append(f"{what}: {mine} against {theirs}")
    return "\n".join(lines)


def figures_of(rows: Sequence[Preference], /) -> dict[str, int]:
    """The counts of `preferred`, for a program."""
    return {side: sum(row.better == side for row in rows) for side in ("first", "second", "tie")}
