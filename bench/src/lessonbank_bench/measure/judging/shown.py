"""How many lessons are worth showing: a reader of failed runs says which lessons would have helped, told no setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import BaseModel

from lessonbank import Evidence, Extraction, Learning, Lesson, Model, Parts, Retrieval, Run, connect_async, wiring
from lessonbank._base.aio import gather
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Recall, Record, Usage
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import ModelError, UsageError
from lessonbank.guard import fence, nonce, one_line
from lessonbank.learning.agent_prefix import agent_prefix
from lessonbank.text.prompts import load_file
from lessonbank.text.rendering import estimate_tokens, render
from lessonbank.text.replies import fields_with, spoken

from .figures import Share
from .kept import Kept
from .labelled import Labelled
from .lessons import BUDGET, Drawn, Told

Effect = Literal["helps", "misleads", "nothing"]
_PROMPT = Path(__file__).with_name("read_shown.md")
SETTINGS: Final[Mapping[str, Retrieval]] = {
    "1 experience": Retrieval(by="lexical", limit=1),
    "2 experiences": Retrieval(by="lexical", limit=2),
    "3 experiences": Retrieval(by="lexical", limit=3),
    "4 experiences": Retrieval(by="lexical", limit=4),
    "5 experiences": Retrieval(by="lexical", limit=5),
    "3 lessons": Retrieval(level="lesson", limit=3),
    "5 lessons": Retrieval(level="lesson", limit=5),
}
"""What is compared. Experiences are found by words, lessons by `hashing` vectors: neither needs a download."""


class Shown(Record):
    """What one setting would have shown before a run."""

    setting: str
    lessons: tuple[int, ...]
    """Places in `Reading.lessons`."""
    tokens: int
    """Of the whole text, estimated."""


class Reading(Record):
    """What a reader said of every lesson that any setting would have shown before a run that failed."""

    run: str
    source: str
    lessons: tuple[Told, ...]
    shown: tuple[Shown, ...]
    effects: tuple[Effect, ...] = ()
    """One for each lesson."""
    reason: str = ""
    """Why the run failed, as the reader sees it."""
    usage: Usage = Usage()


class ReaderReply(BaseModel):
    """The form a reader is asked to answer in."""

    check: str
    reason: str
    effects: list[str]


@dataclass(frozen=True, slots=True)
class Figures:
    """One setting over all readings."""

    setting: str
    lessons: float
    """Shown to a run, on average."""
    tokens: float
    helped: Share
    """Runs that were shown at least one lesson that helps."""
    misled: Share
    """Runs that were shown at least one lesson that misleads."""


async def prepare(
    failed: Sequence[Labelled], taught: Sequence[Labelled], drawn: Sequence[Drawn], folder: Path, /
) -> list[Reading]:
    """What each setting shows before each of the failed runs, out of the lessons of other runs of the same source.

    Args:
        failed: The runs that are read. None of their tasks is among `taught`.
        taught: The runs that the lessons come from.
        drawn: Their lessons, as `bench lessons` keeps them.
        folder: An empty one, for a bank of each source.

    Raises:
        UsageError: a task of `failed` was taught, too.
    """
    if same := {one.run.task for one in failed} & {one.run.task for one in taught}:
        raise UsageError(f"{len(same)} tasks are in both sets: a lesson of the same task would answer another question")
    found: dict[str, dict[str, Recall]] = {one.run.id: {} for one in failed}
    for source in sorted({one.source for one in failed}):
        bank = folder / f"{source}.db"
        await _teach(bank, [one for one in taught if one.source == source], {row.run: row for row in drawn})
        for name, retrieval in SETTINGS.items():
            async with await connect_async(
                bank, scope=_SCOPE, embedder="hashing", retrieval=retrieval, evidence=_ALL
            ) as b:
                for one in (one for one in failed if one.source == source):
                    found[one.run.id][name] = await b.retrieve(one.run.task)
    return [_sheet(one, found[one.run.id]) for one in failed]


_SCOPE: Final = "bench/shown"
_ALL: Final = Evidence(holdout=None)


async def _teach(bank: Path, taught: Sequence[Labelled], drawn: Mapping[str, Drawn]) -> None:
    async def known(attempts: Sequence[Run], /) -> Extraction:
        row = drawn[attempts[0].trajectory.id]
        return Extraction(lessons=tuple(Lesson(**lesson.model_dump()) for lesson in row.lessons))

    learning = Learning(domain=taught[0].domain) if taught else Learning()
    async with await connect_async(
        bank, scope=_SCOPE, embedder="hashing", learning=learning, parts=Parts(extractor=known), evidence=_ALL
    ) as b:
        for one in (one for one in taught if one.run.id in drawn):
            await b.learn(one.run, outcome="success" if one.success else "failure")


def _sheet(one: Labelled, recalls: Mapping[str, Recall]) -> Reading:
    """All lessons once, in an order that tells nothing."""
    lessons = {lesson.id: lesson for recall in recalls.values() for lesson in recall.shown}
    order = sorted(lessons, key=lambda id: digest(f"{one.run.id} {lessons[id].content}"))
    told = (Told(title=x.title, description=x.description, content=x.content) for x in map(lessons.__getitem__, order))
    shown = (
        Shown(setting=name, lessons=tuple(order.index(x.id) for x in recall.shown), tokens=estimate_tokens(recall.text))
        for name, recall in recalls.items()
    )
    return Reading(run=one.run.id, source=one.source, lessons=tuple(told), shown=tuple(shown))


async def read(
    failed: Sequence[Labelled], sheets: Sequence[Reading], file: Kept[Reading], model: Model, /, *, concurrency: int
) -> str:
    """Have every sheet read that the file has no reading of; why some were not, or nothing."""
    reader = wiring.resolve_models(model).judge
    if reader is None:
        raise UsageError("give --reader: who reads the lessons")
    known, runs = {row.run for row in file.rows}, {one.run.id: one for one in failed}
    todo = [sheet for sheet in sheets if sheet.run not in known]
    calls = [partial(_read, reader, runs[sheet.run], sheet, file) for sheet in todo]
    left = [reason for reason in await gather(calls, limit=concurrency) if reason]
    return f"{len(left)} runs were not read: {left[0]}" if left else ""


async def _read(reader: LanguageModel, one: Labelled, sheet: Reading, file: Kept[Reading]) -> str:
    if not sheet.lessons:
        file.add(sheet)
        return ""
    code = nonce()
    try:
        reply = await reader.generate(question(one, sheet, code), temperature=0.0, schema=ReaderReply)
    except ModelError as error:
        return str(error)
    found = effects(reply.text, len(sheet.lessons), code)
    if found is None:
        return f"no effects could be read from the reply: {one_line(reply.text[:200], limit=120)}"
    reason, told = found
    file.add(sheet.model_copy(update={"effects": told, "reason": reason, "usage": reply.usage}))
    return ""


def question(one: Labelled, sheet: Reading, code: str, /) -> Sequence[Message]:
    """What a reader is asked: the failed run, and every lesson under its number. No setting is named."""
    listed = (f"{n}. {x.title}\n   {x.description}\n   {x.content}" for n, x in enumerate(sheet.lessons, 1))
    return load_file(_PROMPT).render(
        agent=agent_prefix(one.hidden, budget=BUDGET),
        run=fence(render(one.hidden, budget=BUDGET, instructions=False), label="run", nonce=code),
        lessons=fence("\n".join(listed), label="lessons", nonce=code),
        check=code,
    )


def effects(text: str, lessons: int, code: str, /) -> tuple[str, tuple[Effect, ...]] | None:
    """The reason and the effects of a reply; `None` without the code, or without one known word for each lesson."""
    fields = fields_with(code, spoken(text))
    if fields is None:
        return None
    said = fields.get("effects")
    words = [str(word).strip().lower() for word in said] if isinstance(said, list) else []
    known = {word: word for word in get_args(Effect)}
    if len(words) != lessons or not set(words) <= known.keys():
        return None
    return one_line(str(fields.get("reason", ""))[:1000], limit=1000), tuple(known[word] for word in words)


def figures(rows: Sequence[Reading], /) -> list[Figures]:
    """What each setting would have brought the runs that were read."""
    return [_figures(name, rows) for name in SETTINGS] if rows else []


def _figures(name: str, rows: Sequence[Reading]) -> Figures:
    each = [(row, shown) for row in rows for shown in row.shown if shown.setting == name]

    def runs_with(effect: Effect) -> Share:
        return Share(sum(effect in {row.effects[n] for n in shown.lessons} for row, shown in each), len(each))

    return Figures(
        name,
        lessons=sum(len(shown.lessons) for _, shown in each) / max(len(each), 1),
        tokens=sum(shown.tokens for _, shown in each) / max(len(each), 1),
        helped=runs_with("helps"),
        misled=runs_with("misleads"),
    )


def table(rows: Sequence[Reading], /) -> str:
    """The figures as Markdown."""
    head = "| shown | lessons | tokens | a lesson would have helped | one would have misled |"
    line = "| --- | --- | --- | --- | --- |"
    lines = (f"| {x.setting} | {x.lessons:.1f} | {x.tokens:.0f} | {x.helped} | {x.misled} |" for x in figures(rows))
    return "\n".join([head, line, *lines])
