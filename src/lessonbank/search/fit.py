"""Fits the lessons that were found to the task: one small call of a model keeps those that will matter, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, cast

import anyio
from pydantic import BaseModel

from lessonbank._base.aio import read_reply, seconds_left
from lessonbank._base.plural import plural
from lessonbank.contracts.ports import LanguageModel, replies_of
from lessonbank.contracts.records import Extraction, FitReceipt, Lesson, Recall, Usage, notes_of
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.settings import Fit
from lessonbank.guard import canonical_line, clean, fence, nonce
from lessonbank.guard.hazards import is_hazard
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.quote import quoted
from lessonbank.text.bm25 import words
from lessonbank.text.prompts import load
from lessonbank.text.rendering import BYTES_PER_TOKEN, width
from lessonbank.text.replies import fields_with, spoken

from .injection import Injector

SECONDS: Final = 1.5
"""How long an agent waits for a recall that is fitted: what searching took is taken off the model's time."""
MOST_LESSONS: Final = 12
"""Lessons that the model reads: the first of those that are offered."""
TOKENS_IN: Final = 900
TOKENS_OUT: Final = 150
MOST_WORDS: Final = 120
_TASK: Final = 600
"""Bytes of the task that the model reads at most."""
_RESERVE: Final = 0.3
"""Seconds that are left for keeping the receipt, where an agent has little patience."""
_READ: Final = 4_000
_OWN: Final = 0.5
"""The share of the words of a line that are its lesson's or the task's, at least."""
_TOKEN: Final = re.compile(r"[^\s\"'`()\[\],;!?]+")
_PARTICULAR: Final = re.compile(r"[\d@/\\$<>{}=|~#_]|\w\.\w")
"""What a word has that is no plain one: a number, a path, an address, code."""


class _Choice(BaseModel):
    check: str
    keep: list[int]


class _Line(BaseModel):
    lesson: int
    say: str


class _Lines(BaseModel):
    check: str
    lines: list[_Line]


class _UnusableError(Exception):
    """Why a reply cannot be used."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a reply says: which lessons, in order, and the lines of each where it words them anew."""

    lessons: Sequence[Lesson]
    lines: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class Fitter:
    """A model that reads a task and the lessons offered for it, once and briefly.

    Where it fails, takes too long or answers what it was not asked, the text stays as it is and a note says why.
    """

    model: LanguageModel
    seconds: float = SECONDS

    async def __call__(
        self, recall: Recall, how: Fit, /, *, since: float, injector: Injector, intake: IntakeFilter
    ) -> Recall:
        """`recall` with the text for its task, and on the receipt what was offered, what was kept and what it took.

        `since`: when the agent asked, on the clock of `time.perf_counter`. The draws were made before, so that the
        evidence is of offering a lesson, whether or not it is kept.
        """
        offered, begun, cost = recall.shown, perf_counter(), _Cost()
        try:
            reading = await self._ask_model(recall.task, offered[:MOST_LESSONS], how, cost, intake, since)
        except Exception as error:  # noqa: BLE001 - somebody else's model may raise anything: the lessons are there
            return _without_fit(recall, how, cost.receipt(self.model.name, how, begun), str(error))
        return _with_fit(recall, reading, cost.receipt(self.model.name, how, begun), injector)

    async def _ask_model(
        self, task: str, lessons: Sequence[Lesson], how: Fit, cost: _Cost, intake: IntakeFilter, since: float
    ) -> _Reading:
        prompt, mark = load(f"general/fit_{how}"), nonce()
        room = TOKENS_IN * BYTES_PER_TOKEN - width(prompt.system + prompt.user) - 16 * len(mark)
        slots = _slots(task, lessons, mark, room)
        limit = max(min(self.seconds - (perf_counter() - since), seconds_left() - _RESERVE), 0.0)
        reply, form = None, _Choice if how == "select" else _Lines
        with anyio.move_on_after(limit), replies_of(TOKENS_OUT):
            reply = await self.model.generate(prompt.render(nonce=mark, **slots), temperature=0.0, schema=form)
        if reply is None:
            raise _UnusableError(f"the model gave no answer within {limit:.2g} seconds")
        cost.usage = reply.usage
        fields = await read_reply(partial(fields_with, mark), spoken(reply.text[:_READ]))
        if fields is None:
            raise _UnusableError("the model's reply is not what was asked for")
        if how == "select":
            return _Reading(_lessons_of_numbers(fields.get("keep"), lessons))
        return await _lines(fields.get("lines"), lessons, task, intake)


@dataclass(slots=True)
class _Cost:
    """What the call took so far, also where its reply is of no use."""

    usage: Usage = Usage()  # noqa: RUF009 - it is frozen

    def receipt(self, model: str, how: Fit, begun: float) -> FitReceipt:
        prompt = load(f"general/fit_{how}").ref
        seconds = round(perf_counter() - begun, 3)
        return FitReceipt(how=how, model=model, prompt=prompt, usage=self.usage, seconds=seconds)


