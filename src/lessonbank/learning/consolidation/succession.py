"""Passes on a lesson that goes with an erased run to the runs that taught it again, in words of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from lessonbank.contracts.records import Change, Duplicate, Experience, Lesson, Replace, Topic, Trajectory, Trust
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.repeats import lesson_again, repeats_in
from lessonbank.guard.gate import unusual
from lessonbank.guard.trust import independent
from lessonbank.text.bm25 import words

from ._normal_form import read
from .duplicates import compare, overlap
from .recognise import one_lesson

_LIVES_ON: Final = "it lives on in the words of a run that taught it again"
_TAUGHT: Final = "an independent run taught the same"
_APPROVED: Final = "a person approved the same words before an erasure"


@dataclass(frozen=True)
class Heir:
    """An experience that taught lessons again, and stays."""

    experience: Experience
    runs: tuple[Trajectory, ...]
    """Those of its runs that stay and are kept, without what memory had shown to them."""
    gone: frozenset[str]
    """The ids of all runs that go."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The ids of its runs that stay."""
        return tuple(one.trajectory_id for one in self.experience.attempts if one.trajectory_id not in self.gone)

    @cached_property
    def _words(self) -> set[str]:
        texts = (self.experience.task, *(run.model_dump_json() for run in self.runs))
        return {word for text in texts for word in words(text)}

    def says(self, lesson: Lesson, of: Lesson, /) -> bool:
        """Whether the words of `lesson` are its own, and none comes from `of`, which goes.

        A model may have been shown `of` while it wrote. What both name, and no ordinary word is, the runs must name.
        """
        sources = lesson.provenance.trajectory_ids or [one.trajectory_id for one in self.experience.attempts]
        return self.gone.isdisjoint(sources) and _strange(lesson) & _strange(of) <= self._words

    def kept_words(self, of: Lesson, /) -> Lesson | None:
        """The words in which it taught `of` again, where the bank kept them."""
        again = (repeat.lesson for repeat in repeats_in(self.experience, of.id))
        return next((lesson for lesson in again if lesson and self.says(lesson, of)), None)


def _strange(lesson: Lesson) -> set[str]:
    return unusual(words(lesson.text))


@dataclass(frozen=True, slots=True)
class Succession:
    """A lesson that goes, and the one in which it lives on."""

    of: Lesson
    lesson: Lesson
    heir: Heir
    is_new: bool = True
    """Whether no lesson that stays has these words already."""

    @property
    def is_approved(self) -> bool:
        """Whether the approval passes on: a person vouched for these very words, for every task."""
        vouched = self.of.approved and self.of.state == "active" and not self.of.only_for_tasks
        return self.is_new and vouched and _wording(self.of) == _wording(self.lesson)


def _wording(lesson: Lesson) -> tuple[str, ...]:
    return lesson.kind, lesson.title, lesson.description, lesson.content


def found_again(drawn: Sequence[Lesson], of: Lesson, /) -> Lesson | None:
    """Find the lesson that says what `of` says; else the nearest, if it is near."""
    if same := next((one for one in drawn if one_lesson(one, of)), None):
        return same
    near = [(overlap(read(one), read(of)), one) for one in drawn if compare(one, of).level == "near"]
    return max(near, key=lambda pair: pair[0])[1] if near else None


def as_new(lesson: Lesson, of: Lesson, /, *, retired: bool) -> Lesson:
    """`lesson` in the place of `of`: trusted no more than any new one, and in quarantine where either is."""
    told = {
        "id": new_id(),
        "state": "quarantined" if "quarantined" in (of.state, lesson.state) else "probation",
        "approved": False,
        "retired": retired,
        "version": 1,
        "near_duplicate_of": None,
        "relation": None,
        # A topic is named in words of the task.
        "topic": of.topic and Topic(id=of.topic.id),
    }
    return lesson.model_copy(update=told)


def passed_on(
    successions: Sequence[Succession], heirs: Mapping[str, Sequence[Heir]], /, *, corroborates: bool
) -> list[Change]:
    """The changes that pass lessons on.

    `heirs` taught them again, by the id of the lesson that goes: from then on they teach the one that takes its place
    again. `corroborates`: whether the bank trusts what independent runs taught.
    """
    after = {heir.experience.id: heir.experience for one in successions for heir in heirs[one.of.id]}
    for one in successions:
        for heir in heirs[one.of.id]:
            after[heir.experience.id] = _taught(after[heir.experience.id], heir, one)
    changes = [_replaced(experience, successions) for experience in after.values()]
    approved = tuple(one.lesson.id for one in successions if one.is_approved)
    if approved:
        changes.append(Trust(lesson_ids=approved, state="active", by="person", reason=_APPROVED))
    for one in successions if corroborates else ():
        if one.is_new and (other := _witness(one, heirs[one.of.id])):
            runs = (*one.heir.run_ids, *other.run_ids)
            ids = (one.lesson.id,)
            changes.append(Trust(lesson_ids=ids, state="active", by="corroboration", reason=_TAUGHT, evidence=runs))
    return changes


def _replaced(experience: Experience, successions: Sequence[Succession]) -> Change:
    held = {*experience.repeats, *(lesson.id for lesson in experience.lessons)}
    heirs = dict.fromkeys(one.lesson.id for one in successions if one.lesson.id in held)
    return Replace(experience=experience, reason=_LIVES_ON, heirs=tuple(heirs))


def _witness(one: Succession, heirs: Sequence[Heir]) -> Heir | None:
    """An independent experience that taught again what was trusted, as a run that comes later would have to."""
    if one.is_approved or one.of.state != "active" or one.lesson.hidden or one.lesson.is_doubted:
        return None
    mine = _from(one.lesson, one.heir), one.heir.experience
    others = ((heir, (_from(one.lesson, heir), heir.experience)) for heir in heirs if heir is not one.heir)
    return next((heir for heir, theirs in others if independent(mine, theirs)), None)


def _from(lesson: Lesson, heir: Heir) -> Lesson:
    told = lesson.provenance.model_copy(update={"trajectory_ids": heir.run_ids})
    return lesson.model_copy(update={"provenance": told})


def _taught(experience: Experience, heir: Heir, one: Succession) -> Experience:
    """`experience` with the lesson itself, or as one that taught it again."""
    repeats = dict(experience.repeats)
    told = repeats.pop(one.of.id)
    if one.is_new and heir is one.heir:
        experience = experience.model_copy(update={"lessons": (*experience.lessons, one.lesson)})
    elif all(lesson.id != one.lesson.id for lesson in experience.lessons):
        known = repeats.get(one.lesson.id, ())
        repeats[one.lesson.id] = (*known, *[_renamed(again, heir, one) for again in told])
    return experience.model_copy(update={"repeats": repeats})


def _renamed(again: Duplicate, heir: Heir, one: Succession) -> Duplicate:
    """What came again. Its title may be that of the lesson that goes."""
    lesson = lesson_again(again)
    stays = again.lesson if lesson and heir.says(lesson, one.of) else None
    return again.model_copy(update={"title": one.lesson.title, "lesson": stays})
