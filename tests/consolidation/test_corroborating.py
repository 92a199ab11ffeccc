"""A lesson becomes trusted when a run that knew nothing of it taught the same, and by nothing else that a run says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lessonbank import Experience, Lesson
from lessonbank.contracts.ports import Decision
from lessonbank.contracts.records import Add, Change, Merge, Provenance, Trust, TrustState, Usage
from lessonbank.contracts.store_calls import get_experience
from lessonbank.learning.consolidation import Corroborating, Recognise, append
from lessonbank.search import LexicalRetriever
from lessonbank.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

SCOPE = "t"
SAME = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
FORM = "A search that finds nothing may have a stale index: run `rebuild` once, then search again!"
NEAR = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
BOTH = "If a search finds nothing, the index may be stale. Run `rebuild` once, then search again."
OTHER = "Open the returns page from the order itself, because its own menu lists labels that have expired."


def lesson(content: str = SAME, *, run: str = "1", writer: str = "", state: TrustState = "probation") -> Lesson:
    identity = f"key:{writer}" if writer else "process:here"
    provenance = Provenance(writer=writer or "agent", identity=identity, trajectory_ids=(run,) if run else ())
    return Lesson(title="Rebuild a stale index", content=content, state=state, provenance=provenance)


def of(*lessons: Lesson, task: str = "find the invoice of may") -> Experience:
    return Experience(scope=SCOPE, task=task, lessons=lessons)


async def held(*experiences: Experience, moved: TrustState | None = None) -> SqliteStore:
    """A store with these; `moved` is what all their lessons are moved to."""
    store = SqliteStore.in_memory()
    await store.apply([Add(experience=e) for e in experiences], scope=SCOPE, writer="tests")
    if moved:
        ids = tuple(i.id for e in experiences for i in e.lessons)
        move = Trust(lesson_ids=ids, state=moved, by="person", reason="seen")
        await store.apply([move], scope=SCOPE, writer="tests")
    return store


async def decided(store: SqliteStore, new: Experience, *, inner: Any = append) -> Decision:
    """What is decided on `new`; it is applied, since what does not fit the store is no decision."""
    changes = await Corroborating(inner, LexicalRetriever(store))(new)
    await store.apply(changes, scope=SCOPE, writer="tests")
    return changes


def trusted(changes: Sequence[Change]) -> set[str]:
    return {id for change in changes if isinstance(change, Trust) for id in change.lesson_ids}


@pytest.mark.parametrize("content", [SAME, FORM])
async def test_what_two_independent_runs_taught_becomes_active_together(content: str) -> None:
    old, new = of(lesson()), of(lesson(content, run="2"), task="find the invoice of june")
    store = await held(old)
    changes = await decided(store, new)
    assert trusted(changes) == {old.lessons[0].id, new.lessons[0].id}
    moves = [change for change in changes if isinstance(change, Trust)]
    assert {(m.state, m.by, frozenset(m.evidence)) for m in moves} == {
        ("active", "corroboration", frozenset({"1", "2"}))
    }
    assert [i.state for e in (old, new) for i in (await get_experience(store, e.id, scope=SCOPE)).lessons] == [
        "active"
    ] * 2


@pytest.mark.parametrize(
    "new",
    [
        of(lesson(), task="find the invoice of june"),
        of(lesson(run="2")),
        of(lesson(run="2"), task=" Find THE invoice  of may"),
        of(lesson(run=""), task="find the invoice of june"),
        of(lesson(NEAR, run="2"), task="find the invoice of june"),
        of(lesson(OTHER, run="2"), task="find the invoice of june"),
        of(lesson(run="2", writer="ana"), task="find the invoice of june"),
    ],
    ids=["same run", "same task", "same task in other form", "no run", "near", "another", "same writer"],
)
async def test_what_is_not_independent_or_not_the_same_moves_nothing(new: Experience) -> None:
    store = await held(of(lesson(writer="ana")))
    assert trusted(await decided(store, new)) == set()


async def test_a_lesson_that_says_the_opposite_corroborates_nothing() -> None:
    store = await held(of(lesson("Never run `rebuild` twice: the second one drops the index that is being read.")))
    opposite = lesson("Always run `rebuild` twice: the second one drops the index that is being read.", run="2")
    assert trusted(await decided(store, of(opposite, task="find the invoice of june"))) == set()


TWISTED = SAME.replace("search again", "delete again")


@pytest.mark.parametrize(
    ("first", "second", "believed"),
    [("mal", "mal", False), ("mal", "bob", True), ("ana", "ana", False), ("", "", True)],
    ids=["one other writer", "two writers", "who taught what is active", "writers that nothing tells apart"],
)
async def test_one_writer_alone_does_not_twist_what_another_one_taught(first: str, second: str, believed: bool) -> None:
    store = await held(of(lesson(writer="ana")), moved="active")
    await decided(store, of(lesson(TWISTED, run="2", writer=first), task="find the invoice of june"))
    again = of(lesson(TWISTED, run="3", writer=second), task="find the invoice of july")
    assert bool(trusted(await decided(store, again))) is believed


async def test_a_twisted_lesson_is_found_out_where_its_tasks_are_far_from_those_of_the_true_one() -> None:
    store = await held(of(lesson(writer="ana"), task="print a label"), moved="active")
    for number in range(30):
        of_others = of(
            lesson(f"{OTHER} See page {number}.", run=f"other {number}"), task=f"find the invoice of {number}"
        )
        await store.apply([Add(experience=of_others)], scope=SCOPE, writer="tests")
    await decided(store, of(lesson(TWISTED, run="2", writer="mal"), task="find the invoice of june"))
    again = of(lesson(TWISTED, run="3", writer="mal"), task="find the invoice of july")
    watched = Corroborating(append, LexicalRetriever(store), store=store)
    assert trusted(await watched(again)) == set()


async def test_honest_runs_do_not_vouch_for_a_twisted_lesson() -> None:
    twisted = of(lesson(TWISTED, writer="mal"))
    store = await held(twisted)
    for number, writer in enumerate(("ana", "bob", "eve")):
        await decided(store, of(lesson(run=f"honest {number}", writer=writer), task=f"find invoice {number}"))
    assert [i.state for i in (await get_experience(store, twisted.id, scope=SCOPE)).lessons] == ["probation"]


async def test_what_was_trusted_before_makes_the_same_of_another_run_trusted_once() -> None:
    old, new = of(lesson()), of(lesson(run="2"), task="find the invoice of june")
    store = await held(old, moved="active")
    assert trusted(await decided(store, new)) == {new.lessons[0].id}


async def test_two_lessons_of_one_experience_move_a_lesson_once() -> None:
    old = of(lesson())
    twice = of(lesson(run="2"), lesson(FORM, run="2"), task="find the invoice of june")
    store = await held(old)
    changes = await decided(store, twice)
    assert trusted(changes) == {old.lessons[0].id, *(i.id for i in twice.lessons)}
    assert sum(isinstance(change, Trust) for change in changes) == 3


async def test_a_quarantined_lesson_neither_moves_nor_speaks_for_another() -> None:
    old, new = of(lesson()), of(lesson(run="2"), task="find the invoice of june")
    store = await held(old, moved="quarantined")
    assert trusted(await decided(store, new)) == set()
    assert [i.state for i in (await get_experience(store, old.id, scope=SCOPE)).lessons] == ["quarantined"]


async def test_a_lesson_that_comes_in_quarantined_stays_there_and_speaks_for_nobody() -> None:
    new = of(lesson(run="2", state="quarantined"), task="find the invoice of june")
    store = await held(of(lesson()))
    assert trusted(await decided(store, new)) == set()
    assert (await get_experience(store, new.id, scope=SCOPE)).lessons[0].state == "quarantined"


async def test_a_retired_lesson_speaks_for_nobody() -> None:
    old = of(lesson().model_copy(update={"retired": True}), lesson(OTHER))
    assert trusted(await decided(await held(old), of(lesson(run="2"), task="find the invoice of june"))) == set()


async def test_what_another_scope_holds_speaks_for_nobody() -> None:
    store = SqliteStore.in_memory()
    theirs = of(lesson()).model_copy(update={"scope": "somebody/else"})
    await store.apply([Add(experience=theirs)], scope="somebody/else", writer="tests")
    assert trusted(await decided(store, of(lesson(run="2"), task="find the invoice of june"))) == set()


async def test_a_duplicate_that_is_left_out_still_speaks_for_the_one_that_stays() -> None:
    old, new = of(lesson()), of(lesson(run="2"), task="find the invoice of june")
    store = await held(old)
    changes = await decided(store, new, inner=Recognise(LexicalRetriever(store)))
    assert trusted(changes) == {old.lessons[0].id}
    assert (await get_experience(store, new.id, scope=SCOPE)).lessons == ()


async def test_what_the_inner_policy_decides_and_costs_comes_first_and_whole() -> None:
    inner_changes: list[Change] = []

    async def inner(new: Experience, /) -> Decision:
        inner_changes.append(Add(experience=new))
        return Decision(inner_changes, usage=Usage(requests=3))

    store = await held(of(lesson()))
    changes = await decided(store, of(lesson(run="2"), task="find the invoice of june"), inner=inner)
    assert list(changes[:1]) == inner_changes
    assert changes.usage.requests == 3
    assert all(isinstance(change, Trust) for change in changes[1:])


# --- merges ----------------------------------------------------------------------------------------------------------


async def test_what_was_merged_of_lessons_on_probation_is_on_probation(joins: Any) -> None:
    store = await held(of(lesson()))
    changes = await decided(
        store, of(lesson(NEAR, run="2"), task="find the invoice of june"), inner=joins(LexicalRetriever(store), BOTH)
    )
    assert any(isinstance(change, Merge) for change in changes)
    assert trusted(changes) == set()


async def test_what_is_quarantined_is_never_merged_out(joins: Any) -> None:
    new = of(lesson(NEAR, run="2"), task="find the invoice of june")
    store = await held(of(lesson()), moved="quarantined")
    assert [change.kind for change in await decided(store, new, inner=joins(LexicalRetriever(store), BOTH))] == ["add"]
    hidden = of(lesson(NEAR, run="2", state="quarantined"), task="find the invoice of june")
    store = await held(of(lesson()), moved="active")
    assert [change.kind for change in await decided(store, hidden, inner=joins(LexicalRetriever(store), BOTH))] == [
        "add"
    ]
