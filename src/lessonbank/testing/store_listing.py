"""The store contract, seventh part: what people look through comes in pages, newest first, filtered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter, Store
from lessonbank.contracts.records import (
    Add,
    Candidate,
    Experience,
    Lesson,
    Provenance,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    Run,
    Settlement,
    Step,
    Topic,
    Trajectory,
    Trust,
    Verdict,
)
from lessonbank.contracts.store_calls import count_records, get_recall, get_run, list_recalls, pending_runs, purge_one
from lessonbank.errors import NotFound, UsageError

from .store_samples import (
    MINE,
    START,
    THEIRS,
    StoreTests,
    added,
    attempt,
    check_sound,
    experience,
    lesson,
    rebuild,
    refused,
    trajectory,
)

T = TypeVar("T")


def written(n: int, *, writer: str = "learn", **fields: Any) -> Lesson:
    """The lesson written in minute `n`."""
    at = START + timedelta(minutes=n)
    return lesson(f"Lesson {n}").model_copy(
        update={"created_at": at, "provenance": Provenance(writer=writer), "id": f"lesson-{n:03}", **fields}
    )


async def all_pages(page: Callable[[str | None], Awaitable[Sequence[T]]], /, *, limit: int) -> list[T]:
    """Everything a list gives, page by page; `page` is called with the id of the last one before."""
    records, after = list[T](), None
    while some := await page(after):
        assert len(some) <= limit
        records.extend(some)
        last = some[-1]
        after = last.trajectory.id if isinstance(last, Run) else getattr(last, "id", None)
    return records


async def every_lesson(store: Store, *, limit: int = 2, **asked: Any) -> list[str]:
    """The titles of the lessons that fit, page by page."""

    async def page(after: str | None) -> Sequence[Lesson]:
        return await store.lessons(LessonFilter(limit=limit, after=after, **asked), scope=MINE)

    return titles(await all_pages(page, limit=limit))


async def every_run(store: Store, *, limit: int = 1, **asked: Any) -> list[Run]:
    """The runs that fit, page by page."""

    async def page(after: str | None) -> Sequence[Run]:
        return await store.runs(RunFilter(limit=limit, after=after, **asked), scope=MINE)

    return await all_pages(page, limit=limit)


async def every_listed_recall(store: Store, *, limit: int = 2, **asked: Any) -> list[Recall]:
    """The recalls that fit, page by page."""

    async def page(after: str | None) -> Sequence[Recall]:
        return await list_recalls(store, RecallFilter(limit=limit, after=after, **asked), scope=MINE)

    return await all_pages(page, limit=limit)


def titles(lessons: Sequence[Lesson], /) -> list[str]:
    """Their numbers, as text."""
    return [lesson.title.removeprefix("Lesson ") for lesson in lessons]


async def made(
    store: Store, n: int, *, shows: Sequence[str] = (), withholds: Sequence[str] = (), **fields: Any
) -> Recall:
    """A kept receipt of minute `n`."""
    candidates = tuple(
        Candidate(lesson_id=id, experience_id="e", score=0.5, rank=rank, shown=id in shows)
        for rank, id in enumerate((*shows, *withholds))
    )
    at = START + timedelta(minutes=n)
    recall = Recall(scope=MINE, task=f"Task {n}", candidates=candidates, created_at=at, **fields)
    await store.save_recall(recall)
    return recall


class ListingTests(StoreTests):
    """Lists of lessons, runs and recalls."""

    async def test_lessons_come_in_pages_newest_first(self) -> None:
        async with self.opened() as store:
            for n in (2, 0, 1):
                lessons = (written(3 * n), written(3 * n + 1), written(3 * n + 2))
                await added(store, experience(lessons=lessons))
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            for limit in (1, 2, 4, 9, 50):
                assert await every_lesson(store, limit=limit) == [str(n) for n in range(8, -1, -1)]
            assert len(await store.lessons(LessonFilter(limit=2), scope=MINE)) == 2
            with refused(UsageError):
                await store.lessons(LessonFilter(limit=0), scope=MINE)
            with refused(NotFound):
                await store.lessons(LessonFilter(after="nothing"), scope=MINE)
            with refused(NotFound):
                await store.lessons(LessonFilter(after="lesson-001"), scope=THEIRS)

    async def test_lessons_of_one_moment_come_in_pages_all_the_same(self) -> None:
        async with self.opened() as store:
            same = [written(n, created_at=START) for n in range(6)]
            await added(store, experience(lessons=same[:3]), experience(lessons=same[3:]))
            assert await every_lesson(store, limit=2) == ["5", "4", "3", "2", "1", "0"]

    async def test_lessons_made_since_a_moment_are_counted_up_to_a_limit(self) -> None:
        async with self.opened() as store:
            await added(store, experience(lessons=[written(0), written(1)]), experience(lessons=[written(2)]))
            await added(store, experience(scope=THEIRS, lessons=[written(3)]), scope=THEIRS)
            await store.apply([Retire(lesson_ids=("lesson-002",), reason="old")], scope=MINE, writer="t")
            since = START + timedelta(minutes=1)
            for scope, limit, count in ((MINE, 1, 1), (MINE, 2, 2), (MINE, 9, 2), ("nobody", 9, 0)):
                counts = await store.count(scope=scope, since=since, limit=limit)
                assert {name: each.lessons for name, each in counts.items()} == {scope: count}

    async def test_lessons_are_listed_by_topic(self) -> None:
        async with self.opened() as store:
            refunds, two = Topic(id="00000001", name="refunds"), Topic(id="00000002")
            await added(store, experience(lessons=(written(0, topic=refunds), written(1), written(2, topic=two))))
            await added(store, experience(lessons=(written(3, topic=refunds),)))
            for asked, digits in (
                ({refunds.id}, "30"),
                ({refunds.id, two.id}, "320"),
                ({"refunds"}, ""),
                (set[str](), ""),
            ):
                assert await every_lesson(store, limit=1, topics=asked) == list(digits)

    async def test_lessons_are_listed_by_state(self) -> None:
        async with self.opened() as store:
            known = [written(n, state="quarantined" if n == 4 else "probation") for n in range(6)]
            await added(store, experience(lessons=known[:3]), experience(lessons=known[3:]))
            await store.apply(
                [
                    Retire(lesson_ids=(known[0].id, known[3].id), reason="test"),
                    Trust(lesson_ids=(known[1].id,), state="active", by="person", reason="test"),
                ],
                scope=MINE,
                writer="tests",
            )

            async def listed(**asked: Any) -> list[str]:
                return await every_lesson(store, limit=2, **asked)

            assert await listed() == ["5", "4", "2", "1"]
            assert await listed(retired=True) == ["5", "4", "3", "2", "1", "0"]
            assert await listed(state="probation") == ["5", "2"]
            assert await listed(state="active") == ["1"]
            assert await listed(state="quarantined") == ["4"]
            assert await listed(state="retired") == ["3", "0"]
            await store.apply([Restore(lesson_ids=(known[3].id,), reason="test")], scope=MINE, writer="tests")
            assert await listed(state="retired") == ["0"]
            await rebuild(store)
            assert await listed(state="quarantined") == ["4"]
            await store.apply([Rollback(to=1, reason="test")], scope=MINE, writer="tests")
            assert await listed(retired=True) == ["2", "1", "0"]
            wrong: Any = "approved"
            with refused(UsageError):
                await store.lessons(LessonFilter(state=wrong), scope=MINE)
            await check_sound(store)

    async def test_lessons_are_found_by_kind_writer_words_and_metadata(self) -> None:
        async with self.opened() as store:
            guardrail = written(1, writer="Ana", kind="guardrail", content="Never refund a Café twice.")
            two = written(2, writer="Ana", description="When a refund is asked for.")
            three = written(3)
            theirs = experience(lessons=(three,)).model_copy(
                update={"metadata": {"user": "u-17", "shop": {"b": 2, "a": 1}}}
            )
            await added(store, experience(lessons=(guardrail, two)), theirs)

            async def listed(**asked: Any) -> list[str]:
                return await every_lesson(store, limit=1, **asked)

            assert await listed(kind="guardrail") == ["1"]
            assert await listed(writer="Ana") == ["2", "1"]
            assert await listed(writer="Ana", kind="strategy") == ["2"]
            assert await listed(text="REFUND") == ["2", "1"]
            assert await listed(text="café refund") == ["1"]
            assert await listed(text="refund pizza") == []
            assert await listed(metadata={"user": "u-17"}) == ["3"]
            assert await listed(metadata={"shop": {"a": 1, "b": 2}, "user": "u-17"}) == ["3"]
            assert await listed(metadata={"user": "u-17", "shop": {"a": 1}}) == []
            await rebuild(store)
            assert await listed(metadata={"user": "u-17"}) == ["3"]
            await store.apply([Rollback(to=1, reason="test")], scope=MINE, writer="tests")
            assert await listed(metadata={"user": "u-17"}) == []
            await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
            assert await listed(metadata={"user": "u-17"}) == ["3"]

    async def test_lessons_are_found_by_the_recall_that_their_runs_used(self) -> None:
        async with self.opened() as store:
            first, two = experience(lessons=(written(1), written(2))), experience(lessons=(written(3),))
            await added(
                store, first.model_copy(update={"recall_id": "r-1"}), two.model_copy(update={"recall_id": "r-2"})
            )

            async def listed(recall: str, **asked: Any) -> list[str]:
                return await every_lesson(store, limit=1, recall=recall, **asked)

            assert (await listed("r-1"), await listed("r-2"), await listed("r-3")) == (["2", "1"], ["3"], [])
            assert await listed("r-1", text="1") == ["1"]
            assert await listed("r-1", metadata={"recall_id": "r-1"}) == []
            assert titles(await store.lessons(LessonFilter(metadata={"recall_id": "r-1"}), scope=MINE)) == []
            await rebuild(store)
            assert await listed("r-1") == ["2", "1"]
            await store.apply([Replace(experience=first)], scope=MINE, writer="tests")
            assert await listed("r-1") == []
            await check_sound(store)

    async def test_a_run_tells_its_verdict_its_status_and_its_recall(self) -> None:
        async with self.opened() as store:
            learned, waiting, begun = trajectory("one"), trajectory("two"), trajectory("three")
            begun = begun.model_copy(update={"unfinished": True, "metadata": {"user": "u-17"}})
            await store.save_runs([learned, waiting, begun], scope=MINE)
            sample = experience(attempts=[attempt(learned, "failure")])
            await added(store, sample.model_copy(update={"recall_id": "r-1"}))
            runs = {run.trajectory.id: run for run in await store.runs(RunFilter(), scope=MINE)}
            assert [runs[id].status for id in (learned.id, waiting.id, begun.id)] == [
                "learned",
                "pending",
                "unfinished",
            ]
            assert runs[learned.id].verdict.outcome == "failure"
            assert runs[learned.id].recall_id == "r-1"
            assert runs[waiting.id].verdict == Verdict(outcome="unknown", reason="not judged yet")
            assert runs[begun.id].metadata == {"user": "u-17"}
            assert await get_run(store, learned.id, scope=MINE) == runs[learned.id]
            assert await pending_runs(store, scope=MINE) == [waiting]
            assert (await count_records(store, scope=MINE)).pending == 1
            with refused(NotFound):
                await get_run(store, learned.id, scope=THEIRS)
            truth = Verdict(outcome="success", source="human")
            change = Rejudge(experience_id=sample.id, trajectory_id=learned.id, verdict=truth)
            await store.apply([change], scope=MINE, writer="tests")
            assert (await get_run(store, learned.id, scope=MINE)).verdict == truth
            assert [run.trajectory for run in await store.runs(RunFilter(outcome="success"), scope=MINE)] == [learned]

    async def test_runs_are_listed_without_what_became_of_them_where_nobody_asks_for_it(self) -> None:
        async with self.opened() as store:
            known = [trajectory(f"run {n}") for n in range(4)]
            await store.save_runs(known, scope=MINE)
            tried = [attempt(known[0], "failure"), attempt(known[1], "success"), attempt(known[2], "success")]
            await added(store, experience(attempts=tried))
            newer = experience(attempts=[attempt(known[0], "success")], minute=1)
            await added(store, newer.model_copy(update={"recall_id": "r-1"}))
            ids = [run.id for run in known]
            filters: list[dict[str, Any]] = [
                {},
                {"ids": ids},
                {"outcome": "success"},
                {"text": "run"},
                {"status": "learned"},
            ]
            for asked in filters:
                whole = {r.trajectory.id: r for r in await store.runs(RunFilter(**asked), scope=MINE)}
                bare = {r.trajectory.id: r for r in await store.runs(RunFilter(verdicts=False, **asked), scope=MINE)}
                assert bare.keys() == whole.keys()
                for id, run in bare.items():
                    unread = {"verdict": Verdict(outcome="unknown", reason="not judged yet"), "recall_id": None}
                    assert run == whole[id].model_copy(update=unread)
                assert [whole[id].verdict.outcome for id in ids[:3]] == ["success"] * 3
                assert [whole[id].recall_id for id in ids[:3]] == ["r-1", None, None]

    async def test_runs_come_in_pages_newest_first(self) -> None:
        async with self.opened() as store:
            known = [trajectory(f"run {n}") for n in range(7)]
            await store.save_runs(known[:4], scope=MINE)
            await store.save_runs(known[4:], scope=MINE)
            await store.save_runs([trajectory()], scope=THEIRS)
            for limit in (1, 3, 50):
                runs = await every_run(store, limit=limit)
                assert [run.trajectory for run in runs] == known[::-1]
            for limit in (1, 3):
                waiting, after = list[Trajectory](), None
                while some := await pending_runs(store, scope=MINE, limit=limit, after=after):
                    waiting.extend(some)
                    after = some[-1].id
                assert waiting == known
            with refused(UsageError):
                await store.runs(RunFilter(limit=0), scope=MINE)
            with refused(NotFound):
                await store.runs(RunFilter(after="nothing"), scope=MINE)
            with refused(NotFound):
                await pending_runs(store, scope=MINE, after="nothing")

    async def test_runs_are_found_by_outcome_status_words_metadata_and_time(self) -> None:
        async with self.opened() as store:
            good = Trajectory(task="Refund it", steps=(Step(action="open the SAFE"),), metadata={"user": "u-1", "n": 1})
            bad = Trajectory(task="Refund that", error="the till was locked", metadata={"user": "u-2"})
            waits = Trajectory(task="Cancel it", metadata={"user": "u-1"})
            begun = Trajectory(task="Begun", unfinished=True)
            await store.save_runs([good, bad, waits, begun], scope=MINE)
            await added(store, experience(attempts=[attempt(good, "success"), attempt(bad, "failure")]))

            async def listed(**asked: Any) -> list[str]:
                return [run.trajectory.task for run in await every_run(store, limit=1, **asked)]

            assert await listed(outcome="success") == ["Refund it"]
            assert await listed(outcome="unknown") == ["Begun", "Cancel it"]
            assert await listed(status="learned") == ["Refund that", "Refund it"]
            assert await listed(status="pending") == ["Cancel it"]
            assert await listed(status="unfinished") == ["Begun"]
            assert await listed(text="refund") == ["Refund that", "Refund it"]
            assert await listed(text="safe refund") == ["Refund it"]
            assert await listed(text="locked") == ["Refund that"]
            assert await listed(metadata={"user": "u-1"}) == ["Cancel it", "Refund it"]
            assert await listed(metadata={"user": "u-1", "n": 1}) == ["Refund it"]
            assert await listed(metadata={"n": "1"}) == []
            assert await listed(before=START) == []
            assert len(await listed(before=START + timedelta(days=36_500))) == 4
            await rebuild(store)
            assert await listed(metadata={"user": "u-1"}) == ["Cancel it", "Refund it"]
            assert await listed(outcome="failure") == ["Refund that"]
            await check_sound(store)

    async def test_recalls_come_in_pages_newest_first_and_filtered(self) -> None:
        async with self.opened() as store:
            for n in (3, 0, 2, 1):
                await made(store, n, shows=["a"] if n % 2 else ["b"], withholds=["c"], metadata={"user": f"u-{n % 2}"})
            asked = await made(store, 4, text="Ask for the RECEIPT")
            assert (await get_recall(store, asked.id, scope=MINE)).metadata == {}
            settled = Settlement(recall_id=asked.id, scope=MINE, outcome="success")
            await store.apply([], scope=MINE, writer="tests", settlement=settled)
            (second,) = await list_recalls(store, RecallFilter(text="task 2"), scope=MINE)
            undecided = Settlement(recall_id=second.id, scope=MINE, outcome="unknown")
            await store.apply([], scope=MINE, writer="tests", settlement=undecided)

            async def listed(**asked: Any) -> list[str]:
                return [recall.task for recall in await every_listed_recall(store, limit=2, **asked)]

            for _ in range(2):
                assert await listed() == ["Task 4", "Task 3", "Task 2", "Task 1", "Task 0"]
                assert await listed(lesson="a") == ["Task 3", "Task 1"]
                assert await listed(lesson="c") == []
                assert await listed(metadata={"user": "u-0"}) == ["Task 2", "Task 0"]
                assert await listed(metadata={"user": "u-0"}, lesson="a") == []
                assert await listed(text="receipt") == ["Task 4"]
                assert await listed(text="task 2") == ["Task 2"]
                assert await listed(settled=True) == ["Task 4"]
                assert await listed(settled=False) == ["Task 3", "Task 2", "Task 1", "Task 0"]
                assert await listed(before=START + timedelta(minutes=2)) == ["Task 1", "Task 0"]
                await rebuild(store)
            assert await list_recalls(store, RecallFilter(lesson="a"), scope=THEIRS) == []
            with refused(NotFound):
                await list_recalls(store, RecallFilter(after="nothing"), scope=MINE)
            with refused(UsageError):
                await list_recalls(store, RecallFilter(limit=0), scope=MINE)
            await check_sound(store)

    async def test_what_is_purged_is_listed_no_more(self) -> None:
        async with self.opened() as store:
            run = Trajectory(task="Refund it", metadata={"user": "u-1"})
            await store.save_runs([run], scope=MINE)
            drawn = written(1).model_copy(update={"provenance": Provenance(trajectory_ids=(run.id,))})
            sample = experience(lessons=(drawn,), attempts=[attempt(run, "success")])
            await added(store, sample.model_copy(update={"metadata": {"user": "u-1"}}))
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            assert await every_run(store, metadata={"user": "u-1"}) == []
            assert await every_lesson(store, metadata={"user": "u-1"}) == []
            await check_sound(store)
            await store.save_runs([run], scope=MINE)
            await made(store, 1, shows=["a"], metadata={"user": "u-1"})
            await purge_one(store, "scope", "", scope=MINE, writer="ana", reason="asked to")
            assert await list_recalls(store, RecallFilter(metadata={"user": "u-1"}), scope=MINE) == []
            await check_sound(store)

    async def test_an_experience_without_attempts_is_a_lesson_a_person_wrote(self) -> None:
        async with self.opened() as store:
            mine = lesson().model_copy(update={"provenance": Provenance(writer="Ana", method="human")})
            experience = Experience(scope=MINE, task="Cancel an order", lessons=(mine,))
            trust = Trust(lesson_ids=(mine.id,), state="active", by="person", reason="written by Ana")
            await store.apply([Add(experience=experience), trust], scope=MINE, writer="Ana")
            (row,) = await store.lessons(LessonFilter(state="active", writer="Ana"), scope=MINE)
            assert row == mine.model_copy(update={"state": "active", "approved": True})
            assert [m.experience.id for m in await store.search("cancel order", scope=MINE, limit=3)] == [experience.id]
            await check_sound(store)
