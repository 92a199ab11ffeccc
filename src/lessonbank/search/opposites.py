"""Leaves out what contradicts an approved lesson, since a person decided, and what adds to one that is not there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from lessonbank.contracts.records import Found, Lesson, Match, Relation

from ._wrapper import lessons_of, with_lessons


def without_denied(retrieval: Found, /, *, seen: Collection[str] = ()) -> Found:
    """`retrieval` without lessons that an approved one contradicts, or that contradict an approved one.

    Where nobody has decided, or both are approved, both are shown. Nor is there what only adds to a lesson that is
    neither found nor one of the `seen`.
    """
    lessons = {lesson.id: lesson for match in retrieval.matches for lesson in lessons_of(match)}
    relations = {lesson.id: lesson.relation for lesson in lessons.values() if lesson.relation}
    if not relations:
        return retrieval
    denied = {id for newer, relation in relations.items() for id in _is_denied(lessons[newer], relation, lessons)}
    left = _without(retrieval, denied) if denied else retrieval
    there = {*seen, *(lesson.id for match in left.matches for lesson in lessons_of(match))}
    there |= {id for match in left.matches for ids in match.experience.merged.values() for id in ids}
    alone = {id for id, link in relations.items() if link.kind == "adds" and there.isdisjoint(link.lesson_ids)}
    return _without(left, alone) if alone else left


def _is_denied(newer: Lesson, relation: Relation, lessons: Mapping[str, Lesson]) -> Iterator[str]:
    for older in (lessons[id] for id in relation.lesson_ids if relation.kind == "contradicts" and id in lessons):
        if older.approved != newer.approved:
            yield newer.id if older.approved else older.id


def _without(retrieval: Found, denied: set[str]) -> Found:
    matches: list[Match] = []
    for match in retrieval.matches:
        lessons = tuple(lesson for lesson in match.experience.lessons if lesson.id not in denied)
        if match.lesson_id not in denied and lessons:
            matches.append(with_lessons(match, lessons))
    return retrieval.model_copy(update={"matches": tuple(matches)})
