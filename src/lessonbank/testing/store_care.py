"""The store contract for `Care`: what can be rebuilt is, and a sound store has no complaints."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.contracts.ports import Imported, Store
from lessonbank.contracts.records import Retire, Rollback
from lessonbank.contracts.store_calls import care_of, drop_index, experience_of_lesson, list_scopes
from lessonbank.errors import StoreUnavailable, UsageError

from .store_lessons import LESSONS, along, lessons_in, missing
from .store_repeating import add_along_axes, find_repeating, repeating
from .store_rewinding import present
from .store_samples import (
    MINE,
    SPACE,
    THEIRS,
    StoreTests,
    added,
    attempt,
    check_sound,
    collected,
    experience,
    lesson,
    rebuild,
    refused,
    towards,
    trajectory,
)


class CareTests(StoreTests):
    """Verify and rebuild. Importing and backing up have tests of their own beside the stores."""

    async def lose_what_can_be_rebuilt(self, store: Store) -> None:
        """Damage the store where that can be mended: every vector, and where it can be reached the word index."""
        await drop_index(store, scope=MINE, space=SPACE)

    async def test_what_can_be_rebuilt_answers_as_before(self) -> None:
        async with self.opened() as store:
            known = [experience(f"Cancel order {n % 3}", minute=n, lessons=(lesson(), lesson("b"))) for n in range(9)]
            await added(store, *known, along=[towards(n % 8) for n in range(9)])
            await store.apply([Retire(lesson_ids=(known[2].lessons[0].id,), reason="?")], scope=MINE, writer="tests")
            await store.apply([Rollback(to=7, reason="test")], scope=MINE, writer="tests")
            before = await present(store)
            await self.lose_what_can_be_rebuilt(store)
            assert await present(store) != before
            await rebuild(store)
            lacking = await store.unindexed(scope=MINE, space=SPACE, limit=99)
            places = {e.id: towards(n % 8) for n, e in enumerate(known)}
            await store.index({id: places[id] for id, _ in lacking}, scope=MINE, space=SPACE)
            assert await present(store) == before
            assert await experience_of_lesson(store, known[2].lessons[1].id, scope=MINE) == known[2]
            await check_sound(store)
            await store.apply([Rollback(to=10, reason="test")], scope=MINE, writer="tests")
            assert len(await collected(store.scan(scope=MINE))) == 9

    async def test_a_sound_store_has_no_complaints(self) -> None:
        async with self.opened() as store:
            await check_sound(store)
            run, known = trajectory(), experience(lessons=(lesson(), lesson()))
            await store.save_runs([run], scope=MINE)
            await added(store, known, experience("!?", attempts=[attempt(run, "success")]), along=[towards(0)])
            await store.apply([Retire(lesson_ids=(known.lessons[0].id,), reason="x")], scope=MINE, writer="tests")
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            await check_sound(store)
            assert list((await care_of(store).verify(records=False)).problems) == []

    async def test_the_storage_is_told_in_words(self) -> None:
        async with self.opened() as store:
            storage = (await care_of(store).verify(tables=False)).storage
            assert storage
            assert all(name and text for name, text in storage.items())

    async def test_an_error_in_what_gives_records_to_import_is_no_damage_and_nothing_is_written(self) -> None:
        async with self.opened() as store:
            for broken in (ValueError("a redactor's"), KeyError("a reader's"), TypeError("a part's")):

                def portions(broken: Exception = broken) -> Iterator[Imported]:
                    yield Imported(experiences=[experience()])
                    raise broken

                with refused(UsageError):
                    await care_of(store).import_records(portions, scope=MINE, writer="tests")
            assert await list_scopes(store) == []
            await added(store, experience())
            await check_sound(store)

    async def test_a_rebuild_keeps_the_vectors_of_lessons(self) -> None:
        async with self.opened() as store:
            await along(store, lessons_in("a", "b"), lessons_in("c"))
            before = list((await store.nearest(towards(0), scope=MINE, space=LESSONS, limit=9)).matches)
            await rebuild(store)
            assert list((await store.nearest(towards(0), scope=MINE, space=LESSONS, limit=9)).matches) == before
            assert await missing(store) == []

    async def test_a_rebuild_finds_what_taught_a_lesson_again_as_before(self) -> None:
        async with self.opened() as store:
            first = experience()
            again = repeating(*first.lessons)
            await add_along_axes(store, first, again)
            await rebuild(store)
            assert await find_repeating(store) == [(again.id, first.lessons)]
            await check_sound(store)

    async def test_a_closed_store_rebuilds_and_tells_nothing(self) -> None:
        async with self.opened() as store:
            await store.close()
            with refused(StoreUnavailable):
                await care_of(store).rebuild()
            with refused(StoreUnavailable):
                await care_of(store).verify(tables=False)
