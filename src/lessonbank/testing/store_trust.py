"""The store contract, sixth part: no record says of itself that it is trusted, and only a person lets one out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

from lessonbank.bank.views.journal_check import differences
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import (
    Add,
    Change,
    Erased,
    Experience,
    Lesson,
    Merge,
    Provenance,
    Replace,
    Restore,
    Retire,
    Trust,
    TrustState,
)
from lessonbank.contracts.records.timeline import diff
from lessonbank.contracts.store_calls import count_records, experience_of_lesson, get_experience, purge_one
from lessonbank.errors import Conflict, LessonbankError, NotFound, UsageError

from .store_rewinding import as_of, present, some_change, wind
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

Mover = Literal["person", "corroboration", "ledger"]
_STATES: tuple[TrustState, ...] = ("probation", "active", "quarantined")


def _moved(
    *lessons: Lesson,
    to: TrustState = "active",
    by: Mover = "person",
    reason: str = "seen",
    evidence: tuple[str, ...] = (),
) -> Trust:
    """The record that moves lessons."""
    return Trust(lesson_ids=tuple(i.id for i in lessons), state=to, by=by, reason=reason, evidence=evidence)


def _claiming(state: TrustState, title: str = "Check the status first") -> Lesson:
    return lesson(title).model_copy(update={"state": state})


async def _do(store: Store, *changes: Change) -> None:
    await store.apply(changes, scope=MINE, writer="ana")


async def _read_lesson(store: Store, which: Lesson) -> Lesson:
    owner = await experience_of_lesson(store, which.id, scope=MINE)
    return next(i for i in owner.lessons if i.id == which.id)


async def _sound(store: Store) -> None:
    """The records follow from each other, and from the journal."""
    await check_sound(store)
    assert await differences(store, scope=MINE) == ()


class TrustTests(StoreTests):
    """How far a lesson is trusted, and what moves it."""

    async def test_nothing_that_comes_in_is_active_whatever_it_says(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            claims = _claiming("active")
            with_it = known.model_copy(update={"lessons": (*known.lessons, claims)})
            changed = known.model_copy(update={"lessons": (known.lessons[0].model_copy(update={"state": "active"}),)})
            wrong: list[Change] = [
                Add(experience=experience(lessons=(lesson(), claims))),
                Replace(experience=with_it),
                Replace(experience=changed),
                Merge(experience=experience(lessons=(claims,)), source_lesson_ids=(known.lessons[0].id,), reason="one"),
            ]
            for change in wrong:
                with refused(UsageError):
                    await _do(store, Add(experience=experience("Another")), change)
            assert await collected(store.scan(scope=MINE)) == [known]
            assert len(await collected(store.journal(scope=MINE))) == 1

    async def test_an_active_lesson_stays_active_when_its_experience_is_replaced(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            await _do(store, _moved(*known.lessons))
            now = await get_experience(store, known.id, scope=MINE)
            later = now.model_copy(update={"lessons": (*now.lessons, lesson("Later"))})
            await _do(store, Replace(experience=later))
            assert [i.state for i in (await get_experience(store, known.id, scope=MINE)).lessons] == [
                "active",
                "probation",
            ]
            await _do(store, _moved(known.lessons[0], to="probation", by="ledger"))
            with refused(UsageError):
                await _do(store, Replace(experience=later))
            await _sound(store)

    async def test_a_lesson_cannot_bring_its_trust_along_to_another_experience(self) -> None:
        async with self.opened() as store:
            source, target = experience(), experience("Another", lessons=())
            await added(store, source, target)
            await _do(store, _moved(*source.lessons))
            (trusted,) = (await get_experience(store, source.id, scope=MINE)).lessons
            away = Replace(experience=source.model_copy(update={"lessons": ()}))
            with refused(UsageError):
                await _do(store, away, Replace(experience=target.model_copy(update={"lessons": (trusted,)})))
            doubted = trusted.model_copy(update={"state": "probation"})
            await _do(store, away, Replace(experience=target.model_copy(update={"lessons": (doubted,)})))
            assert (await _read_lesson(store, trusted)).state == "probation"
            await _sound(store)

    async def test_a_record_moves_a_lesson_and_nothing_else_of_it(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson("one"), lesson("two")))
            await added(store, known, along=[towards(0)])
            first, second = known.lessons
            for state in ("active", "probation", "quarantined", "active", "quarantined", "probation"):
                await _do(store, _moved(first, to=state))
                now = await get_experience(store, known.id, scope=MINE)
                changed = first.model_copy(update={"state": state, "approved": state == "active"})
                assert now.lessons == (changed, second)
                assert now.model_copy(update={"lessons": known.lessons}) == known
            assert await store.unindexed(scope=MINE, space=SPACE, limit=9) == []
            (entry,) = await store.apply(
                [_moved(first, second, by="corroboration", evidence=("run 1", "run 2"))], scope=MINE, writer="learn"
            )
            assert (entry.entry.kind, entry.writer) == ("trust", "learn")
            assert (await collected(store.journal(scope=MINE)))[-1] == entry
            assert [i.state for i in (await get_experience(store, known.id, scope=MINE)).lessons] == [
                "active",
                "active",
            ]
            await _sound(store)

    async def test_a_move_that_does_not_fit_leaves_no_trace_of_its_batch(self) -> None:
        async with self.opened() as store:
            known, theirs = experience(), experience(scope=THEIRS)
            await added(store, known)
            await added(store, theirs, scope=THEIRS)
            wrong: list[tuple[type[LessonbankError], Change]] = [
                (Conflict, _moved(*known.lessons, to="probation")),
                (NotFound, _moved(lesson())),
                (NotFound, _moved(*known.lessons, lesson())),
                (NotFound, _moved(*theirs.lessons)),
            ]
            for kind, change in wrong:
                with refused(kind):
                    await _do(store, Add(experience=experience("Another")), change)
            assert await collected(store.scan(scope=MINE)) == [known]
            assert await collected(store.scan(scope=THEIRS)) == [theirs]
            assert len(await collected(store.journal(scope=MINE))) == 1

    async def test_a_batch_sees_the_moves_before_it(self) -> None:
        async with self.opened() as store:
            new = experience()
            hidden = _moved(*new.lessons, to="quarantined")
            with refused(Conflict):
                await _do(store, Add(experience=new), hidden, hidden)
            await _do(store, Add(experience=new), _moved(*new.lessons), hidden)
            assert (await _read_lesson(store, new.lessons[0])).state == "quarantined"
            await _sound(store)

    async def test_only_a_person_lets_a_lesson_out_of_quarantine(self) -> None:
        async with self.opened() as store:
            known = experience()
            await added(store, known)
            await _do(store, _moved(*known.lessons, to="quarantined", by="ledger"))
            for move in (
                _moved(*known.lessons, by="corroboration"),
                _moved(*known.lessons, to="probation", by="ledger"),
            ):
                with refused(Conflict):
                    await _do(store, move)
            await _do(store, _moved(*known.lessons, by="person"))
            assert (await _read_lesson(store, known.lessons[0])).state == "active"
            await _sound(store)

    async def test_a_lesson_may_come_in_quarantined_and_is_found_nowhere(self) -> None:
        async with self.opened() as store:
            hidden, shown = experience(lessons=(_claiming("quarantined"),)), experience(minute=1)
            await added(store, hidden, shown, along=[towards(0), towards(0)])
            await store.index(
                {i.id: towards(1) for e in (hidden, shown) for i in e.lessons}, scope=MINE, space="lessons:8"
            )
            for matches in (
                await store.search("Cancel the pending order", scope=MINE, limit=9),
                (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches,
                (await store.nearest(towards(1), scope=MINE, space="lessons:8", limit=9)).matches,
            ):
                assert [m.experience.id for m in matches] == [shown.id]
            await _do(store, _moved(*hidden.lessons))
            assert len(await store.search("Cancel the pending order", scope=MINE, limit=9)) == 2
            assert len((await store.nearest(towards(1), scope=MINE, space="lessons:8", limit=9)).matches) == 2
            await _do(store, _moved(*hidden.lessons, to="quarantined"))
            assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches) == 1
            await _sound(store)

    async def test_retired_and_quarantined_are_two_things(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson("one"), lesson("two"), lesson("three")))
            await added(store, known)
            first, two, _ = known.lessons
            await _do(store, _moved(first, two, to="quarantined"), Retire(lesson_ids=(two.id,), reason="no use"))
            counts = await count_records(store, scope=MINE)
            assert (counts.lessons, counts.retired, counts.quarantined) == (3, 1, 1)
            await _do(store, Restore(lesson_ids=(two.id,), reason="of use"))
            record = await _read_lesson(store, two)
            assert (record.retired, record.state, record.hidden) == (False, "quarantined", True)
            assert (await count_records(store, scope=MINE)).quarantined == 2
            await _do(store, Retire(lesson_ids=(first.id,), reason="no use"), _moved(first))
            record = await _read_lesson(store, first)
            assert (record.retired, record.state, record.hidden) == (True, "active", True)
            await rebuild(store)
            assert (await count_records(store, scope=MINE)).quarantined == 1
            await _sound(store)

    async def test_a_lesson_that_sleeps_is_retired_and_says_that_it_sleeps_until_it_is_restored(self) -> None:
        async with self.opened() as store:
            known = experience(lessons=(lesson("one"), lesson("two")))
            await added(store, known)
            sleeper, _ = known.lessons
            await _do(store, Retire(lesson_ids=(sleeper.id,), reason="not met", asleep=True))
            record = await _read_lesson(store, sleeper)
            assert (record.retired, record.asleep, record.hidden) == (True, True, True)
            await rebuild(store)
            assert (await _read_lesson(store, sleeper)).asleep
            await _sound(store)
            await _do(store, Restore(lesson_ids=(sleeper.id,), reason="met"))
            record = await _read_lesson(store, sleeper)
            assert (record.retired, record.asleep) == (False, False)
            await _sound(store)

    async def test_every_view_of_the_past_tells_the_same_of_trust(self) -> None:
        async with self.opened() as store:
            pair, two = experience(lessons=(lesson("one"), lesson("two"))), experience(minute=1)
            await added(store, pair, two, along=[towards(0), towards(1)])
            seen = [await present(store)]
            moves: Sequence[Change] = [
                _moved(pair.lessons[0]),
                _moved(*pair.lessons, to="quarantined"),
                _moved(pair.lessons[1], two.lessons[0]),
                Retire(lesson_ids=(two.lessons[0].id,), reason="no use"),
                _moved(pair.lessons[0], to="probation"),
            ]
            for move in moves:
                await _do(store, move)
                seen.append(await present(store))
            first, last = await as_of(store, 2), await as_of(store, 7)
            difference = diff(first, last)
            assert {(i.id, i.state) for i in difference.trusted} == {
                (pair.lessons[1].id, "active"),
                (two.lessons[0].id, "active"),
            }
            assert (difference.replaced, [i.id for i in difference.retired]) == ((), [two.lessons[0].id])
            assert diff(first, await as_of(store, 3)).trusted[0].state == "active"
            for number in (0, 4, 2, 1, 5, 3):
                await wind(store, number + 2)
                assert await present(store) == seen[number]
                assert list((await as_of(store, number + 2)).experiences) == seen[number][0]
                await rebuild(store)
                assert await present(store) == seen[number]
                await _sound(store)

    async def test_whatever_is_done_the_journal_and_the_records_agree_on_trust(self) -> None:
        async with self.opened() as store:
            chance, states = random.Random(17), set[TrustState]()
            for _ in range(80):
                known = await collected(store.scan(scope=MINE))
                await store.apply([some_change(known, chance)], scope=MINE, writer="tests")
                states |= {i.state for e in await collected(store.scan(scope=MINE)) for i in e.lessons}
            assert states == set(_STATES), "the walk drew moves"
            lessons = [i for e in await collected(store.scan(scope=MINE)) for i in e.lessons]
            counts = await count_records(store, scope=MINE)
            assert counts.quarantined == sum(i.state == "quarantined" and not i.retired for i in lessons)
            await _sound(store)

    async def test_a_purge_takes_what_moved_a_lesson_and_names_no_evidence_that_is_gone(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            await store.save_runs([run, other], scope=MINE)
            casualty, stays = _learned(run), _learned(other)
            await added(store, casualty, stays)
            together: dict[str, Any] = {
                "by": "corroboration",
                "reason": f"{run.id} taught it too",
                "evidence": (run.id, other.id),
            }
            alone: dict[str, Any] = {
                "by": "corroboration",
                "reason": casualty.lessons[0].id,
                "evidence": (casualty.lessons[0].id,),
            }
            await _do(
                store,
                _moved(*casualty.lessons, *stays.lessons, **together),
                _moved(*casualty.lessons, to="quarantined", reason="bad"),
                _moved(*stays.lessons, to="probation", **alone),
            )
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            moved, vanished, left = [e.entry for e in await collected(store.journal(scope=MINE))][2:5]
            assert isinstance(vanished, Erased)
            assert moved == _moved(*stays.lessons, by="corroboration", reason="purged", evidence=(other.id,))
            assert left == _moved(*stays.lessons, to="probation", by="corroboration", reason="purged")
            entries = "".join(e.model_dump_json() for e in await collected(store.journal(scope=MINE)))
            assert run.id not in entries
            assert casualty.lessons[0].id not in entries
            for sequence in (3, 4, 5):
                await wind(store, sequence)
                assert await collected(store.scan(scope=MINE)) == list((await as_of(store, sequence)).experiences)
            await _sound(store)

    async def test_an_experience_keeps_what_was_turned_away_until_its_run_is_purged(self) -> None:
        async with self.opened() as store:
            run, other = trajectory(), trajectory()
            await store.save_runs([run, other], scope=MINE)
            rejected: Any = {"title": "Note", "content": "vermilion", "rule": "order", "reason": "it gives orders"}
            both = experience(attempts=[attempt(run, "success"), attempt(other, "success")])
            known = Experience.model_validate({**both.model_dump(), "rejected": [rejected]})
            await added(store, known)
            assert await get_experience(store, known.id, scope=MINE) == known
            assert list((await as_of(store, 1)).experiences) == [known]
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            assert (await get_experience(store, known.id, scope=MINE)).rejected == ()
            assert "vermilion" not in "".join(e.model_dump_json() for e in await collected(store.journal(scope=MINE)))
            await _sound(store)


def _learned(run: Any) -> Experience:
    """An experience with one lesson that was drawn from this run."""
    drawn = lesson().model_copy(update={"provenance": Provenance(trajectory_ids=(run.id,))})
    return experience(lessons=(drawn,), attempts=[attempt(run, "success")])
