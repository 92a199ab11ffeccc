"""The store contract, in spaces of lessons: which lesson is found, which never is, and which needs a new vector."""

from __future__ import annotations

import random

import numpy as np

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Change, Experience, Lesson, Replace, Restore, Retire, Rollback
from lessonbank.contracts.store_calls import drop_index, purge_one
from lessonbank.errors import NotFound

from .store_samples import MINE, SPACE, THEIRS, StoreTests, added, assert_ranked, experience, lesson, refused, towards

LESSONS = "sample:8#lessons"


def lessons_in(*titles: str, task: str = "Cancel the pending order", minute: int = 0, scope: str = MINE) -> Experience:
    return experience(task, lessons=[lesson(title) for title in titles], minute=minute, scope=scope)


async def _find_titles(store: Store, axis: int = 0, *, limit: int = 9, scope: str = MINE) -> list[str]:
    """Titles of the lessons closest to an axis: what a match names must be an active lesson of its experience."""
    matches = (await store.nearest(towards(axis), scope=scope, space=LESSONS, limit=limit)).matches
    named = [next(i for i in match.experience.lessons if i.id == match.lesson_id) for match in matches]
    assert not any(i.retired for i in named)
    return [i.title for i in named]


async def along(store: Store, *experiences: Experience, scope: str = MINE) -> None:
    """Add experiences; the vector of lesson n (over all of them) lies along the first axis, tilted n tenths."""
    await added(store, *experiences, scope=scope)
    lessons = [i for e in experiences for i in e.lessons]
    await store.index({i.id: towards(0, tilt=n / 10) for n, i in enumerate(lessons)}, scope=scope, space=LESSONS)


async def missing(store: Store, *, limit: int = 99) -> list[tuple[str, str]]:
    return list(await store.unindexed(scope=MINE, space=LESSONS, limit=limit, lessons=True))


async def _apply(store: Store, *changes: Change) -> int:
    entries = await store.apply(changes, scope=MINE, writer="tests")
    return entries[-1].sequence


