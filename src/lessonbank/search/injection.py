"""Turn what was found into a receipt and the text that goes into a prompt: pure, fenced, under a hard budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lessonbank.contracts.lesson_block import citation, with_nonce, with_numbers, write_block, write_lesson
from lessonbank.contracts.records import UNCHECKED, Found, Lesson, Match, Recall
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.withholding import Assignment, Members
from lessonbank.evidence.groups import kind_and_label
from lessonbank.guard import canonical, canonical_line, is_prose
from lessonbank.guard.wording import fact_of
from lessonbank.text.prompts import Prompt
from lessonbank.text.rendering import BYTES_PER_TOKEN, width

from ._wrapper import lessons_of

_NOTHING = Assignment()
_NO_GROUPS: Members = {}
Style = Literal["full", "paper"]
_NOTES = ("Notes from past tasks", "Unchecked notes")
"""What the lessons are called where the prompt has a place for it: if not all, and if all of them are unchecked. The
risk of a lesson is never shown: a file may have brought the text."""


@dataclass(frozen=True, slots=True)
class Injector:
    """How lessons become text. `full` shows kind, title, description and content; `paper` title and content."""

    prompt: Prompt
    style: Style = "full"
    budget: int = 1500
    """The most tokens (estimated) a recall's text may take. A lesson that does not fit is left out whole."""
    preface: str = ""
    """What stands in the prompt's slot `preface`, where it has one. Its inert form is used."""

    def recall(
        self,
        retrieval: Found,
        /,
        *,
        id: str,
        task: str,
        scope: str,
        assigned: Assignment = _NOTHING,
        groups: Members = _NO_GROUPS,
        retriever: str,
        space: str | None,
    ) -> Recall:
        """The receipt for `retrieval`: which lessons are shown, which are withheld as `assigned`, and the text.

        The fence's nonce follows from `id`: fresh for each recall, the same for its whole life."""
        ranked = _rank(retrieval)
        absent = {draw.group: draw.probability for draw in assigned.groups if draw.withheld}
        held = frozenset(lesson.id for _, lesson in ranked) if assigned.control else assigned.withheld
        if absent and not assigned.control:
            held |= {lesson.id for _, lesson in ranked if not absent.keys().isdisjoint(groups.get(lesson.id, ()))}
        shown, text, left_out = self._fit([lesson for _, lesson in ranked], held, nonce=digest(id)[:8])
        fields: dict[str, object] = {
            "id": id,
            "scope": scope,
            "task": task,
            "text": text,
            "text_digest": digest(text),
            "lessons": tuple([lesson for _, lesson in ranked]),
            "candidates": tuple(
                [
                    _candidate(
                        match,
                        lesson,
                        rank,
                        shown=shown,
                        left_out=left_out,
                        assigned=assigned,
                        groups=groups.get(lesson.id, ()),
                        absent=absent,
                    )
                    for rank, (match, lesson) in enumerate(ranked, 1)
                ]
            ),
            "holdout": assigned.base_rate,
            "control": assigned.control and bool(ranked),
            "control_probability": assigned.control_probability,
            "groups": assigned.groups,
            "retriever": retriever,
            "space": space,
            "notes": retrieval.notes,
        }
        return Recall.model_validate(fields)

    def text(self, lessons: Sequence[Lesson], /, *, id: str, lines: Mapping[str, Sequence[str]] | None = None) -> str:
        """The text of these lessons in their order; `lines`: what is said of each in the place of its own words."""
        nonce, unchecked = digest(id)[:8], all(lesson.is_unchecked for lesson in lessons)
        before, after = self._frame(nonce, unchecked)
        bodies = [_body(lesson, lines, self.style, lesson.is_unchecked and not unchecked) for lesson in lessons]
        return f"{before}{with_nonce(with_numbers(bodies), nonce=nonce)}{after}"

    def _fit(
        self, lessons: Sequence[Lesson], held: frozenset[str], *, nonce: str
    ) -> tuple[frozenset[str], str, dict[str, str]]:
        """Best first, whole lessons only; what is repeated or does not fit is left out with its reason.

        Room for the best guardrail that fits is set aside first: what worked never hides what went wrong. Which lessons
        have a place is settled before the draw, and the place of a withheld lesson stays empty: else what is measured
        by withholding would not be what showing it changes.
        """
        unchecked = all(lesson.is_unchecked for lesson in lessons)
        before, after = self._frame(nonce, unchecked)
        room = self.budget * BYTES_PER_TOKEN - width(before) - width(after) + 1
        bodies = {
            each.id: lesson_text(each, style=self.style, marked=each.is_unchecked and not unchecked) for each in lessons
        }
        longest = citation(len(lessons))
        sizes = {id: width(with_nonce(f"{longest} {body}", nonce=nonce)) + 1 for id, body in bodies.items()}
        distinct = _distinct(lessons)
        placed = _place(distinct, sizes, room)
        shown = [lesson.id for lesson in lessons if lesson.id in placed and lesson.id not in held]
        lines = with_numbers([bodies[id] for id in shown])
        repeated = bodies.keys() - {lesson.id for lesson in distinct}
        left_out = {
            id: "says the same as a lesson above it"
            if id in repeated
            else f"does not fit the budget of {self.budget} tokens"
            for id in bodies
            if id not in placed
        }
        return frozenset(shown), f"{before}{with_nonce(lines, nonce=nonce)}{after}" if shown else "", left_out

    def _frame(self, nonce: str, unchecked: bool) -> tuple[str, str]:
        """What stands before and after the lines of the lessons. It says once if nobody checked any of them."""
        slots = {"notes": _NOTES[unchecked], "preface": canonical(self.preface).strip(), "citation": citation(1)}
        own = {name: text for name, text in slots.items() if name in self.prompt.slots}
        remark = UNCHECKED if unchecked and "notes" not in own else ""
        block = write_block("", label="lessons", nonce=nonce, remark=remark)
        text = self.prompt.render(lessons=block, **own)[-1].content.strip()
        before, _, after = text.rpartition(with_nonce("", nonce=nonce))
        return before, after


