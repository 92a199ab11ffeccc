"""What an extractor says of lessons that it was shown: the same, sharper, opposite. A person or evidence decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Experience, Learning, Recall, Retrieval, Step, Trajectory
from lessonbank.contracts.records import Add, Lesson, Relation, Retire
from lessonbank.contracts.records.settings import CONTESTS
from lessonbank.contracts.store_calls import get_setting
from lessonbank.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.full]

TASK = "Export the table of tickets as a sheet"
OLD = ("Open the table before an export", "The export button stands below the table: open the table, then press it.")
NEW = ("Scroll to the end before an export", "The button appears when the last row was seen: scroll to the end first.")


def item(said: tuple[str, str], **more: Any) -> dict[str, Any]:
    told = {"evidence": ["step 1"], "cause": "the button was not there", "rests_on": "button", "applies_to": "kind"}
    words = {"title": said[0], "description": "When a table is exported.", "content": said[1]}
    return {**told, "where": "", "unsettled": False, "choice": None, **words, **more}


def model(*replies: list[dict[str, Any]]) -> ScriptedModel:
    return ScriptedModel([*(json.dumps({"items": reply}) for reply in replies), *['{"items": []}'] * 2000])


async def opened(reader: ScriptedModel, *, holdout: Any = 0.1, **more: Any) -> lessonbank.AsyncReasoningBank:
    return await lessonbank.connect_async(
        ":memory:",
        scope="t",
        embedder="lexical",
        model=lessonbank.Model({"extractor": reader, "judge": ScriptedModel([])}),
        learning=Learning(topics="words"),
        retrieval=Retrieval(limit=1),
        evidence=Evidence(holdout=holdout),
        **more,
    )


def run(number: int) -> Trajectory:
    return Trajectory(task=TASK, steps=(Step(action="press export", observation=f"no button {number}"),), answer="done")


async def two(bank: lessonbank.AsyncReasoningBank) -> tuple[Lesson, Lesson]:
    await bank.learn(run(1), outcome="failure")
    await bank.learn(run(2), outcome="failure")
    old, new = (await bank.lessons.list())[::-1]
    return old, new


def titles(recall: Recall) -> set[str]:
    return {lesson.title for lesson in recall.shown}


SHARPER = item(NEW, stands="sharper", to="K1")
DENIES = item(NEW, stands="contradicts", to="K1")


async def test_the_extractor_is_shown_the_nearest_lessons_within_600_tokens() -> None:
    long = item((OLD[0], "Open the table, then press the button below it. " * 40))
    reader = model([long], [SHARPER])
    async with await opened(reader) as bank:
        await two(bank)
        without, beside = (call.prompt for call in reader.calls)  # one call each
        assert "K1. Open the table before an export" in beside
        assert "K1" not in without
        assert len(beside) - len(without) <= 600 * 3 + 20
        assert beside.index("record ends here") < beside.index("K1. ")


@pytest.mark.parametrize("named", ["K1", "K1. Open the table before an export", "[K1]", "1"])
async def test_what_the_extractor_calls_the_same_is_kept_once_and_names_its_run(named: str) -> None:
    reader = model([item(OLD)], [item(("Open the table", "Open it first."), stands="same", to=named)])
    async with await opened(reader) as bank:
        await bank.learn(run(1), outcome="failure")
        await bank.learn(run(2), outcome="failure")
        (one,) = await bank.lessons.list()
        (repeat,) = await bank.lessons.repeats(one.id)
        assert (one.title, repeat.lesson) == (OLD[0], None)
        assert "the extractor says" in repeat.why


async def test_what_memory_had_shown_to_a_run_is_not_corroborated_by_it() -> None:
    reader = model([item(OLD)], [item(("Open the table", "Open it first."), stands="same", to="K1")])
    async with await opened(reader, holdout=None) as bank:
        await bank.learn(run(1), outcome="failure")
        recall = await bank.retrieve(TASK)
        assert titles(recall) == {OLD[0]}
        await bank.learn(run(2), recall=recall, outcome="failure")
        (one,) = await bank.lessons.list()
        assert await bank.lessons.repeats(one.id) == ()


async def test_what_the_extractor_calls_the_same_makes_no_lesson_trusted() -> None:
    same = item(("Open the table", "Open it first."), stands="same", to="K1")
    reader = model([item(OLD)], [same])
    async with await opened(reader, safety=lessonbank.Safety(trust="corroborated")) as bank:
        await bank.learn(run(1), outcome="failure")
        await bank.learn(run(2).model_copy(update={"task": f"{TASK} today"}), outcome="failure")
        assert [one.state for one in await bank.lessons.list()] == ["probation"]


@pytest.mark.parametrize(("told", "says"), [(SHARPER, "says it more exactly"), (DENIES, "says otherwise")])
@pytest.mark.parametrize("holdout", [None, 0.1])
async def test_a_sharper_and_an_opposite_lesson_stand_beside_the_old_one_and_each_names_the_other(
    told: dict[str, Any], says: str, holdout: float | None
) -> None:
    async with await opened(model([item(OLD)], [told]), holdout=holdout) as bank:
        old, new = await two(bank)
        assert new.relation and (new.relation.lesson_ids, new.relation.kind) == ((old.id,), told["stands"])
        assert (old.state, new.state) == ("probation", "probation")
        named = {proposal.lesson.id: proposal.reason for proposal in await bank.lessons.proposals()}
        assert named.keys() == {old.id, new.id}
        assert old.title in named[new.id] and new.title in named[old.id] and says in named[old.id]
        seen = [await bank.retrieve(TASK, limit=3) for _ in range(40)]
        assert {OLD[0], NEW[0]} in [titles(recall) for recall in seen]
        odds = {one.probability for recall in seen for one in recall.candidates}
        assert 0.5 not in odds, "no side is drawn: each lesson has its own odds"


@pytest.mark.parametrize("approved", ["old", "new"])
async def test_what_contradicts_an_approved_lesson_is_not_shown_beside_it(approved: str) -> None:
    async with await opened(model([item(OLD)], [DENIES]), holdout=None) as bank:
        old, new = await two(bank)
        chosen = old if approved == "old" else new
        await bank.lessons.approve(chosen.id, by="Ana")
        assert await bank.lessons.proposals() == ()
        assert titles(await bank.retrieve(TASK, limit=3)) == {chosen.title}


async def test_a_sharper_lesson_waits_for_a_person_until_it_is_approved_or_one_of_the_two_is_retired() -> None:
    for decide in ("approve", "retire"):
        async with await opened(model([item(OLD)], [SHARPER]), holdout=None) as bank:
            old, new = await two(bank)
            if decide == "approve":
                await bank.lessons.approve(new.id, by="Ana")
            else:
                await bank.lessons.retire(old.id, by="Ana", reason="said better")
            assert await bank.lessons.proposals() == ()
            left = {old.title, new.title} if decide == "approve" else {new.title}
            assert titles(await bank.retrieve(TASK, limit=3)) == left


async def test_a_bank_in_which_lessons_were_drawn_against_each_other_opens_with_all_it_holds(tmp_path: Path) -> None:
    hint = json.dumps({"a": ["b"]})
    against = Relation(lesson_ids=("a",), kind="sharper")
    old = Lesson(id="a", title=OLD[0], content=OLD[1])
    new = Lesson(id="b", title=NEW[0], content=NEW[1], relation=against, near_duplicate_of="a")
    gone = Lesson(id="c", title="Press the button at once", content="Press it before anything else.")
    told = [Experience(scope="t", task=TASK, lessons=(one,)) for one in (old, new, gone)]
    retired = Retire(lesson_ids=("c",), reason="shown to help more", successor="b")
    path = tmp_path / "bank.db"
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical") as bank:
        await bank.store.apply([*(Add(experience=one) for one in told), retired], scope="t", writer="ledger")
        await bank.store.put_setting(CONTESTS.of("t"), hint)
    async with await lessonbank.connect_async(
        path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        held = {lesson.id: lesson for lesson in await bank.lessons.list(retired=True)}
        assert (held["b"].relation, held["b"].near_duplicate_of, held["c"].retired) == (against, "a", True)
        assert await get_setting(bank.store, CONTESTS.of("t")) == hint
        (last,) = [one.entry for one in await bank.history.list() if isinstance(one.entry, Retire)]
        assert last.successor == "b"
        assert titles(await bank.retrieve(TASK, limit=3)) == {OLD[0], NEW[0]}
        await bank.admin.purge(all=True, by="Ana", reason="asked to")
        assert await get_setting(bank.store, CONTESTS.of("t")) is None


async def test_a_lesson_that_settles_what_was_open_takes_the_place_at_once_and_can_be_undone() -> None:
    async with await opened(model([item(OLD, unsettled=True)], [SHARPER])) as bank:
        await bank.learn(run(1), outcome="failure")
        (old,) = await bank.lessons.list()
        assert old.applies_to and old.applies_to.unsettled
        before = (await bank.history.list())[0].sequence
        await bank.learn(run(2), outcome="failure")
        (one,) = await bank.lessons.list()
        assert (one.title, one.relation) == (NEW[0], None)
        assert old.id in (await bank.history.lineage(one.id)).sources
        await bank.history.rollback(to=before, reason="not so")
        assert await bank.lessons.list() == (old,)


async def test_a_lesson_that_the_bank_has_takes_no_place_of_a_new_one_and_no_note_says_that_it_was_dropped() -> None:
    new = [item((f"Press key {name}", f"Key {name} opens the {name} sheet in the export.")) for name in ("F", "G", "H")]
    async with await opened(model([item(OLD)], [item(OLD, stands="same", to="K1"), *new])) as bank:
        await bank.learn(run(1), outcome="failure")
        told = await bank.learn(run(2), outcome="failure")
        assert [lesson.title for lesson in told.lessons] == ["Press key F", "Press key G", "Press key H"]
        assert not [note for note in told.notes if "beyond the limit" in note], told.notes
