"""The store contract, second part: what is found for a task, in which order, and what never is."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Replace, Restore, Retire
from lessonbank.contracts.store_calls import count_records, drop_index
from lessonbank.errors import NotFound, SpaceMismatch, UsageError

from .store_lessons import LessonSpaceTests
from .store_samples import (
    MINE,
    SPACE,
    THEIRS,
    added,
    assert_ranked,
    collected,
    experience,
    lesson,
    ranked_by_words,
    refused,
    towards,
)

_WORDS = ("cancel", "order", "refund", "boots", "flight", "oslo", "hotel", "pending", "the", "of", "注", "straße", "42")


async def _nearest(store: Store, axis: int = 0, *, limit: int = 5, scope: str = MINE) -> list[str]:
    matches = (await store.nearest(towards(axis), scope=scope, space=SPACE, limit=limit)).matches
    return [match.experience.id for match in matches]


async def _searched(store: Store, query: str, *, limit: int = 5, scope: str = MINE) -> list[str]:
    return [match.experience.id for match in await store.search(query, scope=scope, limit=limit)]


def _crowd(count: int, *, seed: int) -> list[Experience]:
    chance = random.Random(seed)
    tasks = [" ".join(chance.choices(_WORDS, k=chance.randint(1, 12))) for _ in range(count)]
    return [experience(task, minute=chance.randint(0, 9)) for task in tasks]


class RankingTests(LessonSpaceTests):
    """Vectors, of tasks and of lessons, and words."""

    async def test_nearest_ranks_by_cosine_and_scores_it(self) -> None:
        async with self.opened() as store:
            same, close, far = experience(), experience(), experience()
            await added(store, far, close, same, along=[towards(4), towards(0, tilt=0.5), 7 * towards(0)])
            matches = (await store.nearest(3 * towards(0), scope=MINE, space=SPACE, limit=3)).matches
            assert [match.experience for match in matches] == [same, close, far]
            for match, score in zip(matches, (1.0, 1 / math.sqrt(1.25), 0.0), strict=True):
                assert math.isclose(match.score, score, abs_tol=2.5e-5)
            assert await _nearest(store, limit=1) == [same.id]
            assert await _nearest(store, limit=0) == []

    async def test_ties_are_given_newest_first(self) -> None:
        async with self.opened() as store:
            same_age = [experience(minute=5) for _ in range(3)]
            known = [experience(minute=9), *same_age, experience(minute=1)]
            await added(store, *known, along=[towards(0)] * 5)
            wanted = [known[0].id, *[e.id for e in reversed(same_age)], known[4].id]
            assert await _nearest(store) == wanted
            assert await _nearest(store, limit=3) == wanted[:3]
            assert await _searched(store, known[0].task) == wanted
            assert await _searched(store, known[0].task, limit=3) == wanted[:3]

    async def test_a_crowd_in_another_scope_takes_no_place_of_mine(self) -> None:
        async with self.opened() as store:
            theirs = [experience(scope=THEIRS) for _ in range(60)]
            mine = [experience("Cancel it", minute=n) for n in range(5)]
            await added(store, *theirs, scope=THEIRS, along=[towards(0)] * 60)
            await added(store, *mine, along=[towards(0, tilt=0.9)] * 5)
            assert set(await _nearest(store, limit=5)) == {e.id for e in mine}
            assert set(await _searched(store, "Cancel the pending order", limit=5)) == {e.id for e in mine}
            assert len(await _nearest(store, limit=99, scope=THEIRS)) == 60

    async def test_the_tasks_of_another_scope_do_not_move_a_score(self) -> None:
        async with self.opened() as store:
            await added(store, experience("cancel order"), experience("refund flight"))
            before = [match.score for match in await store.search("cancel flight", scope=MINE, limit=9)]
            await added(store, *[experience("cancel", scope=THEIRS) for _ in range(30)], scope=THEIRS)
            assert [match.score for match in await store.search("cancel flight", scope=MINE, limit=9)] == before

    async def test_an_experience_without_active_lessons_is_never_found(self) -> None:
        async with self.opened() as store:
            empty, retired, shown = (
                experience(lessons=()),
                experience(lessons=(lesson(retired=True),)),
                experience(minute=1),
            )
            await added(store, empty, retired, shown, along=[towards(0)] * 3)
            assert await _nearest(store) == await _searched(store, shown.task) == [shown.id]
            await store.apply([Retire(lesson_ids=(shown.lessons[0].id,), reason="test")], scope=MINE, writer="tests")
            assert await _nearest(store) == await _searched(store, shown.task) == []
            changes = [Restore(lesson_ids=(e.lessons[0].id,), reason="test") for e in (shown, retired)]
            await store.apply(changes, scope=MINE, writer="tests")
            assert await _nearest(store) == await _searched(store, shown.task) == [shown.id, retired.id]

    async def test_spaces_never_meet(self) -> None:
        async with self.opened() as store:
            first, other = experience(), experience()
            await added(store, first, other, along=[towards(0)])
            await store.index({other.id: np.ones(3, dtype=np.float32)}, scope=MINE, space="other:3")
            assert await _nearest(store) == [first.id]
            matches = (await store.nearest(np.ones(3, dtype=np.float32), scope=MINE, space="other:3", limit=5)).matches
            assert [match.experience.id for match in matches] == [other.id]
            assert list((await store.nearest(towards(0), scope=MINE, space="none", limit=5)).matches) == []
            with refused(SpaceMismatch):
                await store.nearest(towards(0), scope=MINE, space="other:3", limit=5)
            with refused(SpaceMismatch):
                await store.nearest(towards(0), scope=MINE, space="other:3", limit=0)
            assert list((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=0)).matches) == []
            with refused(SpaceMismatch):
                await store.index({first.id: towards(0)}, scope=MINE, space="other:3")
            with refused(SpaceMismatch):
                await added(store, experience(), along=[np.ones(3, dtype=np.float32)])

    async def test_a_bad_vector_stops_the_whole_write(self) -> None:
        async with self.opened() as store:
            new, known = experience(), experience()
            await added(store, known, along=[towards(0)])
            for bad in (np.zeros(8), np.full(8, np.nan), np.full(8, np.inf), np.ones((2, 8)), np.ones(0)):
                vector = bad.astype(np.float32)
                with refused(UsageError):
                    await added(store, new, along=[vector])
                with refused(UsageError):
                    await store.index({known.id: vector}, scope=MINE, space=SPACE)
                with refused(UsageError):
                    await store.nearest(vector, scope=MINE, space=SPACE, limit=1)
            huge: Any = [10**400]  # no array holds it
            with refused(UsageError):
                await store.index({known.id: huge}, scope=MINE, space=SPACE)
            with refused(NotFound):
                await store.index({new.id: towards(0)}, scope=MINE, space=SPACE)
            with refused(UsageError):
                await store.index({known.id: towards(0)}, scope=MINE, space="")
            assert (await count_records(store, scope=MINE)).experiences == 1
            assert await _nearest(store) == [known.id]

    async def test_what_has_no_vector_is_listed_indexed_and_found(self) -> None:
        async with self.opened() as store:
            known = [experience(f"Task {n}", minute=9 - n) for n in range(4)]
            await added(store, *known)
            waiting = [(e.id, e.task) for e in reversed(known)]
            assert list(await store.unindexed(scope=MINE, space=SPACE, limit=99)) == waiting
            assert list(await store.unindexed(scope=MINE, space=SPACE, limit=2)) == waiting[:2]
            await store.index({id: towards(0) for id, _ in waiting[:2]}, scope=MINE, space=SPACE)
            assert list(await store.unindexed(scope=MINE, space=SPACE, limit=99)) == waiting[2:]
            assert list(await store.unindexed(scope=MINE, space="other", limit=99)) == waiting
            assert await _nearest(store) == [known[2].id, known[3].id]
            assert len([entry async for entry in store.journal(scope=MINE)]) == 4

    async def test_a_vector_can_be_set_again(self) -> None:
        async with self.opened() as store:
            first, other = experience(), experience()
            await added(store, first, other, along=[towards(0), towards(0, tilt=0.1)])
            assert await _nearest(store) == [first.id, other.id]
            await store.index({first.id: towards(3)}, scope=MINE, space=SPACE)
            assert await _nearest(store) == [other.id, first.id]
            assert await _nearest(store, 3, limit=1) == [first.id]

    async def test_a_dropped_index_is_forgotten_with_its_dimensions(self) -> None:
        async with self.opened() as store:
            mine, theirs = experience(), experience(scope=THEIRS)
            await added(store, mine, along=[towards(0)])
            await added(store, theirs, scope=THEIRS, along=[towards(0)])
            await _nearest(store)
            await drop_index(store, scope=MINE, space=SPACE)
            assert await _nearest(store) == []
            assert list(await store.unindexed(scope=MINE, space=SPACE, limit=9)) == [(mine.id, mine.task)]
            assert await _nearest(store, scope=THEIRS) == [theirs.id]
            await store.index({mine.id: np.ones(2, dtype=np.float32)}, scope=MINE, space=SPACE)
            matches = (await store.nearest(np.ones(2, dtype=np.float32), scope=MINE, space=SPACE, limit=1)).matches
            assert [match.experience.id for match in matches] == [mine.id]

    async def test_a_new_task_makes_the_old_vector_and_words_invalid(self) -> None:
        async with self.opened() as store:
            known = experience("Cancel the order")
            await added(store, known, along=[towards(0)])
            revision = known.model_copy(update={"metadata": {"seen": 1}})
            await store.apply([Replace(experience=revision)], scope=MINE, writer="tests")
            assert await _nearest(store) == await _searched(store, "cancel") == [known.id]
            moved = known.model_copy(update={"task": "Book a flight"})
            await store.apply([Replace(experience=moved)], scope=MINE, writer="tests")
            assert await _nearest(store) == await _searched(store, "cancel") == []
            assert await _searched(store, "flight") == [known.id]
            assert list(await store.unindexed(scope=MINE, space=SPACE, limit=9)) == [(known.id, moved.task)]

    async def test_a_tasks_own_words_score_one(self) -> None:
        async with self.opened() as store:
            tasks = [
                "Cancel the pending order",
                "to be or not to be",
                "注文をキャンセル",
                "STRASSE 42",
                "the",
                "x" * 5000,
            ]
            known = {task: experience(task) for task in tasks}
            await added(store, *known.values(), *_crowd(20, seed=1))
            for task, wanted in known.items():
                scores = {m.experience.id: m.score for m in await store.search(task, scope=MINE, limit=99)}
                assert scores[wanted.id] == max(scores.values()) == 1.0
            assert known["STRASSE 42"].id in await _searched(store, "straße", limit=99)

    async def test_without_a_common_word_nothing_is_found(self) -> None:
        async with self.opened() as store:
            await added(store, experience("Cancel the pending order"))
            for query in ("xylophone", "", "   ", "!?*\"'():", "the"):
                assert await _searched(store, query) == []

    async def test_words_are_ranked_as_if_every_task_were_read(self) -> None:
        async with self.opened() as store:
            known = _crowd(120, seed=7)
            await added(store, *known)
            retired = [e.lessons[0].id for e in known[::9]]
            await store.apply([Retire(lesson_ids=tuple(retired), reason="test")], scope=MINE, writer="tests")
            present = await collected(store.scan(scope=MINE))
            for query in _crowd(25, seed=8):
                matches = await store.search(query.task, scope=MINE, limit=10)
                assert [(m.experience, m.score) for m in matches] == ranked_by_words(present, query.task)[:10]

    async def test_vectors_are_ranked_as_plain_arithmetic_ranks_them(self) -> None:
        async with self.opened() as store:
            known = _crowd(120, seed=9)
            rows = np.random.default_rng(3).normal(size=(145, 8)).astype(np.float32).round(1)
            await added(store, *known, along=list(rows[:120]))
            usable = {e.id: row for e, row in zip(known, rows, strict=False)}
            for row in rows[120:]:
                matches = (await store.nearest(row, scope=MINE, space=SPACE, limit=10)).matches
                assert_ranked(matches, usable, row, limit=10)