def _rank(retrieval: Found) -> Sequence[tuple[Match, Lesson]]:
    """Every lesson that was found, with the first match that gave it: several tasks may have taught the same one."""
    first: dict[str, tuple[Match, Lesson]] = {}
    for match in retrieval.matches:
        for lesson in lessons_of(match):
            first.setdefault(lesson.id, (match, lesson))
    return list(first.values())


def _distinct(lessons: Sequence[Lesson]) -> Sequence[Lesson]:
    """`lessons` without those that say the same as one before them. Wordings are compared where they begin alike."""
    begin = {tuple(lesson.title.casefold().split(maxsplit=1)[:1]) for lesson in lessons}
    if len(begin) == len(lessons) and () not in begin:
        return lessons
    return list({fact_of(lesson): lesson for lesson in reversed(lessons)}.values())[::-1]


def _place(lessons: Sequence[Lesson], sizes: Mapping[str, int], room: int) -> frozenset[str]:
    """The lessons that have a place in `room` bytes: the best guardrail that fits, then best first."""
    if sum([sizes[lesson.id] for lesson in lessons]) <= room:
        return frozenset([lesson.id for lesson in lessons])
    reserved = [i for i in lessons if i.kind == "guardrail" and sizes[i.id] <= room][:1]
    placed: set[str] = set()
    for lesson in (*reserved, *lessons):
        if lesson.id not in placed and sizes[lesson.id] <= room:
            room -= sizes[lesson.id]
            placed.add(lesson.id)
    return frozenset(placed)


def _body(lesson: Lesson, lines: Mapping[str, Sequence[str]] | None, style: Style, marked: bool) -> str:
    if lines is None:
        return lesson_text(lesson, style=style, marked=marked)
    first, *rest = lines[lesson.id]
    kind = "" if style == "paper" else lesson.kind
    return write_lesson(first, "\n".join(rest), kind=kind, warning=UNCHECKED if marked else "")


def lesson_text(lesson: Lesson, /, *, style: Style = "full", marked: bool | None = None) -> str:
    """What is shown of a lesson, without its number. `marked`: whether it says that nobody checked it; by default it
    does where that is so."""
    title, when, content = _in_form(lesson)
    kind, when = ("", "") if style == "paper" else (lesson.kind, when)
    warning = UNCHECKED if (lesson.is_unchecked if marked is None else marked) else ""
    return write_lesson(title, content.strip(), kind=kind, when=when, warning=warning)


def _in_form(lesson: Lesson) -> tuple[str, str, str]:
    """Title, description and content in the one form of a memory: they mostly have it."""
    if is_prose(lesson.text):
        return " ".join(lesson.title.split()), " ".join(lesson.description.split()), lesson.content
    return canonical_line(lesson.title), canonical_line(lesson.description), canonical(lesson.content)


def _candidate(
    match: Match,
    lesson: Lesson,
    rank: int,
    *,
    shown: frozenset[str],
    left_out: Mapping[str, str],
    assigned: Assignment,
    groups: Sequence[str],
    absent: Mapping[str, float],
) -> dict[str, object]:
    """What a `Candidate` is made of: the recall makes all of them at once."""
    origin = (
        f"its task scored {match.score:.3f}" if match.lesson_id is None else f"found with a score of {match.score:.3f}"
    )
    odds = assigned.probability.get(lesson.id, 0.0)
    drawn = lesson.id in assigned.withheld and lesson.id not in left_out
    return {
        "lesson_id": lesson.id,
        "experience_id": match.experience.id,
        "score": match.score,
        "rank": rank,
        "shown": lesson.id in shown,
        "placed": lesson.id not in left_out,
        "withheld": drawn,
        "probability": odds,
        "groups": groups,
        "why": left_out.get(lesson.id) or _why(origin, odds if drawn else None, assigned, lesson, groups, absent),
    }


def _why(
    origin: str,
    odds: float | None,
    assigned: Assignment,
    lesson: Lesson,
    groups: Sequence[str],
    absent: Mapping[str, float],
) -> str:
    """`odds`: of the lesson's own draw, if that left it out. `absent`: of the groups that are withheld."""
    if assigned.control:
        return f"memory was withheld whole (probability {assigned.control_probability:g}); {origin}"
    for group in groups:
        if group in absent:
            what = f"{kind_and_label(group, lesson)} (probability {absent[group]:.3g})"
            return f"withheld at random with its {what}; {origin}"
    return origin if odds is None else f"withheld at random (probability {odds:.3g}); {origin}"
