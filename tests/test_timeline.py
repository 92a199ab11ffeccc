"""The journal tells what was, what changed, and what concerned one thing; and a bank goes back by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lessonbank
from lessonbank import Evidence, Experience, Lesson, ReasoningBank, Step, Trajectory, Verdict
from lessonbank.contracts.records import (
    Add,
    Change,
    Erased,
    JournalEntry,
    Merge,
    Purge,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    RunRef,
    Settle,
)
from lessonbank.contracts.records.timeline import Diff, Lineage, about, diff, lineage, live, reached, state_at
from lessonbank.errors import NotFound, UsageError

pytestmark = pytest.mark.full

START = datetime(2026, 1, 1, tzinfo=UTC)
APPEND = lessonbank.Learning(consolidation="append")
"""These runs teach the same in other words, which is one lesson otherwise."""


def lesson(title: str = "Look first") -> Lesson:
    return Lesson(title=title, content="Then act.")


def experience(*lessons: Lesson, task: str = "Find it", minute: int = 0) -> Experience:
    return Experience(scope="t", task=task, lessons=lessons, created_at=START + timedelta(minutes=minute))


def journal(*changes: Change | Settle | Purge | Erased) -> list[JournalEntry]:
    return [
        JournalEntry(sequence=n, at=START + timedelta(hours=n), scope="t", writer="tests", entry=change)
        for n, change in enumerate(changes, 1)
    ]


def test_the_live_part_of_a_journal_jumps_over_what_was_rolled_back() -> None:
    assert live({}, 0) == []
    assert live({}, 3) == [range(1, 4)]
    assert live({4: 1}, 3) == [range(1, 4)]
    assert live({4: 1}, 4) == [range(1, 2)]
    assert live({4: 1}, 6) == [range(1, 2), range(5, 7)]
    assert live({4: 1, 7: 3}, 8) == [range(1, 4), range(8, 9)], "a rollback into what another took out brings it back"
    assert live({2: 0, 3: 2}, 3) == []


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=40))
def test_what_is_live_is_what_a_walk_back_finds(moves: list[tuple[bool, int]]) -> None:
    jumps = {n: to % n for n, (back, to) in enumerate(moves, 1) if back}
    end, walked = len(moves), list[int]()
    while end:
        if end in jumps:
            end = jumps[end]
        else:
            walked.append(end)
            end -= 1
    assert [s for span in live(jumps, len(moves)) for s in span] == walked[::-1]


def test_a_state_is_what_the_changes_until_then_make() -> None:
    one, two, both = (
        experience(lesson(), lesson("b")),
        experience(lesson(), minute=-1),
        experience(lesson("both"), minute=9),
    )
    later = one.model_copy(update={"lessons": one.lessons[1:]})
    entries = journal(
        Add(experience=one),
        Add(experience=two),
        Retire(lesson_ids=(one.lessons[0].id,), reason="?"),
        Merge(experience=both, source_lesson_ids=(two.lessons[0].id,), reason="the same"),
        Restore(lesson_ids=(one.lessons[0].id,), reason="?"),
        Replace(experience=later),
    )
    states = [state_at(entries, n, scope="t") for n in range(7)]
    assert [len(s.experiences) for s in states] == [0, 1, 2, 2, 3, 3, 3]
    assert states[2].experiences == (two, one), "oldest first, not in the order of arrival"
    assert [i.retired for i in states[3].experience(one.id).lessons] == [True, False]
    assert states[5].experience(one.id) == one
    assert states[6].experience(one.id) == later
    assert states[6].get(two.lessons[0].id).retired
    held = {"experiences": 3, "lessons": 3, "retired": 1, "changes": 6}
    assert states[6].counts().model_dump(exclude_defaults=True) == held
    assert len(states[6].lessons()) == 2
    for ask in (states[6].get, states[6].experience):
        with pytest.raises(NotFound, match="after change 6"):
            ask("nothing")


def test_a_difference_names_each_kind_of_change_and_reverses() -> None:
    flipped, kept, dropped, added = lesson(), lesson(), lesson(), lesson()
    one, gone, new = experience(flipped, kept, dropped), experience(lesson()), experience(lesson())
    noted = experience(lesson(), task="Note it")
    later = one.model_copy(update={"lessons": (flipped.model_copy(update={"retired": True}), kept, added)})
    entries = journal(
        Add(experience=one),
        Add(experience=noted),
        Add(experience=gone),
        Retire(lesson_ids=(noted.lessons[0].id,), reason="?"),
        Rollback(to=2, reason="?"),
        Retire(lesson_ids=(noted.lessons[0].id,), reason="?"),
        Replace(experience=later),
        Add(experience=new),
    )
    before, after = state_at(entries, 3, scope="t"), state_at(entries, 8, scope="t")
    found = diff(before, after)
    assert (found.added, found.removed) == ((new,), (gone,))
    assert [(r.before, r.after) for r in found.replaced] == [(one, later)], "a flag alone replaces nothing"
    assert {i.id for i in found.lessons_added} == {added.id, new.lessons[0].id}
    assert {i.id for i in found.lessons_removed} == {dropped.id, gone.lessons[0].id}
    assert {i.id for i in found.retired} == {flipped.id, noted.lessons[0].id}
    reverse = diff(after, before)
    assert (reverse.added, reverse.removed) == (found.removed, found.added)
    assert {i.id for i in reverse.restored} == {i.id for i in found.retired}
    assert diff(after, after) == Diff()
    assert diff(after, after).empty


def test_a_lesson_that_sleeps_wakes_or_is_retired_in_its_sleep_replaces_nothing() -> None:
    one = lesson()
    entries = journal(
        Add(experience=experience(one)),
        Retire(lesson_ids=(one.id,), reason="?", asleep=True),
        Retire(lesson_ids=(one.id,), reason="?"),
        Restore(lesson_ids=(one.id,), reason="?"),
    )
    states = [state_at(entries, sequence, scope="t") for sequence in range(5)]
    for before, after, retired, restored in ((1, 2, 1, 0), (2, 3, 1, 0), (3, 4, 0, 1), (2, 4, 0, 1)):
        found = diff(states[before], states[after])
        assert (len(found.retired), len(found.restored), found.replaced) == (retired, restored, ())


def test_the_story_of_a_thing_has_the_rollbacks_that_moved_it_and_no_others() -> None:
    mine, other = experience(lesson()), experience(lesson())
    entries = journal(
        Add(experience=other),
        Add(experience=mine),
        Rollback(to=2, reason="nothing"),
        Retire(lesson_ids=(mine.lessons[0].id,), reason="?"),
        Retire(lesson_ids=(other.lessons[0].id,), reason="?"),
        Rollback(to=4, reason="the other's"),
        Rollback(to=1, reason="takes it out"),
        Rollback(to=6, reason="brings it back"),
    )
    for wanted in (about(entries, lesson=mine.lessons[0].id), about(entries, experience=mine.id)):
        assert [entry.sequence for entry in wanted] == [2, 4, 7, 8]
    assert about(entries, lesson="nothing") == []


def tried(*runs: str, lessons: Sequence[Lesson] = ()) -> Experience:
    refs = tuple(RunRef(trajectory_id=run, verdict=Verdict(outcome="success")) for run in runs)
    return experience(*(lessons or (lesson(),))).model_copy(update={"attempts": refs})


def told(of: Experience, run: str) -> Rejudge:
    return Rejudge(experience_id=of.id, trajectory_id=run, verdict=Verdict(outcome="failure", source="human"))


def test_a_verdict_told_later_changes_the_attempt_and_nothing_else() -> None:
    one, two = tried("a", "b"), tried("a")
    entries = journal(Add(experience=one), Add(experience=two), told(one, "a"), Rollback(to=2, reason="?"))
    before, after, undone = (state_at(entries, n, scope="t") for n in (2, 3, 4))
    kept = after.experience(one.id)
    assert [a.verdict.outcome for a in kept.attempts] == ["failure", "success"]
    assert kept.model_copy(update={"attempts": one.attempts}) == one
    assert after.experience(two.id) == two
    assert [(r.before, r.after) for r in diff(before, after).replaced] == [(one, kept)]
    assert undone.experiences == before.experiences
    assert state_at(journal(told(one, "a")), 1, scope="t").experiences == (), "what it spoke of was purged"


def test_a_verdict_is_part_of_the_story_of_its_experience_and_of_the_lessons_it_holds() -> None:
    moved = lesson()
    one, two = tried("a", lessons=(moved,)), tried("b", lessons=(lesson(),))
    entries = journal(
        Add(experience=one),
        Add(experience=two),
        told(one, "a"),
        told(two, "b"),
        Replace(experience=one.model_copy(update={"lessons": ()})),
        Replace(experience=two.model_copy(update={"lessons": (*two.lessons, moved)})),
        told(one, "a"),
        told(two, "b"),
    )
    assert [e.sequence for e in about(entries, experience=one.id)] == [1, 3, 5, 7]
    assert [e.sequence for e in about(entries, lesson=moved.id)] == [1, 3, 6, 8]


def merged(into: Lesson, *sources: Lesson) -> Merge:
    return Merge(experience=experience(into), source_lesson_ids=tuple(i.id for i in sources), reason="one")


def test_a_lineage_goes_through_any_number_of_merges_the_nearest_first() -> None:
    a, b, c, both, all_of_them, other = (lesson(n) for n in ("a", "b", "c", "both", "all", "other"))
    entries = journal(
        Add(experience=experience(a, b, c, other)), merged(both, a, b), merged(all_of_them, both, c), merged(other, c)
    )
    assert lineage(entries, all_of_them.id) == Lineage(
        lesson_id=all_of_them.id, sources=(both.id, c.id, a.id, b.id), successors=()
    )
    assert lineage(entries, a.id) == Lineage(lesson_id=a.id, successors=(both.id, all_of_them.id))
    assert lineage(entries, c.id).successors == (all_of_them.id, other.id)
    assert lineage(entries, "nothing") == Lineage(lesson_id="nothing")
    assert lineage([], a.id) == Lineage(lesson_id=a.id)


def test_a_merge_that_was_undone_or_rolled_back_is_no_lineage() -> None:
    a, b, both = lesson("a"), lesson("b"), lesson("both")
    entries = journal(
        Add(experience=experience(a, b)),
        merged(both, a, b),
        Rollback(to=1, reason="?"),
        Rollback(to=2, reason="?"),
        Retire(lesson_ids=(both.id,), reason="unmerged"),
        Restore(lesson_ids=(a.id, b.id), reason="unmerged"),
        Rollback(to=5, reason="?"),
    )
    seen = [lineage(entries[:n], both.id).sources for n in range(len(entries) + 1)]
    pair = (a.id, b.id)
    assert seen == [(), (), pair, (), pair, pair, (), pair]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=4)))
def test_what_can_be_reached_is_found_once_and_ends_even_in_a_circle(steps: dict[str, list[str]]) -> None:
    found = reached(steps, "a")
    assert len(set(found)) == len(found)
    assert "a" not in found
    known = {"a", *found}
    assert known == {"a", *(to for at in known for to in steps.get(at, ()))}


RUNS = [Trajectory(task=f"Ship parcel {n}", steps=(Step(action="print", observation="error: no form"),)) for n in "abc"]


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    options: Any = {"embedder": "lexical", "evidence": Evidence(holdout=None), "learning": APPEND}
    with lessonbank.connect(tmp_path / "bank.db", scope="t", **options).scoped(writer="ana") as bank:
        for run in RUNS:
            bank.learn(run, outcome="failure")
        yield bank


def kinds(entries: Sequence[JournalEntry]) -> list[str]:
    return [entry.entry.kind for entry in entries]


def test_a_bank_tells_its_history(bank: ReasoningBank) -> None:
    lesson = bank.lessons.list(limit=10_000)[::-1][0]
    bank.lessons.retire(lesson.id, reason="harmful")
    assert kinds(bank.history.list()) == ["add", "add", "add", "retire"]
    assert kinds(bank.history.list(after=2)) == ["add", "retire"]
    assert kinds(bank.history.list(lesson=lesson.id)) == ["add", "retire"]
    owner = bank.history.state(1).experiences[0]
    assert kinds(bank.history.list(experience=owner.id, after=1)) == ["retire"]
    assert bank.scoped("t/other").history.list() == ()
    with pytest.raises(UsageError, match="name one of them"):
        bank.history.list(lesson="x", experience="y")


def test_a_truth_told_later_is_told_by_the_history_and_undone_by_a_rollback(bank: ReasoningBank) -> None:
    lesson, owner = bank.lessons.list(limit=10_000)[::-1][0], bank.history.state(1).experiences[0]
    learned = bank.learn(RUNS[0], outcome="success")
    (change,) = learned.changes
    assert isinstance(change, Rejudge)
    assert (change.experience_id, change.trajectory_id, change.verdict.outcome) == (owner.id, RUNS[0].id, "success")
    assert (
        kinds(bank.history.list(lesson=lesson.id))
        == kinds(bank.history.list(experience=owner.id))
        == ["add", "verdict"]
    )
    assert bank.history.diff(3, 4).replaced[0].before == owner
    bank.history.rollback(to=3, reason="it was not")
    assert bank.lessons.experience(owner.lessons[0].id) == owner
    assert kinds(bank.history.list(lesson=lesson.id)) == ["add", "verdict", "rollback"]
    bank.admin.purge(run=RUNS[0].id, reason="request 16")
    assert kinds(bank.history.list())[3] == "erased"


def test_a_bank_shows_any_moment_by_number_or_time(bank: ReasoningBank) -> None:
    lesson = bank.lessons.list(limit=10_000)[::-1][0]
    before = bank.history.state(3)
    bank.lessons.retire(lesson.id, reason="harmful")
    retired_at = bank.history.list()[-1].at
    assert bank.history.state(3) == before
    assert before.lessons() == bank.history.state(retired_at - timedelta(microseconds=1)).lessons()
    assert bank.history.state(retired_at).get(lesson.id).retired
    assert (
        bank.history.state(datetime.now(UTC)).lessons(retired=True)
        == bank.lessons.list(retired=True, limit=10_000)[::-1]
    )
    assert bank.history.state(0).experiences == ()
    assert [i.id for i in bank.history.diff(3, datetime.now(UTC)).retired] == [lesson.id]
    with pytest.raises(NotFound, match="the last one is 4"):
        bank.history.state(5)
    with pytest.raises(UsageError, match="time zone"):
        bank.history.state(datetime(2026, 1, 1))
    for bad in (-1, True, "3", None):
        with pytest.raises(UsageError, match="a moment is"):
            bank.history.state(bad)  # type: ignore[arg-type]


class Nowhere(tzinfo):
    """A zone that does not know how far it is from UTC."""

    def utcoffset(self, dt: datetime | None, /) -> None:
        return None


def test_a_time_whose_zone_has_no_offset_is_refused(bank: ReasoningBank) -> None:
    with pytest.raises(UsageError, match="has no time zone"):
        bank.history.state(datetime(2026, 1, 1, tzinfo=Nowhere()))


def test_a_bank_goes_back_and_forward_again(bank: ReasoningBank) -> None:
    now = bank.history.state(3)
    entry = bank.history.rollback(to=1, reason="a broken tool")
    assert (entry.sequence, entry.writer, entry.entry) == (4, "ana", Rollback(to=1, reason="a broken tool"))
    assert bank.lessons.list(retired=True, limit=10_000)[::-1] == bank.history.state(1).lessons(retired=True)
    assert bank.retrieve("Ship parcel b", limit=3).shown == bank.lessons.list(limit=10_000)[::-1]
    assert len(bank.runs.pending(limit=10_000)) == 2
    assert bank.learn(RUNS[1], outcome="failure").lessons, "a run that was taken out can be learned again"
    bank.history.rollback(to=entry.at - timedelta(microseconds=1), reason="the tool was fine")
    assert bank.history.state(6).experiences == now.experiences
    assert bank.runs.pending(limit=10_000) == ()
    with pytest.raises(NotFound, match="the last one is 6"):
        bank.history.rollback(to=7, reason="?")


@example(["add", "back", "add"])
@example(["teach", "back", "add", "far back", "add", "retire"])
@given(st.lists(st.sampled_from(["add", "teach", "retire", "back", "far back", "other"]), max_size=14))
def test_the_story_of_a_lesson_is_that_of_the_whole_journal_however_often_it_was_taken_out(what: list[str]) -> None:
    anyio.run(_told, what)


async def _told(what: Sequence[str]) -> None:
    told = lesson("Told").model_copy(update={"created_at": datetime.now(UTC)})
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:

        async def do(change: Change) -> None:
            await bank.store.apply([change], scope="t", writer="tests")

        await do(Add(experience=Experience(scope="t", task="Another")))
        for number, one in enumerate(what):
            length = (await bank.admin.counts()).changes
            now = (await bank.history.state(length)).experiences
            here = next((held for home in now for held in home.lessons if held.id == told.id), None)
            if one == "add" and not here:
                await do(Add(experience=Experience(scope="t", task=f"Task {number}", lessons=(told,))))
            elif one == "teach" and now and not here:
                await do(Replace(experience=now[0].model_copy(update={"lessons": (*now[0].lessons, told)})))
            elif one == "retire" and here and not here.retired:
                await do(Retire(lesson_ids=(told.id,), reason="?"))
            elif one.endswith("back"):
                await do(Rollback(to=length // 3 if one == "far back" else length - 1, reason="?"))
            elif one == "other":
                await do(Add(experience=Experience(scope="t", task=f"Other {number}", lessons=(lesson(),))))
        assert await bank.history.list(lesson=told.id) == tuple(about(await bank.history.list(), lesson=told.id))
