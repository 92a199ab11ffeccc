"""The store contract, fourth part: what was can be told from the journal, and be again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import (
    Add,
    Change,
    Edit,
    Erasure,
    Experience,
    Lesson,
    Merge,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    Trust,
    TrustState,
    Verdict,
)
from lessonbank.contracts.records.repeats import taught_again
from lessonbank.contracts.records.timeline import State, state_at
from lessonbank.contracts.store_calls import (
    count_records,
    experience_of_lesson,
    experience_of_runs,
    get_experience,
    get_trajectory,
    pending_runs,
    purge_one,
    settled_runs,
)
from lessonbank.errors import Conflict, NotFound, UsageError

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

STATES: tuple[TrustState, ...] = ("probation", "active", "quarantined")
_TAKEN_BACK: tuple[TrustState, ...] = ("probation", "active")
"""To these a rollback can bring a lesson back; what was put in quarantine stays there."""
_TASKS = ("Cancel the pending order", "Exchange the blue boots", "Cancel the flight to Oslo")


async def present(store: Store, *, scope: str = MINE) -> list[Any]:
    """Everything about a scope that a rollback sets back."""
    counts = await count_records(store, scope=scope)
    return [
        await collected(store.scan(scope=scope)),
        (counts.experiences, counts.lessons, counts.retired, counts.quarantined),
        await store.search("cancel the order or the boots", scope=scope, limit=99),
        (await store.nearest(towards(0, tilt=0.4), scope=scope, space=SPACE, limit=99)).matches,
    ]


async def as_of(store: Store, sequence: int, *, scope: str = MINE) -> State:
    """What the journal tells of that moment."""
    return state_at(await collected(store.journal(scope=scope)), sequence, scope=scope)


async def wind(store: Store, to: int, *, scope: str = MINE) -> int:
    """Roll back; the sequence of the rollback itself."""
    entry, *_ = await store.apply([Rollback(to=to, reason="test")], scope=scope, writer="tests")
    assert entry.entry == Rollback(to=to, reason="test")
    return entry.sequence


def some_change(known: list[Experience], chance: random.Random, /) -> Change:
    """A change that fits the present state `known`: of each kind but a rollback, and what no rollback takes back."""
    shown = [i.id for e in known for i in e.lessons if not i.retired]
    hidden = [i.id for e in known for i in e.lessons if i.retired]
    pick = chance.random()
    if pick < 0.2 and shown:
        return Retire(lesson_ids=tuple(chance.sample(shown, min(2, len(shown)))), reason="test")
    if pick < 0.35 and hidden:
        return Restore(lesson_ids=(chance.choice(hidden),), reason="test")
    if pick < 0.5 and known:
        return Replace(experience=_another_version(chance.choice(known), chance))
    if pick < 0.65 and known:
        return _told_of(chance.choice(known), chance)
    fresh = _fresh(chance)
    if pick < 0.75 and shown:
        return Merge(experience=fresh, source_lesson_ids=(chance.choice(shown),), reason="test")
    return Add(experience=fresh)


def _fresh(chance: random.Random, /) -> Experience:
    """A new experience, with a run that may be judged anew, and now and then with a lesson that nobody is to see."""
    state: TrustState = "quarantined" if chance.random() < 0.5 else "probation"
    lessons = (lesson(), lesson("Second").model_copy(update={"state": state}))
    tried = [attempt(trajectory(), "unknown")] if chance.random() < 0.5 else []
    return experience(chance.choice(_TASKS), minute=chance.randint(0, 2), lessons=lessons, attempts=tried)


def _told_of(known: Experience, chance: random.Random, /) -> Change:
    """Another verdict on its run, or more or less trust in one of its lessons."""
    if known.attempts and (chance.random() < 0.3 or not known.lessons):
        verdict = Verdict(outcome=chance.choice(("success", "failure")), source="human")
        return Rejudge(experience_id=known.id, trajectory_id=known.attempts[0].trajectory_id, verdict=verdict)
    if not known.lessons:
        return Add(experience=_fresh(chance))
    lesson = chance.choice(known.lessons)
    return some_edit(lesson, chance) if chance.random() < 0.3 else some_trust(lesson, chance, _TAKEN_BACK)


def some_edit(known: Lesson, chance: random.Random, /) -> Edit:
    """Another wording of a lesson, by a person."""
    first, _, suffix = known.title.partition(", ")
    number = chance.getrandbits(32)
    title = f"{first}, {number + 1 if str(number) == suffix else number}"
    return Edit(lesson_id=known.id, title=title, description="", content=known.content, by="Ana", reason="test")


def some_trust(known: Lesson, chance: random.Random, states: Sequence[TrustState] = STATES, /) -> Trust:
    """A move of a lesson to another of the states, by somebody who may."""
    state: TrustState = chance.choice([s for s in states if s != known.state])
    is_person = chance.random() < 0.5 or known.state == "quarantined"
    by = "person" if is_person else "corroboration"
    return Trust(lesson_ids=(known.id,), state=state, by=by, reason="test", evidence=("run",))


def _another_version(known: Experience, chance: random.Random, /) -> Experience:
    update: dict[str, Any] = {"lessons": (*known.lessons[chance.randint(0, 1) :], lesson("Later"))}
    if chance.random() < 0.3:
        update["metadata"] = {"seen": chance.randint(0, 9)}
    return known.model_copy(update=update)


class RewindingTests(StoreTests):
    """Moments and rollbacks."""

    async def test_a_rollback_brings_back_any_moment_and_the_journal_tells_all_of_them(self) -> None:
        async with self.opened() as store:
            chance = random.Random(5)
            seen = [await present(store)]
            for _ in range(36):
                if chance.random() < 0.15:
                    await wind(store, chance.randint(0, len(seen) - 1))
                else:
                    change = some_change(seen[-1][0], chance)
                    vectors = {change.experience.id: towards(chance.randint(0, 7))} if isinstance(change, Add) else {}
                    await store.apply([change], scope=MINE, writer="tests", vectors=vectors, space=SPACE)
                seen.append(await present(store))
            await check_sound(store)
            for sequence, then in enumerate(seen):
                assert list((await as_of(store, sequence)).experiences) == then[0]
            for sequence in (0, 36, 17, 33, 32, 5, 35):
                await wind(store, sequence)
                assert await present(store) == seen[sequence]
                await check_sound(store)

    async def test_a_rollback_is_undone_by_another(self) -> None:
        async with self.opened() as store:
            known = [experience(minute=n) for n in range(3)]
            await added(store, *known, along=[towards(n) for n in range(3)])
            before = await present(store)
            assert await wind(store, 1) == 4
            assert await collected(store.scan(scope=MINE)) == known[:1]
            for record in known[1:]:
                with refused(NotFound):
                    await get_experience(store, record.id, scope=MINE)
                with refused(NotFound):
                    await experience_of_lesson(store, record.lessons[0].id, scope=MINE)
            await wind(store, 3)
            assert await present(store) == before
            assert [e.entry.kind for e in await collected(store.journal(scope=MINE))] == ["add"] * 3 + ["rollback"] * 2

    async def test_no_rollback_lets_a_lesson_out_of_quarantine(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson(), lesson("Second")))
            await added(store, known)
            ids = tuple(i.id for i in known.lessons)
            moves: list[Change] = [
                Trust(lesson_ids=ids, state="quarantined", by="person", reason="harmful"),
                Trust(lesson_ids=ids[1:], state="active", by="person", reason="it was fine"),
                Retire(lesson_ids=ids[:1], reason="harmful"),
            ]
            await store.apply(moves, scope=MINE, writer="tests")
            for to in (1, 4, 0, 1, 0, 2, 3):
                sequence = await wind(store, to)
                now = await collected(store.scan(scope=MINE))
                states = [i.state for e in now for i in e.lessons]
                assert states[:1] == ["quarantined"][: len(now)]
                assert states[1:] == [{1: "probation", 2: "quarantined"}.get(to, "active")][: len(now)]
                journal = await collected(store.journal(scope=MINE))
                assert list((await as_of(store, journal[-1].sequence)).experiences) == now
                assert [e.entry.kind for e in journal[sequence:]] in ([], ["trust"])
                await check_sound(store)

    async def test_what_a_purge_left_in_the_place_of_a_lesson_is_not_undone_by_a_rollback_across_it(self) -> None:
        async with self.opened() as store:
            casualty, heir, later = lesson("goes"), lesson("It lives on"), lesson("later")
            first, second = experience(minute=1, lessons=()), experience(minute=2, lessons=())
            await added(store, experience(lessons=(casualty,)), first, second)
            grown = first.model_copy(update={"lessons": (later,)})
            await store.apply([Replace(experience=grown)], scope=MINE, writer="tests")
            again = {heir.id: (taught_again(heir, "the same", words=False),)}
            left: list[Change] = [
                Replace(experience=grown.model_copy(update={"lessons": (later, heir)}), heirs=(heir.id,)),
                Replace(experience=second.model_copy(update={"repeats": again}), heirs=(heir.id,)),
                Trust(lesson_ids=(heir.id,), state="active", by="person", reason="the same words"),
            ]
            gone_for_good: list[tuple[Erasure, str]] = [("lesson", casualty.id)]
            await store.purge(gone_for_good, scope=MINE, writer="ana", reason="asked to", changes=left)
            trusted = heir.model_copy(update={"state": "active", "approved": True})
            before = await present(store)
            back = await wind(store, 3)
            held = await collected(store.scan(scope=MINE))
            assert [(e.id, e.lessons, e.repeats) for e in held] == [
                (first.id, (trusted,), {}),
                (second.id, (), again),
            ]
            journal = await collected(store.journal(scope=MINE))
            assert [e.entry.kind for e in journal[back:]] == ["replace", "replace", "trust"]
            assert list((await as_of(store, len(journal))).experiences) == held
            await check_sound(store)
            await wind(store, back - 1)
            assert await present(store) == before
            await wind(store, 2)
            assert [e.lessons for e in await collected(store.scan(scope=MINE))] == [(trusted,)]
            await wind(store, 1)
            assert await collected(store.scan(scope=MINE)) == []
            await check_sound(store)

    async def test_what_was_taken_out_after_a_purge_or_put_in_quarantine_does_not_come_back(self) -> None:
        async with self.opened() as store:
            casualty, heir = lesson("goes"), lesson("It lives on")
            bare = experience(minute=1, lessons=(), attempts=[attempt(trajectory(), "success")])
            await added(store, experience(lessons=(casualty,)), bare)
            left = [Replace(experience=bare.model_copy(update={"lessons": (heir,)}), heirs=(heir.id,))]
            await store.purge([("lesson", casualty.id)], scope=MINE, writer="ana", reason="asked to", changes=left)
            held = Trust(lesson_ids=(heir.id,), state="quarantined", by="person", reason="harmful")
            await store.apply([held], scope=MINE, writer="tests")
            back = await wind(store, 2)
            assert [i.state for e in await collected(store.scan(scope=MINE)) for i in e.lessons] == ["quarantined"]
            await store.apply([Replace(experience=bare)], scope=MINE, writer="tests")
            out = len(await collected(store.journal(scope=MINE)))
            await added(store, experience(minute=2))
            await wind(store, out)
            assert await collected(store.scan(scope=MINE)) == [bare]
            await purge_one(store, "lesson", heir.id, scope=MINE, writer="ana", reason="asked to")
            assert heir.id not in repr(await collected(store.journal(scope=MINE)))
            await wind(store, back - 1)
            assert await collected(store.scan(scope=MINE)) == [bare]
            await check_sound(store)

    async def test_runs_of_what_was_taken_out_can_be_learned_again(self) -> None:
        async with self.opened() as store:
            run = trajectory()
            await store.save_runs([run], scope=MINE)
            await added(store, experience(attempts=[attempt(run, "success")]))
            await wind(store, 0)
            assert not await settled_runs(store, [run.id], scope=MINE)
            assert await experience_of_runs(store, [run.id], scope=MINE) is None
            assert await pending_runs(store, scope=MINE) == [run]
            await wind(store, 1)
            assert await settled_runs(store, [run.id], scope=MINE) == {run.id}
            assert await pending_runs(store, scope=MINE) == []

    async def test_what_was_taken_out_can_be_added_again_and_taken_out_again(self) -> None:
        async with self.opened() as store:
            first = experience(minute=1)
            twin = experience(minute=1)
            await added(store, first, twin, along=[towards(0), towards(1)])
            await wind(store, 0)
            changed = first.model_copy(update={"task": "Exchange the blue boots"})
            await added(store, changed, along=[towards(3)])
            assert [m.experience for m in await store.search("boots", scope=MINE, limit=9)] == [changed]
            assert await store.search("cancel", scope=MINE, limit=9) == []
            with refused(Conflict):
                await added(store, first)
            await wind(store, 2)
            assert await collected(store.scan(scope=MINE)) == [first, twin]
            assert {m.experience.id for m in await store.search("cancel", scope=MINE, limit=9)} == {first.id, twin.id}
            await wind(store, 4)
            assert await collected(store.scan(scope=MINE)) == [changed]
            await check_sound(store)

    async def test_a_lesson_that_changed_hands_goes_back(self) -> None:
        async with self.opened() as store:
            moved = lesson("moved")
            source, target = experience(lessons=(moved,)), experience(lessons=())
            await added(store, source, target)
            changes: list[Change] = [
                Replace(experience=source.model_copy(update={"lessons": ()})),
                Replace(experience=target.model_copy(update={"lessons": (moved,)})),
            ]
            await store.apply(changes, scope=MINE, writer="tests")
            await wind(store, 0)
            await added(store, experience(lessons=(moved,)))
            for to, owner in ((2, source), (4, target), (2, source), (6, None), (4, target), (5, None)):
                await wind(store, to)
                if owner:
                    assert (await experience_of_lesson(store, moved.id, scope=MINE)).id == owner.id
                assert await collected(store.scan(scope=MINE)) == list((await as_of(store, to)).experiences)
                await check_sound(store)

    async def test_a_rollback_leaves_runs_receipts_and_other_scopes_alone(self) -> None:
        async with self.opened() as store:
            await added(store, experience())
            theirs = experience(scope=THEIRS)
            await added(store, theirs, scope=THEIRS)
            run = trajectory()
            await store.save_runs([run], scope=MINE)
            await wind(store, 0)
            assert await get_trajectory(store, run.id, scope=MINE) == run
            assert await collected(store.scan(scope=THEIRS)) == [theirs]
            assert len(await collected(store.journal(scope=THEIRS))) == 1

    async def test_a_rollback_to_what_has_not_happened_or_in_company_is_refused(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            back = Rollback(to=0, reason="test")
            with refused(NotFound):
                await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
            with refused(UsageError):
                await store.apply([Add(experience=experience()), back], scope=MINE, writer="tests")
            with refused(UsageError):
                await store.apply([back], scope=MINE, writer="tests", vectors={known.id: towards(0)}, space=SPACE)
            with refused(Conflict):  # as with any other change
                await store.apply([back], scope=MINE, writer="tests", if_unchanged=[experience()])
            assert len(await collected(store.journal(scope=MINE))) == 1
            assert await collected(store.scan(scope=MINE)) == [known]
