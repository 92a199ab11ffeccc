"""Every way for a lesson to become active, under every policy: `reviewed` takes a person's approval, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Experience, Lesson, Parts, Safety, Step, Trajectory
from lessonbank.contracts.records import Add, Candidate, Change, Extraction, Provenance, Recall, Settlement, Trust
from lessonbank.contracts.settings import TrustPolicy
from lessonbank.errors import UsageError

pytestmark = pytest.mark.anyio

POLICIES: tuple[TrustPolicy, ...] = get_args(TrustPolicy)
SCOPE, TITLE = "acme/support", "Ask the courier about late parcels"
CONTENT = "The courier portal knows the delivery window hours before the shop page does: read it there, answer with it."
ASKED, OTHER = "Where is my first parcel?", "Where is the second parcel?"


async def extract(_: Any, /) -> Extraction:
    return Extraction(lessons=(Lesson(title=TITLE, content=CONTENT),))


async def bank_of(policy: TrustPolicy, where: Any = ":memory:", **parts: Any) -> AsyncReasoningBank:
    return await lessonbank.connect_async(
        where,
        scope=SCOPE,
        embedder="lexical",
        evidence=Evidence(holdout=None),
        safety=Safety(trust=policy, caps=None),
        parts=Parts(extractor=extract, **parts),
    )


async def taught(bank: AsyncReasoningBank, task: str = ASKED, **more: Any) -> str:
    run = Trajectory(task=task, steps=(Step(action="open portal", observation="tomorrow"),), answer="soon", **more)
    learned = await bank.learn(run, outcome="success")
    assert learned.experience
    return next(iter([lesson.id for lesson in learned.lessons] or learned.experience.repeats))


async def one_run(bank: AsyncReasoningBank, _: Path) -> None:
    await taught(bank)


async def two_runs_of_one_writer(bank: AsyncReasoningBank, _: Path) -> None:
    key = await bank.admin.add_writer("ana")
    await taught(bank.scoped(writer="ana", key=key))
    await taught(bank.scoped(writer="ANA", key=key), OTHER)


async def two_runs_of_one_process(bank: AsyncReasoningBank, _: Path) -> None:
    await taught(bank.scoped(writer="ana"))
    await taught(bank.scoped(writer="bob"), OTHER)


async def two_writers(bank: AsyncReasoningBank, _: Path) -> None:
    await taught(bank.scoped(writer="ana", key=await bank.admin.add_writer("ana")))
    await taught(bank.scoped(writer="bob", key=await bank.admin.add_writer("bob")), OTHER)


async def measured_to_help(bank: AsyncReasoningBank, _: Path) -> None:
    lesson_id = await taught(bank)
    owner = await bank.lessons.experience(lesson_id)
    for number in range(160):
        away = number % 2 == 0
        odds = {"withheld": away, "shown": not away, "probability": 0.5}
        found = Candidate(lesson_id=lesson_id, experience_id=owner.id, score=1.0, rank=1, **odds)
        recall = Recall(scope=SCOPE, task=f"{ASKED} {number}", candidates=(found,))
        await bank.store.save_recall(recall)
        told = Settlement(
            recall_id=recall.id, scope=SCOPE, outcome="failure" if away else "success", source="ground_truth"
        )
        await bank.store.apply([], scope=SCOPE, writer="w", settlement=told)
    for number in range(21):
        recall = await bank.retrieve(f"Sort letter {number}")
        await bank.parts.ledger.on_outcome(scope=SCOPE)


async def imported(bank: AsyncReasoningBank, folder: Path) -> None:
    await _carried_over(bank, folder)


async def imported_and_vouched_for(bank: AsyncReasoningBank, folder: Path) -> None:
    await _carried_over(bank, folder, approved_by="Ana")


async def imported_twice_from_two_writers(bank: AsyncReasoningBank, folder: Path) -> None:
    await _carried_over(bank, folder, writer="ana")
    await _carried_over(bank, folder, writer="bob", task=OTHER)


async def imported_and_taught_again_here(bank: AsyncReasoningBank, folder: Path) -> None:
    await _carried_over(bank, folder, writer="ana")
    await taught(bank.scoped(writer="bob"), OTHER)


async def _carried_over(
    bank: AsyncReasoningBank, folder: Path, *, writer: str = "ana", task: str = ASKED, **more: Any
) -> None:
    async with await bank_of("open") as source:
        await source.lessons.approve(await taught(source.scoped(writer=writer), task), by="Ana")
        await source.admin.export(folder / "e.jsonl")
    await bank.admin.import_(folder / "e.jsonl", **more)


async def consolidated_with_claims(bank: AsyncReasoningBank, _: Path) -> None:
    for writer, task in (("ana", ASKED), ("bob", OTHER)):
        source = Provenance(writer=writer, method="human", trajectory_ids=(writer,))
        claims = Lesson(title=TITLE, content=CONTENT, state="active", approved=True, provenance=source)
        # The trajectories differ, so that under `corroborated` they are two runs: as far as the caller says.
        await bank.consolidate(Experience(scope=SCOPE, task=task, lessons=(claims,)))


async def retired_and_restored(bank: AsyncReasoningBank, _: Path) -> None:
    lesson_id = await taught(bank)
    await bank.lessons.retire(lesson_id, reason="r", by="Ana")
    await bank.lessons.restore(lesson_id, reason="r", by="Ana")


async def edited_by_a_person(bank: AsyncReasoningBank, _: Path) -> None:
    await bank.lessons.edit(await taught(bank), content=CONTENT + " At once.", by="Ana")


async def corrected_by_a_person(bank: AsyncReasoningBank, _: Path) -> None:
    await taught(bank, id="the-run")
    await bank.runs.correct("the-run", outcome="success", by="Ana")


async def approved(bank: AsyncReasoningBank, _: Path) -> None:
    await bank.lessons.approve(await taught(bank), by="Ana")


async def written_by_a_person(bank: AsyncReasoningBank, _: Path) -> None:
    await bank.lessons.add(title=TITLE, content=CONTENT, task=ASKED, by="Ana")


async def approved_and_rolled_back_to(bank: AsyncReasoningBank, _: Path) -> None:
    lesson_id = await taught(bank)
    (approval,) = await bank.lessons.approve(lesson_id, by="Ana")
    await bank.lessons.quarantine(lesson_id, reason="r")
    await bank.history.rollback(to=approval.sequence, reason="r", by="Ana")


async def rolled_back_to_before_the_approval(bank: AsyncReasoningBank, _: Path) -> None:
    (approval,) = await bank.lessons.approve(await taught(bank), by="Ana")
    await bank.history.rollback(to=approval.sequence - 1, reason="r", by="Ana")


Path_ = Callable[[AsyncReasoningBank, Path], Awaitable[None]]
SHOWN_BY: dict[Path_, set[TrustPolicy]] = {
    one_run: {"open"},
    two_runs_of_one_writer: {"open"},
    two_runs_of_one_process: {"open", "corroborated"},
    two_writers: {"open", "corroborated"},
    measured_to_help: {"open", "corroborated"},
    imported: {"open"},
    imported_twice_from_two_writers: {"open"},
    imported_and_taught_again_here: {"open"},
    consolidated_with_claims: {"open", "corroborated"},
    retired_and_restored: {"open"},
    edited_by_a_person: set(POLICIES),
    corrected_by_a_person: {"open"},
    rolled_back_to_before_the_approval: {"open"},
    approved: set(POLICIES),
    written_by_a_person: set(POLICIES),
    imported_and_vouched_for: set(POLICIES),
    approved_and_rolled_back_to: set(),  # it was in quarantine in between: only an approval ends that
}


@pytest.mark.parametrize(
    "policy", [pytest.param(one, marks=() if one == "reviewed" else pytest.mark.full) for one in POLICIES]
)
@pytest.mark.full
@pytest.mark.parametrize("way", SHOWN_BY, ids=lambda way: way.__name__)
async def test_a_lesson_is_shown_where_its_policy_says_so_and_nowhere_else(
    way: Path_, policy: TrustPolicy, tmp_path: Path
) -> None:
    async with await bank_of(policy) as bank:
        await way(bank, tmp_path)
        every = await bank.lessons.list()
        assert every
        active = [lesson for lesson in every if lesson.state == "active"]
        if policy != "open":
            assert bool(active) is (policy in SHOWN_BY[way])
        if policy == "reviewed":
            assert all(lesson.approved for lesson in active)
        assert ("courier portal" in (await bank.retrieve(ASKED)).text) is (policy in SHOWN_BY[way])
        assert await bank.admin.verify() == ()


@pytest.mark.parametrize("way", [two_writers, measured_to_help], ids=lambda way: way.__name__)
async def test_what_was_trusted_under_another_policy_is_not_reviewed_until_a_person_approves_it(
    way: Path_, tmp_path: Path
) -> None:
    async with await bank_of("corroborated", tmp_path / "bank.db") as bank:
        await way(bank, tmp_path)
        (active,) = (await bank.lessons.list(state="active"))[:1]
        assert "courier portal" in (await bank.retrieve(ASKED)).text
    async with await bank_of("reviewed", tmp_path / "bank.db") as bank:
        assert "courier portal" not in (await bank.retrieve(ASKED)).text
        await bank.lessons.approve(active.id, by="Ana")
        assert "courier portal" in (await bank.retrieve(ASKED)).text
        assert (await bank.lessons.get(active.id)).approved
        assert await bank.admin.verify() == ()
        before = await bank.history.list()
        assert before[-1].entry.kind == "trust"
        await bank.history.rollback(to=before[-1].sequence - 1, reason="r", by="Ana")
        assert "courier portal" not in (await bank.retrieve(ASKED)).text


@pytest.mark.parametrize("by", ["person", "ledger", "corroboration"])
@pytest.mark.parametrize("policy", POLICIES)
async def test_a_consolidator_speaks_for_no_person_and_not_for_the_ledger(policy: TrustPolicy, by: Any) -> None:
    async def trusting(new: Experience, /) -> list[Change]:
        ids = tuple(lesson.id for lesson in new.lessons)
        return [Add(experience=new), Trust(lesson_ids=ids, state="active", by=by, reason="says so")]

    async with await bank_of(policy, consolidator=trusting) as bank:
        if by != "corroboration":
            with pytest.raises(UsageError, match="speak for"):
                await taught(bank)
            assert await bank.lessons.list() == ()
            return
        await taught(bank)
        assert ("courier portal" in (await bank.retrieve(ASKED)).text) is (policy != "reviewed")
