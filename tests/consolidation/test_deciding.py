"""A decision is carried through although others change the bank meanwhile, and a merge can be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Experience, Extraction, Lesson, Step, Trajectory
from lessonbank.contracts.events import Event, FellBack
from lessonbank.contracts.ports import Consolidator, Decision, Store
from lessonbank.contracts.records import Add, Change, Merge, Replace, Restore, Retire, Usage
from lessonbank.contracts.store_calls import get_experience, settlement_of
from lessonbank.errors import Conflict, ModelError, NotFound, UsageError
from lessonbank.learning.consolidation import Recognise, append, unmerge
from lessonbank.learning.consolidation.lineage import merging
from lessonbank.learning.consolidation.retry import TRIES, decide, retry_on_conflict
from lessonbank.search import LexicalRetriever
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio

OLD = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
NEAR = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
BOTH = "If a search finds nothing, the index may be stale. Run `rebuild` once, then search again."
OPTIONS: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None}
Meanwhile = Callable[[], Awaitable[object]]


def run(task: str = "find the receipt of the invoice") -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="search", observation="0 results"),), answer="Found.")


def drawing(*contents: str) -> Any:
    """Draws these lessons, one a run; the last one again and again."""
    left = list(contents)

    async def extract(attempts: Any, /) -> Extraction:
        content = left.pop(0) if len(left) > 1 else left[0]
        return Extraction(lessons=(Lesson(title="Rebuild a stale index", content=content),))

    return extract


class Interrupted:
    """A policy whose every decision is overtaken by what another process does, in the order given."""

    def __init__(self, policy: Consolidator, *meanwhile: Meanwhile) -> None:
        self.policy, self.left, self.asked = policy, list(meanwhile), 0

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        decided = await self.policy(new)
        self.asked += 1
        if self.left:
            await self.left.pop(0)()
        return decided


@asynccontextmanager
async def two_banks(
    path: Path, policy: Callable[[Store], Consolidator], *, taught: Sequence[str] = (), **more: Any
) -> AsyncIterator[tuple[AsyncReasoningBank, AsyncReasoningBank, Interrupted]]:
    """Mine, whose decisions are overtaken, and theirs, on one file that holds one lesson."""
    looking = await SqliteStore.open(path)
    held = Interrupted(policy(looking))
    more = {"extractor": drawing(NEAR)} | OPTIONS | more
    async with await lessonbank.connect_async(
        path, **grouped(extractor=drawing(*taught or [OLD]), **OPTIONS)
    ) as theirs:
        await theirs.learn(run("find the invoice"), outcome="success")
        async with await lessonbank.connect_async(path, **grouped(consolidation=held, **more)) as mine:
            yield mine, theirs, held
    await looking.close()


@pytest.fixture
def merges(joins: Any) -> Callable[[Store], Consolidator]:
    """A policy that lets one lesson stand for two."""
    return lambda store: joins(LexicalRetriever(store), BOTH)


async def test_a_merge_whose_source_was_retired_meanwhile_is_decided_anew(tmp_path: Path, merges: Any) -> None:
    async with two_banks(tmp_path / "bank.db", merges) as (mine, theirs, held):
        (old,) = (await theirs.lessons.list(limit=10_000))[::-1]
        held.left = [lambda: theirs.lessons.retire(old.id, reason="wrong")]
        learned = await mine.learn(run(), outcome="success")
        assert [type(change) for change in learned.changes] == [Add]
        assert (held.asked, learned.notes) == (2, ())
        assert [i.content for i in (await theirs.lessons.list(limit=10_000))[::-1]] == [NEAR]
        assert [e.entry.kind for e in await mine.history.list()] == ["add", "retire", "add"]


async def test_a_source_that_was_erased_meanwhile_is_met_too(tmp_path: Path, merges: Any) -> None:
    async with two_banks(tmp_path / "bank.db", merges) as (mine, theirs, held):
        (old,) = (await theirs.lessons.list(limit=10_000))[::-1]
        held.left = [lambda: theirs.admin.purge(lesson=old.id, reason="asked to")]
        learned = await mine.learn(run(), outcome="success")
        assert ([type(change) for change in learned.changes], held.asked) == ([Add], 2)


async def test_a_bank_that_never_holds_still_gets_the_experience_appended_with_a_note(
    tmp_path: Path, merges: Any
) -> None:
    wordings = [f"{OLD}{' Search again.' * n}" for n in range(2 * TRIES)]
    async with two_banks(tmp_path / "bank.db", merges, taught=wordings) as (mine, theirs, held):

        async def swap() -> None:
            (old,) = (await theirs.lessons.list(limit=10_000))[::-1]
            await theirs.lessons.retire(old.id, reason="wrong")
            await theirs.learn(run(f"find invoice {len(await theirs.history.list())}"), outcome="success")

        held.left = [swap] * TRIES
        learned = await mine.learn(trajectory := run(), outcome="success")
        assert [type(change) for change in learned.changes] == [Add]
        assert held.asked == TRIES
        assert "appended without consolidation, because the bank changed during each of 3 decisions" in learned.notes[0]
        assert learned.usage.requests == TRIES, "every decision was paid for"
        assert learned.lessons[0] in (await theirs.lessons.list(limit=10_000))[::-1]
        assert await mine.runs.pending(limit=10_000) == ()
        assert (await theirs.learn(trajectory)).known == (trajectory.id,)
        assert await mine.admin.verify() == ()


async def test_consolidating_by_hand_meets_a_changed_bank_too_and_tells_the_hooks(tmp_path: Path) -> None:
    events: list[Event] = []
    told_to: dict[str, Any] = {"hooks": [events.append]}
    async with two_banks(tmp_path / "bank.db", retiring_all, **told_to) as (mine, theirs, held):
        (old,) = (await theirs.lessons.list(limit=10_000))[::-1]
        new = Experience(scope="t", task="by hand", lessons=(Lesson(title="Mine", content="By hand."),))
        held.left = [lambda: theirs.lessons.retire(old.id, reason="first")]
        assert [c.kind for c in await mine.consolidate(new)] == ["add"]
        stubborn = Interrupted(refused_retire(old.id))
        mine.parts = replace(mine.parts, consolidator=stubborn)
        again = new.model_copy(update={"id": "again", "lessons": ()})
        assert [c.kind for c in await mine.consolidate(again)] == ["add"]
        assert stubborn.asked == TRIES
        assert any(isinstance(e, FellBack) and "appended without consolidation" in e.why for e in events)
        with pytest.raises(Conflict):
            await mine.consolidate(again)


def retiring_all(store: Store) -> Consolidator:
    async def decide(new: Experience, /) -> Sequence[Change]:
        shown = [i.id async for e in store.scan(scope="t") for i in e.active_lessons]
        return [Add(experience=new), *([Retire(lesson_ids=tuple(shown), reason="all")] if shown else [])]

    return decide


def refused_retire(id: str) -> Consolidator:
    async def decide(new: Experience, /) -> Sequence[Change]:
        return [Add(experience=new), Retire(lesson_ids=(id,), reason="retired already")]

    return decide


async def test_a_run_that_two_processes_learn_at_once_is_added_once(tmp_path: Path) -> None:
    async with two_banks(tmp_path / "bank.db", lambda store: append) as (mine, theirs, held):
        recall = await mine.retrieve("find the receipt")
        trajectory = run()
        held.left = [lambda: theirs.learn(trajectory, recall=recall.id, outcome="success")]
        before = await mine.admin.counts()
        learned = await mine.learn(trajectory, recall=recall, outcome="success")
        after = await theirs.admin.counts()
        assert (learned.known, learned.experience, learned.changes) == ((trajectory.id,), None, ())
        assert learned.notes == ("learned by another call or process meanwhile",)
        assert after.experiences == before.experiences + 1
        settled = await settlement_of(mine.store, recall.id, scope="t")
        assert settled and settled.outcome == "success"


async def test_a_run_is_learned_by_whoever_knows_how_it_ended(tmp_path: Path) -> None:
    async with two_banks(tmp_path / "bank.db", lambda store: append) as (mine, theirs, held):
        trajectory = run()
        held.left = [lambda: theirs.learn(trajectory)]
        learned = await mine.learn(trajectory, outcome="success")
        assert learned.known == (trajectory.id,), "the other call found on disk how the run ended"
        verdict = (await theirs.runs.get(trajectory.id)).verdict
        assert (verdict.outcome, verdict.source) == ("success", "ground_truth")
        assert len(await theirs.lessons.list()) == 1
        assert await theirs.runs.pending(limit=10_000) == ()


async def test_what_happened_to_an_experience_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    async with two_banks(tmp_path / "bank.db", lambda store: append) as (mine, theirs, held):
        late, early = run(), run()
        first = await mine.learn([late, early], outcome=["unknown", "success"])
        held.left = [lambda: theirs.lessons.retire(first.lessons[0].id, reason="harmful")]
        second = await mine.learn(late, outcome="failure")
        assert [type(change) for change in second.changes] == [Replace]
        assert held.asked == 3
        assert first.experience
        kept = await theirs.lessons.experience(first.lessons[0].id)
        assert [lesson.retired for lesson in kept.lessons] == [True], "nor does it come back as a copy"


async def test_what_was_taken_out_meanwhile_is_added_anew(tmp_path: Path) -> None:
    async with two_banks(tmp_path / "bank.db", lambda store: append) as (mine, theirs, held):
        await mine.learn(late := run())
        held.left = [lambda: theirs.history.rollback(to=1, reason="start over")]
        learned = await mine.learn(late, outcome="failure")
        assert ([type(change) for change in learned.changes], len(learned.lessons)) == ([Add], 1)
        assert await theirs.runs.pending(limit=10_000) == ()


async def filled() -> Store:
    store = SqliteStore.in_memory()
    old = Experience(scope="t", task="find the invoice", lessons=(Lesson(title="Rebuild a stale index", content=OLD),))
    await store.apply([Add(experience=old)], scope="t", writer="tests")
    return store


@pytest.mark.parametrize(("name", "kinds"), [("append", ["add"]), ("skip", ["add"]), ("merge", ["add", "merge"])])
async def test_a_dry_run_shows_what_a_policy_would_do_and_does_nothing(name: str, kinds: list[str], joins: Any) -> None:
    store = await filled()
    events: list[Event] = []
    async with await lessonbank.connect_async(":memory:", **grouped(hooks=[events.append], **OPTIONS)) as bank:
        retriever = LexicalRetriever(store)
        policies = {"append": append, "skip": Recognise(retriever), "merge": joins(retriever, BOTH)}
        bank.store, bank.parts = store, replace(bank.parts, consolidator=policies[name])
        empty = Lesson(title="Empty search", content=NEAR)
        new = Experience(scope="t", task="find the receipt of the invoice", lessons=(empty,))
        before = await bank.history.list()
        shown = await bank.consolidate(new, dry_run=True)
        assert (await bank.history.list(), events) == (before, [])
        done = await bank.consolidate(new)
        assert tuple(entry.entry for entry in (await bank.history.list())[1:]) == done
        assert [(c.kind, told(c)) for c in shown] == [(c.kind, told(c)) for c in done]
        assert [c.kind for c in shown] == kinds


def told(change: Change) -> object:
    """What two decisions on the same have in common: a merged lesson gets an id of its own each time."""
    if isinstance(change, Merge):
        return change.source_lesson_ids, [i.content for i in change.experience.lessons]
    return change


def test_a_decision_is_its_changes() -> None:
    change = Add(experience=Experience(scope="t", task="x"))
    assert Decision([change]) == (change,)
    assert (Decision().usage, list(Decision())) == (Usage(), [])


async def test_other_failures_are_not_tried_again() -> None:
    async def broken(new: Experience, /) -> Sequence[Change]:
        raise ModelError("down")

    asked: list[int] = []

    async def kept(by: Consolidator) -> object:
        asked.append(1)
        return await decide(by, Experience(scope="t", task="x"))

    with pytest.raises(ModelError):
        await retry_on_conflict(kept, broken, last=lambda: append)
    assert len(asked) == 1


async def test_what_is_refused_even_by_itself_is_raised() -> None:
    async def kept(by: Consolidator) -> object:
        raise NotFound("no recall 'r' in this scope")

    with pytest.raises(NotFound, match="no recall"):
        await retry_on_conflict(kept, append, last=lambda: append)


# --- a merge and its undoing ------------------------------------------------------------------------------------------


async def connected(where: str | Path, *contents: str, **more: Any) -> AsyncReasoningBank:
    options = OPTIONS | {"embedder": HashingEmbedder()} | more
    return await lessonbank.connect_async(where, **grouped(extractor=drawing(*contents), **options))


@pytest.mark.parametrize("kept", ["memory", "disk"])
async def test_unmerging_brings_the_sources_back_byte_for_byte(kept: str, tmp_path: Path, joins: Any) -> None:
    where = ":memory:" if kept == "memory" else tmp_path / "bank.db"
    policy = joins(None, BOTH)
    async with await connected(where, OLD, NEAR, consolidation=policy) as bank:
        policy.retriever = LexicalRetriever(bank.store)
        first = await bank.learn(run("find the invoice"), outcome="success")
        old = ((await bank.lessons.list(limit=10_000))[::-1])[0].model_dump_json()
        learned = await bank.learn(run("find the receipt of the invoice"), outcome="success")
        merge = next(c for c in learned.changes if isinstance(c, Merge))
        assert [i.content for i in (await bank.lessons.list(limit=10_000))[::-1]] == [BOTH]

        made = await get_experience(bank.store, merge.experience.id, scope="t")
        await _is_embedded_anew(bank, made)
        await bank.store.apply(unmerge(made), scope="t", writer="tests")

        lessons = (await bank.lessons.list(limit=10_000))[::-1]
        assert lessons[0].model_dump_json() == old
        assert lessons[1] == next(i for i in learned.lessons if i.content == NEAR)
        assert first.lessons == lessons[:1]
        assert not (await get_experience(bank.store, made.id, scope="t")).active_lessons
        assert await bank.admin.verify() == ()
        with pytest.raises(Conflict):
            await bank.store.apply(unmerge(made), scope="t", writer="tests")


async def _is_embedded_anew(bank: lessonbank.AsyncReasoningBank, made: lessonbank.Experience) -> None:
    """Nothing waits for a vector, and the merged experience is found by its own."""
    embedder = HashingEmbedder()
    assert await bank.store.unindexed(scope="t", space=embedder.space, limit=9) == []
    row = (await embedder.embed([made.task], role="document"))[0]
    (match,) = (await bank.store.nearest(row, scope="t", space=embedder.space, limit=1)).matches
    assert match.experience.id == made.id
    assert np.isclose(match.score, 1.0, atol=1e-5)


async def test_a_merge_of_a_merge_is_undone_from_its_end(joins: Any) -> None:
    third = (
        "If a search that should find something finds nothing, run `rebuild` once and search again, since the index"
        " may be stale by then."
    )
    policy = joins(None, BOTH, BOTH + " That is all.")
    async with await connected(":memory:", OLD, NEAR, third, consolidation=policy) as bank:
        policy.retriever = LexicalRetriever(bank.store)
        before = []
        merges = []
        for task in ("find the invoice", "find the receipt of the invoice", "find the invoice of May"):
            before.append([i.model_dump_json() for i in (await bank.lessons.list(limit=10_000))[::-1]])
            learned = await bank.learn(run(task), outcome="success")
            merges += [c.experience.id for c in learned.changes if isinstance(c, Merge)]
        assert len(merges) == 2
        for made, state in zip(reversed(merges), reversed(before), strict=False):
            await bank.store.apply(
                unmerge(await get_experience(bank.store, made, scope="t")), scope="t", writer="tests"
            )
            assert set(state) <= {i.model_dump_json() for i in (await bank.lessons.list(limit=10_000))[::-1]}


async def test_a_run_judged_later_can_merge_too(joins: Any) -> None:
    policy = joins(None, BOTH)
    async with await connected(":memory:", OLD, NEAR, consolidation=policy) as bank:
        policy.retriever = LexicalRetriever(bank.store)
        await bank.learn(run("find the invoice"), outcome="success")
        waiting = run("find the receipt of the invoice")
        await bank.learn(waiting)
        await bank.learn(waiting, outcome="success")
        assert [i.content for i in (await bank.lessons.list(limit=10_000))[::-1]] == [BOTH]


def test_what_was_not_merged_and_what_is_undone_already_cannot_be_undone() -> None:
    one, other = [
        Experience(scope="t", task="x", lessons=(Lesson(title="Rebuild", content=said),)) for said in (OLD, NEAR)
    ]
    with pytest.raises(UsageError, match="not made by a merge"):
        unmerge(one)
    sources = [(one.lessons[0], one), (other.lessons[0], other)]
    merge = merging(Lesson(title="Rebuild", content=BOTH), sources, reason="one lesson for two")
    made = merge.experience
    retire, restore = unmerge(made)
    assert isinstance(retire, Retire) and isinstance(restore, Restore)
    assert restore.lesson_ids == merge.source_lesson_ids
    gone = made.model_copy(update={"lessons": tuple(i.model_copy(update={"retired": True}) for i in made.lessons)})
    with pytest.raises(UsageError, match="is retired"):
        unmerge(gone)
