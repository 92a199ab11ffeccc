"""Asks a model once about the new lessons of a run: whether an agent may be taught them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from pydantic import BaseModel

from lessonbank._base.plural import plural
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Extraction, Lesson, Rejected
from lessonbank.errors import ModelError
from lessonbank.guard.gate import NO_LESSON, NOT_CHECKED
from lessonbank.guard.quote import quoted
from lessonbank.guard.sanitise import fence, nonce, one_line
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.replies import Fields, JsonObject, find_objects, read_objects, spoken

_REPLY: Final = 8_000
"""Characters of a reply that are read, from its end."""
_LESSON: Final = 5_000
_ANSWER = re.compile(r"(\d{1,3})\W{1,12}(?:answer\W{1,6})?(keep|harmful|nothing)\b", re.IGNORECASE)

Answer = Literal["keep", "harmful", "nothing"]


class _One(BaseModel):
    lesson: int
    answer: Answer


class Answers(BaseModel):
    """The form that a model is asked to answer in."""

    answers: list[_One]


@dataclass(frozen=True, slots=True)
class HarmCheck:
    """A model that decides what code cannot: who is told to leave out what, and whether a risk is recommended.

    A lesson it calls harmful is quarantined. Where it fails or gives no clear answer, a lesson that seems to be none is
    quarantined, and any other is marked as not checked.
    """

    model: LanguageModel
    prompt: Prompt | None = None
    """`None`: the package's `general/admit`."""

    async def __call__(self, drawn: Extraction, /) -> Extraction:
        """`drawn` as the model decides, with what the call took. It is asked about every lesson.

        Harm in ordinary words ("book first, tell the fee later") has no sign that could tell what to ask about.
        """
        asked = drawn.lessons
        if not asked:
            return drawn
        prompt, mark = self.prompt or load("general/admit"), nonce()
        texts = [f"title: {i.title}\nwhen: {i.description}\n{i.content}"[:_LESSON] for i in asked]
        shown = "\n\n".join(fence(text, label=f"lesson {n}", nonce=mark) for n, text in enumerate(texts, 1))
        try:
            reply = await self.model.generate(prompt.render(nonce=mark, lessons=shown), temperature=0.0, schema=Answers)
        except ModelError as error:
            note = (
                f"nobody checked {plural(len(asked), 'lesson')}, because the model failed: {quoted(error, limit=200)}"
            )
            return _with(drawn, {lesson.id: _unchecked(lesson) for lesson in asked}, (note,))
        answers = read_answers(reply.text, len(asked))
        decisions = {lesson.id: _decide(lesson, answer) for lesson, answer in zip(asked, answers, strict=True)}
        drawn = drawn.model_copy(update={"usage": drawn.usage + reply.usage})
        return _with(drawn, decisions, tuple(filter(None, map(_note, asked, answers))))


def read_answers(reply: str, count: int, /) -> Sequence[Answer | None]:
    """The answer for each of `count` lessons; of several the worst; `None` where there is none."""
    given, text = dict[int, set[str]](), spoken(reply)[-_REPLY:]
    # In objects the number may stand behind the answer, where the next lesson's answer follows it.
    for number, answer in read_objects(find_objects(text), _answers_in) or _ANSWER.findall(text):
        given.setdefault(int(number), set()).add(answer.lower())
    order: Sequence[Answer] = ("harmful", "nothing", "keep")
    return [next((a for a in order if a in given.get(n, ())), None) for n in range(1, count + 1)]


def _answers_in(_: JsonObject, fields: Fields) -> Iterable[tuple[str, str]]:
    listed = cast("object", fields.get("answers"))
    every = cast("list[object]", listed) if isinstance(listed, list) else [fields]
    entries = [cast("Fields", value) for value in every if isinstance(value, dict)]
    pairs = [(str(entry.get("lesson")).strip(), str(entry.get("answer")).strip()) for entry in entries]
    return [(number[:3], answer) for number, answer in pairs if number.isdecimal()]


def _decide(lesson: Lesson, answer: Answer | None) -> Lesson | Rejected:
    if answer == "nothing" and lesson.risk == NO_LESSON:
        reason = "it is about nothing in particular, says the model"
        return Rejected(title=lesson.title, content=lesson.content, rule="vague", reason=reason)
    if answer in ("keep", "nothing"):
        # No model frees what waits for a person.
        return lesson if lesson.state == "quarantined" else lesson.model_copy(update={"risk": None})
    if answer is None:
        return _unchecked(lesson)
    return lesson.model_copy(update={"state": "quarantined", "risk": "harmful"})


def _unchecked(lesson: Lesson) -> Lesson:
    return lesson.model_copy(update={"state": "quarantined"} if lesson.is_doubted else {"risk": NOT_CHECKED})


def _note(lesson: Lesson, answer: Answer | None) -> str:
    if answer in ("keep", "nothing"):
        return ""
    why = "the model calls it harmful" if answer else "the model did not say clearly whether it is harmful"
    return f"{one_line(lesson.title, limit=60)!r} is not trusted: {why}"


def _with(drawn: Extraction, decisions: dict[str, Lesson | Rejected], notes: Sequence[str]) -> Extraction:
    every = [decisions.get(lesson.id, lesson) for lesson in drawn.lessons]
    return drawn.model_copy(
        update={
            "lessons": tuple(lesson for lesson in every if isinstance(lesson, Lesson)),
            "rejected": (*drawn.rejected, *(rejection for rejection in every if isinstance(rejection, Rejected))),
            "notes": (*drawn.notes, *notes),
        }
    )
