"""The ledger over a real store: it reads once, acts on proof, forgets what is erased, and never breaks a run."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import prod
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Trajectory
from lessonbank.contracts.ports import RecallFilter, Store
from lessonbank.contracts.records import (
    Add,
    Candidate,
    Change,
    Edit,
    Experience,
    Found,
    Lesson,
    Match,
    Merge,
    Outcome,
    Recall,
    Restore,
    Retire,
    Rollback,
    Run,
    Settlement,
    Trust,
)
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.contracts.store_calls import experience_of_lesson, forget, get_setting, list_recalls, purge_one
from lessonbank.contracts.withholding import Assignment
from lessonbank.errors import NotFound, StoreUnavailable
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.ledger import Acted
from lessonbank.evidence.lift import Lift
from lessonbank.evidence.policy import AdaptiveHoldout, Holdout
from lessonbank.evidence.review_snapshot import ReviewSnapshot, TreatmentReview
from lessonbank.evidence.stored_ledger import WRITER, StoredLedger
from lessonbank.learning.settlement import settlement_of
from lessonbank.pages.reports.lift_page import page
from lessonbank.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

T = "acme/support"
ENOUGH = 60


class Failing:
    """A store of which one method fails, from its `after`-th call on, until it is mended."""

    def __init__(self, store: Store, method: str, error: BaseException, *, after: int = 0) -> None:
        self._store, self._method, self._error, self._left, self.broken = store, method, error, after, True
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return self._counted(real) if name == self._method else real

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.broken and self.calls > self._left:
                raise self._error
            return await real(*args, **kwargs)

        return call


class Held:
    """A store that lets nobody past one method until it is told to."""

    def __init__(self, store: Store, method: str) -> None:
        self._store, self._method = store, method
        self.reached, self.open = anyio.Event(), anyio.Event()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return self._waiting(real) if name == self._method else real

    def _waiting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.reached.set()
            await self.open.wait()
            return await real(*args, **kwargs)

        return call


class Losing:
    """A store of which somebody erases the recall that a page is to come after, once."""

    def __init__(self, store: Store) -> None:
        self._store, self.lost = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Any:
        if wanted.after is not None and not self.lost:
            self.lost.append(wanted.after)
            await purge_one(self._store, "recall", wanted.after, scope=scope, writer="ana", reason="asked to")
        return await self._store.recalls(wanted, scope=scope)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = SqliteStore.in_memory()
    yield opened
    await opened.close()


def left_out(made: Assignment, id: str) -> float:
    """With which probability a lesson that was found alone is not shown."""
    groups = [draw.probability for draw in made.groups]
    return round(1 - prod(1 - odd for odd in (made.control_probability, *groups, made.probability[id])), 9)


NEW = left_out(AdaptiveHoldout()({"a": ()}, recall_id="r", task="x", scope=T), "a")


def ledger(store: Any, **more: Any) -> StoredLedger:
    return StoredLedger(store, more.pop("policy", AdaptiveHoldout()), **more)


def a_lesson(id: str, **more: Any) -> Lesson:
    return Lesson(id=id, title=f"Title of {id}", content=f"Content of {id}.", **more)


async def keep(store: Store, *lessons: Lesson, scope: str = T, task: str = "Cancel it") -> None:
    await store.apply(
        [Add(experience=Experience(scope=scope, task=task, lessons=lessons))], scope=scope, writer="tests"
    )


def receipt(id: str, *candidates: Candidate, scope: str = T, **more: Any) -> Recall:
    told: dict[str, Any] = {
        "task": f"Cancel it, whatever kind {'abcdefghijklm'[sum(map(ord, id)) % 13]}",
        "text": "lessons",
    }
    return Recall(id=id, scope=scope, candidates=candidates, **(told | more))


def drawn(lesson_id: str, *, withheld: bool, rank: int = 1) -> Candidate:
    return Candidate(
        lesson_id=lesson_id,
        experience_id="e",
        score=1.0,
        rank=rank,
        shown=not withheld,
        withheld=withheld,
        probability=0.5,
    )


async def settle(store: Store, recall_id: str, outcome: Outcome, *, scope: str = T, **more: Any) -> None:
    told = {"source": "ground_truth"} | more
    await store.apply(
        [],
        scope=scope,
        writer="tests",
        settlement=Settlement(recall_id=recall_id, scope=scope, outcome=outcome, **told),
    )


async def played(
    store: Store, lesson_id: str, *, effect: int, n: int = ENOUGH, scope: str = T, name: str = "", **more: Any
) -> None:
    """Recalls of one lesson: shown every other time, and then successful (or not), else the reverse."""
    for number in range(n):
        withheld = number % 2 == 1
        id = f"{name or lesson_id}-{number}"
        await store.save_recall(receipt(id, drawn(lesson_id, withheld=withheld), scope=scope))
        await settle(store, id, "success" if (effect > 0) != withheld else "failure", scope=scope, **more)


async def lesson(store: Store, id: str, *, scope: str = T) -> Lesson:
    return next(i for i in (await experience_of_lesson(store, id, scope=scope)).lessons if i.id == id)


async def made_by_itself(store: Store, *, scope: str = T) -> list[Any]:
    return [e async for e in store.journal(scope=scope) if e.writer == WRITER]


def rounded(lift: Lift) -> Any:
    """Sums in another order may differ in their last digit."""
    return json.loads(lift.model_dump_json(), parse_float=lambda text: round(float(text), 9))


class TestActing:
    async def test_a_lesson_that_is_shown_to_harm_is_taken_back_with_the_evidence_in_the_journal(
        self, store: Store
    ) -> None:
        await keep(store, a_lesson("bad"), a_lesson("unknown"))
        await played(store, "bad", effect=-1)
        acted = await ledger(store).on_outcome(scope=T)
        (entry,) = await made_by_itself(store)
        assert acted.changes == [entry.entry]
        assert isinstance(entry.entry, Retire)
        assert entry.entry.lesson_ids == ("bad",)
        for said in ("shown to harm", "shown 30 times, withheld 30", "(a test at 5 % asks for 20)", "-100"):
            assert said in entry.entry.reason
        assert ((await lesson(store, "bad")).retired, (await lesson(store, "unknown")).retired) == (True, False)

    @pytest.mark.full
    async def test_what_was_taken_back_as_harmful_is_reported_as_harmful(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        mine = ledger(store)
        for number in range(60):
            await store.save_recall(receipt(f"r{number}", drawn("bad", withheld=number % 2 == 1)))
            await settle(store, f"r{number}", "success" if number % 2 or number % 10 == 0 else "failure")
            if (await mine.on_outcome(scope=T)).changes:
                break
        assert (await lesson(store, "bad")).retired
        assert (await mine.lift(scope=T, level=0.95)).lessons[0].standing == "harms"

    async def test_a_lesson_that_is_shown_to_help_is_trusted_and_preferred(self, store: Store) -> None:
        await keep(store, a_lesson("other"), a_lesson("good"))
        await played(store, "good", effect=1)
        mine = ledger(store)
        (change,) = (await mine.on_outcome(scope=T)).changes
        assert isinstance(change, Trust)
        assert (change.lesson_ids, change.state, change.by) == (("good",), "active", "ledger")
        assert (await lesson(store, "good")).state == "active"
        owner = await experience_of_lesson(store, "good", scope=T)
        found = Found(matches=(Match(experience=owner, score=1.0),))
        for one in (mine, ledger(store)):
            preferred = await one.order(found, places=1, recall_id="", scope=T)
            assert [i.id for i in preferred.matches[0].experience.lessons] == ["good", "other"]
            assert await one.order(found, places=1, recall_id="", scope="elsewhere") == found

    async def test_nothing_is_changed_that_need_not_be(self, store: Store) -> None:
        await keep(store, a_lesson("good"), a_lesson("bad"), a_lesson("doubted", state="quarantined"))
        await store.apply(
            [
                Trust(lesson_ids=("good",), state="active", by="person", reason="read"),
                Retire(lesson_ids=("bad",), reason="read"),
            ],
            scope=T,
            writer="tests",
        )
        for id, effect in (("good", 1), ("bad", -1), ("doubted", 1), ("erased", -1)):
            await played(store, id, effect=effect, n=40)
        assert (await ledger(store).on_outcome(scope=T)) == Acted(changes=[])
        assert await made_by_itself(store) == []
        assert (await lesson(store, "doubted")).state == "quarantined"

    async def test_it_only_looks_where_it_is_not_to_act(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        mine = ledger(store, act=False)
        assert (await mine.on_outcome(scope=T)).changes == []
        assert (await mine.lift(scope=T, level=0.95)).lessons[0].standing == "harms"
        assert not (await lesson(store, "bad")).retired

    async def test_what_a_person_showed_again_is_not_taken_back_a_second_time(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        mine = ledger(store)
        await mine.on_outcome(scope=T)
        await store.apply([Restore(lesson_ids=("bad",), reason="I know better")], scope=T, writer="anna")
        await played(store, "bad", effect=-1, n=30, name="later")
        for one in (mine, ledger(store)):
            for _ in range(40):
                assert (await one.on_outcome(scope=T)).changes in ([], ())
        assert not (await lesson(store, "bad")).retired
        assert left_out(await mine.assign({"bad": ()}, recall_id="r", task="x", scope=T), "bad") >= 0.5

    async def test_what_a_rollback_showed_again_is_not_taken_back_a_second_time(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        mine = ledger(store)
        await mine.on_outcome(scope=T)
        (entry,) = await made_by_itself(store)
        await store.apply([Rollback(to=entry.sequence - 1, reason="no")], scope=T, writer="anna")
        assert not (await lesson(store, "bad")).retired
        await played(store, "bad", effect=-1, n=30, name="later")
        for _ in range(40):
            await mine.on_outcome(scope=T)
        assert len(await made_by_itself(store)) == 1

    async def test_what_somebody_took_back_meanwhile_is_no_trouble(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        held = Held(store, "apply")
        acted: list[Acted] = []

        async def look() -> None:
            acted.append(await ledger(held).on_outcome(scope=T))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await held.reached.wait()
            await purge_one(store, "lesson", "bad", scope=T, writer="anna", reason="erase it")
            held.open.set()
        assert acted == [Acted(changes=[])]

    async def test_evidence_is_no_persons_approval(self, tmp_path: Path) -> None:
        path = tmp_path / "reviewed.db"
        file = await SqliteStore.open(path)
        await keep(file, a_lesson("good"), task="cancel the order")
        await played(file, "good", effect=1)
        await ledger(file).on_outcome(scope=T)
        await file.close()
        async with await lessonbank.connect_async(
            path,
            scope=T,
            embedder="lexical",
            safety=lessonbank.Safety(trust="reviewed"),
            evidence=lessonbank.Evidence(holdout=None),
        ) as bank:
            assert (await bank.retrieve("cancel the order")).shown == ()


class TestTime:
    async def test_it_waits_for_twenty_outcomes(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        mine = ledger(store)
        for number in range(25):
            id = f"r{number}"
            await store.save_recall(receipt(id, drawn("bad", withheld=number % 2 == 1)))
            await settle(store, id, "success" if number % 2 else "failure")
            await mine.on_outcome(scope=T)
            told = ReviewSnapshot.of(await get_setting(store, REVIEW.of(T)))
            assert told.reviewed == (20 if number >= 19 else 0), number
            assert ("bad" in told.treatments) == (number >= 19)

    async def test_truths_that_are_told_after_opinions_are_looked_at(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=1, source="judge", judge="j")
        mine = ledger(store, act=False)
        await mine.on_outcome(scope=T)
        told = ReviewSnapshot.of(await get_setting(store, REVIEW.of(T)))
        bad = told.treatments["bad"]
        assert (bad.grade, bad.by_judge, told.helps) == ("helps", True, frozenset())
        for number in range(ENOUGH):
            await settle(store, f"bad-{number}", "success" if number % 2 else "failure")
            await mine.on_outcome(scope=T)
        told = ReviewSnapshot.of(await get_setting(store, REVIEW.of(T)))
        assert (told.treatments["bad"].grade, told.treatments["bad"].by_judge) == ("harms", False)

    async def test_another_process_goes_on_where_the_first_one_stopped(self, store: Store) -> None:
        await keep(store, a_lesson("bad"), a_lesson("new"))
        await played(store, "bad", effect=-1)
        await ledger(store).on_outcome(scope=T)
        second = ledger(store)
        drawn_now = await second.assign({"bad": (), "new": ()}, recall_id="r", task="x", scope=T)
        assert drawn_now.probability["bad"] > 0.5 > 0.3 >= drawn_now.probability["new"]
        await settle(store, "bad-0", "failure")
        assert await second.on_outcome(scope=T) == Acted()

    async def test_a_process_that_only_retrieves_follows_what_another_one_finds(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        reader = ledger(store)
        await reader.assign({"bad": ()}, recall_id="r", task="x", scope=T)
        await played(store, "bad", effect=-1)
        await ledger(store, act=False).on_outcome(scope=T)
        await settle(store, "bad-0", "failure")
        later = [await reader.assign({"bad": ()}, recall_id=f"r{n}", task="x", scope=T) for n in range(100)]
        assert left_out(later[-1], "bad") > 2 * NEW

    async def test_an_old_count_does_not_keep_it_from_looking(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        mine = ledger(store)
        await mine.on_outcome(scope=T)
        await purge_one(store, "scope", "", scope=T, writer="anna", reason="erase it")
        await keep(store, a_lesson("worse"))
        for number in range(40):
            id = f"new-{number}"
            await store.save_recall(receipt(id, drawn("worse", withheld=number % 2 == 1)))
            await settle(store, id, "success" if number % 2 else "failure")
            await mine.on_outcome(scope=T)
        assert (await lesson(store, "worse")).retired

    async def test_a_purged_scope_is_looked_at_again_by_a_new_process(self, store: Store) -> None:
        await store.put_setting(REVIEW.of(T), ReviewSnapshot(reviewed=5000).text())
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        mine = ledger(store)
        for _ in range(25):
            await mine.on_outcome(scope=T)
        assert (await lesson(store, "bad")).retired


class TestReading:
    async def test_nothing_of_another_scope_is_read(self, store: Store) -> None:
        await keep(store, a_lesson("same"))
        await keep(store, a_lesson("same"), scope="acme")
        await played(store, "same", effect=-1, scope="acme")
        mine = ledger(store)
        assert (await mine.on_outcome(scope="acme")).changes != []
        assert (await mine.lift(scope=T, level=0.95)).recalls == 0
        assert left_out(await mine.assign({"same": ()}, recall_id="r", task="x", scope=T), "same") == NEW
        assert not (await lesson(store, "same")).retired
        assert (await mine.lift(scope=T, level=0.95)).lessons == ()
        (same,) = (await mine.lift(scope="acme", level=0.95)).lessons
        assert same.standing == "harms"

    async def test_recalls_are_counted_whether_settled_or_not_and_only_if_they_had_something_to_show(
        self, store: Store
    ) -> None:
        await keep(store, a_lesson("a"))
        for id, candidates in (("r1", (drawn("a", withheld=False),)), ("r2", (drawn("a", withheld=True),)), ("r3", ())):
            await store.save_recall(receipt(id, *candidates))
        await settle(store, "r3", "success")
        mine = ledger(store)
        first = await mine.lift(scope=T, level=0.95)
        await settle(store, "r1", "success")
        await settle(store, "r2", "success")
        await settle(store, "r2", "failure")
        second, fresh = await mine.lift(scope=T, level=0.95), await ledger(store).lift(scope=T, level=0.95)
        assert ((first.recalls, first.settled), (second.recalls, second.settled)) == ((2, 0), (2, 2))
        assert rounded(second) == rounded(fresh)
        assert (second.success_with, second.success_without) == (1.0, 0.0)

    async def test_what_was_read_bit_by_bit_is_what_is_read_at_once(self, store: Store) -> None:
        await keep(store, a_lesson("a"), a_lesson("b"))
        mine = ledger(store, act=False)
        for number in range(40):
            id, other = f"r{number}", f"r{(number * 7) % 12}"
            found = (drawn("a", withheld=number % 3 == 0), drawn("b", withheld=number % 2 == 0, rank=2))
            await store.save_recall(receipt(id, *found))
            if number > 12:
                await settle(store, other, "success" if number % 4 else "failure", steps=number)
                await mine.on_outcome(scope=T)
            if number == 30:
                await mine.lift(scope=T, level=0.95)
        await settle(store, "r3", "success", source="judge", judge="j")
        assert rounded(await mine.lift(scope=T, level=0.95)) == rounded(await ledger(store).lift(scope=T, level=0.95))

    async def test_the_evidence_of_a_merged_lesson_starts_with_its_own_words(self, store: Store) -> None:
        await keep(store, a_lesson("one"))
        await keep(store, a_lesson("two"))
        await played(store, "one", effect=-1)
        await played(store, "two", effect=-1)
        merged = Experience(scope=T, task="Cancel it", lessons=(a_lesson("both"),))
        await store.apply(
            [Merge(experience=merged, source_lesson_ids=("one", "two"), reason="the same")], scope=T, writer="tests"
        )
        assert (await ledger(store).on_outcome(scope=T)).changes == []
        await played(store, "both", effect=1, n=10)
        told = {i.lesson_id: (i.shown, i.withheld) for i in (await ledger(store).lift(scope=T, level=0.95)).lessons}
        assert told == {"one": (30, 30), "two": (30, 30), "both": (5, 5)}

    async def test_a_merged_lesson_may_be_erased(self, store: Store) -> None:
        await keep(store, a_lesson("one"))
        await played(store, "one", effect=-1)
        merged = Experience(scope=T, task="Cancel it", lessons=(a_lesson("both"),))
        await store.apply(
            [Merge(experience=merged, source_lesson_ids=("one",), reason="same")], scope=T, writer="tests"
        )
        await purge_one(store, "lesson", "both", scope=T, writer="anna", reason="erase it")
        await ledger(store).on_outcome(scope=T)


class TestErasing:
    async def test_a_purged_scope_is_forgotten(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1, n=10)
        mine = ledger(store)
        assert (await mine.lift(scope=T, level=0.95)).recalls == 10
        await purge_one(store, "scope", "", scope=T, writer="anna", reason="erase it")
        lift = await mine.lift(scope=T, level=0.95)
        assert (lift.recalls, lift.lessons, lift.series) == (0, (), ())

    async def test_a_scope_that_is_purged_before_its_first_outcome_is_forgotten(self, store: Store) -> None:
        await keep(store, a_lesson("a"))
        await store.save_recall(receipt("r1", drawn("a", withheld=False)))
        mine = ledger(store)
        assert (await mine.lift(scope=T, level=0.95)).recalls == 1
        await purge_one(store, "scope", "", scope=T, writer="anna", reason="erase it")
        assert (await mine.lift(scope=T, level=0.95)).recalls == 0

    async def test_a_purged_lesson_bears_no_title_and_is_not_acted_upon(self, store: Store) -> None:
        await keep(store, a_lesson("bad"), a_lesson("other"))
        await played(store, "bad", effect=-1)
        mine = ledger(store, act=False)
        assert (await mine.lift(scope=T, level=0.95)).lessons[0].title == "Title of bad"
        await purge_one(store, "lesson", "bad", scope=T, writer="anna", reason="erase it")
        for one in (mine, ledger(store)):
            lift = await one.lift(scope=T, level=0.95)
            assert {i.title for i in lift.lessons} <= {""}
        assert (await ledger(store).on_outcome(scope=T)).changes == []

    async def test_what_was_told_of_a_purged_scope_goes_with_it(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        await ledger(store).on_outcome(scope=T)
        await purge_one(store, "scope", "", scope=T, writer="anna", reason="erase it")
        assert "bad" not in (await get_setting(store, REVIEW.of(T)) or "")

    async def test_the_share_of_several_runs_survives_the_purge_of_one(self, store: Store) -> None:
        await keep(store, a_lesson("a"))
        await store.save_recall(receipt("r1", drawn("a", withheld=False)))
        run = lessonbank.Trajectory(task="Cancel it", answer="done")
        await store.save_runs([run], scope=T)
        attempt = lessonbank.contracts.records.RunRef(
            trajectory_id=run.id, verdict=lessonbank.Verdict(outcome="success"), n_steps=0
        )
        await store.apply(
            [Add(experience=Experience(scope=T, task="Cancel it", attempts=(attempt,)))], scope=T, writer="tests"
        )
        await settle(store, "r1", "failure", reward=0.5, trajectory_ids=(run.id, "another"), runs=2, steps=20)
        before = await ledger(store).lift(scope=T, level=0.95)
        await purge_one(store, "trajectory", run.id, scope=T, writer="anna", reason="erase it")
        after = await ledger(store).lift(scope=T, level=0.95)
        assert (before.success_with, after.success_with) == (0.5, 0.5)


class TestFailing:
    async def test_a_setting_that_could_not_be_read_once_is_read_the_next_time(self, store: Store) -> None:
        broken = Failing(store, "settings", StoreUnavailable("busy"))
        mine = ledger(broken)
        with pytest.raises(StoreUnavailable):
            await mine.assign({"a": ()}, recall_id="r", task="x", scope=T)
        broken.broken = False
        assert left_out(await mine.assign({"a": ()}, recall_id="r", task="x", scope=T), "a") == NEW

    @pytest.mark.parametrize(
        "error",
        [StoreUnavailable("the disk is gone"), RuntimeError("a defect: the disk is gone")],
        ids=["store", "defect"],
    )
    @pytest.mark.parametrize("method", ["apply", "count", "experiences", "put_setting"])
    async def test_a_store_that_fails_makes_a_note_and_the_next_review_makes_up_for_it(
        self, store: Store, method: str, error: Exception
    ) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1)
        broken = Failing(store, method, error)
        mine = ledger(broken)
        acted = await mine.on_outcome(scope=T)
        assert any("the disk is gone" in note for note in acted.notes) == (broken.calls > 0)
        broken.broken = False
        for _ in range(25):
            await mine.on_outcome(scope=T)
        assert (await lesson(store, "bad")).retired
        assert ReviewSnapshot.of(await get_setting(store, REVIEW.of(T))).reviewed == ENOUGH

    async def test_no_outcome_is_lost_when_a_receipt_cannot_be_read(self, store: Store) -> None:
        await keep(store, a_lesson("a"))
        await played(store, "a", effect=1, n=4)
        broken = Failing(store, "recalls", StoreUnavailable("busy"), after=1)
        mine = ledger(broken)
        assert (await mine.lift(scope=T, level=0.95)).settled == 4
        await played(store, "a", effect=1, n=4, name="later")
        with pytest.raises(StoreUnavailable):
            await mine.lift(scope=T, level=0.95)
        broken.broken = False
        assert (await mine.lift(scope=T, level=0.95)).settled == 8

    async def test_no_outcome_is_lost_when_a_review_is_cancelled(self, store: Store) -> None:
        await keep(store, a_lesson("a"))
        await played(store, "a", effect=1, n=2)
        held = Held(store, "recalls")
        mine = ledger(held)
        held.open.set()
        await mine.lift(scope=T, level=0.95)
        held.reached, held.open = anyio.Event(), anyio.Event()
        await played(store, "a", effect=1, n=2, name="later")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: mine.lift(scope=T, level=0.95))
            await held.reached.wait()
            tasks.cancel_scope.cancel()
        held.open.set()
        assert (await mine.lift(scope=T, level=0.95)).settled == 4

    @pytest.mark.full
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "null",
            "[]",
            '"x"',
            "{",
            '{"units": "x"}',
            '{"units": [1]}',
            '{"units": {"bad": "x"}}',
            '{"treatments": [1]}',
            '{"treatments": {"bad": [1, "harms", false, 0]}}',
            '{"treatments": {"bad": [1, "harms", false, NaN, 0, 0, 0]}}',
            '{"units": {"bad": [1, "good", false, 0, 0, 0, 0]}}',
            '{"units": {"bad": [1, "harms", false, 0, 0, 0]}}',
            '{"reviewed": -5, "units": {"bad": [-3, "harms", 7, 0, 0, 0, 0]}}',
            '{"reviewed": 1e999}',
            '{"units": {"bad": [1, "harms", false, 0, 0, NaN, 0]}}',
            pytest.param(
                '{"units": {"bad": [1, "harms", false, 0, 0, ' + "9" * 400 + ", 0]}}", id="a number of 400 digits"
            ),
            pytest.param("[" * 100_000, id="too deep"),
        ],
    )
    async def test_a_setting_that_holds_rubbish_tells_nothing(self, text: str) -> None:
        store = SqliteStore.in_memory()
        await store.put_setting(REVIEW.of(T), text)
        mine = ledger(store)
        drawn_now = await mine.assign({"bad": ()}, recall_id="r", task="x", scope=T)
        assert 0.0 <= drawn_now.probability["bad"] <= 0.9
        assert 0.0 <= drawn_now.control_probability <= 0.9
        await mine.order(Found(), places=1, recall_id="r", scope=T)
        assert (await mine.on_outcome(scope=T)).notes == ()

    @pytest.mark.full
    @pytest.mark.parametrize("policy", [None, Holdout(0.0, 0.0)])
    async def test_where_nothing_was_drawn_nothing_is_said(self, store: Store, policy: Any) -> None:
        await keep(store, a_lesson("a"))
        mine = ledger(store, policy=policy)
        for number in range(22):
            found = Candidate(lesson_id="a", experience_id="e", score=1.0, rank=1, shown=True)
            await store.save_recall(receipt(f"r{number}", found))
            await settle(store, f"r{number}", "success")
            assert (await mine.on_outcome(scope=T)).notes == ()
        lift = await mine.lift(scope=T, level=0.95)
        assert (lift.success.value, lift.lessons[0].success.value, lift.lessons[0].shown) == (None, None, 22)
        assert await made_by_itself(store) == []

    async def test_recalls_that_could_not_be_withheld_are_not_missed(self, store: Store) -> None:
        await keep(store, a_lesson("a"))
        for number in range(40):
            one = receipt(f"r{number}", drawn("a", withheld=False), control=number % 2 == 1, control_probability=0.5)
            await store.save_recall(one)
            await settle(store, f"r{number}", "success")
        for number in range(40):
            never = drawn("a", withheld=False).model_copy(update={"probability": 0.0})
            await store.save_recall(receipt(f"looked at {number}", never))
        lift = await ledger(store).lift(scope=T, level=0.95)
        assert (lift.recalls, lift.settled, lift.missing_with, lift.missing_without) == (80, 40, 0.0, 0.0)
        assert not [note for note in lift.notes if "missing" in note]


class TestTogether:
    @pytest.mark.full
    async def test_two_processes_on_one_file_take_a_lesson_back_once(self, tmp_path: Path) -> None:
        path = tmp_path / "shared.db"
        first, second = await SqliteStore.open(path), await SqliteStore.open(path)
        await keep(first, a_lesson("bad"))
        await played(first, "bad", effect=-1)
        acted: list[Acted] = []

        async def look(mine: StoredLedger) -> None:
            acted.append(await mine.on_outcome(scope=T))

        async with anyio.create_task_group() as tasks:
            for one in (first, second):
                tasks.start_soon(look, ledger(one))
        assert len(await made_by_itself(second)) == 1
        assert sum(len(one.changes) for one in acted) == 1
        assert [one.notes for one in acted] == [(), ()]
        await first.close()
        await second.close()

    @pytest.mark.full
    async def test_many_tasks_may_ask_at_once(self, store: Store) -> None:
        await keep(store, a_lesson("bad"))
        await played(store, "bad", effect=-1, n=40)
        mine = ledger(store)
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(lambda: mine.on_outcome(scope=T))
                tasks.start_soon(lambda: mine.lift(scope=T, level=0.95))
        assert len(await made_by_itself(store)) == 1
        assert (await mine.lift(scope=T, level=0.95)).settled == 40

    def test_two_event_loops_may_share_a_ledger(self, tmp_path: Path) -> None:
        async def fill() -> SqliteStore:
            opened = await SqliteStore.open(tmp_path / "loops.db")
            await keep(opened, a_lesson("a"))
            await played(opened, "a", effect=1, n=40)
            return opened

        opened = anyio.run(fill)
        mine = ledger(opened, act=False)
        settled: list[int] = []

        async def look() -> None:
            settled.append((await mine.lift(scope=T, level=0.95)).settled)

        threads = [threading.Thread(target=anyio.run, args=(look,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        anyio.run(opened.close)
        assert settled == [40] * 3


async def _extracting(attempts: Any) -> Any:
    lessons = () if attempts[0].trajectory.task != "cancel the order" else (a_lesson("bad"),)
    return lessonbank.Extraction(lessons=lessons)


class TestBank:
    @pytest.mark.full
    async def test_a_bank_takes_back_by_itself_what_makes_its_runs_fail(self) -> None:
        events: list[Any] = []
        changes: list[Change] = []
        async with await lessonbank.connect_async(
            ":memory:",
            scope=T,
            embedder="lexical",
            parts=lessonbank.Parts(extractor=_extracting, hooks=[events.append]),
            evidence=lessonbank.Evidence(holdout=Holdout(0.5, 0.0, seed="s")),
            safety=lessonbank.Safety(admission=None, caps=None),
        ) as bank:
            await bank.learn(lessonbank.Trajectory(task="cancel the order", answer="x"), outcome="success")
            (found,) = (await bank.lessons.list(limit=10_000))[::-1]
            for number in range(80):
                recall = await bank.retrieve(f"cancel the order {number}")
                if not recall.lessons:
                    break
                run = lessonbank.Trajectory(task=recall.task, answer="x")
                learned = await bank.learn(run, recall=recall, outcome="failure" if recall.text else "success")
                changes += learned.changes
            assert [c.lesson_ids for c in changes if isinstance(c, Retire)] == [(found.id,)]
            assert (await bank.lift()).lessons[0].retired
            told = await bank.recalls.explain(recall)
        assert told.outcome is None
        assert any(type(event).__name__ == "Reviewed" for event in events)

    async def test_a_recall_can_be_explained_after_its_run_was_erased(self) -> None:
        async with await lessonbank.connect_async(
            ":memory:",
            scope=T,
            embedder="lexical",
            parts=lessonbank.Parts(extractor=_extracting),
            evidence=lessonbank.Evidence(holdout=None),
            safety=lessonbank.Safety(admission=None),
        ) as bank:
            await bank.learn(lessonbank.Trajectory(task="cancel the order", answer="x"), outcome="success")
            recall = await bank.retrieve("cancel the order now")
            run = lessonbank.Trajectory(task=recall.task, answer="x")
            await bank.learn(run, recall=recall, outcome="success")
            await purge_one(bank.store, "trajectory", run.id, scope=T, writer="anna", reason="erase it")
            told = await bank.recalls.explain(recall)
            assert told.task == ""
            assert str(told)
            with pytest.raises(NotFound):
                await bank.recalls.explain("nobody made it")


def test_what_was_told_is_read_back() -> None:
    treatment = TreatmentReview(recalls=40, grade="helps", expected=0.25, spread=0.125, found=50)
    told = ReviewSnapshot(
        reviewed=7, treatments={"*": TreatmentReview(), "a": treatment}, sequence=9, proposed={"a": (3, "why")}
    )
    assert ReviewSnapshot.of(told.text()) == told
    assert told.helps == {"a"}
    assert ReviewSnapshot.of(None) == ReviewSnapshot.of(json.dumps({})) == ReviewSnapshot()
    older = json.dumps({"units": {"a": [40, "helps", False, 8.5, -2.25, 0.25, 0.125]}})
    assert ReviewSnapshot.of(older).treatments == {"a": replace(treatment, found=0)}


class TestSettlements:
    """Where what several runs told becomes one outcome."""

    RECALL = receipt("r1", drawn("a", withheld=False))

    def attempts(self, *told: tuple[Outcome, Any, dict[str, Any]]) -> list[Run]:
        return [
            Run(
                trajectory=lessonbank.Trajectory(task="Cancel it", metadata=metadata),
                verdict=lessonbank.Verdict(outcome=outcome, source=source, confidence=0.8),
            )
            for outcome, source, metadata in told
        ]

    def test_an_outcome_of_one_kind_of_source_is_of_that_source(self) -> None:
        for source in ("judge", "ground_truth", "framework_error"):
            made = settlement_of(self.RECALL, "e", self.attempts(("success", source, {}), ("failure", source, {})))
            assert (made.source, made.outcome, made.reward) == (source, "failure", 0.5)

    def test_a_share_that_an_opinion_has_a_part_in_is_no_truth(self) -> None:
        made = settlement_of(self.RECALL, "e", self.attempts(("success", "ground_truth", {}), ("failure", "judge", {})))
        assert (made.source, made.judge) == ("judge", "judge")

    def test_a_time_that_one_of_two_runs_told_is_not_halved(self) -> None:
        runs = self.attempts(("success", "judge", {"seconds": 10.0}), ("success", "judge", {}))
        columns = EvidenceTable()
        columns.receipt(self.RECALL)
        columns.settle(settlement_of(self.RECALL, "e", runs))
        assert str(columns.episodes().seconds[0]) in {"10.0", "nan"}


async def test_the_evidence_of_a_lesson_starts_anew_with_an_edit_and_with_its_rollback(
    store: Store,
) -> None:
    await keep(store, a_lesson("a"))
    seen = ledger(store, act=False)
    await played(store, "a", effect=-1)
    assert await shown(seen) == {"a": (30, 30)}
    words = Edit(lesson_id="a", title="Better", description="", content="Say it better.", by="Ana")
    await store.apply([words], scope=T, writer="Ana")
    await played(store, "a", effect=1, n=10, name="later")
    assert await shown(seen) == {"a": (5, 5)}
    await store.apply([Rollback(to=1, reason="test")], scope=T, writer="Ana")
    assert (await shown(seen)).get("a", (0, 0)) == (0, 0)


async def test_an_edited_lesson_is_not_taken_back_for_what_it_said_before(store: Store) -> None:
    await keep(store, a_lesson("bad"))
    await played(store, "bad", effect=-1)
    words = Edit(lesson_id="bad", title="Better", description="", content="Say it better.", by="Ana")
    await store.apply([words], scope=T, writer="Ana")
    assert (await ledger(store).on_outcome(scope=T)).changes == []
    assert not (await lesson(store, "bad")).retired


async def shown(seen: StoredLedger) -> dict[str, tuple[int, int]]:
    """How often each lesson was shown and withheld."""
    return {i.lesson_id: (i.shown, i.withheld) for i in (await seen.lift(scope=T, level=0.95)).lessons}


async def test_what_is_forgotten_still_counts(store: Store) -> None:
    await keep(store, a_lesson("good"))
    await played(store, "good", effect=1)
    before = await shown(ledger(store, act=False))
    gone = await forget(store, scope=T, before=datetime(2100, 1, 1, tzinfo=UTC), writer="retention")
    assert gone.recalls == ENOUGH
    assert await shown(ledger(store, act=False)) == before == {"good": (30, 30)}
    assert len({recall.task for recall in await list_recalls(store, RecallFilter(limit=ENOUGH), scope=T)}) == 13


@pytest.mark.parametrize("minutes", [-1, 60])
async def test_an_open_recall_is_read_though_the_clock_of_another_process_is_behind_or_ahead(
    store: Store, minutes: int
) -> None:
    measured, now = ledger(store), datetime.now(UTC)
    times = (now + timedelta(minutes=max(minutes, 0)), now + timedelta(minutes=min(minutes, 0)))
    for n, at in enumerate(times, 1):
        await store.save_recall(receipt(f"r-{n}", drawn("a", withheld=False), created_at=at))
        assert (await measured.lift(scope=T, level=0.9)).recalls == n


async def test_a_recall_that_is_erased_while_later_ones_are_read_ends_no_report(store: Store) -> None:
    await store.save_recall(receipt("first", drawn("a", withheld=False)))
    losing = Losing(store)
    measured = ledger(losing)
    assert (await measured.lift(scope=T, level=0.9)).recalls == 1
    for n in range(220):
        await store.save_recall(receipt(f"r-{n}", drawn("a", withheld=False)))
    assert (await measured.lift(scope=T, level=0.9)).recalls == 221  # the lost one was read before it was erased
    assert len(losing.lost) == 1
    assert (await measured.lift(scope=T, level=0.9)).recalls == 220


def test_an_erased_lesson_is_called_erased_in_words_and_on_the_page() -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank:
        for title, task in (("Weigh it", "Ship it"), ("Tie it", "Ship it fast")):
            lesson = bank.lessons.add(title=title, content=f"{title} first.", task=task, by="Ana")
        for _ in range(3):
            bank.learn(Trajectory(task="Ship it"), recall=bank.retrieve("Ship it"), outcome="success")
        bank.admin.purge(lesson=lesson.id, reason="asked to")
        lift = bank.lift()
    name = f"an erased lesson, {lesson.id[-8:]}"
    assert str(lift).count(name) == 1
    assert lesson.id not in str(lift)
    assert name in page(lift)
