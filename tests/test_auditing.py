"""The records of a bank are what its journal makes of them; where they are not, the experience is named."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import ClassVar

import pytest

import lessonbank
from lessonbank import Experience, Lesson, Step, Trajectory
from lessonbank.bank.views import journal_check
from lessonbank.bank.views.journal_check import Packed, differences
from lessonbank.contracts.records import (
    Add,
    Change,
    JournalEntry,
    Merge,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    Verdict,
)
from lessonbank.contracts.store_calls import count_records, purge_one
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import attempt, experience, lesson, trajectory

pytestmark = pytest.mark.anyio
T = "acme/support"
Edit = Callable[[list[Experience]], Iterable[Experience]]


class Edited(SqliteStore):
    """A store whose records somebody changed behind its back."""

    edit: Edit = staticmethod(lambda records: records)

    async def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        for record in self.edit([e async for e in super().scan(scope=scope)]):
            yield record


def with_lessons(one: Experience, *lessons: Lesson) -> Experience:
    return one.model_copy(update={"lessons": lessons})


def flipped(one: Experience) -> Experience:
    return with_lessons(one, *(i.model_copy(update={"retired": not i.retired}) for i in one.lessons))


def said(one: Experience) -> Experience:
    refs = (a.model_copy(update={"verdict": Verdict(outcome="success")}) for a in one.attempts)
    return one.model_copy(update={"attempts": tuple(refs)})


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda r: [r[0].model_copy(update={"task": "another"}), *r[1:]], "its record is not what the journal makes"),
        (lambda r: [with_lessons(r[0]), *r[1:]], "its record is not what the journal makes"),
        (lambda r: [flipped(r[0]), *r[1:]], "disagree on whether"),
        (lambda r: [said(r[0]), *r[1:]], "disagree on a verdict"),
        (lambda r: r[1:], "the journal has it, the records have not"),
    ],
    ids=["task", "lessons", "retired", "verdict", "missing"],
)
async def test_a_record_edited_behind_the_store_is_named(edit: Edit, sentence: str) -> None:
    store = Edited.in_memory()
    known = [experience(minute=n, attempts=[attempt(trajectory(), "failure")]) for n in range(3)]
    await store.apply([Add(experience=e) for e in known], scope=T, writer="tests")
    assert await differences(store, scope=T) == ()
    store.edit = edit
    (found,) = await differences(store, scope=T)
    assert found.startswith(f"{T}: experience {known[0].id}: ")
    assert sentence in found


async def test_a_record_that_no_change_made_is_named() -> None:
    store, stranger = Edited.in_memory(), experience()
    await store.apply([Add(experience=experience())], scope=T, writer="tests")
    store.edit = lambda records: [*records, stranger]
    assert await differences(store, scope=T) == (
        f"{T}: experience {stranger.id}: the records have it, the journal has not",
    )


async def test_what_is_written_while_one_compares_is_no_difference() -> None:
    store, known = SqliteStore.in_memory(), [experience(minute=n) for n in range(3)]
    await store.apply([Add(experience=e) for e in known], scope=T, writer="tests")
    new = experience()

    class Busy(Edited):
        async def scan(self, *, scope: str) -> AsyncIterator[Experience]:
            changes: list[Change] = [
                Add(experience=new),
                Retire(lesson_ids=(known[0].lessons[0].id,), reason="?"),
                Replace(experience=known[1].model_copy(update={"metadata": {"x": 1}})),
            ]
            if not await count_records(store, scope=scope) or len([e async for e in store.journal(scope=scope)]) == 3:
                await store.apply(changes, scope=scope, writer="another")
            async for record in store.scan(scope=scope):
                yield record

    busy = Busy(store._database)  # pyright: ignore[reportPrivateUsage]  # the same records, written to in between
    assert await differences(busy, scope=T) == ()


async def test_a_scope_that_keeps_going_back_says_so() -> None:
    class Restless(SqliteStore):
        async def scan(self, *, scope: str) -> AsyncIterator[Experience]:
            now = len([entry async for entry in self.journal(scope=scope)])
            await self.apply([Rollback(to=(0 if now % 2 else 1), reason="?")], scope=scope, writer="another")
            async for record in super().scan(scope=scope):
                yield record

    store = Restless.in_memory()
    await store.apply([Add(experience=experience())], scope=T, writer="tests")
    (found,) = await differences(store, scope=T)
    assert "compare it again" in found


async def scribbled(store: SqliteStore, seed: int) -> None:
    """Many changes of every kind, some of them rollbacks and purges."""
    chance = random.Random(seed)
    for n in range(60):
        present = [e async for e in store.scan(scope=T)]
        lessons = [i for e in present for i in e.lessons]
        last = len([entry async for entry in store.journal(scope=T)])
        shown, retired = [[i.id for i in lessons if i.retired is flag] for flag in (False, True)]
        run = trajectory()
        new = experience(minute=n, lessons=[lesson(), lesson()], attempts=[attempt(run, "unknown")])
        options: list[Change] = [Add(experience=new)]
        if shown:
            options += [
                Retire(lesson_ids=(chance.choice(shown),), reason="?"),
                Merge(experience=new, source_lesson_ids=(chance.choice(shown),), reason="?"),
                Rollback(to=chance.randrange(last), reason="?"),
            ]
        if retired:
            options.append(Restore(lesson_ids=(chance.choice(retired),), reason="?"))
        if present:
            one = chance.choice(present)
            options.append(Replace(experience=one.model_copy(update={"task": f"seen {n}", "lessons": one.lessons[:1]})))
            judged = [(e.id, a.trajectory_id) for e in present for a in e.attempts]
            where, which = chance.choice(judged)
            options.append(
                Rejudge(experience_id=where, trajectory_id=which, verdict=Verdict(outcome="failure", reason=str(n)))
            )
        if n % 20 == 19 and lessons:
            await purge_one(store, "lesson", chance.choice(lessons).id, scope=T, writer="tests", reason="?")
        await store.apply([chance.choice(options)], scope=T, writer="tests")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_was_done_through_the_store_agrees_with_its_journal(seed: int) -> None:
    store = SqliteStore.in_memory()
    await scribbled(store, seed)
    assert await differences(store, scope=T) == await differences(store, scope=T, share=3) == ()


async def test_a_bank_compares_every_scope_and_can_leave_it() -> None:
    steps = (Step(action="x", observation="error: y"),)
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:
        for scope in ("t", "t/other"):
            await bank.scoped(scope).learn(Trajectory(task="x", steps=steps), outcome="failure")
        assert await bank.admin.verify() == ()
        store = Edited(bank.store._database)  # type: ignore[attr-defined]  # the same records
        store.edit = lambda records: []
        bank.store = store
        assert [line.split(":")[0] for line in await bank.admin.verify()] == ["t", "t/other"]
        assert await bank.admin.verify(journal=False) == ()


async def test_a_journal_that_cannot_be_read_is_a_sentence_too() -> None:
    class Torn(SqliteStore):
        async def journal(self, *, scope: str, since: int = 0, kinds: object = None) -> AsyncIterator[JournalEntry]:
            raise StoreUnavailable("a journal entry cannot be read")
            yield

    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:
        bank.store = Torn.in_memory()
        await bank.store.apply([Add(experience=experience(scope="t"))], scope="t", writer="tests")
        assert await bank.admin.verify() == ("t: a journal entry cannot be read",)


class Watched(Packed):
    """Counts how many experiences it holds at most."""

    most: ClassVar[list[int]] = []

    def __setitem__(self, id: str, experience: Experience) -> None:
        super().__setitem__(id, experience)
        self.most[-1] = max(self.most[-1], len(self))

    def __init__(self) -> None:
        super().__init__()
        self.most.append(0)


@pytest.mark.parametrize("count", [40, 160])
async def test_however_many_a_scope_holds_only_a_share_of_them_is_held_at_once(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_check, "Packed", Watched)
    store = Edited.in_memory()
    known = [experience(minute=n, attempts=[attempt(trajectory(), "failure")]) for n in range(count)]
    await store.apply([Add(experience=one) for one in known], scope=T, writer="tests")
    Watched.most.clear()
    assert await differences(store, scope=T, share=20) == ()
    assert len(Watched.most) == count // 20
    assert 0 < max(Watched.most) < 40
    store.edit = lambda records: [said(one) for one in records]
    assert len(await differences(store, scope=T, share=20)) == count


def test_experiences_are_held_in_two_thirds_of_the_room_of_their_text_and_come_back_as_they_were() -> None:
    packed, known = (
        Packed(),
        [experience(f"Cancel order {n}", attempts=[attempt(trajectory(), "failure")]) for n in range(9)],
    )
    for one in known:
        packed[one.id] = one
    assert list(packed.values()) == known
    size = sum(map(len, packed._texts.values()))  # pyright: ignore[reportPrivateUsage]  # what the memory is
    assert size < sum(len(one.model_dump_json()) for one in known) * 2 / 3
