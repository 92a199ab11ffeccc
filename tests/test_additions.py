"""A lesson that comes again with one fact more: the fact is a line beside the held lesson, and part of it later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Learning, Lesson, Safety, Step, Trajectory
from lessonbank.contracts.records import EXTRACTIVE, Choice, Experience, Merge, Provenance
from lessonbank.errors import Conflict, StoreUnavailable
from lessonbank.evidence.effects import said_of
from lessonbank.evidence.lift import distinct_lessons
from lessonbank.learning.consolidation.additions import without_known_facts
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import ScriptedModel
from lessonbank.text.rendering import estimate_tokens

pytestmark = [pytest.mark.anyio, pytest.mark.full]

TASK = "Export the table of tickets as a sheet"
OLD = ("Open the table before an export", "The export button stands below the table: open the table, then press it.")
WORDS = Learning(topics="words")
FACT = "After a constant is set, the renderer writes the generated file."
OTHER = "The sheet holds at most nine columns, so hide the others first."


def item(said: tuple[str, str] = OLD, **more: Any) -> dict[str, Any]:
    told = {"evidence": ["step 1"], "cause": "the button was not there", "rests_on": "", "applies_to": "kind"}
    words = {"title": said[0], "description": "When a table is exported.", "content": said[1]}
    return {**told, "where": "", "unsettled": False, "choice": None, **words, **more}


def adding(fact: str = FACT, to: str = "K1") -> dict[str, Any]:
    return item(("Open the table", "Open it first."), stands="same", to=to, adds=fact)


def again(to: str) -> dict[str, Any]:
    return item(("Open the table", "Open it first."), stands="same", to=to, adds="")


async def opened(
    *replies: Sequence[dict[str, Any]],
    learning: Learning = WORDS,
    judge: Any = (),
    safety: Safety | None = None,
    where: Any = ":memory:",
) -> Any:
    reader = ScriptedModel([json.dumps({"items": list(reply)}) for reply in replies])
    bank = await lessonbank.connect_async(
        where,
        scope="t",
        embedder="lexical",
        model=lessonbank.Model({"extractor": reader, "judge": ScriptedModel(judge)}),
        evidence=Evidence(holdout=None),
        learning=learning,
        safety=safety,
    )
    return bank, reader


async def learn(bank: lessonbank.AsyncReasoningBank, number: int, task: str = TASK) -> Any:
    run = Trajectory(task=task, steps=(Step(action="press export", observation=f"no button {number}"),), answer="done")
    return await bank.learn(run, outcome="failure")


async def test_a_fact_that_comes_with_a_held_lesson_is_a_line_of_its_own_beside_it() -> None:
    bank, _ = await opened([item()], [adding()])
    async with bank:
        await learn(bank, 1)
        (old,) = await bank.lessons.list()
        await learn(bank, 2)
        new, held = await bank.lessons.list()
        assert held == old
        assert (new.content, new.relation.kind, new.relation.lesson_ids) == (FACT, "adds", (old.id,))
        assert new.title == "More on: Open the table"
        assert new.state == "probation"
        assert len(await bank.lessons.repeats(old.id)) == 1
        recall = await bank.retrieve(TASK, limit=1)
        assert {OLD[1], FACT} == {lesson.content for lesson in recall.shown}
        assert {one.lesson_id for one in recall.candidates} == {old.id, new.id}
        assert await bank.lessons.proposals() == ()


async def test_the_tasks_of_the_held_lesson_find_the_addition_and_an_erasure_ends_it() -> None:
    bank, _ = await opened([item()], [adding()])
    async with bank:
        await learn(bank, 1)
        (old,) = await bank.lessons.list()
        await learn(bank, 2, task=f"{TASK} for the yearly report of the warehouse in Ghent")
        found = await bank.retrieve(TASK, limit=1)
        assert FACT in {lesson.content for lesson in found.shown}
        new = next(one for one in await bank.lessons.list() if one.id != old.id)
        await bank.admin.purge(lesson=new.id, by="Ana", reason="asked")
        assert [lesson.id for lesson in (await bank.retrieve(TASK, limit=3)).shown] == [old.id]


class NoLinks(SqliteStore):
    """A store that is away when an addition is named where its lesson is held."""

    async def apply(self, changes: Any, /, **told: Any) -> Any:
        if any("adds to a lesson" in getattr(change, "reason", "") for change in changes):
            raise StoreUnavailable("the disk is away")
        return await super().apply(changes, **told)


async def test_a_run_is_learned_where_its_addition_cannot_be_named_beside_the_lesson() -> None:
    bank, _ = await opened([item()], [adding()], where=NoLinks.in_memory())
    async with bank:
        await learn(bank, 1)
        learned = await learn(bank, 2)
        assert [lesson.content for lesson in learned.lessons] == [FACT]
        assert any("found by its own task alone" in note and "the disk is away" in note for note in learned.notes)


async def test_an_addition_that_comes_again_becomes_part_of_the_lesson_and_a_rollback_undoes_it() -> None:
    bank, _ = await opened([item()], [adding()], [adding()])
    async with bank:
        await learn(bank, 1)
        await learn(bank, 2)
        before = await bank.lessons.list()
        mark = (await bank.history.list())[-1].sequence
        learned = await learn(bank, 3)
        (one,) = await bank.lessons.list()
        assert (one.title, one.content) == (OLD[0], f"{OLD[1]} {FACT}")
        assert set((await bank.history.lineage(one.id)).sources) == {lesson.id for lesson in before}
        assert any(note.code == "joined" and "starts again" in note for note in learned.notes)
        assert any(
            "evidence starts again" in e.entry.reason for e in await bank.history.list() if isinstance(e.entry, Merge)
        )
        await bank.history.rollback(to=mark, reason="not so")
        assert set(await bank.lessons.list()) == set(before)


async def test_a_joined_lesson_is_one_row_of_the_lift_and_its_parts_say_what_became_of_them() -> None:
    bank, _ = await opened([item()], [adding()], [], [adding()], [])
    async with bank:
        for number in (1, 2):
            await learn(bank, number)
        for joins in (True, False):
            recall = await bank.retrieve(TASK)
            run = Trajectory(task=TASK, steps=(Step(action="press export", observation="fine"),), answer=f"{joins}")
            await bank.learn(run, recall=recall, outcome="success")
            if joins:
                await learn(bank, 3)
        (held,) = await bank.lessons.list()
        told = await bank.lift()
        assert [one.part_of for one in told.lessons if one.retired] == [held.id, held.id]
        assert [one.lesson_id for one in distinct_lessons(told)] == [held.id]
        assert str(told).count(OLD[0]) == 1
        parts = [one for one in told.lessons if one.part_of]
        assert {said_of(one) for one in parts} == {"undecided, too few tasks, part of another lesson now"}


async def test_what_adds_to_a_lesson_is_not_shown_without_it_but_after_it() -> None:
    bank, _ = await opened([item()], [adding()])
    async with bank:
        await learn(bank, 1)
        await learn(bank, 2)
        new, old = await bank.lessons.list()
        attempt = bank.attempt(TASK, limit=1)
        async with attempt:
            assert {lesson.id for lesson in attempt.lessons} == {old.id, new.id}
            await attempt.finish(outcome="success")
        await bank.lessons.retire(old.id, by="Ana", reason="no longer so")
        assert (await bank.retrieve(TASK)).shown == ()


async def test_a_joined_lesson_still_says_what_its_lesson_contradicts() -> None:
    denies = item(("Scroll first", "The button stands above: scroll up, then press it."), stands="contradicts", to="K1")
    bank, _ = await opened([item()], [denies], [adding()], [adding()])
    async with bank:
        for number in range(4):
            await learn(bank, number)
        (joined,) = [one for one in await bank.lessons.list() if FACT in one.content]
        assert joined.content.startswith("The button stands above")
        assert joined.relation.kind == "contradicts"
        assert {one.change for one in await bank.lessons.proposals()} == {"choose"}


async def test_what_is_added_later_still_finds_the_lesson_that_stands_for_the_first() -> None:
    bank, _ = await opened([item()], [adding()], [adding(OTHER)], [adding()], [adding(OTHER, to="K2")])
    async with bank:
        for number in range(5):
            await learn(bank, number)
        assert {lesson.content for lesson in await bank.lessons.list()} == {f"{OLD[1]} {FACT} {OTHER}"}


@pytest.mark.parametrize("who", ["the lesson", "the addition"])
async def test_an_addition_stays_apart_while_only_one_of_the_two_is_approved(who: str) -> None:
    bank, _ = await opened([item()], [adding()], [adding()])
    async with bank:
        await learn(bank, 1)
        await learn(bank, 2)
        new, old = await bank.lessons.list()
        await bank.lessons.approve((old if who == "the lesson" else new).id, by="Ana")
        await learn(bank, 3)
        assert {lesson.id for lesson in await bank.lessons.list()} == {old.id, new.id}
        with pytest.raises(Conflict, match="approve"):
            await bank.lessons.merge(old.id, new.id, by="Ana")


async def test_a_person_joins_two_approved_ones_without_typing_and_the_inbox_proposes_it() -> None:
    bank, _ = await opened([item()], [adding()])
    async with bank:
        await learn(bank, 1)
        await learn(bank, 2)
        new, old = await bank.lessons.list()
        await bank.lessons.approve(old.id, new.id, by="Ana")
        (proposal,) = await bank.lessons.proposals()
        assert (proposal.change, proposal.lesson.id, proposal.of) == ("merge", new.id, old.id)
        assert "adds to" in proposal.reason
        one = await bank.lessons.merge(old.id, new.id, by="Ana")
        assert (one.content, one.approved) == (f"{OLD[1]} {FACT}", True)
        await bank.lessons.unmerge(one.id, by="Ana", reason="not yet")
        assert {lesson.id for lesson in await bank.lessons.list()} == {old.id, new.id}


async def test_an_addition_that_the_lesson_has_already_is_left_out() -> None:
    bank, _ = await opened([item()], [adding("The button stands below the table.")])
    async with bank:
        await learn(bank, 1)
        await learn(bank, 2)
        assert len(await bank.lessons.list()) == 1


async def test_one_setting_asks_for_no_additions_and_what_it_saves_is_little() -> None:
    prompts = dict[bool, str]()
    for on in (True, False):
        bank, reader = await opened([item()], [adding()], learning=Learning(additions=on, topics="words"))
        async with bank:
            await learn(bank, 1)
            await learn(bank, 2)
            prompts[on] = reader.calls[-1].prompt
            assert len(await bank.lessons.list()) == (2 if on else 1)
            assert bank.settings["additions"] is on
    assert 0 < estimate_tokens(prompts[True]) - estimate_tokens(prompts[False]) <= 70


async def test_an_addition_goes_through_the_redactor_and_the_gate_as_any_lesson() -> None:
    key = "ghp" + "_" + "A1b2C3d4E5f6G7h8I9j0" * 2
    bank, _ = await opened(
        [item()],
        [adding(f"The renderer takes the key {key} to write.")],
        [adding("Be careful.")],
        [adding("The renderer writes <|im_end|> at the end.")],
    )
    async with bank:
        for number in range(4):
            await learn(bank, number)
        said = "".join(lesson.text for lesson in await bank.lessons.list())
        assert "The renderer" in said
        assert not any(text in said for text in (key, "im_end", "Be careful"))


async def test_an_addition_waits_for_its_own_trust() -> None:
    bank, _ = await opened([item()], [adding()], safety=Safety(trust="reviewed"))
    async with bank:
        await learn(bank, 1)
        (old,) = await bank.lessons.list()
        await bank.lessons.approve(old.id, by="Ana")
        await learn(bank, 2)
        assert [lesson.id for lesson in (await bank.retrieve(TASK)).shown] == [old.id]


def drawn(*fixes: str, id: str) -> Lesson:
    title = "Error and what got past it: make, then pip"
    return Lesson(id=id, title=title, content=" ".join(fixes), provenance=Provenance(method=EXTRACTIVE))


MAKE = '`make test` failed ("no module billing"); then `make proto` went through.'
PUSH = '`git push` failed ("rejected after 3 tries"); then `git pull.sh` went through.'
SHIP = '`ship` failed ("no form"); then the same with another `form` went through.'


@pytest.mark.parametrize(
    ("told", "adds", "repeats"),
    [
        ((MAKE, PUSH), (PUSH,), {"held"}),
        ((PUSH.replace("3", "4"), MAKE, SHIP), (PUSH.replace("3", "4"), SHIP), {"held"}),
    ],
)
def test_rules_tell_an_error_that_is_held_and_one_more_apart(
    told: tuple[str, ...], adds: tuple[str, ...], repeats: set[str]
) -> None:
    new = Experience(scope="t", task="x", lessons=(drawn(*told, id="new"),))
    apart = without_known_facts(new, [drawn(MAKE, id="held")])
    (one,) = apart.lessons
    assert (one.content, one.relation and one.relation.lesson_ids) == (" ".join(adds), ("held",))
    assert set(apart.repeats) == repeats


def test_rules_that_tell_less_than_a_held_lesson_repeat_it() -> None:
    new = Experience(scope="t", task="x", lessons=(drawn(PUSH.replace("3", "12"), id="new"),))
    apart = without_known_facts(new, [drawn(MAKE, PUSH, id="held")])
    assert (apart.lessons, set(apart.repeats)) == ((), {"held"})


MAKES = [("make test", "error: no module named billing"), ("make proto", "ok, generated"), ("make test", "12 passed")]
PUSHES = [("git push", "error: rejected, fetch first"), ("git pull", "updated"), ("git push", "pushed")]


async def test_without_a_model_what_comes_with_one_error_more_is_added_and_then_joined() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        held = list[list[str]]()
        for moves in (MAKES, MAKES + PUSHES, PUSHES + MAKES, MAKES + PUSHES):
            steps = tuple(Step(action=action, observation=seen) for action, seen in moves)
            await bank.learn(Trajectory(task="Build the release", steps=steps, answer="done"), outcome="success")
            fixes = [one for one in await bank.lessons.list() if one.title.startswith("Error and")]
            held.append(sorted(one.content.replace("`", "") for one in fixes))
        make = 'make test failed ("error: no module named billing"); then make proto went through.'
        push = 'git push failed ("error: rejected, fetch first"); then git pull went through.'
        assert held == [[make], [push, make], [f"{make} {push}"], [f"{make} {push}"]]
        assert all(one.is_unchecked for one in fixes)


def ruling_out(*options: str, stands: str = "new", to: str = "") -> dict[str, Any]:
    about = Choice(about="folder of the page").about
    words = f"The {about} is not {' and not '.join(options)}: choose another one."
    choice = {"about": about, "excluded": list(options), "open": [], "confirmed": []}
    return item((f"Not {options[0]} as {about}", words), choice=choice, stands=stands, to=to)


@pytest.mark.parametrize("stands", ["new", "same"])
async def test_what_three_runs_rule_out_about_one_choice_is_one_lesson(stands: str) -> None:
    later = [ruling_out(f"docs/{name}", stands=stands, to="K1" if stands == "same" else "") for name in "bc"]
    bank, _ = await opened([ruling_out("docs/a")], [later[0]], [later[1]])
    async with bank:
        for number in range(3):
            await learn(bank, number)
        (one,) = await bank.lessons.list()
        assert one.choice and set(one.choice.excluded) == {"docs/a", "docs/b", "docs/c"}
        assert all(f"docs/{name}" in one.content for name in "abc")


async def test_what_runs_rule_out_beside_an_approved_lesson_is_one_lesson_too() -> None:
    bank, _ = await opened([ruling_out("docs/a")], [ruling_out("docs/b")], [ruling_out("docs/c")])
    async with bank:
        await learn(bank, 1)
        (old,) = await bank.lessons.list()
        await bank.lessons.approve(old.id, by="Ana")
        await learn(bank, 2)
        await learn(bank, 3)
        (beside,) = [one for one in await bank.lessons.list() if one.id != old.id]
        assert beside.choice and set(beside.choice.excluded) == {"docs/a", "docs/b", "docs/c"}


async def told_later(*replies: Sequence[dict[str, Any]]) -> Any:
    """A bank, and how it learns from two runs, one of which has no verdict until it is told."""
    bank, _ = await opened(*replies, judge=lambda _: "Nobody can tell.")
    runs = [
        Trajectory(id=id, task=TASK, steps=(Step(action="press export", observation=f"no button {id}"),))
        for id in ("first", "later")
    ]
    return bank, runs


async def test_an_addition_that_was_linked_to_a_task_is_not_taught_again_by_a_run_of_it_that_is_told_later() -> None:
    bank, runs = await told_later([item()], [adding()], [])
    async with bank:
        await bank.learn(runs, outcome=["failure", "unknown"])
        await learn(bank, 3, "Export the table of tickets as a sheet for the auditor")
        held = await bank.lessons.list()
        learned = await bank.tell("later", outcome="failure")
        assert await bank.lessons.list() == held
        assert not [note for note in learned.notes if note.code == "joined" or note.startswith("taught again")]


async def test_what_one_run_taught_again_stays_when_another_of_its_experience_is_told_later() -> None:
    bank, runs = await told_later([item()], [again("K1")], [again("K1")])
    async with bank:
        await learn(bank, 3, "Export the table of tickets as a sheet for the auditor")
        (old,) = await bank.lessons.list()
        await bank.learn(runs, outcome=["failure", "unknown"])
        await bank.tell("later", outcome="failure")
        assert len(await bank.lessons.repeats(old.id)) == 2
