"""What the bank does on its evidence survives the lies of any key and of a tenth of them; a person decides the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Lesson
from lessonbank.contracts.events import Event, Reviewed
from lessonbank.contracts.records import Add, Candidate, Experience, Outcome, Proposal, Provenance, Recall, Settlement
from lessonbank.contracts.settings import Evidence, Parts
from lessonbank.evidence.policy import Holdout
from lessonbank.evidence.stored_ledger import proposal_notes
from lessonbank.guard.identity import of_process

T, ID = "acme/desk", "the-lesson"


# --- the bank --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def heard() -> list[Event]:
    return []


@pytest.fixture
async def bank(heard: list[Event]) -> AsyncIterator[AsyncReasoningBank]:
    async with await lessonbank.connect_async(
        ":memory:", scope=T, embedder="lexical", evidence=Evidence(Holdout(0.5)), parts=Parts(hooks=[heard.append])
    ) as made:
        lesson = Lesson(id=ID, title="Ask the courier", content="Ask the courier's portal.")
        await made.store.apply(
            [Add(experience=Experience(scope=T, task="Find it", lessons=(lesson,)))], scope=T, writer="tests"
        )
        yield made


def receipt(id: str, *, withheld: bool) -> Recall:
    one = Candidate(
        lesson_id=ID, experience_id="e", score=1.0, rank=1, shown=not withheld, withheld=withheld, probability=0.5
    )
    return Recall(id=id, scope=T, task="Find it", text="lessons", candidates=(one,))


def settlement(id: str, outcome: Outcome, identity: str) -> Settlement:
    return Settlement(recall_id=id, scope=T, outcome=outcome, source="ground_truth", identity=identity)


async def played(bank: AsyncReasoningBank, identity: str, *, effect: int, n: int, name: str = "") -> None:
    """Every other time withheld: the lesson always helps, or always harms, in what this writer tells."""
    for number in range(n):
        id, withheld = f"{name or identity} {number}", number % 2 == 1
        await bank.store.save_recall(receipt(id, withheld=withheld))
        outcome: Outcome = "success" if (effect > 0) != withheld else "failure"
        await bank.store.apply([], scope=T, writer="tests", settlement=settlement(id, outcome, identity))


async def reviewed(bank: AsyncReasoningBank) -> Any:
    return await bank.parts.ledger.on_outcome(scope=T)


@pytest.mark.anyio
async def test_one_liar_of_many_retires_nothing_and_trusts_nothing(bank: AsyncReasoningBank) -> None:
    for number in range(5):
        await played(bank, f"key:u{number}", effect=1 - 2 * (number % 2), n=4)
    for effect in (-1, 1):
        await played(bank, "key:eve", effect=effect, n=60, name=f"eve {effect}")
        assert (await reviewed(bank)).changes in ((), [])
    lesson = await bank.lessons.get(ID)
    assert (lesson.retired, lesson.state) == (False, "probation")
    lift = await bank.lift()
    assert lift.settled == 140
    assert any("6 keys" in note and "harms without those of any 1 of them" in note for note in lift.notes)


@pytest.mark.anyio
async def test_what_several_say_is_acted_on(bank: AsyncReasoningBank) -> None:
    for number in range(4):
        await played(bank, f"key:u{number}", effect=-1, n=16)
    (change,) = (await reviewed(bank)).changes
    assert (change.kind, (await bank.lessons.get(ID)).retired) == ("retire", True)


@pytest.mark.anyio
async def test_what_several_say_helps_waits_for_a_person_and_lift_says_so(bank: AsyncReasoningBank) -> None:
    for number in range(4):
        await played(bank, f"key:u{number}", effect=1, n=16)
    acted = await reviewed(bank)
    assert acted.changes == []
    assert "approve it, because several keys told outcomes" in acted.notes[0]
    (proposal,) = await bank.lessons.proposals()
    assert (proposal.lesson.id, proposal.change, proposal.origin) == (ID, "approve", "evidence")
    told = str(await bank.lift())
    assert "Approve what helps: 1 lesson waits for you" in told
    assert "approval proposed" in told
    await bank.lessons.approve(ID, by="Ann")
    assert (await bank.lessons.get(ID)).state == "active"
    assert await bank.lessons.proposals() == ()


@pytest.mark.anyio
async def test_what_harms_by_the_word_of_one_key_alone_waits_for_a_person(bank: AsyncReasoningBank) -> None:
    await played(bank, "key:eve", effect=-1, n=20)
    await played(bank, "key:ann", effect=-1, n=20)
    await played(bank, "key:bob", effect=-1, n=4)
    assert (await bank.lift()).lessons[0].standing == "harms"
    assert (await reviewed(bank)).changes == []
    (proposal,) = await bank.lessons.proposals()
    assert (proposal.change, "not without some of the keys" in proposal.reason) == ("retire", True)
    assert "Decide on 1 lesson shown to harm" in str(await bank.lift())
    assert not (await bank.lessons.get(ID)).retired


def test_what_is_proposed_of_many_lessons_on_the_same_evidence_is_one_note() -> None:
    many = [Lesson(title=f"Step {n}", content="Do it.", approved=n == 9) for n in range(10)]
    told = proposal_notes([Proposal(lesson=one, reason="-20 points", change="retire") for one in many])
    assert told == (
        "9 lessons are shown to harm (-20 points): retire them, or approve them",
        "the lesson Step 9 is shown to harm (-20 points): retire it, or approve it again",
    )


@pytest.mark.anyio
async def test_a_bank_of_one_key_acts_on_nothing_and_says_so(bank: AsyncReasoningBank) -> None:
    await played(bank, "key:eve", effect=-1, n=60)
    assert (await reviewed(bank)).changes == []
    assert any(
        "come from key:eve, so all that follows waits for a person" in note for note in (await bank.lift()).notes
    )


@pytest.mark.anyio
async def test_a_bank_of_one_process_acts_on_its_word_and_says_nothing_of_it(bank: AsyncReasoningBank) -> None:
    await played(bank, "process:ana@host", effect=-1, n=60)
    assert len((await reviewed(bank)).changes) == 1
    assert not any("process:ana@host" in note for note in (await bank.lift()).notes)


@pytest.mark.anyio
async def test_what_a_person_approved_is_proposed_for_retirement_and_stays(
    bank: AsyncReasoningBank, heard: list[Event]
) -> None:
    await bank.lessons.approve(ID, by="Ann")
    await played(bank, "process:ana@host", effect=-1, n=60)
    acted = await reviewed(bank)
    assert acted.changes == []
    assert "Ask the courier" in acted.notes[0]
    assert not (await bank.lessons.get(ID)).retired
    (proposal,) = await bank.lessons.proposals()
    assert (proposal.lesson.id, "points" in proposal.reason) == (ID, True)
    lift = await bank.lift()
    assert lift.lessons[0].proposed
    assert "retirement proposed" in str(lift)
    await bank.lessons.retire(ID, reason="the evidence", by="Ann")
    assert await bank.lessons.proposals() == ()


@pytest.mark.anyio
async def test_a_proposal_is_made_once_and_ends_when_the_lesson_is_approved_again(bank: AsyncReasoningBank) -> None:
    await bank.lessons.approve(ID, by="Ann")
    await played(bank, "process:ana@host", effect=-1, n=60)
    assert len((await reviewed(bank)).proposals) == 1
    await played(bank, "process:ana@host", effect=-1, n=30, name="more")
    assert (await reviewed(bank)).proposals == ()
    assert len(await bank.lessons.proposals()) == 1
    await bank.lessons.approve(ID, by="Bob")
    assert await bank.lessons.proposals() == ()
    await played(bank, "process:ana@host", effect=-1, n=60, name="still more")
    assert ((await reviewed(bank)).proposals, await bank.lessons.proposals()) == ((), ())


@pytest.mark.anyio
async def test_hooks_and_notes_of_learn_name_what_is_proposed(bank: AsyncReasoningBank, heard: list[Event]) -> None:
    await bank.lessons.approve(ID, by="Ann")
    await played(bank, of_process(), effect=-1, n=60)
    id = "the last"
    await bank.store.save_recall(receipt(id, withheld=False))
    run = lessonbank.Trajectory(task="Find it", steps=(lessonbank.Step(action="look", observation="done"),))
    learned = await bank.learn(run, recall=id, outcome="failure")
    assert any("is shown to harm" in note for note in learned.notes)
    (event,) = [event for event in heard if isinstance(event, Reviewed)]
    assert [one.lesson.id for one in event.proposals] == [ID]


@pytest.mark.anyio
async def test_what_is_noted_or_consolidated_names_who_calls_whatever_it_says_of_itself() -> None:
    async with await lessonbank.connect_async(":memory:", scope=T, embedder="lexical") as bank:
        ana = bank.scoped(writer="ana", key=await bank.admin.add_writer("ana"))
        note = await ana.lessons.note("Save the form before you send it.", task="Send a form")
        boast = Lesson(title="Wait", content="Wait for it.", provenance=Provenance(identity="key:eve"))
        (change,) = await ana.consolidate(Experience(scope=T, task="Load a page", lessons=(boast,)))
        assert change.brings
        lessons = (note, await bank.lessons.get(note.id), *change.brings.lessons)
        assert {lesson.provenance.identity for lesson in lessons} == {"key:ana"}
