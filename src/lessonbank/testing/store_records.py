"""The store contract, first part: what is kept, found again, changed, and left pending."""

from __future__ import annotations

from typing import Any

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import LessonFilter, RunFilter, Store
from lessonbank.contracts.records import (
    Add,
    Change,
    Counts,
    Experience,
    Json,
    Merge,
    Recall,
    Replace,
    Restore,
    Retire,
    Rollback,
    Settlement,
    Submission,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.store_calls import (
    count_records,
    drop_index,
    experience_of_lesson,
    experience_of_runs,
    get_experience,
    get_recall,
    get_run,
    get_setting,
    get_trajectory,
    list_scopes,
    pending_runs,
    settled_runs,
)
from lessonbank.errors import Conflict, NotFound, StoreUnavailable, UsageError

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
    refused,
    towards,
    trajectory,
)


async def _state(store: Store) -> tuple[object, ...]:
    return (
        await collected(store.scan(scope=MINE)),
        await collected(store.journal(scope=MINE)),
        await count_records(store, scope=MINE),
        await store.unindexed(scope=MINE, space=SPACE, limit=100),
    )


class RecordTests(StoreTests):
    """Experiences, lessons and trajectories."""

    async def test_an_added_experience_is_read_back_equal(self) -> None:
        async with self.opened() as store:
            wanted = experience(lessons=(lesson("first"), lesson("second", retired=True)))
            await added(store, wanted)
            assert await get_experience(store, wanted.id, scope=MINE) == wanted
            assert await experience_of_lesson(store, wanted.lessons[1].id, scope=MINE) == wanted

    async def test_the_owners_of_lessons_come_once_each_and_unknown_ids_are_left_out(self) -> None:
        async with self.opened() as store:
            early = experience(minute=1, lessons=(lesson("first"), lesson("second", retired=True)))
            late, other = experience(minute=2), experience(minute=3)
            await added(store, early, late, other)
            ids = (late.lessons[0].id, *(record.id for record in early.lessons), "nothing", "\ud800", "nul \0 inside")
            assert list(await store.experiences("lesson", ids, scope=MINE)) == [early, late]
            assert list(await store.experiences("lesson", ids, scope=THEIRS)) == []
            assert list(await store.experiences("lesson", (), scope=MINE)) == []

    async def test_unknown_ids_are_not_found(self) -> None:
        async with self.opened() as store:
            for ask in (get_experience, experience_of_lesson, get_trajectory, get_run, get_recall):
                with refused(NotFound):
                    await ask(store, "nothing", scope=MINE)
                with refused(NotFound):
                    await ask(store, "\ud800", scope=MINE)

    async def test_scan_gives_every_experience_oldest_first(self) -> None:
        async with self.opened() as store:
            late, early, middle = experience(minute=9), experience(minute=1), experience(minute=5)
            twin = experience(minute=5)
            await added(store, late, early, middle, twin)
            assert await collected(store.scan(scope=MINE)) == [early, middle, twin, late]

    async def test_a_scan_does_not_see_what_is_written_while_it_runs(self) -> None:
        async with self.opened() as store:
            known = [experience(minute=n) for n in range(5)]
            await added(store, *known)
            scan = store.scan(scope=MINE)
            seen = [await anext(scan)]
            await added(store, experience(minute=99))
            assert [*seen, *[e async for e in scan]] == known

    async def test_an_id_can_be_added_once(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            with refused(Conflict):
                await added(store, known)

    async def test_a_lesson_belongs_to_one_experience(self) -> None:
        async with self.opened() as store:
            shared = lesson()
            await added(store, experience(lessons=(shared,)))
            with refused(Conflict):
                await added(store, experience(lessons=(shared,)))
            twice = lesson()
            with refused(Conflict):
                await added(store, experience(lessons=(twice, twice)))

    async def test_a_batch_with_one_bad_change_changes_nothing(self) -> None:
        async with self.opened() as store:
            known, run = experience(), trajectory()
            await store.save_runs([run], scope=MINE)
            await added(store, known, along=[towards(0)])
            before = await _state(store)
            good: list[Change] = [
                Add(experience=experience(attempts=[attempt(run, "success")])),
                Replace(experience=known.model_copy(update={"task": "Something else"})),
                Retire(lesson_ids=(known.lessons[0].id,), reason="test"),
            ]
            bad: list[tuple[Change, type[NotFound] | type[Conflict]]] = [
                (Retire(lesson_ids=("nothing",), reason="test"), NotFound),
                (Replace(experience=experience()), NotFound),
                (Add(experience=known), Conflict),
                (Retire(lesson_ids=(known.lessons[0].id,), reason="again"), Conflict),
            ]
            for change, error in bad:
                with refused(error):
                    await store.apply([*good, change], scope=MINE, writer="tests")
                assert await _state(store) == before
            await store.apply(good, scope=MINE, writer="tests")

    async def test_changes_of_one_batch_see_each_other(self) -> None:
        async with self.opened() as store:
            new = experience()
            changes: list[Change] = [Add(experience=new), Retire(lesson_ids=(new.lessons[0].id,), reason="at once")]
            await store.apply(changes, scope=MINE, writer="tests")
            assert (await get_experience(store, new.id, scope=MINE)).active_lessons == ()

    async def test_retire_and_restore_flip_the_lessons_named_and_no_other(self) -> None:
        async with self.opened() as store:
            first, second = lesson("first"), lesson("second")
            known = experience(lessons=(first, second))
            await added(store, known)
            await store.apply([Retire(lesson_ids=(first.id,), reason="harmful")], scope=MINE, writer="tests")
            assert [i.retired for i in (await get_experience(store, known.id, scope=MINE)).lessons] == [True, False]
            with refused(Conflict):
                await store.apply([Restore(lesson_ids=(second.id,), reason="?")], scope=MINE, writer="tests")
            await store.apply([Restore(lesson_ids=(first.id,), reason="wrong")], scope=MINE, writer="tests")
            assert await get_experience(store, known.id, scope=MINE) == known

    async def test_replace_takes_the_record_as_it_is_given(self) -> None:
        async with self.opened() as store:
            survivor, casualty = lesson("kept"), lesson("gone")
            known = experience(lessons=(survivor, casualty))
            await added(store, known)
            new = lesson("new", retired=True)
            later = known.model_copy(update={"lessons": (survivor.model_copy(update={"retired": True}), new)})
            await store.apply([Replace(experience=later)], scope=MINE, writer="tests")
            assert await get_experience(store, known.id, scope=MINE) == later
            assert await experience_of_lesson(store, new.id, scope=MINE) == later
            with refused(NotFound):
                await experience_of_lesson(store, casualty.id, scope=MINE)

    async def test_many_are_added_together_with_a_change_of_one_that_is_new_or_was_taken_out(self) -> None:
        async with self.opened() as store:
            out, known = experience("Taken out"), experience("Cancel the order")
            await added(store, out)
            await store.apply([Rollback(to=0, reason="test")], scope=MINE, writer="tests")
            await added(store, known)
            later = known.model_copy(update={"task": "Exchange the boots", "lessons": (lesson("Measure the feet"),)})
            many = [experience(f"Order number {n}", minute=1 + n) for n in range(70)]
            changes: list[Change] = [Replace(experience=later), *(Add(experience=record) for record in (out, *many))]
            await store.apply(changes, scope=MINE, writer="tests")
            assert len(await collected(store.scan(scope=MINE))) == 72
            assert [match.experience for match in await store.search("boots", scope=MINE, limit=9)] == [later]
            assert [match.experience for match in await store.search("taken", scope=MINE, limit=9)] == [out]
            assert list(await store.lessons(LessonFilter(text="feet"), scope=MINE)) == list(later.lessons)
            await added(store, experience("Whatever comes next"))
            await check_sound(store)

    async def test_two_experiences_can_exchange_a_lesson_in_one_batch(self) -> None:
        async with self.opened() as store:
            moved = lesson("moved")
            source, target = experience(lessons=(moved,)), experience(lessons=())
            await added(store, source, target)
            changes: list[Change] = [
                Replace(experience=source.model_copy(update={"lessons": ()})),
                Replace(experience=target.model_copy(update={"lessons": (moved,)})),
            ]
            await store.apply(changes, scope=MINE, writer="tests")
            assert (await experience_of_lesson(store, moved.id, scope=MINE)).id == target.id

    async def test_merge_adds_one_and_retires_its_sources(self) -> None:
        async with self.opened() as store:
            first, second = experience(), experience()
            await added(store, first, second)
            merged = experience("Both", lessons=(lesson("both"),))
            sources = (first.lessons[0].id, second.lessons[0].id)
            merge = Merge(experience=merged, source_lesson_ids=sources, reason="the same")
            await store.apply([merge], scope=MINE, writer="tests")
            assert await get_experience(store, merged.id, scope=MINE) == merged
            assert not (await get_experience(store, first.id, scope=MINE)).active_lessons
            assert not (await get_experience(store, second.id, scope=MINE)).active_lessons
            await store.apply([Restore(lesson_ids=sources, reason="not the same")], scope=MINE, writer="tests")
            assert await get_experience(store, first.id, scope=MINE) == first

    async def test_an_experience_of_another_scope_is_refused(self) -> None:
        async with self.opened() as store:
            with refused(UsageError):
                await added(store, experience(scope=THEIRS), scope=MINE)
            assert await list_scopes(store) == []

    async def test_scopes_share_nothing_not_even_ids(self) -> None:
        async with self.opened() as store:
            mine, run = experience(), trajectory()
            theirs = mine.model_copy(update={"scope": THEIRS, "task": "Theirs"})
            await added(store, mine)
            await store.save_runs([run], scope=MINE)
            assert await store.save_runs([run], scope=THEIRS) == [run.id]
            await added(store, theirs, scope=THEIRS)
            await store.apply([Retire(lesson_ids=(theirs.lessons[0].id,), reason="?")], scope=THEIRS, writer="tests")
            assert await get_experience(store, mine.id, scope=MINE) == mine
            assert (await count_records(store, scope=MINE)).retired == 0
            assert [entry.sequence for entry in await collected(store.journal(scope=THEIRS))] == [1, 2]
            assert await list_scopes(store) == sorted([MINE, THEIRS])
            with refused(NotFound):
                await get_experience(store, mine.id, scope="acme")

    async def test_asking_an_empty_scope_does_not_make_it(self) -> None:
        async with self.opened() as store:
            assert await collected(store.scan(scope=MINE)) == []
            assert await collected(store.journal(scope=MINE)) == []
            assert await pending_runs(store, scope=MINE) == []
            assert not await settled_runs(store, ["x"], scope=MINE)
            assert await store.save_runs([], scope=MINE) == []
            assert await store.apply([], scope=MINE, writer="tests") == []
            await store.index({}, scope=MINE, space=SPACE)
            await drop_index(store, scope=MINE, space=SPACE)
            assert await list_scopes(store) == []

    async def test_what_is_learned_only_once_is_refused_when_another_was_quicker(self) -> None:
        async with self.opened() as store:
            run, waiting, free = trajectory(), trajectory(), trajectory()
            await store.save_runs([run, waiting, free], scope=MINE)
            first = experience(attempts=[attempt(run, "success"), attempt(waiting, "unknown")])
            await store.apply([Add(experience=first)], scope=MINE, writer="tests", if_unlearned=[run.id, waiting.id])
            before = await _state(store)
            late = Add(experience=experience(attempts=[attempt(run, "success"), attempt(free, "success")]))
            with refused(Conflict):
                await store.apply(
                    [late], scope=MINE, writer="tests", vectors={}, space=SPACE, if_unlearned=[free.id, run.id]
                )
            assert await _state(store) == before
            await store.apply([late], scope=MINE, writer="tests", if_unlearned=[free.id, waiting.id, "never seen"])
            assert set(await settled_runs(store, [run.id, waiting.id, free.id], scope=MINE)) == {run.id, free.id}

    async def test_a_run_is_kept_with_what_was_learned_from_it_or_nothing_is_written(self) -> None:
        async with self.opened() as store:
            run, waiting, learned = trajectory(), trajectory(), trajectory()
            new = Add(experience=experience(attempts=[attempt(run, "success")]))
            await store.apply([new], scope=MINE, writer="tests", if_unlearned=[run.id], runs=[run])
            assert await get_trajectory(store, run.id, scope=MINE) == run
            assert await pending_runs(store, scope=MINE) == []
            await store.save_runs([waiting], scope=MINE)
            of_learned = experience(attempts=[attempt(learned, "success")])
            await added(store, of_learned)  # the run itself is not there, as after it was erased for its age
            before = await _state(store)
            for there in (run, waiting, learned):
                other = trajectory()
                again = Add(experience=experience(attempts=[attempt(there, "success"), attempt(other, "success")]))
                with refused(Conflict):
                    await store.apply(
                        [again], scope=MINE, writer="tests", if_unlearned=[there.id, other.id], runs=[other, there]
                    )
                with refused(NotFound):
                    await get_trajectory(store, other.id, scope=MINE)
            assert await _state(store) == before
            with refused(NotFound):
                await get_trajectory(store, learned.id, scope=MINE)

    async def test_what_is_settled_for_the_first_time_is_refused_where_it_was_settled(self) -> None:
        async with self.opened() as store:
            seen = Recall(scope=MINE, task="Pay")
            await store.save_recall(seen)
            first = Settlement(recall_id=seen.id, scope=MINE, outcome="success")
            options: dict[str, Any] = {"scope": MINE, "writer": "tests", "if_unsettled": True}
            with refused(NotFound):
                await store.apply([], settlement=first.model_copy(update={"recall_id": "gone"}), **options)
            await store.apply([], settlement=first, **options)
            before = await _state(store)
            with refused(Conflict):
                await store.apply([Add(experience=experience())], settlement=first, **options)
            assert await _state(store) == before

    async def test_what_was_decided_upon_a_version_is_refused_when_there_is_another_one(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson("first"), lesson("second")))
            await added(store, known)
            later = Replace(experience=known.model_copy(update={"metadata": {"seen": 2}}))
            await store.apply([Retire(lesson_ids=(known.lessons[0].id,), reason="?")], scope=MINE, writer="tests")
            before = await _state(store)
            for stale in (known, experience("never added")):
                with refused(Conflict):
                    await store.apply([later], scope=MINE, writer="tests", if_unchanged=[stale])
            assert await _state(store) == before
            now = await get_experience(store, known.id, scope=MINE)
            seen = Replace(experience=now.model_copy(update={"metadata": {"seen": 2}}))
            await store.apply([seen], scope=MINE, writer="tests", if_unchanged=[now])
            assert await get_experience(store, known.id, scope=MINE) == seen.experience

    async def test_of_many_calls_that_learn_a_run_at_once_one_is_kept(self) -> None:
        async with self.opened() as store:
            run = trajectory()
            await store.save_runs([run], scope=MINE)
            refusals: list[str] = []

            async def learn() -> None:
                new = Add(experience=experience(attempts=[attempt(run, "success")]))
                try:
                    await store.apply([new], scope=MINE, writer="tests", if_unlearned=[run.id])
                except Conflict as error:
                    refusals.append(str(error))

            await gather([learn] * 12, limit=12)
            assert len(await collected(store.scan(scope=MINE))) == 1
            assert len(refusals) == 11
            assert all(run.id in refusal for refusal in refusals)

    async def test_a_kept_run_is_read_back_and_never_overwritten(self) -> None:
        async with self.opened() as store:
            run = trajectory()
            assert await store.save_runs([run, run], scope=MINE) == [run.id]
            assert await store.save_runs([run.model_copy(update={"answer": "other"})], scope=MINE) == []
            assert await get_trajectory(store, run.id, scope=MINE) == run

    async def test_a_run_that_waits_takes_what_is_said_of_it_now_and_one_that_was_learned_does_not(self) -> None:
        def saying(**fields: Any) -> Trajectory:
            return run.model_copy(update={"submission": Submission(**fields), "answer": "other"})

        async with self.opened() as store:
            run = trajectory().model_copy(update={"metadata": {"user": "u"}})
            await store.save_runs([run], scope=MINE)
            await store.save_runs([saying(verdict=Verdict(outcome="failure"), recall_id="r1")], scope=MINE)
            await store.save_runs([saying(identity="key:ana")], scope=MINE)
            noted = await get_trajectory(store, run.id, scope=MINE)
            submission = Submission(verdict=Verdict(outcome="failure"), recall_id="r1", identity="key:ana")
            assert noted == run.model_copy(update={"submission": submission})
            assert [
                record.trajectory.id for record in await store.runs(RunFilter(metadata={"user": "u"}), scope=MINE)
            ] == [run.id]
            await added(store, experience(attempts=[attempt(run, "failure")]))
            await store.save_runs([saying(verdict=Verdict(outcome="success"))], scope=MINE)
            assert await get_trajectory(store, run.id, scope=MINE) == noted

    async def test_no_other_writer_changes_how_one_said_that_a_run_that_waits_ended(self) -> None:
        async with self.opened() as store:
            run = trajectory()

            async def read_note(identity: str, verdict: Verdict | None = None) -> tuple[str, Verdict | None]:
                submission = Submission(identity=identity, verdict=verdict)
                await store.save_runs([run.model_copy(update={"submission": submission})], scope=MINE)
                noted = (await get_trajectory(store, run.id, scope=MINE)).submission
                assert noted
                return noted.identity, noted.verdict

            failure = Verdict(outcome="failure", source="ground_truth")
            success = Verdict(outcome="success", source="ground_truth")
            human = Verdict(outcome="success", source="human")
            assert await read_note("key:ana", failure) == ("key:ana", failure)
            assert await read_note("key:ben") == ("key:ana", failure)
            assert await read_note("key:ben", success) == ("key:ana", failure)
            assert await read_note("process:ana@host", success) == ("process:ana@host", success)
            assert await read_note("key:ben", human) == ("key:ben", human)

    async def test_metadata_of_the_caller_say_nothing_to_the_store(self) -> None:
        async with self.opened() as store:
            own: dict[str, Json] = {"unfinished": True, "pending": True, "lessonbank_submitted": {"recall": "r1"}}
            metadata: dict[str, Json] = {**own, "recall_id": "r1", "repeats": {"l": []}, "merged": {"l": ["k"]}}
            waits, learned = (trajectory().model_copy(update={"metadata": own}) for _ in range(2))
            await store.save_runs([waits, learned], scope=MINE, wait=0.0)
            known = experience(attempts=[attempt(learned, "failure")]).model_copy(update={"metadata": metadata})
            await added(store, known)
            assert (await get_run(store, waits.id, scope=MINE)).status == "pending"
            record = await get_run(store, learned.id, scope=MINE)
            assert (record.status, record.recall_id, record.metadata) == ("learned", None, own)
            assert await store.save_runs([waits], scope=MINE) == []
            assert await get_trajectory(store, waits.id, scope=MINE) == waits
            assert await store.runs(RunFilter(status="unfinished"), scope=MINE) == []
            assert [run.trajectory for run in await store.runs(RunFilter(metadata=own), scope=MINE)] == [learned, waits]
            assert await store.lessons(LessonFilter(recall="r1"), scope=MINE) == []
            assert await store.experiences("repeats", ["l"], scope=MINE) == []
            assert [run.id for run in await pending_runs(store, scope=MINE)] == [waits.id]
            assert await get_experience(store, known.id, scope=MINE) == known
            await check_sound(store)

    async def test_a_run_is_pending_until_an_experience_settles_it(self) -> None:
        async with self.opened() as store:
            judged, unsure, marked, alone, replaced = (trajectory() for _ in range(5))
            await store.save_runs([judged, unsure, marked, alone, replaced], scope=MINE)
            last = attempt(replaced, "unknown")
            last = last.model_copy(update={"verdict": last.verdict.model_copy(update={"final": True})})
            await added(store, experience(attempts=[last]))
            assert set(await settled_runs(store, [replaced.id], scope=MINE)) == {replaced.id}
            open_one = experience(attempts=[attempt(unsure, "unknown")])
            marked_one = experience(attempts=[attempt(marked, "failure")], pending=True)
            await added(store, experience(attempts=[attempt(judged, "failure")]), open_one, marked_one)
            ids = [judged.id, unsure.id, marked.id, alone.id, "never seen"]
            assert set(await settled_runs(store, ids, scope=MINE)) == {judged.id}
            assert await pending_runs(store, scope=MINE) == [unsure, marked, alone]
            assert await pending_runs(store, scope=MINE, limit=1) == [unsure]
            known = open_one.model_copy(update={"attempts": (attempt(unsure, "success"),)})
            ready = marked_one.model_copy(update={"pending": False})
            await store.apply([Replace(experience=known), Replace(experience=ready)], scope=MINE, writer="tests")
            assert set(await settled_runs(store, ids, scope=MINE)) == {judged.id, unsure.id, marked.id}
            assert await pending_runs(store, scope=MINE) == [alone]
            await store.apply([Replace(experience=open_one)], scope=MINE, writer="tests")
            assert await pending_runs(store, scope=MINE) == [unsure, alone]

    async def test_of_several_attempts_only_the_undecided_stay_pending(self) -> None:
        async with self.opened() as store:
            sure, unsure = trajectory(), trajectory()
            await store.save_runs([sure, unsure], scope=MINE)
            await added(store, experience(attempts=[attempt(sure, "success"), attempt(unsure, "unknown")]))
            assert await pending_runs(store, scope=MINE) == [unsure]
            assert set(await settled_runs(store, [sure.id, unsure.id], scope=MINE)) == {sure.id}

    async def test_a_run_kept_after_its_experience_is_not_pending(self) -> None:
        async with self.opened() as store:
            run = trajectory()
            await added(store, experience(attempts=[attempt(run, "success")]))
            assert set(await settled_runs(store, [run.id], scope=MINE)) == {run.id}
            await store.save_runs([run], scope=MINE)
            assert await pending_runs(store, scope=MINE) == []

    async def test_the_newest_experience_that_holds_a_run_is_found(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            older, newer = (experience(minute=m, attempts=[attempt(run, "unknown")]) for m in (1, 2))
            await added(store, newer, older, experience(minute=9))
            assert await experience_of_runs(store, [other.id, run.id], scope=MINE) == newer
            assert await experience_of_runs(store, [other.id, "\ud800"], scope=MINE) is None
            assert await experience_of_runs(store, [], scope=MINE) is None
            assert await experience_of_runs(store, [run.id], scope=THEIRS) is None
            moved = newer.model_copy(update={"attempts": ()})
            await store.apply([Replace(experience=moved)], scope=MINE, writer="tests")
            assert await experience_of_runs(store, [run.id], scope=MINE) == older

    async def test_counts_say_how_much_a_scope_holds(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            await store.save_runs([run, other], scope=MINE)
            sample = experience(lessons=(lesson(), lesson(retired=True)), attempts=[attempt(run, "success")])
            await added(store, sample, experience())
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            counts = await count_records(store, scope=MINE)
            assert (counts.experiences, counts.lessons, counts.retired) == (2, 3, 1)
            assert (counts.trajectories, counts.pending) == (2, 1)
            every = await store.count()
            assert list(every) == [THEIRS, MINE]
            assert every == {name: await count_records(store, scope=name) for name in every}

    async def test_the_names_of_scopes_are_told_without_a_count(self) -> None:
        async with self.opened() as store:
            await store.save_runs([trajectory()], scope=MINE)
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            named = await store.count(names_only=True)
            assert list(named) == [THEIRS, MINE]
            assert list(named.values()) == [Counts(), Counts()]
            assert await list_scopes(store) == [THEIRS, MINE]

    async def test_lone_surrogates_do_not_break_a_write(self) -> None:
        async with self.opened() as store:
            run = trajectory().model_copy(update={"answer": "half \ud83d an emoji"})
            odd = lesson().model_copy(update={"content": "x\udfffy", "description": "ok 🙂"})
            torn = experience(lessons=(odd,)).model_copy(update={"metadata": {"k\ud800": ["\ud800"]}})
            await store.save_runs([run], scope=MINE)
            await store.apply([Add(experience=torn)], scope=MINE, writer="\ud800")
            await store.put_setting("\ud800", "\ud801")
            assert (await get_trajectory(store, run.id, scope=MINE)).answer == "half \ufffd an emoji"
            record: Experience = await get_experience(store, torn.id, scope=MINE)
            assert record.lessons[0].content == "x\ufffdy"
            assert record.lessons[0].description == "ok 🙂"
            assert record.metadata == {"k\ufffd": ["\ufffd"]}
            assert [entry.writer for entry in await collected(store.journal(scope=MINE))] == ["\ufffd"]
            with refused(UsageError):
                await store.save_runs([run], scope="\ud800")

    async def test_hostile_text_is_kept_as_it_is(self) -> None:
        async with self.opened() as store:
            text = "'; DROP TABLE lessons; -- \x00 \x1b[2J \u202e \" OR * NEAR( ::"
            odd = experience(f"task {text}", lessons=(lesson(f"title {text}"),))
            await added(store, odd)
            await store.save_runs([trajectory(f"task {text}")], scope=MINE)
            assert await get_experience(store, odd.id, scope=MINE) == odd
            assert [m.experience for m in await store.search(text, scope=MINE, limit=3)] == [odd]
            assert await list_scopes(store) == [MINE]

    async def test_deeply_nested_metadata_can_be_read_back(self) -> None:
        async with self.opened() as store:
            deep: list[object] = []
            for _ in range(230):
                deep = [deep]
            odd = Experience.model_validate({**experience().model_dump(), "metadata": {"deep": deep}})
            await added(store, odd)
            assert await get_experience(store, odd.id, scope=MINE) == odd
            assert len(await collected(store.journal(scope=MINE))) == 1

    async def test_many_tasks_at_once_lose_nothing(self) -> None:
        async with self.opened() as store:
            new = [experience(f"Task number {n}", minute=n) for n in range(40)]

            async def learn(record: Experience) -> None:
                run = trajectory()
                await store.save_runs([run], scope=MINE)
                await added(store, record, along=[towards(0)])
                await store.nearest(towards(0), scope=MINE, space=SPACE, limit=3)
                await store.search(record.task, scope=MINE, limit=3)

            await gather([lambda record=record: learn(record) for record in new], limit=40)
            assert await collected(store.scan(scope=MINE)) == new
            sequences = [entry.sequence for entry in await collected(store.journal(scope=MINE))]
            assert sequences == list(range(1, 41))
            assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=99)).matches) == 40

    async def test_a_closed_store_says_so(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            await store.close()
            await store.close()
            with refused(StoreUnavailable):
                await get_experience(store, known.id, scope=MINE)
            with refused(StoreUnavailable):
                await store.save_runs([trajectory()], scope=MINE)
            with refused(StoreUnavailable):
                await store.save_runs([], scope=MINE)
            with refused(StoreUnavailable):
                await store.apply([], scope=MINE, writer="tests")
            with refused(StoreUnavailable):
                await collected(store.scan(scope=MINE))
            with refused(StoreUnavailable):
                await get_setting(store, "key")
