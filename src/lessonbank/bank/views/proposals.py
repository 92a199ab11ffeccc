"""What a person is asked to decide: what edited files propose, and pairs of lessons that say nearly one thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lessonbank._base.iterate import every_record
from lessonbank.bank.scoped_bank import ScopedBank, lesson_of
from lessonbank.contracts.ports import LessonFilter, Vectors
from lessonbank.contracts.records import FILE, Change, Edit, Lesson, Proposal, Replace, Retire, Trust
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.store_calls import experience_of_lesson
from lessonbank.errors import Conflict
from lessonbank.guard import one_line

_LATEST: Final = 1_000
"""Lessons among which those are looked for that stand beside others."""
_OTHERWISE: Final = "the lesson “{}” says otherwise: approve one of the two, or retire one"
_BESIDE: Final = {
    "contradicts": (_OTHERWISE, _OTHERWISE),
    "sharper": (
        "it says more exactly what “{}” says: approve it to keep both, or retire one",
        "the newer lesson “{}” says it more exactly: approve that to keep both, or retire one",
    ),
}
"""Why the newer and the older of two lessons wait for a person."""


async def file_proposals(bank: ScopedBank, /) -> tuple[Proposal, ...]:
    """What files propose and nobody decided yet, newest first."""

    async def page(limit: int, after: str | None) -> Sequence[Lesson]:
        wanted = LessonFilter(writer=FILE, state="quarantined", limit=limit, after=after)
        return await bank.store.lessons(wanted, scope=bank.scope)

    waiting = every_record(page, lambda lesson: lesson.id)
    return tuple([proposal async for lesson in waiting if (proposal := await _of_file(bank, lesson))])


async def _of_file(bank: ScopedBank, lesson: Lesson) -> Proposal | None:
    """`None` where the lesson that it speaks of is gone, or retired."""
    owner = await experience_of_lesson(bank.store, lesson.id, scope=bank.scope)
    why = f"read in {one_line(str(owner.metadata.get(FILE, 'a file')), limit=100)}"
    why += f"; {lesson.risk}" if lesson.is_doubted else ""
    proposal = owner.proposal
    if proposal is None:
        return Proposal(lesson=lesson, reason=why, change="add", origin=FILE)
    target = await bank.lesson(proposal.lesson_id)
    is_moot = target is None or target.retired
    return (
        None
        if is_moot
        else Proposal(lesson=lesson, reason=why, change=proposal.change, origin=FILE, of=proposal.lesson_id)
    )


async def changes_of(
    bank: ScopedBank, id: str, /, *, by: str, reason: str
) -> tuple[Sequence[Change], dict[str, Vectors]] | None:
    """What makes of a proposal what it proposes, with the vectors of new words; `None` for every other lesson.

    Raises NotFound, Conflict (it was rejected, or the lesson is another one by now).
    """
    owner = await experience_of_lesson(bank.store, id, scope=bank.scope)
    proposal, lesson = owner.proposal, lesson_of(owner, id)
    if proposal is None:
        return None
    target = proposal.lesson_id
    if lesson.retired:
        raise Conflict(f"the proposal {id!r} was rejected: restore it first")
    others = tuple(other for other in owner.lessons if other.id != id)
    done = Replace(experience=owner.model_copy(update={"lessons": others}), reason=reason)
    if proposal.change == "retire":
        return (done, Retire(lesson_ids=(target,), reason=reason)), {}
    changed = await experience_of_lesson(bank.store, target, scope=bank.scope)
    now = lesson_of(changed, target)
    if now.retired or proposal.was != digest(now.text):
        what = "is retired" if now.retired else "was edited"
        raise Conflict(f"the lesson {target!r} {what} since: reject the proposal with retire, or edit that lesson")
    worded = now.model_copy(update=lesson.model_dump(include={"title", "description", "content"}))
    vectors, _ = await bank.index([changed.model_copy(update={"lessons": (worded,)})])
    # Its text is what that person vouches for.
    vouched = Trust(lesson_ids=(target,), state="active", by="person", reason=reason)
    return (done, edit_to(worded, by=by, reason=reason), vouched), {
        key: vector for key, vector in vectors.items() if key == target
    }


def edit_to(lesson: Lesson, /, *, by: str, reason: str) -> Edit:
    """The change that gives a lesson these words, and keeps it for these tasks."""
    return Edit(
        lesson_id=lesson.id,
        title=lesson.title,
        description=lesson.description,
        content=lesson.content,
        only_for_tasks=lesson.only_for_tasks,
        by=by,
        reason=reason,
    )


async def pair_proposals(bank: ScopedBank, /) -> tuple[Proposal, ...]:
    """What the newest lessons contradict, say more exactly, nearly repeat or add, until a person decides."""
    page = await bank.store.lessons(LessonFilter(limit=_LATEST), scope=bank.scope)
    return (*await _opposites(bank, page), *await _near_repeats(bank, page), *await _additions(bank, page))


async def _near_repeats(bank: ScopedBank, page: Sequence[Lesson]) -> list[Proposal]:
    """Of two lessons that are near one another the newer, until it is retired, merged or approved."""
    proposals: list[Proposal] = []
    for lesson in page:
        if lesson.near_duplicate_of is None or lesson.hidden or lesson.approved:
            continue
        older = await bank.lesson(lesson.near_duplicate_of)
        if older and not older.hidden:
            why = f"it says nearly the same as “{_titled(older)}”: merge the two, or keep both"
            proposals.append(Proposal(lesson=lesson, reason=why, change="merge", of=older.id))
    return proposals


async def _additions(bank: ScopedBank, page: Sequence[Lesson]) -> list[Proposal]:
    """What adds to a lesson, where a person approved both: only a person joins what a person vouched for."""
    proposals: list[Proposal] = []
    for lesson in page:
        if lesson.relation is None or lesson.relation.kind != "adds" or lesson.hidden or not lesson.approved:
            continue
        base = await bank.lesson(lesson.relation.lesson_ids[0])
        if base and base.approved and not base.hidden:
            why = f"it adds to “{_titled(base)}”: merge the two into one text, whose evidence starts again"
            proposals.append(Proposal(lesson=lesson, reason=why, change="merge", of=base.id))
    return proposals


async def _opposites(bank: ScopedBank, page: Sequence[Lesson]) -> list[Proposal]:
    """Both of two lessons of which one says the other more exactly, or contradicts it, until a person decides."""
    relations = [
        (lesson, id, lesson.relation.kind)
        for lesson in page
        if lesson.relation and lesson.relation.kind in _BESIDE and not (lesson.hidden or lesson.approved)
        for id in lesson.relation.lesson_ids
    ]
    proposals: list[Proposal] = []
    for newer, id, stand in relations:
        older = await bank.lesson(id)
        if older and not older.hidden and not (older.approved and stand == "contradicts"):
            for lesson, other, why in zip((newer, older), (older, newer), _BESIDE[stand], strict=True):
                reason = why.format(_titled(other))
                proposals.append(Proposal(lesson=lesson, reason=reason, change="choose", of=other.id))
    return proposals


def _titled(lesson: Lesson) -> str:
    return one_line(lesson.title, limit=100)
