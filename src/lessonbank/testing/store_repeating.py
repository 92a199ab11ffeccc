"""The store contract, ninth part: an experience that taught a known lesson again is found, and shows that lesson."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import (
    Change,
    Duplicate,
    Edit,
    Experience,
    Lesson,
    Replace,
    Restore,
    Retire,
    Rollback,
    Trust,
)
from lessonbank.contracts.store_calls import count_records, get_experience, purge_one

from .store_purging import SECRET, everything, lesson_from, tried
from .store_samples import MINE, SPACE, StoreTests, added, attempt, check_sound, experience, lesson, towards, trajectory

AGAIN = "Exchange the blue boots"


def repeating(*lessons: Lesson, task: str = AGAIN, minute: int = 1, own: Sequence[Lesson] = ()) -> Experience:
    """An experience that taught these lessons again, and has no copy of them."""
    duplicates = {lesson.id: (Duplicate(title=lesson.title, why="the same words"),) for lesson in lessons}
    return experience(task, lessons=own, minute=minute).model_copy(update={"repeats": duplicates})


async def find_repeating(store: Store, *, limit: int = 9) -> list[tuple[str, tuple[Lesson, ...]]]:
    """What is found for the task of `repeating`, by its words; by its vector it is the same, best first."""
    by_words = await store.search(AGAIN, scope=MINE, limit=limit)
    near = (await store.nearest(towards(1), scope=MINE, space=SPACE, limit=limit)).matches
    close = [match for match in near if match.score > 0.9]
    assert [m.experience for m in by_words if m.experience.task == AGAIN] == [m.experience for m in close]
    return [(match.experience.id, match.experience.lessons) for match in close]


async def add_along_axes(store: Store, *experiences: Experience) -> None:
    """Add experiences whose vectors lie along an axis each."""
    await added(store, *experiences, along=[towards(at) for at in range(len(experiences))])


async def change(store: Store, *changes: Change) -> None:
    """Make changes."""
    await store.apply(changes, scope=MINE, writer="tests")


class RepeatingTests(StoreTests):
    """Part of `StoreContract`."""

    async def test_an_experience_that_taught_a_lesson_again_is_found_with_that_lesson(self) -> None:
        async with self.opened() as store:
            first = experience()
            again = repeating(*first.lessons)
            await add_along_axes(store, first, again)
            assert await find_repeating(store) == [(again.id, first.lessons)]
            assert await get_experience(store, again.id, scope=MINE) == again
            assert (await count_records(store, scope=MINE)).lessons == 1
            assert await store.experiences("repeats", [first.lessons[0].id], scope=MINE) == [again]
            assert await store.experiences("repeats", [first.lessons[0].id], scope="elsewhere") == []
            assert [m.experience for m in await store.search(first.task, scope=MINE, limit=9)] == [first]
            await check_sound(store)

    async def test_its_own_lessons_come_first_and_it_waits_for_a_vector_like_any_other(self) -> None:
        async with self.opened() as store:
            first, own = experience(), lesson("Own")
            again = repeating(*first.lessons, own=[own])
            await added(store, first, again)
            waiting = await store.unindexed(scope=MINE, space=SPACE, limit=9)
            assert [id for id, _ in waiting] == [first.id, again.id]
            await store.index({again.id: towards(1)}, scope=MINE, space=SPACE)
            assert await find_repeating(store) == [(again.id, (own, *first.lessons))]

    async def test_it_is_found_while_the_lesson_may_be_shown_and_shows_it_as_it_is_now(self) -> None:
        async with self.opened() as store:
            first = experience()
            (known,) = first.lessons
            again = repeating(known)
            await add_along_axes(store, first, again)
            assert await find_repeating(store)
            hiding: list[tuple[Change, Change]] = [
                (Retire(lesson_ids=(known.id,), reason="x"), Restore(lesson_ids=(known.id,), reason="x")),
                (
                    Trust(lesson_ids=(known.id,), state="quarantined", by="person", reason="x"),
                    Trust(lesson_ids=(known.id,), state="active", by="person", reason="x"),
                ),
            ]
            for away, back in hiding:
                await change(store, away)
                assert await find_repeating(store) == []
                await change(store, back)
                ((_, shown),) = await find_repeating(store)
                assert shown == (await get_experience(store, first.id, scope=MINE)).lessons
            edit = Edit(lesson_id=known.id, title="Wait", description="", content="Wait a day.", by="Ana", reason="")
            await change(store, edit)
            ((_, shown),) = await find_repeating(store)
            assert [(lesson.id, lesson.title, lesson.version) for lesson in shown] == [(known.id, "Wait", 2)]
            await check_sound(store)

    async def test_it_is_found_once_its_lesson_comes_and_not_once_it_goes(self) -> None:
        async with self.opened() as store:
            first = experience()
            again = repeating(*first.lessons)
            await added(store, again, along=[towards(1)])
            assert await find_repeating(store) == []
            await add_along_axes(store, first)
            assert await find_repeating(store) == [(again.id, first.lessons)]
            await change(store, Replace(experience=first.model_copy(update={"lessons": (lesson("Else"),)})))
            assert await find_repeating(store) == []
            await change(store, Replace(experience=again.model_copy(update={"repeats": {}})))
            await change(store, Replace(experience=first))
            assert await find_repeating(store) == []
            await check_sound(store)

    async def test_a_rollback_takes_it_out_and_brings_it_back(self) -> None:
        async with self.opened() as store:
            first = experience()
            again = repeating(*first.lessons)
            await add_along_axes(store, first)
            await added(store, again, along=[towards(1)])
            await change(store, Retire(lesson_ids=(first.lessons[0].id,), reason="x"))
            for to, lessons in (
                (2, [first.lessons]),
                (1, []),
                (2, [first.lessons]),
                (0, []),
                (3, []),
                (2, [first.lessons]),
            ):
                await change(store, Rollback(to=to, reason="test"))
                assert [shown for _, shown in await find_repeating(store)] == lessons
                await check_sound(store)

    async def test_a_purged_lesson_is_no_more_what_another_experience_taught(self) -> None:
        async with self.opened() as store:
            first, other = experience(lessons=(lesson(SECRET),)), experience("Ship the parcel", minute=2)
            again = repeating(*first.lessons, *other.lessons)
            await add_along_axes(store, first, again, other)
            await purge_one(store, "lesson", first.lessons[0].id, scope=MINE, writer="ana", reason="asked to")
            assert SECRET not in await everything(store)
            assert await find_repeating(store) == [(again.id, other.lessons)]
            await purge_one(store, "lesson", other.lessons[0].id, scope=MINE, writer="ana", reason="asked to")
            assert await find_repeating(store) == []
            assert (await get_experience(store, again.id, scope=MINE)).repeats == {}
            await check_sound(store)

    async def test_the_purge_of_either_run_takes_what_it_taught_and_no_more(self) -> None:
        async with self.opened() as store:
            source, two, three = (trajectory(task) for task in ("Ship the parcel", AGAIN, AGAIN))
            await store.save_runs([source, two, three], scope=MINE)
            first = tried(source, lessons=(lesson_from(source, title=SECRET),))
            again = repeating(*first.lessons).model_copy(update={"attempts": (attempt(two, "success"),)})
            both = repeating(*first.lessons, minute=2).model_copy(
                update={"attempts": (attempt(two, "success"), attempt(three, "success"))}
            )
            await add_along_axes(store, first, again)
            await added(store, both)
            await purge_one(store, "trajectory", two.id, scope=MINE, writer="ana", reason="asked to")
            assert await find_repeating(store) == []
            left = await get_experience(store, both.id, scope=MINE)
            assert (len(left.attempts), left.repeats) == (1, {})
            assert [m.experience for m in await store.search(source.task, scope=MINE, limit=9)] == [first]
            await added(store, again, along=[towards(1)])
            await purge_one(store, "trajectory", source.id, scope=MINE, writer="ana", reason="asked to")
            assert SECRET not in await everything(store)
            assert await find_repeating(store) == []
            await check_sound(store)
