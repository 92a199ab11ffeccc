"""The store contract, eighth part: a person rewrites a lesson, and everything that looks back understands it."""

from __future__ import annotations

from lessonbank.contracts.ports import LessonFilter, Store, Vectors
from lessonbank.contracts.records import Edit, Experience, Lesson, Replace, Rollback, Trust
from lessonbank.contracts.records.timeline import about, diff, reworded, state_at
from lessonbank.contracts.store_calls import get_experience, purge_one
from lessonbank.errors import Conflict, NotFound

from .store_purging import SECRET, everything
from .store_samples import (
    MINE,
    THEIRS,
    StoreTests,
    added,
    check_sound,
    collected,
    experience,
    lesson,
    rebuild,
    refused,
    towards,
)

LESSONS = "sample:8#lessons"


def edit(lesson: Lesson, title: str = "Ask first", *, by: str = "Ana") -> Edit:
    """Other words for a lesson."""
    return Edit(lesson_id=lesson.id, title=title, description="Always.", content="Ask, then act.", by=by, reason="test")


async def rewrite(store: Store, change: Edit, *, vector: Vectors | None = None) -> int:
    """Apply an edit; its sequence."""
    vectors = {} if vector is None else {change.lesson_id: vector}
    (entry,) = await store.apply(
        [change], scope=MINE, writer=change.by, vectors=vectors, space=LESSONS if vectors else None
    )
    return entry.sequence


async def lesson_of(store: Store, known: Experience) -> Lesson:
    """The experience's first lesson, as it is now."""
    return (await get_experience(store, known.id, scope=MINE)).lessons[0]


class EditingTests(StoreTests):
    """Edits."""

    async def test_an_edit_keeps_the_id_and_the_trust_and_says_who_wrote_it(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson(), lesson("Second")))
            before = known.lessons[0]
            await added(store, known)
            trust = Trust(lesson_ids=(before.id,), state="active", by="person", reason="test")
            await store.apply([trust], scope=MINE, writer="tests")
            await rewrite(store, edit(before))
            after = await lesson_of(store, known)
            assert (after.id, after.state, after.version, after.created_at) == (
                before.id,
                "active",
                2,
                before.created_at,
            )
            assert (after.title, after.description, after.content) == ("Ask first", "Always.", "Ask, then act.")
            assert (after.provenance.method, after.provenance.writer) == ("human", "Ana")
            assert (await get_experience(store, known.id, scope=MINE)).lessons[1] == known.lessons[1]
            assert await store.lessons(LessonFilter(writer="Ana", text="ask"), scope=MINE) == [after]
            await rewrite(store, edit(before, "Ask twice"))
            assert (await lesson_of(store, known)).version == 3
            await check_sound(store)

    async def test_an_edit_of_nothing_or_to_the_same_words_is_refused(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            await rewrite(store, edit(known.lessons[0]))
            with refused(Conflict):
                await rewrite(store, edit(known.lessons[0]))
            with refused(NotFound):
                await rewrite(store, edit(lesson()))
            with refused(NotFound):
                await store.apply([edit(known.lessons[0])], scope=THEIRS, writer="Ana")

    async def test_an_edit_takes_the_vector_of_the_earlier_words_away(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson(), lesson("Second")))
            await added(store, known)
            along = {known.lessons[0].id: towards(0), known.lessons[1].id: towards(1)}
            await store.index(along, scope=MINE, space=LESSONS)
            await rewrite(store, edit(known.lessons[0]))
            after = await lesson_of(store, known)
            missing = await store.unindexed(scope=MINE, space=LESSONS, limit=9, lessons=True)
            assert list(missing) == [(after.id, after.text)]
            matches = (await store.nearest(towards(0), scope=MINE, space=LESSONS, limit=9)).matches
            assert [match.lesson_id for match in matches] == [known.lessons[1].id]
            await rewrite(store, edit(known.lessons[0], "Ask twice"), vector=towards(3))
            assert await store.unindexed(scope=MINE, space=LESSONS, limit=9, lessons=True) == []
            matches = (await store.nearest(towards(3), scope=MINE, space=LESSONS, limit=1)).matches
            assert [match.lesson_id for match in matches] == [known.lessons[0].id]

    async def test_what_was_said_before_can_be_looked_up_and_brought_back(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            at = await rewrite(store, edit(known.lessons[0]))
            after = await get_experience(store, known.id, scope=MINE)
            journal = await collected(store.journal(scope=MINE))
            first, second = (state_at(journal, n, scope=MINE) for n in (at - 1, at))
            assert (first.experiences, second.experiences) == ((known,), (after,))
            assert diff(first, second).edited == after.lessons
            assert [e.sequence for e in about(journal, lesson=known.lessons[0].id)] == [1, 2]
            assert reworded(journal) == {known.lessons[0].id: journal[-1].at}
            await store.apply([Rollback(to=1, reason="test")], scope=MINE, writer="tests")
            assert await get_experience(store, known.id, scope=MINE) == known
            journal = await collected(store.journal(scope=MINE))
            assert reworded(journal) == {known.lessons[0].id: journal[-1].at}
            await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
            assert await get_experience(store, known.id, scope=MINE) == after
            await rebuild(store)
            await check_sound(store)

    async def test_an_edit_goes_with_the_lesson_that_is_purged(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson(), lesson("Second")))
            await added(store, known)
            await rewrite(store, edit(known.lessons[0], f"Ask {SECRET}", by=SECRET))
            await rewrite(store, edit(known.lessons[1]))
            assert SECRET in await everything(store)
            await purge_one(store, "lesson", known.lessons[0].id, scope=MINE, writer="ana", reason="asked to")
            kinds = [entry.entry.kind for entry in await collected(store.journal(scope=MINE))]
            assert kinds == ["add", "erased", "edit", "purge"]
            left = await everything(store)
            assert f"Ask {SECRET}" not in left
            assert (await lesson_of(store, known)).title == "Ask first"
            await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
            assert (await lesson_of(store, known)).title == "Second"
            await check_sound(store)

    async def test_an_edited_lesson_can_be_replaced_with_its_experience(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            await rewrite(store, edit(known.lessons[0]))
            present = await get_experience(store, known.id, scope=MINE)
            longer = present.model_copy(update={"lessons": (*present.lessons, lesson("Later"))})
            await store.apply([Replace(experience=longer)], scope=MINE, writer="tests", if_unchanged=[present])
            with refused(Conflict):
                await store.apply([Replace(experience=known)], scope=MINE, writer="tests", if_unchanged=[known])
            assert await get_experience(store, known.id, scope=MINE) == longer
