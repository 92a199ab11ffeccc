"""The store contract, fifth part: what is erased is nowhere any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.contracts.records import (
    Add,
    Administer,
    Candidate,
    Erased,
    Erasure,
    Experience,
    Lesson,
    Merge,
    Outcome,
    Provenance,
    Purge,
    Recall,
    Replace,
    Retire,
    Rollback,
    Settlement,
    Trajectory,
    notes_of,
)
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.settings import keys_of
from lessonbank.contracts.records.timeline import state_at
from lessonbank.contracts.store_calls import (
    count_records,
    every_recall,
    forget,
    get_experience,
    get_recall,
    get_run,
    get_trajectory,
    list_recalls,
    pending_runs,
    purge_one,
    settled_runs,
    settlement_of,
)
from lessonbank.errors import Conflict, NotFound, StoreUnavailable, UsageError

from .store_samples import (
    MINE,
    SPACE,
    START,
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

SECRET = "Jacaranda"
"""Stands in every text that a purge has to find."""


def lesson_from(*runs: Trajectory, title: str = "Check the status first") -> Lesson:
    """A lesson drawn from these runs."""
    return lesson(title).model_copy(update={"provenance": Provenance(trajectory_ids=tuple(r.id for r in runs))})


def tried(*runs: Trajectory, lessons: tuple[Lesson, ...], outcome: Outcome = "success") -> Experience:
    """The experience of these runs of one task."""
    return experience(runs[0].task, lessons=lessons, attempts=[attempt(run, outcome) for run in runs])


async def save_recall_of(store: Store, *lessons: Lesson, task: str = "Cancel it", text: str = "<memory>") -> Recall:
    """A kept receipt that showed these lessons."""
    candidates = tuple(
        Candidate(lesson_id=i.id, experience_id="e", score=0.5, rank=n, shown=True) for n, i in enumerate(lessons)
    )
    recall = Recall(scope=MINE, task=task, text=text, text_digest=digest(text), candidates=candidates)
    await store.save_recall(recall)
    return recall


async def asked(store: Store, who: str, /) -> Recall:
    """A kept receipt of a task of somebody's."""
    recall = Recall(scope=MINE, task=f"A task of {who}", text=f"<{who}>", notes=notes_of(who), metadata={"user": who})
    await store.save_recall(recall)
    return recall


async def everything(store: Store, *, scope: str = MINE) -> str:
    """All that a scope can be asked for, past and present, as one text."""
    records: list[Any] = [
        *await collected(store.scan(scope=scope)),
        *await collected(store.journal(scope=scope)),
        *await collected(every_recall(store, scope=scope)),
        *await pending_runs(store, scope=scope),
        *await store.runs(RunFilter(limit=1000), scope=scope),
        *[
            s
            for r in await collected(every_recall(store, scope=scope))
            if (s := await settlement_of(store, r.id, scope=scope))
        ],
    ]
    return "\n".join(record.model_dump_json() for record in records)


async def lived_in(store: Store) -> tuple[Trajectory, Experience, Experience, Recall]:
    """A bank with a run that must go: alone in one experience, merged into another, shown, settled, rolled back."""
    run, other = trajectory(f"Move {SECRET} to Oslo", answer=SECRET), trajectory()
    await store.save_runs([run, other], scope=MINE)
    secret = lesson_from(run, title=f"{SECRET} likes it so")
    theirs = lesson_from(other)
    mine = tried(run, lessons=(secret,))
    survivor = tried(other, lessons=(theirs, lesson_from(other, run, title=f"Both, and {SECRET}")))
    await added(store, mine, survivor, along=[towards(0), towards(1)])
    recall = await save_recall_of(store, secret, theirs, task=run.task, text=f"<{SECRET}>")
    settled = Settlement(
        recall_id=recall.id, scope=MINE, outcome="success", trajectory_ids=(run.id,), experience_id=mine.id
    )
    await store.apply([], scope=MINE, writer="tests", settlement=settled)
    merged = experience(f"Of {SECRET}", lessons=(lesson(f"{SECRET} and all"),))
    merge = Merge(experience=merged, source_lesson_ids=(secret.id, theirs.id), reason=f"{SECRET} twice")
    await store.apply([merge], scope=MINE, writer="tests")
    earlier = await get_experience(store, survivor.id, scope=MINE)
    longer = earlier.model_copy(update={"lessons": (*earlier.lessons, lesson_from(run, title=SECRET))})
    await store.apply([Replace(experience=longer, reason=f"{SECRET} again")], scope=MINE, writer="tests")
    await store.apply([Rollback(to=3, reason="test")], scope=MINE, writer="tests")
    await store.apply([Rollback(to=5, reason="test")], scope=MINE, writer="tests")
    return run, mine, survivor, recall