class LessonSpaceTests(StoreTests):
    """Vectors of lessons."""

    async def test_two_lessons_of_one_experience_are_two_matches_that_name_them(self) -> None:
        async with self.opened() as store:
            near, far = lessons_in("a", "b"), lessons_in("c", minute=9)
            await added(store, near, far)
            along = {
                near.lessons[0].id: towards(0),
                near.lessons[1].id: towards(0, tilt=2),
                far.lessons[0].id: towards(0, tilt=1),
            }
            await store.index(along, scope=MINE, space=LESSONS)
            matches = (await store.nearest(towards(0), scope=MINE, space=LESSONS, limit=3)).matches
            assert [match.experience for match in matches] == [near, far, near]
            assert [match.lesson_id for match in matches] == [near.lessons[0].id, far.lessons[0].id, near.lessons[1].id]
            assert [match.score for match in matches] == sorted((m.score for m in matches), reverse=True)
            assert await _find_titles(store, limit=2) == ["a", "c"]
            assert await _find_titles(store, limit=0) == []

    async def test_vectors_of_lessons_come_with_their_experience_or_later(self) -> None:
        async with self.opened() as store:
            known, other = lessons_in("a", "b"), lessons_in("c", scope=THEIRS)
            await added(store, other, scope=THEIRS)
            change = Replace(experience=known)
            with refused(NotFound):
                await store.apply(
                    [change], scope=MINE, writer="tests", vectors={known.lessons[0].id: towards(0)}, space=LESSONS
                )
            await added(store, known)
            await store.apply(
                [change], scope=MINE, writer="tests", vectors={known.lessons[1].id: towards(1)}, space=LESSONS
            )
            assert await _find_titles(store) == ["b"]
            await store.index({known.lessons[0].id: towards(0)}, scope=MINE, space=LESSONS)
            assert await _find_titles(store) == ["a", "b"]
            for id in (other.lessons[0].id, "nothing"):
                with refused(NotFound):
                    await store.index({id: towards(0)}, scope=MINE, space=LESSONS)
            assert await _find_titles(store, scope=THEIRS) == []

    async def test_tasks_and_lessons_never_meet(self) -> None:
        async with self.opened() as store:
            known = lessons_in("a", "b")
            await along(store, known)
            await store.index({known.id: towards(0)}, scope=MINE, space=SPACE)
            (task,) = (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches
            assert (task.experience, task.lesson_id) == (known, None)
            assert await _find_titles(store) == ["a", "b"]
            await drop_index(store, scope=MINE, space=LESSONS)
            assert await _find_titles(store) == []
            assert await missing(store) == [(i.id, i.text) for i in known.lessons]
            assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches) == 1

    async def test_a_retired_lesson_is_not_found_until_it_is_restored(self) -> None:
        async with self.opened() as store:
            known = lessons_in("a", "b", "c")
            hidden = experience(lessons=[lesson("d", retired=True), lesson("e")], minute=1)
            await along(store, known, hidden)
            assert await _find_titles(store) == ["a", "b", "c", "e"]
            await _apply(store, Retire(lesson_ids=(known.lessons[0].id, hidden.lessons[1].id), reason="test"))
            assert await _find_titles(store) == ["b", "c"]
            assert await _find_titles(store, limit=1) == ["b"]
            await _apply(store, Restore(lesson_ids=(known.lessons[0].id, hidden.lessons[0].id), reason="test"))
            assert await _find_titles(store) == ["a", "b", "c", "d"]

    async def test_a_crowd_of_lessons_in_another_scope_takes_no_place_of_mine(self) -> None:
        async with self.opened() as store:
            theirs = [lessons_in(*"abcdef", scope=THEIRS) for _ in range(10)]
            await along(store, *theirs, scope=THEIRS)
            await along(store, lessons_in("mine"))
            assert await _find_titles(store, 4, limit=5) == ["mine"]

    async def test_a_changed_text_makes_the_vector_invalid_and_an_unchanged_one_keeps_it(self) -> None:
        async with self.opened() as store:
            known = lessons_in("a", "b", "c")
            await along(store, known)
            retitled = known.lessons[0].model_copy(update={"title": "z"})
            renamed = known.lessons[1].model_copy(update={"description": "When it is told."})
            moved = known.model_copy(update={"task": "Another task", "lessons": (retitled, renamed, known.lessons[2])})
            await _apply(store, Replace(experience=moved))
            assert await _find_titles(store) == ["c"]
            assert await missing(store) == [(i.id, i.text) for i in (retitled, renamed)]
            await store.index({retitled.id: towards(5)}, scope=MINE, space=LESSONS)
            assert await _find_titles(store, 5, limit=1) == ["z"]

    async def test_a_lesson_that_changes_its_place_is_found_as_itself_or_waits_to_be_embedded(self) -> None:
        async with self.opened() as store:
            known, other = lessons_in("a", "b", "c", "d"), lessons_in("o", minute=1)
            along = {i.id: towards(axis) for axis, i in enumerate((*known.lessons, *other.lessons))}
            await added(store, known, other)
            await store.index(along, scope=MINE, space=LESSONS)
            a, b, _, d = known.lessons
            await _apply(store, Replace(experience=known.model_copy(update={"lessons": (d, lesson("n"), b)})))
            waiting = {id for id, _ in await missing(store)}
            for axis, each in ((1, b), (3, d)):
                assert each.id in waiting or (await _find_titles(store, axis, limit=1)) == [each.title]
            assert set(await _find_titles(store)) <= {"b", "d", "o"}
            assert await _find_titles(store, 4, limit=1) == ["o"]
            await store.index({id: along.get(id, towards(6)) for id in waiting}, scope=MINE, space=LESSONS)
            assert [(await _find_titles(store, axis, limit=1)) for axis in (1, 3, 4, 6)] == [["b"], ["d"], ["o"], ["n"]]
            with refused(NotFound):
                await store.index({a.id: towards(0)}, scope=MINE, space=LESSONS)

    async def test_a_rollback_takes_lessons_out_of_reach_and_back(self) -> None:
        async with self.opened() as store:
            first, second = lessons_in("a", "b"), lessons_in("c", "d", minute=1)
            await added(store, first)
            await along(store, second)
            await store.index({i.id: towards(0, tilt=3) for i in first.lessons[:1]}, scope=MINE, space=LESSONS)
            before = await _apply(store, Retire(lesson_ids=(second.lessons[0].id,), reason="test"))
            assert await _find_titles(store) == ["d", "a"]
            await _apply(store, Rollback(to=1, reason="test"))
            assert await _find_titles(store) == ["a"]
            assert await missing(store) == [(first.lessons[1].id, first.lessons[1].text)]
            await _apply(store, Rollback(to=before, reason="test"))
            assert await _find_titles(store) == ["d", "a"]
            await _apply(store, Rollback(to=before - 1, reason="test"))
            assert await _find_titles(store) == ["c", "d", "a"]

    async def test_a_purged_lesson_leaves_no_vector_and_its_neighbours_are_not_taken_for_it(self) -> None:
        async with self.opened() as store:
            known, other = lessons_in("a", "b", "c"), lessons_in("o", minute=1)
            along = {i.id: towards(axis) for axis, i in enumerate((*known.lessons, *other.lessons))}
            await added(store, known, other)
            await store.index(along, scope=MINE, space=LESSONS)
            await purge_one(store, "lesson", known.lessons[0].id, scope=MINE, writer="tests", reason="test")
            waiting = {id for id, _ in await missing(store)}
            assert waiting <= {i.id for i in known.lessons[1:]}
            assert "a" not in await _find_titles(store)
            await store.index({id: along[id] for id in waiting}, scope=MINE, space=LESSONS)
            assert [(await _find_titles(store, axis, limit=1)) for axis in (1, 2, 3)] == [["b"], ["c"], ["o"]]
            with refused(NotFound):
                await store.index({known.lessons[0].id: towards(0)}, scope=MINE, space=LESSONS)
            await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="test")
            assert await _find_titles(store) == await missing(store) == []

    async def test_active_lessons_without_a_vector_are_listed_oldest_first(self) -> None:
        async with self.opened() as store:
            young, old = lessons_in("c", "d", minute=9), lessons_in("a", "b", minute=1)
            await added(store, young, experience(lessons=()), old)
            await _apply(store, Retire(lesson_ids=(young.lessons[0].id,), reason="test"))
            waiting = [(i.id, i.text) for i in (*old.lessons, young.lessons[1])]
            assert await missing(store) == waiting
            assert await missing(store, limit=2) == waiting[:2]
            assert await missing(store, limit=0) == []
            await store.index({old.lessons[0].id: towards(0)}, scope=MINE, space=LESSONS)
            assert await missing(store) == waiting[1:]
            await store.index({id: towards(0) for id, _ in waiting}, scope=MINE, space=LESSONS)
            assert await missing(store) == []
            await _apply(store, Restore(lesson_ids=(young.lessons[0].id,), reason="test"))
            assert await missing(store) == [(young.lessons[0].id, young.lessons[0].text)]

    async def test_lessons_are_ranked_as_plain_arithmetic_ranks_them(self) -> None:
        async with self.opened() as store:
            chance = random.Random(5)
            known = [lessons_in(*"abcd"[: chance.randint(1, 4)], minute=chance.randint(0, 9)) for _ in range(60)]
            lessons: list[Lesson] = [i for e in known for i in e.lessons]
            rows = np.random.default_rng(4).normal(size=(len(lessons) + 20, 8)).astype(np.float32).round(1)
            await added(store, *known)
            along = {i.id: rows[n] for n, i in enumerate(lessons)}
            await store.index(along, scope=MINE, space=LESSONS)
            removals = [i.id for i in lessons[::5]]
            await store.apply([Retire(lesson_ids=tuple(removals), reason="test")], scope=MINE, writer="tests")
            usable = {id: row for id, row in along.items() if id not in removals}
            for row in rows[len(lessons) :]:
                matches = (await store.nearest(row, scope=MINE, space=LESSONS, limit=10)).matches
                assert_ranked(matches, usable, row, limit=10)