def _slots(task: str, lessons: Sequence[Lesson], mark: str, room: int) -> dict[str, str]:
    """The task and the lessons, each cut so that all of it has room."""
    task_text = fence(_cut(task, _TASK), label="task", nonce=mark)
    frame = width(fence("", label="lessons", nonce=mark))
    each = max((room - width(task_text) - frame) // max(len(lessons), 1) - 6, 40)
    lines = [f"[{n}] {_cut(f'{lesson.title}: {lesson.content}', each)}" for n, lesson in enumerate(lessons, 1)]
    return {"task": task_text, "lessons": fence("\n".join(lines), label="lessons", nonce=mark)}


def _cut(text: str, most: int) -> str:
    """`text` as one line of at most so many bytes."""
    line = " ".join(clean(text[: 4 * most]).split())
    return line if width(line) <= most else line.encode()[: most - 3].decode("utf-8", "ignore") + "…"


def _lessons_of_numbers(numbers: object, lessons: Sequence[Lesson]) -> Sequence[Lesson]:
    """The lessons that a list of numbers names, each once."""
    if not isinstance(numbers, list):
        raise _UnusableError("the model's reply is not what was asked for")
    return list(
        {
            lesson.id: lesson for lesson in map(partial(_lesson_numbered, lessons), cast("list[object]", numbers))
        }.values()
    )


def _lesson_numbered(lessons: Sequence[Lesson], number: object) -> Lesson:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(lessons):
        raise _UnusableError("the model names a lesson that was not offered")
    return lessons[number - 1]


async def _lines(lines: object, lessons: Sequence[Lesson], task: str, intake: IntakeFilter) -> _Reading:
    """What the model says of each lesson. A line that names none is dropped; after 120 words no more come."""
    if not isinstance(lines, list):
        raise _UnusableError("the model's reply is not what was asked for")
    texts, left = dict[str, list[str]](), MOST_WORDS
    for entry in cast("list[object]", lines):
        fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        number, say = fields.get("lesson"), fields.get("say")
        if number is None or not isinstance(say, str) or not say.strip():
            continue
        lesson, line = _lesson_numbered(lessons, number), canonical_line(say[:_READ])
        left -= len(line.split())
        if left < 0:
            break
        texts.setdefault(lesson.id, []).append(await _check_line(line, lesson, task, intake))
    if lines and not texts:
        raise _UnusableError("no line of the model's reply names its lesson")
    return _Reading([next(lesson for lesson in lessons if lesson.id == id) for id in texts], texts)


async def _check_line(line: str, lesson: Lesson, task: str, intake: IntakeFilter) -> str:
    """`line`, redacted, if the gate takes it and it says what its lesson says."""
    source = f"{lesson.text}\n{task}"
    if not _is_of(line, source) or (is_hazard(line) and not is_hazard(lesson.text)):
        raise _UnusableError("the model says what the lesson does not say")
    draft = Lesson(title=lesson.title, content=line, kind=lesson.kind)
    extraction = await intake.lessons(Extraction(lessons=(draft,)), (), shown=())
    if not extraction.lessons:
        raise _UnusableError("the gate rejects what the model wrote")
    return " ".join(extraction.lessons[0].content.split())


def _is_of(line: str, source: str) -> bool:
    """Whether `line` has no number, path, address or code but those of `source`, and mostly its words."""
    known = source.casefold()
    tokens = [token.strip(".:*") for token in _TOKEN.findall(line.casefold())]
    if any(_PARTICULAR.search(token) and token not in known for token in tokens):
        return False
    terms = set(words(line))
    return len(terms & set(words(source))) >= _OWN * len(terms)


def _without_fit(recall: Recall, how: Fit, receipt: FitReceipt, why: str) -> Recall:
    note = f"not fitted: {quoted(why, limit=200)}; the lessons are shown as they were found (fit={how!r})"
    return recall.model_copy(update={"fit": receipt, "notes": (*recall.notes, *notes_of(note))})


def _with_fit(recall: Recall, reading: _Reading, receipt: FitReceipt, injector: Injector) -> Recall:
    ids = tuple(lesson.id for lesson in reading.lessons)
    text = injector.text(reading.lessons, id=recall.id, lines=reading.lines) if ids else ""
    left = {"shown": False, "unfit": True, "why": "offered, and the model that read the task did not keep it"}
    candidates = tuple(
        each.model_copy(update=left) if each.shown and each.lesson_id not in ids else each for each in recall.candidates
    )
    fit = receipt.model_copy(update={"is_applied": True, "kept": ids, "unfitted": recall.text})
    fields = {"text": text, "text_digest": digest(text), "candidates": candidates, "fit": fit}
    return recall.model_copy(update=fields)


def none_kept(recall: Recall, /) -> str:
    """Why a recall that a model fitted has no text."""
    offered = sum(candidate.offered for candidate in recall.candidates)
    return f"the model that read the task kept none of {plural(offered, 'lesson')} offered for it"
