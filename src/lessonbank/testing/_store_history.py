"""The store contract, third part: the journal, the receipts and what became of them, the settings."""

from __future__ import annotations

from lessonbank.errors import NotFound, UsageError
from lessonbank.types import Add, Candidate, Change, Merge, Recall, Replace, Restore, Retire, Settle

from ._store_samples import MINE, THEIRS, StoreTests, added, collected, experience, item, refused, settlement


def _receipt(*, scope: str = MINE) -> Recall:
    shown = item()
    candidate = Candidate(item_id=shown.id, experience_id="e", score=0.5, rank=1, shown=True, probability=0.1)
    return Recall(scope=scope, task="Cancel it", text="<memory>", items=(shown,), candidates=(candidate,), holdout=0.1)


class HistoryTests(StoreTests):
    """What happened, and what was shown."""

    async def test_the_journal_tells_every_change_in_order(self) -> None:
        async with self.opened() as store:
            one, other, merged = experience(), experience(), experience("Both")
            changes: list[Change] = [
                Add(experience=one),
                Add(experience=other),
                Retire(item_ids=(one.items[0].id,), reason="harmful"),
                Restore(item_ids=(one.items[0].id,), reason="not harmful"),
                Replace(experience=other.model_copy(update={"metadata": {"x": 1}}), reason="seen again"),
                Merge(experience=merged, source_item_ids=(other.items[0].id,), reason="the same"),
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

    async def test_the_journal_can_be_read_from_where_one_left_off(self) -> None:
        async with self.opened() as store:
            await added(store, *[experience() for _ in range(5)])
            await added(store, experience(scope=THEIRS), scope=THEIRS)
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=3)] == [4, 5]
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=5)] == []
            await added(store, experience())
            assert [entry.sequence async for entry in store.journal(scope=MINE, since=5)] == [6]

    async def test_a_receipt_is_kept_without_its_items(self) -> None:
        async with self.opened() as store:
            receipt = _receipt()
            await store.record(receipt)
            assert await store.recall(receipt.id, scope=MINE) == receipt.model_copy(update={"items": ()})
            with refused(NotFound):
                await store.recall(receipt.id, scope=THEIRS)

    async def test_a_receipt_never_changes(self) -> None:
        async with self.opened() as store:
            receipt = _receipt()
            await store.record(receipt)
            await store.record(receipt.model_copy(update={"text": "something else"}))
            assert (await store.recall(receipt.id, scope=MINE)).text == receipt.text

    async def test_receipts_are_listed_oldest_first(self) -> None:
        async with self.opened() as store:
            known = [_receipt() for _ in range(3)]
            for receipt in (known[1], known[0], known[2]):
                await store.record(receipt)
            await store.record(_receipt(scope=THEIRS))
            listed = await collected(store.receipts(scope=MINE))
            assert listed == [receipt.model_copy(update={"items": ()}) for receipt in known]

    async def test_the_latest_settlement_counts_and_the_journal_has_all(self) -> None:
        async with self.opened() as store:
            receipt, other = _receipt(), _receipt()
            await store.record(receipt)
            await store.record(other)
            assert await store.settlement(receipt.id, scope=MINE) is None
            first, second = settlement(receipt, outcome="unknown"), settlement(receipt, outcome="failure")
            new = experience()
            entries = await store.apply([Add(experience=new)], scope=MINE, writer="learn", settlement=first)
            assert [entry.entry for entry in entries] == [Add(experience=new), Settle(settlement=first)]
            assert await store.settlement(receipt.id, scope=MINE) == first
            await store.apply([], scope=MINE, writer="ana", settlement=second)
            assert await store.settlement(receipt.id, scope=MINE) == second
            kinds = [entry.entry.kind for entry in await collected(store.journal(scope=MINE))]
            assert kinds == ["add", "settle", "settle"]
            counts = await store.counts(scope=MINE)
            assert (counts.recalls, counts.settled) == (2, 1)

    async def test_a_settlement_of_nothing_or_of_another_scope_is_refused_with_its_changes(self) -> None:
        async with self.opened() as store:
            receipt = _receipt(scope=THEIRS)
            await store.record(receipt)
            with refused(NotFound):
                await store.apply(
                    [Add(experience=experience())], scope=MINE, writer="tests", settlement=settlement(receipt)
                )
            with refused(UsageError):
                await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipt, scope=THEIRS))
            assert (await store.counts(scope=MINE)).experiences == 0
            assert await collected(store.journal(scope=MINE)) == []

    async def test_a_setting_is_kept_until_it_is_set_again(self) -> None:
        async with self.opened() as store:
            assert await store.setting("embedder") is None
            await store.set_setting("embedder", "hashing")
            await store.set_setting("embedder", "local")
            assert await store.setting("embedder") == "local"
            assert await store.scopes() == []
