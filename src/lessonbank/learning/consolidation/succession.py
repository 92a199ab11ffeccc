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
    removed_run_ids: frozenset[str]
    """The ids of all runs that go."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The ids of its runs that stay."""
        ids = (attempt.trajectory_id for attempt in self.experience.attempts)
        return tuple(id for id in ids if id not in self.removed_run_ids)

    @cached_property
    def _words(self) -> set[str]:
        texts = (self.experience.task, *(run.model_dump_json() for run in self.runs))
        return {word for text in texts for word in words(text)}

    def says(self, lesson: Lesson, of: Lesson, /) -> bool:
        """Whether the words of `lesson` are its own, and none comes from `of`, which goes.

        A model may have been shown `of` while it wrote. What both name, and no ordinary word is, the runs must name.
        """
        sources = lesson.provenance.trajectory_ids or [attempt.trajectory_id for attempt in self.experience.attempts]
        return self.removed_run_ids.isdisjoint(sources) and _strange(lesson) & _strange(of) <= self._words

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
    if same := next((lesson for lesson in drawn if one_lesson(lesson, of)), None):
        return same
    near = [(overlap(read(lesson), read(of)), lesson) for lesson in drawn if compare(lesson, of).level == "near"]
    return max(near, key=lambda pair: pair[0])[1] if near else None


def as_new(lesson: Lesson, of: Lesson, /, *, retired: bool) -> Lesson:
    """`lesson` in the place of `of`: trusted no more than any new one, and in quarantine where either is."""
    update = {
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
    return lesson.model_copy(update=update)


def passed_on(
    successions: Sequence[Succession], heirs: Mapping[str, Sequence[Heir]], /, *, corroborates: bool
) -> list[Change]:
    """The changes that pass lessons on.

    `heirs` taught them again, by the id of the lesson that goes: from then on they teach the one that takes its place
    again. `corroborates`: whether the bank trusts what independent runs taught.
    """
    after = {heir.experience.id: heir.experience for succession in successions for heir in heirs[succession.of.id]}
    for succession in successions:
        for heir in heirs[succession.of.id]:
            after[heir.experience.id] = _taught(after[heir.experience.id], heir, succession)
    changes = [_replaced(experience, successions) for experience in after.values()]
    approved = tuple(succession.lesson.id for succession in successions if succession.is_approved)
    if approved:
        changes.append(Trust(lesson_ids=approved, state="active", by="person", reason=_APPROVED))
    for succession in successions if corroborates else ():
        if succession.is_new and (other := _witness(succession, heirs[succession.of.id])):
            runs = (*succession.heir.run_ids, *other.run_ids)
            ids = (succession.lesson.id,)
            changes.append(Trust(lesson_ids=ids, state="active", by="corroboration", reason=_TAUGHT, evidence=runs))
    return changes


def _replaced(experience: Experience, successions: Sequence[Succession]) -> Change:
    held = {*experience.repeats, *(lesson.id for lesson in experience.lessons)}
    heirs = dict.fromkeys(succession.lesson.id for succession in successions if succession.lesson.id in held)
    return Replace(experience=experience, reason=_LIVES_ON, heirs=tuple(heirs))


def _witness(succession: Succession, heirs: Sequence[Heir]) -> Heir | None:
    """An independent experience that taught again what was trusted, as a run that comes later would have to."""
    lesson, heir = succession.lesson, succession.heir
    if succession.is_approved or succession.of.state != "active" or lesson.hidden or lesson.is_doubted:
        return None
    mine = _from(lesson, heir), heir.experience
    others = ((other, (_from(lesson, other), other.experience)) for other in heirs if other is not heir)
    return next((heir for heir, theirs in others if independent(mine, theirs)), None)


def _from(lesson: Lesson, heir: Heir) -> Lesson:
    provenance = lesson.provenance.model_copy(update={"trajectory_ids": heir.run_ids})
    return lesson.model_copy(update={"provenance": provenance})


def _taught(experience: Experience, heir: Heir, succession: Succession) -> Experience:
    """`experience` with the lesson itself, or as one that taught it again."""
    repeats = dict(experience.repeats)
    duplicates = repeats.pop(succession.of.id)
    if succession.is_new and heir is succession.heir:
        experience = experience.model_copy(update={"lessons": (*experience.lessons, succession.lesson)})
    elif all(lesson.id != succession.lesson.id for lesson in experience.lessons):
        known = repeats.get(succession.lesson.id, ())
        repeats[succession.lesson.id] = (*known, *[_renamed(again, heir, succession) for again in duplicates])
    return experience.model_copy(update={"repeats": repeats})


def _renamed(again: Duplicate, heir: Heir, succession: Succession) -> Duplicate:
    """What came again. Its title may be that of the lesson that goes."""
    lesson = lesson_again(again)
    stays = again.lesson if lesson and heir.says(lesson, succession.of) else None
    return again.model_copy(update={"title": succession.lesson.title, "lesson": stays})
