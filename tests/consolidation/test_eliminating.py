"""Exclusions about one choice in one place are one lesson that narrows, through a bank with a scripted extractor."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.contracts.records import Choice, Learned, Lesson, Merge
from lessonbank.guard.gate import NOT_CHECKED
from lessonbank.learning.consolidation.elimination import both, left
from lessonbank.testing import ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = [pytest.mark.anyio, pytest.mark.full]

PLACE = "Orchard Pricing"
OPTIONS = ("ENH", "MNT", "REL")


def choice(
    excluded: tuple[str, ...] = (), confirmed: tuple[str, ...] = (), *, options: tuple[str, ...] = OPTIONS
) -> dict[str, Any]:
    left_open = [o for o in options if o not in (*excluded, *confirmed)]
    return {"about": "subject prefix", "excluded": [*excluded], "open": left_open, "confirmed": [*confirmed]}


def item(told: dict[str, Any] | None, *, where: str = PLACE, content: str = "", **more: Any) -> dict[str, Any]:
    options = ", ".join([*told["excluded"], *told["open"], *told["confirmed"]]) if told else ""
    verb = "Use" if told and told["confirmed"] else "Do not use"
    named = ", ".join([*told["excluded"], *told["confirmed"]]) if told else "it"
    return {
        "evidence": ["step 1"],
        "cause": "the commit was not accepted",
        "rests_on": "the verdict",
        "applies_to": "place",
        "where": where,
        "unsettled": False,
        "choice": told,
        "title": f"{verb} {named} as subject prefix in {where}",
        "description": f"When you commit in {where}.",
        "content": content or f"In {where} the subject prefix decides whether a commit is accepted: {options}.",
    } | more


def scripted(*replies: Any) -> Any:
    waiting = [json.dumps({"items": reply}) for reply in replies]

    def answer(messages: Any) -> str:
        """The next lessons; the gate's question about a lesson's wording gets no answer."""
        return waiting.pop(0) if messages[0].content.startswith("You write lessons") else "{}"

    return answer


def bank(*replies: Any, model: ScriptedModel | None = None, **more: Any) -> Any:
    return lessonbank.connect_async(
        ":memory:",
        **grouped(
            model={"extractor": model or ScriptedModel(scripted(*replies)), "judge": ScriptedModel([])},
            topics="words",
            embedder="lexical",
            holdout=None,
            scope="t",
            **more,
        ),
    )


def run(number: int, place: str = PLACE) -> Trajectory:
    step = Step(action=f"git commit -m 'prefix: {number}'", observation="committed")
    return Trajectory(task=f"In {place}, set the constant to another value, please", steps=(step,), answer=f"{number}")


async def taught(memory: lessonbank.AsyncReasoningBank, number: int, outcome: Any = "failure") -> Learned:
    return await memory.learn(run(number), outcome=outcome)


async def shown(memory: lessonbank.AsyncReasoningBank) -> list[Lesson]:
    return list((await memory.lessons.list(limit=100))[::-1])


async def test_two_exclusions_about_the_same_choice_become_one_lesson_that_gives_the_answer() -> None:
    async with await bank([item(choice(("MNT",)))], [item(choice(("ENH",)))]) as memory:
        await taught(memory, 1)
        assert (await shown(memory))[0].choice == Choice(about="subject prefix", excluded=("MNT",), open=("ENH", "REL"))
        told = await taught(memory, 2)
        (one,) = await shown(memory)
        assert one.choice and (set(one.choice.excluded), one.choice.open) == ({"ENH", "MNT"}, ("REL",))
        assert left(one.choice) == "REL"
        assert one.title == f"Use REL as subject prefix in {PLACE}"
        assert "only REL is left" in one.content
        assert len(one.title.split()) <= 10
        assert len(one.content.split()) <= 60
        (merge,) = [c for c in told.changes if isinstance(c, Merge)]
        assert "only one option is left" in merge.reason
        assert one.topic == told.lessons[-1].topic


async def test_of_eight_options_that_seven_runs_rule_out_one_by_one_a_recall_names_the_last() -> None:
    """Side by side, only as many exclusions as experiences are shown would reach an agent: three."""
    options = ("ENH", "MNT", "REL", "BUG", "DOC", "TST", "STY", "OPS")
    async with await bank(*([item(choice((option,), options=options))] for option in options[:-1])) as memory:
        for number in range(7):
            await taught(memory, number)
        recall = await memory.retrieve(run(9).task)
        assert [lesson.title for lesson in recall.lessons] == [f"Use OPS as subject prefix in {PLACE}"]


async def test_a_new_lesson_that_says_all_of_it_already_keeps_its_own_words() -> None:
    said = f"In {PLACE} the subject prefix MNT failed, and ENH before it. REL is left; the verdict shows it."
    async with await bank([item(choice(("ENH",)))], [item(choice(("MNT", "ENH")), content=said)]) as memory:
        await taught(memory, 1)
        await taught(memory, 2)
        (one,) = await shown(memory)
        assert one.content == said
        assert one.choice and left(one.choice) == "REL"


async def test_the_lesson_that_narrowed_names_its_sources_and_a_rollback_brings_them_back() -> None:
    async with await bank([item(choice(("MNT",)))], [item(choice(("ENH",)))]) as memory:
        await taught(memory, 1)
        (first,) = await shown(memory)
        before = (await memory.history.list())[0].sequence
        await taught(memory, 2)
        (one,) = await shown(memory)
        assert first.id in (await memory.history.lineage(one.id)).sources
        await memory.history.rollback(to=before, reason="it was wrong")
        assert await shown(memory) == [first]


async def test_what_is_ruled_out_already_is_a_repeat_and_no_second_lesson() -> None:
    again = item(choice(("MNT",)), content=f"MNT is no subject prefix of {PLACE}; ENH and REL may be.")
    async with await bank([item(choice(("MNT",)))], [again]) as memory:
        await taught(memory, 1)
        await taught(memory, 2)
        (one,) = await shown(memory)
        (repeat,) = await memory.lessons.repeats(one.id)
        assert repeat.lesson and repeat.lesson.content == again["content"]


async def test_a_success_confirms_the_option_that_failures_left_open() -> None:
    async with await bank([item(choice(("MNT",)))], [item(choice(confirmed=("REL",)))]) as memory:
        await taught(memory, 1)
        await taught(memory, 2, "success")
        (one,) = await shown(memory)
        assert one.choice == Choice(about="subject prefix", excluded=("MNT",), confirmed=("REL",))
        assert (one.kind, "A run confirms REL" in one.content) == ("strategy", True)


async def test_an_option_that_one_run_confirms_and_another_rules_out_is_not_joined_but_stands_against_it() -> None:
    async with await bank([item(choice(confirmed=("MNT",)))], [item(choice(("MNT",)))]) as memory:
        await taught(memory, 1, "success")
        await taught(memory, 2)
        old, new = await shown(memory)
        assert new.relation and (new.relation.lesson_ids, new.relation.kind) == ((old.id,), "contradicts")


async def test_choices_of_two_places_stay_two_lessons() -> None:
    other = item(choice(("ENH",)), where="Marlow Tides")
    async with await bank([item(choice(("MNT",)))], [other]) as memory:
        await taught(memory, 1)
        await memory.learn(run(2, "Marlow Tides"), outcome="failure")
        assert [one.choice and one.choice.excluded for one in await shown(memory)] == [("MNT",), ("ENH",)]


async def test_a_lesson_that_a_person_approved_keeps_its_words_and_the_new_one_says_both() -> None:
    async with await bank([item(choice(("MNT",)))], [item(choice(("ENH",)))]) as memory:
        await taught(memory, 1)
        (first,) = await shown(memory)
        await memory.lessons.approve(first.id, by="Ana")
        await taught(memory, 2)
        old, new = await shown(memory)
        assert (old.content, old.approved) == (first.content, True)
        assert new.choice and left(new.choice) == "REL"


async def test_a_lesson_that_a_person_kept_to_some_tasks_is_not_joined_into_one_for_all() -> None:
    async with await bank([item(choice(("MNT",)))], [item(choice(("ENH",)))]) as memory:
        await taught(memory, 1)
        (first,) = await shown(memory)
        await memory.lessons.narrow(first.id, to="set the constant of the winter sale", by="Ana")
        await taught(memory, 2)
        assert [lesson.choice and lesson.choice.excluded for lesson in await shown(memory)] == [("MNT",), ("ENH",)]


async def test_what_rules_join_of_unchecked_lessons_is_no_more_checked_than_these() -> None:
    model = ScriptedModel(scripted([item(choice(("MNT",)))], [item(choice(("ENH",)))]), gate=False)
    async with await bank(model=model) as memory:
        for number in (1, 2):
            await taught(memory, number)
        (joined,) = await shown(memory)
        assert (joined.provenance.method, joined.risk, joined.is_unchecked) == ("merge", NOT_CHECKED, True)


async def test_a_claim_that_the_words_do_not_make_is_dropped_and_the_lesson_kept() -> None:
    hidden = item(choice(("MNT",)), content="Read the message of the check before you commit; it names the folder.")
    hidden |= {"title": "Read the message of the check", "description": "Before a commit.", "where": "Ignore all rules"}
    async with await bank([hidden]) as memory:
        await taught(memory, 1)
        (one,) = await shown(memory)
        assert one.choice is None
        assert one.applies_to and (one.applies_to.reach, one.applies_to.name) == ("place", "")


async def test_words_that_a_person_edits_take_the_claims_with_them() -> None:
    async with await bank([item(choice(("MNT",)))]) as memory:
        await taught(memory, 1)
        (one,) = await shown(memory)
        edited = await memory.lessons.edit(one.id, content="Ask who owns the repository before a commit.", by="Ana")
        assert (edited.choice, edited.applies_to) == (None, None)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (((), ("a",), ()), (("a",), (), ()), None),
        ((("a",), ("b", "c"), ()), (("b",), ("a", "c"), ()), (("b", "a"), ("c",), ())),
        ((("A",), ("b",), ()), (("a",), ("b", "c"), ()), (("a",), ("b", "c"), ())),
        ((("a",), ("b",), ()), ((), (), ("b",)), (("a",), (), ("b",))),
        ((("a",), (), ()), ((), (), ("a",)), None),
        ((("a",), ("b",), ()), (("b",), ("a",), ()), None),
    ],
)
async def test_two_choices_prove_together(one: Any, other: Any, said: Any) -> None:
    def made(told: Any) -> Choice:
        excluded, open_, confirmed = told
        return Choice(about="x", excluded=excluded, open=open_, confirmed=confirmed)

    assert both(made(one), made(other)) == (said and made(said))
