"""A run is erased: what it alone taught goes with it, and what others taught again lives on in their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, Step, Trajectory
from lessonbank.contracts.ports import RunFilter
from lessonbank.contracts.records import Experience, LessonState, Run, TrustState
from lessonbank.contracts.records.settings import CONTESTS
from lessonbank.contracts.store_calls import every_recall
from lessonbank.errors import Conflict, ModelError
from lessonbank.learning.consolidation.succession import as_new
from lessonbank.testing import ScriptedModel
from lessonbank.testing.store_samples import collected

pytestmark = pytest.mark.anyio

SECRET = "Jacaranda"
SAYS = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
IN_FORM = "A search that finds nothing may have a stale index; run rebuild once. Then search again!"
SCOPE = "acme/support"


def run(user: str, *, task: str = "", seen: str = "error: CHANGELOG.md has no entry") -> Trajectory:
    """A run from which the extractor that needs no model draws two lessons."""
    steps = [
        Step(action="make release", observation=seen),
        Step(action="make changelog", observation="updated"),
        Step(action="make release", observation="released"),
    ]
    told = task or f"Publish release 1.{user.removeprefix('u-')} of the parser"
    return Trajectory(task=told, steps=steps, answer="Published.", metadata={"user": user})


async def connected(**options: Any) -> lessonbank.AsyncReasoningBank:
    plain = {"scope": SCOPE, "embedder": "lexical", "evidence": Evidence(holdout=None)}
    return await lessonbank.connect_async(":memory:", **(plain | options))


Extractor = Callable[[Sequence[Run]], Any]


def saying(*contents: str) -> Extractor:
    """An extractor that says these contents, one after the other, and nothing afterwards."""
    left = list(contents)

    async def extract(attempts: Sequence[Run], /) -> Extraction:
        return Extraction(lessons=(Lesson(title="Rebuild a stale index", content=left.pop(0)),) if left else ())

    return extract


async def learn_from(bank: lessonbank.AsyncReasoningBank, count: int) -> None:
    """Learn from a run of each of so many users, all of which teach the same."""
    for n in range(count):
        await bank.learn(run(f"u-{n}"), outcome="success")


async def told(bank: lessonbank.AsyncReasoningBank) -> str:
    """All that a bank can be asked for, past and present, as one text."""
    store = bank.store
    kept = [
        *await collected(store.scan(scope=SCOPE)),
        *await collected(store.journal(scope=SCOPE)),
        *await collected(every_recall(store, scope=SCOPE)),
        *await store.runs(RunFilter(limit=1000), scope=SCOPE),
    ]
    return "\n".join([*(one.model_dump_json() for one in kept), json.dumps(dict(await store.settings("")))])


async def erased(bank: lessonbank.AsyncReasoningBank, user: str, *, preview: bool = False) -> Any:
    return await bank.admin.purge(metadata={"user": user}, by="Ana", reason="asked to", preview=preview)


async def test_what_ten_taught_lives_on_when_one_of_them_is_erased() -> None:
    async with await connected() as bank:
        await learn_from(bank, 10)
        before = await bank.lessons.list()
        await bank.lessons.approve(*(lesson.id for lesson in before), by="Ana")
        would = await erased(bank, "u-0", preview=True)
        assert await erased(bank, "u-0") == would
        after = await bank.lessons.list()
        assert [one.text for one in after] == [one.text for one in before]
        assert {one.id for one in after}.isdisjoint(one.id for one in before)
        assert {one.of for one in would.successors} == {one.id for one in before}
        assert {one.content for one in would.successors} == {one.content for one in before}
        second = (await bank.runs.list(metadata={"user": "u-1"}))[0].trajectory.id
        assert {one.runs for one in would.successors} == {(second,)}
        assert {one.provenance.trajectory_ids for one in after} == {(second,)}
        assert [len(await bank.lessons.repeats(one.id)) for one in after] == [8, 8]
        assert all(one.approved for one in after) and all(one.approved for one in would.successors)
        assert (await bank.retrieve("Publish release 2.0 of the parser")).lessons
        assert not await bank.runs.list(metadata={"user": "u-0"})
        assert await bank.admin.verify() == ()


async def test_one_after_the_other_is_erased_and_the_last_takes_the_lessons_along() -> None:
    async with await connected() as bank:
        await learn_from(bank, 4)
        for n in range(3):
            await erased(bank, f"u-{n}")
            assert [len(await bank.lessons.repeats(one.id)) for one in await bank.lessons.list()] == [2 - n, 2 - n]
            assert await bank.admin.verify() == ()
        await erased(bank, "u-3")
        assert await bank.lessons.list(retired=True) == ()


async def test_several_are_erased_at_once_and_their_lessons_go_to_who_stays() -> None:
    async with await connected() as bank:
        await learn_from(bank, 4)
        gone = [one.trajectory.id for n in (0, 1) for one in await bank.runs.list(metadata={"user": f"u-{n}"})]
        would = await bank.admin.purge(run=gone, reason="asked to", by="Ana")
        (stays,) = [one.trajectory.id for one in await bank.runs.list(metadata={"user": "u-2"})]
        assert {one.runs for one in would.successors} == {(stays,)}
        left = await told(bank)
        assert not any(id in left for id in gone)


async def test_what_lives_on_is_there_after_a_rollback_to_before_the_purge() -> None:
    async with await connected() as bank:
        await learn_from(bank, 4)
        await bank.lessons.approve(*(lesson.id for lesson in await bank.lessons.list()), by="Ana")
        length = len(await bank.history.list(limit=1000))
        later = await bank.learn(run("u-9", task="Water the plants of the office"), outcome="success")
        await erased(bank, "u-0")
        heirs = [one for one in await bank.lessons.list() if one.id not in {i.id for i in later.lessons}]
        assert len(heirs) == 2
        for to in (length, length - 1, 2, length):
            back = await bank.history.rollback(to=to, reason="the office was a mistake")
            assert list(await bank.lessons.list()) == heirs
            assert heirs == list((await bank.history.state(await last(bank))).lessons())[::-1]
            assert await bank.admin.verify() == ()
            held = await bank.runs.list(metadata={"user": "u-3"})
            assert [len(await bank.lessons.repeats(one.id)) for one in heirs] == [0 if to == 2 else 2] * 2
            assert [one.status for one in held] == ["pending" if to == 2 else "learned"]
        await bank.history.rollback(to=back.sequence - 1, reason="it was none")
        assert await bank.admin.verify() == ()
        await bank.history.rollback(to=1, reason="before anybody taught it again")
        assert await bank.lessons.list() == ()
        assert len(await bank.runs.list(status="pending")) == 4, "what taught it is to be learned again"


async def last(bank: lessonbank.AsyncReasoningBank) -> int:
    return len(await bank.history.list())


async def test_no_word_of_an_erased_run_is_left_and_no_rollback_brings_one_back() -> None:
    async with await connected() as bank:
        await bank.learn(run("u-0", task=f"Publish the parser of {SECRET}", seen=f"error: {SECRET} is missing"))
        await bank.learn(run("u-0", task=f"Publish the parser of {SECRET}"), outcome="success")
        for n in (1, 2):
            await bank.learn(run(f"u-{n}", task="Publish the parser of Acme"), outcome="success")
        assert SECRET in await told(bank)
        length = len(await bank.history.list(limit=1000))
        await erased(bank, "u-0")
        assert SECRET not in await told(bank)
        found = (await bank.retrieve("Publish the parser of Acme")).text
        assert "make changelog" in found
        await bank.admin.rebuild()
        assert {one.content for one in (await bank.retrieve("Publish the parser of Acme")).lessons} != set()
        for to in range(length, 0, -1):
            await bank.history.rollback(to=to, reason="look back")
            assert SECRET not in await told(bank)
            assert await bank.admin.verify() == ()


async def test_kept_words_of_another_run_live_on_and_are_not_approved() -> None:
    async with await connected(parts=Parts(extractor=saying(SAYS, IN_FORM, IN_FORM))) as bank:
        await learn_from(bank, 3)
        (known,) = await bank.lessons.list()
        await bank.lessons.approve(known.id, by="Ana")
        would = await erased(bank, "u-0", preview=True)
        assert [(one.of, one.content, one.approved) for one in would.successors] == [(known.id, IN_FORM, False)]
        await erased(bank, "u-0")
        (heir,) = await bank.lessons.list()
        assert (heir.content, heir.state, heir.approved) == (IN_FORM, "probation", False)
        (again,) = await bank.lessons.repeats(heir.id)
        assert again.runs[0].trajectory_id == (await bank.runs.list(metadata={"user": "u-2"}))[0].trajectory.id
        assert SAYS not in await told(bank)
        assert await bank.admin.verify() == ()


async def test_kept_words_that_name_what_only_the_erased_run_named_are_not_taken() -> None:
    """The model that wrote them may have been shown the lesson that goes."""
    said = f"A search that finds nothing may have a stale index. Run `rebuild` of {SECRET} once, then search again."
    again = said.replace(". Run", "; run")
    async with await connected(parts=Parts(extractor=saying(said, again))) as bank:
        await bank.learn(run("u-0", seen=f"error: {SECRET} has no entry"), outcome="success")
        await bank.learn(run("u-1"), outcome="success")
        (known,) = await bank.lessons.list()
        assert [repeat.lesson is not None for repeat in await bank.lessons.repeats(known.id)] == [True]
        assert (await erased(bank, "u-0")).successors == ()
        assert await bank.lessons.list() == ()
        assert SECRET not in await told(bank)


async def test_words_that_come_from_an_erased_run_too_are_nobodys_own() -> None:
    """Nothing says which of several runs of one task taught a lesson in which words."""
    forms = [SAYS, SAYS.replace(". Run", "; run"), SAYS.replace("once, then", "once. Then")]
    async with await connected(parts=Parts(extractor=saying(*forms, IN_FORM))) as bank:
        await bank.learn(run("u-0"), outcome="success")
        for n in (1, 2):
            shared = [run(user, task=f"Search again, {n}") for user in ("u-0", f"u-{n}")]
            await bank.learn(shared, outcome=["success"] * 2)
        (known,) = await bank.lessons.list()
        assert [one.lesson is not None for one in await bank.lessons.repeats(known.id)] == [True, True]
        (succeeded,) = (await erased(bank, "u-0")).successors
        (stays,) = await bank.runs.list(metadata={"user": "u-1"})
        assert (succeeded.content, succeeded.runs) == (IN_FORM, (stays.trajectory.id,))
        left = await told(bank)
        assert not any(form in left for form in forms)


async def test_who_taught_a_lesson_again_in_words_of_the_erased_run_does_so_without_them() -> None:
    said = f"A search that finds nothing may have a stale index. Run `rebuild` of {SECRET} once, then search again."
    forms = said, said.replace(". Run", "; run"), said.replace("once, then", "once. Then")
    async with await connected(parts=Parts(extractor=saying(*forms))) as bank:
        for n in range(3):
            seen = "error: CHANGELOG.md has no entry" if n == 2 else f"error: {SECRET} has no entry"
            await bank.learn(run(f"u-{n}", seen=seen), outcome="success")
        await erased(bank, "u-0")
        (heir,) = await bank.lessons.list()
        assert heir.content == forms[1], "a run that stays names it too"
        assert [one.lesson for one in await bank.lessons.repeats(heir.id)] == [None]
        assert forms[2] not in await told(bank)


async def test_words_that_nobody_kept_are_drawn_again_from_the_run_that_stays() -> None:
    async with await connected(parts=Parts(extractor=saying(SAYS, SAYS, SAYS))) as bank:
        await learn_from(bank, 2)
        (known,) = await bank.lessons.list()
        (would,) = (await erased(bank, "u-0", preview=True)).successors
        assert (would.of, would.content, len(would.runs)) == (known.id, "", 1)
        (succeeded,) = (await erased(bank, "u-0")).successors
        (heir,) = await bank.lessons.list()
        assert (succeeded.content, heir.content) == (SAYS, SAYS)
        assert heir.provenance.trajectory_ids == would.runs


@pytest.mark.parametrize("why", ["it says something else", "the model fails", "its text was forgotten"])
async def test_where_nobody_has_words_the_lesson_goes(why: str) -> None:
    said = saying(SAYS, SAYS, "Ask the customer for the number of the order before you cancel anything.")
    calls = list[int]()

    async def extract(attempts: Sequence[Run], /) -> Extraction:
        calls.append(len(attempts))
        if len(calls) == 3 and why == "the model fails":
            raise ModelError("down")
        return await said(attempts)

    async with await connected(parts=Parts(extractor=extract)) as bank:
        await bank.learn(run("u-0"), outcome="success")
        await bank.learn(run("u-1"), outcome="success")
        if why == "its text was forgotten":
            erasing = (await bank.lessons.list())[0].provenance.trajectory_ids
            await bank.admin.forget(days=1e-9)
            gone = await bank.admin.purge(run=erasing, by="Ana", reason="asked to")
        else:
            gone = await erased(bank, "u-0")
        assert gone.successors == ()
        assert len(calls) == (2 if why == "its text was forgotten" else 3)
        assert await bank.lessons.list() == ()
        assert await bank.admin.verify() == ()


@pytest.mark.parametrize("state", ["retired", "quarantined"])
async def test_what_a_person_hid_stays_hidden(state: LessonState) -> None:
    async with await connected() as bank:
        await learn_from(bank, 3)
        ids = [one.id for one in await bank.lessons.list()]
        hide = bank.lessons.retire if state == "retired" else bank.lessons.quarantine
        await hide(*ids, reason="wrong")
        await erased(bank, "u-0")
        assert len(await bank.lessons.list(state=state)) == 2
        assert (await bank.retrieve("Publish release 2.0 of the parser")).text == ""
        assert await bank.admin.verify() == ()


async def test_an_approval_for_some_tasks_passes_on_to_none() -> None:
    async with await connected() as bank:
        await learn_from(bank, 3)
        for lesson in await bank.lessons.list():
            await bank.lessons.approve(lesson.id, by="Ana")
            await bank.lessons.narrow(lesson.id, to="release parser", by="Ana")
        await erased(bank, "u-0")
        assert {(one.state, one.approved, one.only_for_tasks) for one in await bank.lessons.list()} == {
            ("probation", False, ())
        }


@pytest.mark.parametrize("state", ["probation", "active", "quarantined"])
async def test_kept_words_in_quarantine_stay_there(state: TrustState) -> None:
    doubted = Lesson(title="Rebuild a stale index", content=IN_FORM, state="quarantined", risk="it sounds odd")
    heir = as_new(doubted, Lesson(title="Rebuild a stale index", content=SAYS, state=state), retired=False)
    assert (heir.state, heir.risk, heir.approved) == ("quarantined", doubted.risk, False)


async def test_what_independent_runs_taught_stays_trusted_where_the_bank_trusts_that() -> None:
    async with await connected(safety="corroborated") as bank:
        await learn_from(bank, 4)
        assert {one.state for one in await bank.lessons.list()} == {"active"}
        await erased(bank, "u-0")
        assert {one.state for one in await bank.lessons.list()} == {"active"}
        await erased(bank, "u-1")
        await erased(bank, "u-2")
        assert {one.state for one in await bank.lessons.list()} == {"probation"}


async def test_the_sources_of_a_merge_that_goes_are_shown_again_where_they_stay() -> None:
    other = "Ask the customer for the number of the order before you cancel anything."
    async with await connected(parts=Parts(extractor=saying(SAYS, other))) as bank:
        await learn_from(bank, 2)
        theirs, mine = await bank.lessons.list()
        merged = await bank.lessons.merge(mine.id, theirs.id, title="Both", content=f"{SAYS} {other}", by="Ana")
        (would,) = (await erased(bank, "u-0", preview=True)).successors
        assert (would.of, would.lesson_id, would.content) == (merged.id, theirs.id, other)
        await erased(bank, "u-0")
        assert [one.id for one in await bank.lessons.list()] == [theirs.id]
        assert SAYS not in await told(bank)
        assert await bank.admin.verify() == ()


async def test_a_lesson_that_a_person_names_does_not_live_on() -> None:
    async with await connected() as bank:
        await learn_from(bank, 3)
        one, other = await bank.lessons.list()
        await bank.admin.purge(lesson=one.id, by="Ana", reason="wrong")
        assert [left.id for left in await bank.lessons.list()] == [other.id]


async def test_words_that_a_lesson_has_that_stays_are_not_kept_twice() -> None:
    async with await connected(parts=Parts(extractor=saying(SAYS, IN_FORM, IN_FORM))) as bank:
        await learn_from(bank, 2)
        here = await bank.lessons.add(title="Rebuild a stale index", content=IN_FORM + " Now.", task="t", by="Ana")
        await bank.lessons.edit(here.id, content=IN_FORM, by="Ana")
        (one,) = (await erased(bank, "u-0")).successors
        assert one.lesson_id == here.id
        (left,) = await bank.lessons.list()
        assert (left.id, left.approved) == (here.id, True)
        assert len(await bank.lessons.repeats(here.id)) == 1


async def test_a_run_loses_the_lessons_that_it_was_shown_and_that_are_erased() -> None:
    async with await connected() as bank:
        await bank.learn(run("u-0", seen=f"error: {SECRET} has no entry"), outcome="success")
        lesson = (await bank.lessons.list())[0]
        await bank.lessons.edit(lesson.id, content=f"Ask {SECRET} first.", by="Ana")
        recall = await bank.retrieve("Publish release 7 of the parser")
        assert SECRET in recall.text
        prompt = f"You publish.\n{recall.text}\nBe kind."
        shown = run("u-1", task="Publish release 7 of the parser", seen="done")
        await bank.learn(shown.model_copy(update={"instructions": prompt}), outcome="success", recall=recall)
        await erased(bank, "u-0")
        assert SECRET not in await told(bank)
        (left,) = await bank.runs.list()
        assert left.trajectory.instructions.startswith("You publish.\n")
        assert left.trajectory.instructions.endswith("\nBe kind.")


async def test_a_run_that_is_learned_meanwhile_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await connected() as bank:
        await learn_from(bank, 2)
        plain, tries = type(bank.store).purge, list[int]()

        async def raced(store: Any, *args: Any, **told: Any) -> Any:
            tries.append(len(told["changes"]))
            if len(tries) == 1:
                raise Conflict("changed meanwhile")
            return await plain(store, *args, **told)

        monkeypatch.setattr(type(bank.store), "purge", raced)
        await erased(bank, "u-0")
        assert len(tries) == 2
        assert len(await bank.lessons.list()) == 2


async def test_no_model_is_asked_for_a_preview() -> None:
    model = ScriptedModel([])
    async with await connected(model=model) as bank:
        lesson = Lesson(title="Rebuild a stale index", content=SAYS)
        await bank.consolidate(Experience(scope=SCOPE, task="Search", lessons=(lesson,)))
        await bank.admin.purge(metadata={"user": "u-0"}, reason="asked to", preview=True)
        assert not model.calls


async def test_after_a_purge_of_everything_no_setting_names_the_scope() -> None:
    async with await connected() as bank:
        await bank.store.put_setting(CONTESTS.of(SCOPE), "{}")  # as banks of before have it
        assert [key for key in await bank.store.settings("") if SCOPE in key]
        await bank.admin.purge(all=True, by="Ana", reason="asked to")
        assert [key for key in await bank.store.settings("") if SCOPE in key] == []