class PurgingTests(StoreTests):
    """True erasure."""

    async def test_a_purged_run_is_gone_with_all_that_was_made_of_it(self) -> None:
        async with self.opened() as store:
            run, mine, survivor, recall = await lived_in(store)
            assert SECRET in await everything(store)
            length = len(await collected(store.journal(scope=MINE)))
            entry = await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            tombstone = entry.entry
            assert isinstance(tombstone, Purge)
            assert (tombstone.what, tombstone.digest, tombstone.reason) == ("trajectory", digest(run.id), "asked to")
            assert (tombstone.experiences, tombstone.trajectories, tombstone.recalls) == (2, 1, 1)
            assert (entry.sequence, entry.writer) == (length + 1, "ana")
            text = await everything(store)
            assert SECRET not in text
            assert run.id not in text
            with refused(NotFound):
                await get_trajectory(store, run.id, scope=MINE)
            left = await get_experience(store, survivor.id, scope=MINE)
            assert [i.title for i in left.lessons] == ["Check the status first"]
            assert left.lessons[0].retired, "what a merge retired must not come back because the merge was erased"
            assert (await get_recall(store, recall.id, scope=MINE)).candidates == recall.candidates
            with refused(NotFound):
                await get_experience(store, mine.id, scope=MINE)
            assert await store.search(SECRET, scope=MINE, limit=9) == []
            await check_sound(store)
            with refused(NotFound):
                await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="again")

    async def test_after_a_purge_the_journal_still_tells_the_state_and_can_be_rolled_back(self) -> None:
        async with self.opened() as store:
            run, *_ = await lived_in(store)
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            entries = await collected(store.journal(scope=MINE))
            assert [e.sequence for e in entries] == list(range(1, len(entries) + 1))
            assert any(isinstance(e.entry, Erased) for e in entries)
            for to in (len(entries), 2, 0, 5, 4, len(entries)):
                await store.apply([Rollback(to=to, reason="test")], scope=MINE, writer="tests")
                wanted = state_at(await collected(store.journal(scope=MINE)), to, scope=MINE)
                assert await collected(store.scan(scope=MINE)) == list(wanted.experiences)
                assert SECRET not in await everything(store)
                await check_sound(store)

    async def test_a_purged_run_that_a_rollback_had_taken_out_is_gone_too(self) -> None:
        async with self.opened() as store:
            run, *_ = await lived_in(store)
            await store.apply([Rollback(to=0, reason="test")], scope=MINE, writer="tests")
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            await store.apply([Rollback(to=7, reason="test")], scope=MINE, writer="tests")
            assert len(await collected(store.scan(scope=MINE))) == 1
            assert SECRET not in await everything(store)
            await check_sound(store)

    async def test_a_purged_lesson_leaves_its_neighbours(self) -> None:
        async with self.opened() as store:
            secret, plain = lesson(SECRET), lesson("plain")
            known = experience(lessons=(secret, plain))
            await added(store, known, along=[towards(0)])
            receipts = [
                await save_recall_of(store, secret, text=SECRET),
                await save_recall_of(store, plain, text="other"),
            ]
            await store.apply([Retire(lesson_ids=(secret.id,), reason=SECRET)], scope=MINE, writer="tests")
            await purge_one(store, "lesson", secret.id, scope=MINE, writer="ana", reason="asked to")
            assert (await get_experience(store, known.id, scope=MINE)).lessons == (plain,)
            assert [(await get_recall(store, r.id, scope=MINE)).text for r in receipts] == ["", "other"]
            assert [m.experience.id for m in await store.search(known.task, scope=MINE, limit=9)] == [known.id]
            assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches) == 1
            assert SECRET not in await everything(store)
            await check_sound(store)
            with refused(NotFound):
                await purge_one(store, "lesson", secret.id, scope=MINE, writer="ana", reason="again")
            with refused(NotFound):
                await purge_one(store, "lesson", plain.id, scope=THEIRS, writer="ana", reason="elsewhere")

    async def test_a_purged_recall_goes_with_its_settlement_and_nothing_else_does(self) -> None:
        async with self.opened() as store:
            recall, other = await asked(store, SECRET), await asked(store, "Cancel it")
            run, survivor = trajectory(), lesson()
            await store.save_runs([run], scope=MINE)
            known = tried(run, lessons=(survivor,)).model_copy(update={"recall_id": recall.id})
            await added(store, known)
            for receipt in (recall, other):
                done = Settlement(recall_id=receipt.id, scope=MINE, outcome="success", trajectory_ids=(run.id,))
                await store.apply([], scope=MINE, writer="tests", settlement=done)
            assert SECRET in await everything(store)
            entry = await purge_one(store, "recall", recall.id, scope=MINE, writer="ana", reason="asked to")
            assert isinstance(tombstone := entry.entry, Purge)
            assert (tombstone.what, tombstone.digest, tombstone.recalls) == ("recall", digest(recall.id), 1)
            assert (tombstone.experiences, tombstone.lessons, tombstone.trajectories) == (0, 0, 0)
            text = await everything(store)
            assert SECRET not in text
            assert recall.id not in text
            assert [r.id for r in await list_recalls(store, RecallFilter(), scope=MINE)] == [other.id]
            assert await list_recalls(store, RecallFilter(metadata={"user": SECRET}), scope=MINE) == []
            assert await settlement_of(store, recall.id, scope=MINE) is None
            assert (await count_records(store, scope=MINE)).recalls_with_a_run == 1
            assert (await get_experience(store, known.id, scope=MINE)).lessons == (survivor,)
            assert (await get_run(store, run.id, scope=MINE)).status == "learned"
            await check_sound(store)
            for id in (recall.id, "nothing"):
                with refused(NotFound):
                    await purge_one(store, "recall", id, scope=MINE, writer="ana", reason="again")
            with refused(NotFound):
                await purge_one(store, "recall", other.id, scope=THEIRS, writer="ana", reason="elsewhere")

    async def test_many_are_purged_together_or_none_is(self) -> None:
        async with self.opened() as store:
            run, *_ = await lived_in(store)
            recall = await asked(store, SECRET)
            before = await everything(store)
            with refused(NotFound):
                these: list[tuple[Erasure, str]] = [("trajectory", run.id), ("recall", "nothing")]
                await store.purge(these, scope=MINE, writer="ana", reason="asked to")
            with refused(UsageError):
                await store.purge([("scope", ""), ("recall", recall.id)], scope=MINE, writer="ana", reason="asked to")
            with refused(UsageError):
                await store.purge(
                    [("scope", "")], scope=MINE, writer="ana", reason="no", changes=[Rollback(to=1, reason="no")]
                )
            assert await everything(store) == before
            these = [("trajectory", run.id), ("recall", recall.id), ("recall", recall.id)]
            entries = await store.purge(these, scope=MINE, writer="ana", reason="asked to")
            assert [e.entry.kind for e in entries] == ["purge", "purge"]
            assert SECRET not in await everything(store)
            assert await store.purge([], scope=MINE, writer="ana", reason="asked to") == []
            await check_sound(store)

    async def test_what_lives_on_is_written_with_the_purge_or_nothing_is(self) -> None:
        async with self.opened() as store:
            run, *_ = await lived_in(store)
            stays = experience("Ship the parcel", lessons=())
            await added(store, stays)
            heir = stays.model_copy(update={"lessons": (lesson("It lives on"),)})
            arguments = {"changes": [Replace(experience=heir)], "if_unchanged": [stays]}
            before = await everything(store)
            for these, error in (([("trajectory", "nothing")], NotFound), ([("trajectory", run.id)], Conflict)):
                asked = arguments if error is NotFound else arguments | {"if_unchanged": [heir]}
                with refused(error):
                    await store.purge(these, scope=MINE, writer="ana", reason="asked to", **asked)  # type: ignore[arg-type]
                assert await everything(store) == before
            entries = await store.purge([("trajectory", run.id)], scope=MINE, writer="ana", reason="ask", **arguments)  # type: ignore[arg-type]
            assert [e.entry.kind for e in entries] == ["purge"]
            assert await get_experience(store, stays.id, scope=MINE) == heir
            assert [e.entry.kind for e in await collected(store.journal(scope=MINE))][-2:] == ["replace", "purge"]
            assert SECRET not in await everything(store)
            await check_sound(store)

    async def test_runs_lose_what_memory_showed_to_them_of_a_purged_lesson(self) -> None:
        async with self.opened() as store:
            secret, stays = lesson(SECRET), lesson("Check the status first")
            await added(store, experience(lessons=(secret,)), experience("Ship it", lessons=(stays,)))
            shown_text = f'Notes.\n8742e352| [1] {SECRET} "likes" it\n8742e352|   so\n'
            await save_recall_of(store, secret, stays, text=shown_text)
            await save_recall_of(store, secret, text=f"Without a code: {SECRET}")
            other = "Notes.\n8742e353| [1] Check the status first\n"
            await save_recall_of(store, stays, text=other)
            plain = trajectory("Plain", answer="8742e352 is a number")
            with_code = trajectory("Quoted", answer=f"> {shown_text}Done. {other}")
            copied = f"It said: Without a code: {SECRET}. Done."
            without = Trajectory(task="Copied", answer=copied, metadata={"prompt": copied})
            await store.save_runs([plain, with_code, without], scope=MINE)
            await purge_one(store, "lesson", secret.id, scope=MINE, writer="ana", reason="asked to")
            assert SECRET not in await everything(store)
            answers = [(await get_trajectory(store, run.id, scope=MINE)).answer for run in (plain, with_code, without)]
            assert answers == [
                plain.answer,
                f"> Notes.\n8742e352| [erased]\n8742e352| [erased]\nDone. {other}",
                "It said: [erased]. Done.",
            ]
            wanted = RunFilter(metadata={"prompt": "It said: [erased]. Done."})
            assert [run.trajectory.task for run in await store.runs(wanted, scope=MINE)] == ["Copied"]
            await check_sound(store)

    async def test_what_went_with_a_record_is_no_unknown_one_of_the_same_purge(self) -> None:
        async with self.opened() as store:
            run, drawn, other = trajectory("t"), lesson("drawn"), lesson("other")
            drawn = drawn.model_copy(update={"provenance": Provenance(trajectory_ids=(run.id,))})
            await store.save_runs([run], scope=MINE)
            await added(store, experience(lessons=(drawn,), attempts=[attempt(run, "failure")]))
            await added(store, experience("u", lessons=(other,)))
            merged = lesson("merged")
            change = Merge(experience=experience("v", lessons=(merged,)), source_lesson_ids=(other.id,), reason="one")
            await store.apply([change], scope=MINE, writer="tests")
            erasures: list[tuple[Erasure, str]] = [("lesson", record.id) for record in (drawn, other, merged)]
            these: list[tuple[Erasure, str]] = [("trajectory", run.id), *erasures]
            entries = await store.purge(these, scope=MINE, writer="ana", reason="asked to")
            assert len(entries) == 2
            assert (await count_records(store, scope=MINE)).lessons == 0
            await check_sound(store)

    async def test_what_is_too_old_is_forgotten_and_its_evidence_stays(self) -> None:
        async with self.opened() as store:
            run, survivor = trajectory(f"Task of {SECRET}", answer=SECRET), lesson()
            await store.save_runs([run, Trajectory(task=SECRET, metadata={"user": SECRET})], scope=MINE)
            known = experience(lessons=(survivor,), attempts=[attempt(run, "success")])
            await added(store, known)
            receipts = [await asked(store, SECRET) for _ in range(3)]
            for recall in receipts[:2]:
                done = Settlement(recall_id=recall.id, scope=MINE, outcome="success", trajectory_ids=(run.id,))
                await store.apply([], scope=MINE, writer="tests", settlement=done)
            nothing = await forget(store, scope=MINE, before=START, writer="retention")
            assert (nothing.runs, nothing.recalls) == (0, 0)
            assert SECRET in await everything(store)
            end = START + timedelta(days=36_500)
            entry = await forget(store, scope=MINE, before=end, writer="retention")
            assert (entry.runs, entry.recalls) == (2, 3)
            assert SECRET not in await everything(store)
            assert await store.runs(RunFilter(), scope=MINE) == []
            recalls = await list_recalls(store, RecallFilter(), scope=MINE)
            assert {recall.id for recall in recalls} == {recall.id for recall in receipts[:2]}
            assert recalls[0].task == recalls[1].task
            assert (await settlement_of(store, receipts[0].id, scope=MINE)) is not None
            assert await collected(store.scan(scope=MINE)) == [known]
            assert await settled_runs(store, [run.id], scope=MINE) == {run.id}
            last = (await collected(store.journal(scope=MINE)))[-1]
            assert (last.entry, last.writer) == (entry, "retention")
            assert (await forget(store, scope=MINE, before=end, writer="retention")).recalls == 0
            await check_sound(store)

    async def test_a_purged_scope_is_empty_and_goes_on(self) -> None:
        async with self.opened() as store:
            await lived_in(store)
            theirs = experience(scope=THEIRS)
            await added(store, theirs, scope=THEIRS, along=[towards(0)])
            length = len(await collected(store.journal(scope=MINE)))
            await purge_one(store, "scope", "", scope=MINE, writer="ana", reason="asked to")
            text = await everything(store)
            assert SECRET not in text
            assert "Check the status" not in text
            counts = await count_records(store, scope=MINE)
            assert not any(counts.model_dump(exclude={"changes"}).values())
            entries = await collected(store.journal(scope=MINE))
            assert [e.entry.kind for e in entries] == ["erased"] * length + ["purge"]
            assert await collected(store.scan(scope=THEIRS)) == [theirs]
            assert len((await store.nearest(towards(0), scope=THEIRS, space=SPACE, limit=9)).matches) == 1
            new = experience()
            await store.apply(
                [Add(experience=new)], scope=MINE, writer="tests", vectors={new.id: towards(0)}, space=SPACE
            )
            assert [
                m.experience for m in (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches
            ] == [new]
            await store.apply([Rollback(to=length, reason="test")], scope=MINE, writer="tests")
            assert await collected(store.scan(scope=MINE)) == []
            await check_sound(store)

    async def test_the_settings_of_a_purged_scope_go_with_it_and_no_others_do(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            for key in ("embedder", *keys_of(MINE), *keys_of(THEIRS)):
                await store.put_setting(key, SECRET)
            await purge_one(store, "lesson", known.lessons[0].id, scope=MINE, writer="ana", reason="asked to")
            made_again = keys_of(MINE, derived=True)
            left = set(await store.settings(""))
            assert left.isdisjoint(made_again)
            assert left >= {"embedder", *keys_of(THEIRS), *(set(keys_of(MINE)) - set(made_again))}
            await purge_one(store, "scope", "", scope=MINE, writer="ana", reason="asked to")
            left = set(await store.settings(""))
            assert [key for key in left if key.endswith(MINE)] == []
            assert left >= {"embedder", *keys_of(THEIRS)}

    async def test_who_administered_a_scope_is_told_after_it_was_purged(self) -> None:
        async with self.opened() as store:
            await added(store, experience(), scope=MINE)
            act = Administer(act="admin.export", subject="3 records", by="process:ana@here")
            await store.apply([act], scope=MINE, writer="ana")
            await purge_one(store, "scope", "", scope=MINE, writer="ana", reason=f"it held {SECRET}")
            await purge_one(store, "scope", "", scope=MINE, writer="ben", reason="again")
            entries = await collected(store.journal(scope=MINE))
            assert [e.entry.kind for e in entries] == ["erased", "admin", "purge", "purge"]
            assert (entries[1].entry, entries[1].writer) == (act, "ana")
            assert [getattr(e.entry, "reason", "") for e in entries[2:]] == ["purged", "again"]
            assert SECRET not in await everything(store)
            await check_sound(store)

    async def test_a_closed_store_erases_nothing(self) -> None:
        async with self.opened() as store:
            await store.close()
            with refused(StoreUnavailable):
                await purge_one(store, "scope", "", scope=MINE, writer="ana", reason="late")
