"""The store contract, third part: the journal, the receipts and what became of them, the settings."""

from __future__ import annotations

from datetime import timedelta

from lessonbank.contracts.ports import RECEIPT_SECRET, RecallFilter, SavedRecall
from lessonbank.contracts.records import (
    Add,
    Audit,
    Candidate,
    Change,
    Erased,
    Erasure,
    Experience,
    Merge,
    Outcome,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Settle,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.store_calls import (
    count_records,
    every_recall,
    every_saved_recall,
    get_experience,
    get_recall,
    get_setting,
    list_recalls,
    list_scopes,
    pending_runs,
    purge_one,
    settlement_of,
)
from lessonbank.errors import NotFound, UsageError

from .store_rewinding import as_of, wind
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
    settlement,
    towards,
    trajectory,
)


def _receipt(*, scope: str = MINE) -> Recall:
    shown = lesson()
    candidate = Candidate(lesson_id=shown.id, experience_id="e", score=0.5, rank=1, shown=True, probability=0.1)
    return Recall(
        scope=scope, task="Cancel it", text="<memory>", lessons=(shown,), candidates=(candidate,), holdout=0.1
    )


def _rejudge(of: Experience, run: Trajectory, outcome: Outcome) -> Rejudge:
    truth = Verdict(outcome=outcome, source="human", reason="It was seen.")
    return Rejudge(experience_id=of.id, trajectory_id=run.id, verdict=truth, reason="told later")


