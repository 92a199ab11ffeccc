"""A lesson that is meant to take the place of another is drawn against it, and takes it when the evidence says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Learning, Recall, Retrieval, Step, Trajectory
from lessonbank.contracts.records import Lesson, Retire
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


async def test_what_the_extractor_calls_the_same_is_kept_once_and_names_its_run() -> None:
    reader = model([item(OLD)], [item(("Open the table", "Open it first."), stands="same", to="K1")])
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


async def test_a_sharper_lesson_stands_beside_the_old_one_and_each_recall_shows_one_of_them() -> None:
    async with await opened(model([item(OLD)], [SHARPER])) as bank:
        old, new = await two(bank)
        assert new.against and (new.against.lesson_ids, new.against.stand) == ((old.id,), "sharper")
        seen = [await bank.retrieve(TASK) for _ in range(120)]
        sides = [titles(recall) for recall in seen if recall.shown]
        assert {len(side) for side in sides} == {1}
        share = sum(side == {NEW[0]} for side in sides) / len(sides)
        assert 0.3 < share < 0.7
        drawn = [c for recall in seen for c in recall.candidates if c.lesson_id == new.id]
        assert {c.probability for c in drawn} == {0.5}
        assert {c.withheld for c in drawn} == {True, False}


async def test_where_nothing_is_measured_the_sharper_lesson_is_shown_and_a_contradiction_waits_for_a_person() -> None:
    for told, title in ((SHARPER, NEW[0]), (DENIES, OLD[0])):
        async with await opened(model([item(OLD)], [told]), holdout=None) as bank:
            await two(bank)
            assert titles(await bank.retrieve(TASK)) == {title}


async def test_both_sides_of_a_contradiction_are_proposed_for_review_until_a_person_decides() -> None:
    async with await opened(model([item(OLD)], [DENIES]), holdout=None) as bank:
        old, new = await two(bank)
        assert {p.lesson.id for p in await bank.lessons.proposals()} == {old.id, new.id}
        await bank.lessons.approve(new.id, by="Ana")
        assert await bank.lessons.proposals() == ()
        assert titles(await bank.retrieve(TASK)) == {NEW[0]}


async def test_a_lesson_that_settles_what_was_open_takes_the_place_at_once_and_can_be_undone() -> None:
    async with await opened(model([item(OLD, unsettled=True)], [SHARPER])) as bank:
        await bank.learn(run(1), outcome="failure")
        (old,) = await bank.lessons.list()
        assert old.applies_to and old.applies_to.unsettled
        before = (await bank.history.list())[0].sequence
        await bank.learn(run(2), outcome="failure")
        (one,) = await bank.lessons.list()
        assert (one.title, one.against) == (NEW[0], None)
        assert old.id in (await bank.history.lineage(one.id)).sources
        await bank.history.rollback(to=before, reason="not so")
        assert await bank.lessons.list() == (old,)


async def test_the_evidence_lets_the_better_wording_take_the_place_and_a_person_can_undo_it() -> None:
    async with await opened(model([item(OLD)], [SHARPER]), holdout=0.1) as bank:
        old, new = await two(bank)
        changes: list[Any] = []
        for number in range(10, 700):
            recall = await bank.retrieve(TASK)
            helped = NEW[0] in titles(recall)
            learned = await bank.learn(run(number), recall=recall, outcome="success" if helped else "failure")
            changes += [c for c in learned.changes if isinstance(c, Retire)]
            if changes:
                break
        (change,) = changes
        assert (change.lesson_ids, change.successor) == ((old.id,), new.id)
        assert "shown to help more" in change.reason
        await bank.lessons.restore(old.id, reason="not so")
        assert {one.id for one in await bank.lessons.list()} == {old.id, new.id}


OTHER = "Refund a parcel that came back"
OTHER_OLD = ("Read the label before a refund", "The label of a returned parcel names the order: read it, then refund.")
OTHER_NEW = ("Weigh what came back first", "An empty box is refunded by hand: weigh the parcel before anything else.")


async def test_one_wording_at_most_takes_a_place_in_150_outcomes() -> None:
    reader = model([item(OLD)], [SHARPER], [item(OTHER_OLD)], [item(OTHER_NEW, stands="sharper", to="K1")])
    asked = {TASK: NEW[0], OTHER: OTHER_NEW[0]}
    moved: list[int] = []
    async with await opened(reader) as bank:
        await two(bank)
        for number in (3, 4):
            await bank.learn(run(number).model_copy(update={"task": OTHER}), outcome="failure")
        for number in range(10, 1_200):
            task = (TASK, OTHER)[number % 2]
            recall = await bank.retrieve(task)
            outcome = "success" if asked[task] in titles(recall) else "failure"
            learned = await bank.learn(run(number).model_copy(update={"task": task}), recall=recall, outcome=outcome)
            moved += [number for one in learned.changes if isinstance(one, Retire) and one.successor]
            if len(moved) == 2:
                break
    first, second = moved
    assert second - first >= 150