class HistoryTests(StoreTests):
    """What happened, and what was shown."""

    async def test_the_journal_tells_every_change_in_order(self) -> None:
        async with self.opened() as store:
            sample, other, merged = experience(), experience(), experience("Both")
            changes: list[Change] = [
                Add(experience=sample),
                Add(experience=other),
                Retire(lesson_ids=(sample.lessons[0].id,), reason="harmful"),
                Restore(lesson_ids=(sample.lessons[0].id,), reason="not harmful"),
                Replace(experience=other.model_copy(update={"metadata": {"x": 1}}), reason="seen again"),
                Merge(experience=merged, source_lesson_ids=(other.lessons[0].id,), reason="the same"),
            ]
            first = await store.apply(changes[:2], scope=MINE, writer="learn")
            second = await store.apply(changes[2:], scope=MINE, writer="ana")
            entries = await collected(store.journal(scope=MINE))
            assert entries == [*first, *second]
            assert [entry.entry for entry in entries] == changes
            assert [entry.sequence for entry in entries] == [1, 2, 3, 4, 5, 6]
            assert [entry.writer for entry in entries] == ["learn"] * 2 + ["ana"] * 4
            assert all(entry.scope == MINE and entry.at.utcoffset() is not None for entry in entries)
            assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)

    async def test_a_verdict_told_later_is_a_change_of_its_own_that_a_rollback_undoes(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            await store.save_runs([run, other], scope=MINE)
            known = experience(attempts=[attempt(run, "unknown"), attempt(other, "success")])
            await added(store, known, along=[towards(0)])
            change = _rejudge(known, run, "failure")
            (entry,) = await store.apply([change], scope=MINE, writer="ana")
            assert (entry.entry, entry.entry.kind, entry.sequence) == (change, "verdict", 2)
            revision = await get_experience(store, known.id, scope=MINE)
            assert [a.verdict.outcome for a in revision.attempts] == ["failure", "success"]
            assert revision.attempts[0].verdict == change.verdict
            assert revision.model_copy(update={"attempts": known.attempts}) == known, "nothing else of it changed"
            assert await pending_runs(store, scope=MINE) == []
            assert await store.unindexed(scope=MINE, space=SPACE, limit=9) == []
            assert (await as_of(store, 1)).experiences == (known,)
            assert (await as_of(store, 2)).experiences == (revision,)
            await wind(store, 1)
            assert await get_experience(store, known.id, scope=MINE) == known
            assert await pending_runs(store, scope=MINE) == [run]
            await wind(store, 2)
            assert await get_experience(store, known.id, scope=MINE) == revision
            await check_sound(store)

    async def test_a_verdict_on_an_attempt_that_is_not_there_is_refused_with_its_batch(self) -> None:
        async with self.opened() as store:
            run, stranger = trajectory(), trajectory()
            known, new = experience(attempts=[attempt(run, "success")]), experience(attempts=[attempt(run, "success")])
            await added(store, known)
            good: list[Change] = [
                Add(experience=new),
                _rejudge(new, run, "failure"),
                Retire(lesson_ids=(new.lessons[0].id,), reason="?"),
            ]
            for wrong in (_rejudge(known, stranger, "failure"), _rejudge(experience(), run, "failure")):
                with refused(NotFound):
                    await store.apply([*good, wrong], scope=MINE, writer="tests")
            assert await collected(store.scan(scope=MINE)) == [known]
            await store.apply(good, scope=MINE, writer="tests")
            left = await get_experience(store, new.id, scope=MINE)
            assert (left.attempts[0].verdict.outcome, left.lessons[0].retired) == ("failure", True)

    async def test_a_purge_takes_the_verdicts_on_what_it_erases(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            await store.save_runs([run, other], scope=MINE)
            both = experience(attempts=[attempt(run, "unknown"), attempt(other, "unknown")])
            await added(store, both)
            changes = [_rejudge(both, run, "failure"), _rejudge(both, other, "success")]
            await store.apply(changes, scope=MINE, writer="tests")
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            entries = await collected(store.journal(scope=MINE))
            assert [entry.entry for entry in entries[1:3]] == [Erased(by=4), changes[1]]
            for sequence in (1, 3, 4):
                await wind(store, sequence)
                wanted = await as_of(store, sequence)
                assert await collected(store.scan(scope=MINE)) == list(wanted.experiences)
            assert [a.trajectory_id for a in (await get_experience(store, both.id, scope=MINE)).attempts] == [other.id]
            await check_sound(store)

    async def test_the_journal_can_be_read_from_where_one_left_off(self) -> None:
        async with self.opened() as store:
            await added(store, *[experience() for _ in range(5)])
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=3)] == [4, 5]
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=5)] == []
            await added(store, experience())
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=5)] == [6]

    async def test_the_journal_can_be_read_for_some_kinds_of_entries_alone(self) -> None:
        sample = experience()
        async with self.opened() as store:
            await added(store, sample)
            await store.apply([Retire(lesson_ids=(sample.lessons[0].id,), reason="old")], scope=MINE, writer="ana")
            await added(store, experience())
            wanted: list[tuple[set[str], list[int]]] = [
                ({"retire"}, [2]),
                ({"add"}, [1, 3]),
                ({"add", "retire"}, [1, 2, 3]),
                ({"merge"}, []),
                (set[str](), []),
            ]
            for kinds, sequences in wanted:
                assert [e.sequence async for e in store.journal(scope=MINE, kinds=kinds)] == sequences
            assert [e.sequence async for e in store.journal(scope=MINE, since=1, kinds={"add"})] == [3]

    async def test_a_journal_that_is_read_for_some_ids_leaves_none_of_their_entries_out(self) -> None:
        plain, odd = experience(), experience().model_copy(update={"id": 'an "odd" id \u00e9'})
        async with self.opened() as store:
            await added(store, plain, odd, *[experience() for _ in range(5)])
            await store.apply([Retire(lesson_ids=(plain.lessons[0].id,), reason="old")], scope=MINE, writer="ana")
            for id, least in ((plain.id, {1}), (plain.lessons[0].id, {1, 8}), (odd.id, {2})):
                sequences = [entry.sequence async for entry in store.journal(scope=MINE, naming=[id])]
                assert least <= set(sequences)
                assert sequences == sorted(sequences)

    async def test_a_receipt_is_kept_without_its_lessons(self) -> None:
        async with self.opened() as store:
            receipt = _receipt()
            await store.save_recall(receipt)
            assert await get_recall(store, receipt.id, scope=MINE) == receipt.model_copy(update={"lessons": ()})
            with refused(NotFound):
                await get_recall(store, receipt.id, scope=THEIRS)

    async def test_a_receipt_never_changes(self) -> None:
        async with self.opened() as store:
            receipt = _receipt()
            await store.save_recall(receipt)
            await store.save_recall(receipt.model_copy(update={"text": "something else"}))
            assert (await get_recall(store, receipt.id, scope=MINE)).text == receipt.text

    async def test_receipts_are_listed_oldest_first(self) -> None:
        async with self.opened() as store:
            known = [_receipt() for _ in range(3)]
            for receipt in (known[1], known[0], known[2]):
                await store.save_recall(receipt)
            await store.save_recall(_receipt(scope=THEIRS))
            listed = await collected(every_recall(store, scope=MINE))
            assert listed == [receipt.model_copy(update={"lessons": ()}) for receipt in known]

    async def test_what_is_erased_while_all_recalls_are_read_ends_nothing(self) -> None:
        async with self.opened() as store:
            known = [_receipt().model_copy(update={"created_at": START + timedelta(n // 3)}) for n in range(210)]
            for receipt in known:
                await store.save_recall(receipt)
            done = settlement(known[-1])
            await store.apply([], scope=MINE, writer="learn", settlement=done)
            every, given = every_saved_recall(store, scope=MINE, settlements=True), list[SavedRecall]()
            async for record in every:
                given.append(record)
                if len(given) == 200:  # the last of a page, one of its moment stays
                    erasures: list[tuple[Erasure, str]] = [("recall", receipt.id) for receipt in known[199:201]]
                    await store.purge(erasures, scope=MINE, writer="ana", reason="asked to")
            assert [record.recall.id for record in given] == [r.id for r in (*known[:200], *known[201:])]
            assert [record.settlement for record in given] == [None] * 208 + [done]
            late = RecallFilter(since=START + timedelta(68), oldest_first=True)
            assert [r.id for r in await list_recalls(store, late, scope=MINE)] == [r.id for r in known[204:]]

    async def test_the_latest_settlement_counts_and_the_journal_has_all(self) -> None:
        async with self.opened() as store:
            receipt, other = _receipt(), _receipt()
            await store.save_recall(receipt)
            await store.save_recall(other)
            assert await settlement_of(store, receipt.id, scope=MINE) is None
            first, second = settlement(receipt, outcome="unknown"), settlement(receipt, outcome="failure")
            new = experience()
            entries = await store.apply([Add(experience=new)], scope=MINE, writer="learn", settlement=first)
            assert [entry.entry for entry in entries] == [Add(experience=new), Settle(settlement=first)]
            assert await settlement_of(store, receipt.id, scope=MINE) == first
            await store.apply([], scope=MINE, writer="ana", settlement=second)
            assert await settlement_of(store, receipt.id, scope=MINE) == second
            kinds = [entry.entry.kind for entry in await collected(store.journal(scope=MINE))]
            assert kinds == ["add", "settle", "settle"]
            counts = await count_records(store, scope=MINE)
            assert (counts.recalls, counts.recalls_with_a_run, counts.changes) == (2, 1, 3)

    async def test_a_settlement_of_nothing_or_of_another_scope_is_refused_with_its_changes(self) -> None:
        async with self.opened() as store:
            receipt = _receipt(scope=THEIRS)
            await store.save_recall(receipt)
            with refused(NotFound):
                await store.apply(
                    [Add(experience=experience())], scope=MINE, writer="tests", settlement=settlement(receipt)
                )
            with refused(UsageError):
                await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipt, scope=THEIRS))
            assert (await count_records(store, scope=MINE)).experiences == 0
            assert await collected(store.journal(scope=MINE)) == []

    async def test_an_audit_is_written_down_and_changes_nothing(self) -> None:
        async with self.opened() as store:
            await store.apply([Add(experience=experience(task="first"))], scope=MINE, writer="tests")
            before = await collected(store.scan(scope=MINE))
            audit = Audit(seed="a", odds=0.25, by="Ana")
            (entry,) = await store.apply([audit], scope=MINE, writer="tests")
            assert (entry.entry, await collected(store.scan(scope=MINE))) == (audit, before)
            assert await collected(store.journal(scope=MINE, kinds=("audit",))) == [entry]
            await check_sound(store)

    async def test_a_setting_is_kept_until_it_is_set_again(self) -> None:
        async with self.opened() as store:
            assert await get_setting(store, "embedder") is None
            await store.put_setting("embedder", "hashing")
            await store.put_setting("embedder", "local")
            assert await get_setting(store, "embedder") == "local"
            assert await list_scopes(store) == []

    async def test_settings_are_found_by_the_beginning_of_their_name_and_removed(self) -> None:
        async with self.opened() as store:
            for name in ("writer/b", "writer/a%", "write", "Writer/c", "other"):
                await store.put_setting(name, name.upper())
            assert dict(await store.settings("writer/")) == {"writer/a%": "WRITER/A%", "writer/b": "WRITER/B"}
            assert list(await store.settings("writer/")) == ["writer/a%", "writer/b"]
            await store.put_setting("writer/b", None)
            await store.put_setting("writer/none", None)
            every = [name for name in await store.settings("") if name != RECEIPT_SECRET]
            assert every == ["Writer/c", "other", "write", "writer/a%"]
            assert await get_setting(store, "writer/b") is None
