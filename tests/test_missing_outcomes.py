"""Where outcomes go missing there is no verdict, and nothing is done that a verdict would lead to, in any process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Experience, Extraction, Lesson, Parts, Run, Step, Trajectory
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.contracts.store_calls import get_setting
from lessonbank.evidence import Holdout
from lessonbank.evidence.review_snapshot import ReviewSnapshot

pytestmark = pytest.mark.anyio
LOST = 0.6


async def draw_nothing(_: Sequence[Run], /) -> Extraction:
    return Extraction()


async def opened(where: str | Path = ":memory:") -> AsyncReasoningBank:
    return await lessonbank.connect_async(
        where,
        scope="s",
        embedder="lexical",
        parts=Parts(extractor=draw_nothing),
        evidence=Evidence(holdout=Holdout(0.3, 0.3, seed="the same draws in each run")),
    )


async def with_a_lesson(bank: AsyncReasoningBank) -> None:
    lesson = Lesson(id="alpha", title="Lesson alpha", content="Do alpha first in the shop.")
    await bank.consolidate(Experience(scope="s", task="cancel order 0 of the shop", lessons=(lesson,)))


async def acts(bank: AsyncReasoningBank, *, seed: int, lost: str, tasks: int) -> list[str]:
    """What the bank does in `tasks` tasks that its lesson does not change, if outcomes of one kind are told of others
    only: of those with the lesson shown, most of the `lost` ones are never heard of."""
    luck = random.Random(seed)
    for n in range(1, tasks + 1):
        recall = await bank.retrieve(f"cancel order {n} of the shop")
        outcome = "success" if luck.random() < 0.5 else "failure"
        if recall.shown and luck.random() < LOST and outcome == lost:
            continue
        learned = await bank.learn(Trajectory(task=recall.task, answer="x"), recall=recall, outcome=outcome)
        if done := [change.kind for change in learned.changes if change.kind in ("retire", "trust")]:
            return done
    return []


@pytest.mark.full
@pytest.mark.parametrize("seed", [101, *(pytest.param(seed, marks=pytest.mark.release) for seed in (102, 104, 107))])
@pytest.mark.parametrize("lost", ["success", "failure"])
async def test_no_bank_acts_or_has_a_verdict_where_outcomes_of_one_kind_are_missing(seed: int, lost: str) -> None:
    async with await opened() as bank:
        await with_a_lesson(bank)
        assert await acts(bank, seed=seed, lost=lost, tasks=250) == []
        lift = await bank.lift()
        assert lift.missing_differs
        assert [(one.standing, one.retired) for one in lift.lessons] == [("no evidence yet", False)]
        told = ReviewSnapshot.of(await get_setting(bank.store, REVIEW.of("s")))
        assert {treatment.expected for treatment in told.treatments.values()} == {0.0}


@pytest.mark.full
async def test_a_look_at_lift_in_another_process_changes_nothing_of_it(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank.db") as bank, await opened(tmp_path / "bank.db") as other:
        await with_a_lesson(bank)
        assert await acts(bank, seed=107, lost="success", tasks=40) == []
        before = await get_setting(bank.store, REVIEW.of("s")), await bank.history.list()
        assert before[0]
        assert (await other.lift()).settled > 20
        assert (await get_setting(bank.store, REVIEW.of("s")), await bank.history.list()) == before


async def test_outcomes_that_were_refused_are_told_as_runs_without_an_outcome() -> None:
    async with await opened() as bank:
        for n in range(3):
            async with bank.attempt(f"Refund order #W{n}") as attempt:
                await attempt.finish(
                    [{"role": "user", "content": "x"}, {"role": "assistant", "content": "Done."}], outcome="resolved"
                )  # type: ignore[arg-type]
        lift = await bank.lift()
        assert (lift.empty, lift.unfinished) == (3, 3)
        said = str(lift)
        assert "3 runs ended without an outcome" in said
        assert "3 tasks asked memory, and nothing was found for any of them yet" in said
        assert "No task asked memory" not in said


@pytest.mark.full
def test_each_number_of_tasks_without_memory_counts_what_it_says(tmp_path: Path) -> None:
    """Also the tasks whose lessons were each left out alone, and those before a lesson was edited, as they were."""
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        for n in range(3):
            bank.lessons.add(
                title=f"Rule {n}", content=f"Call tool {'abc'[n]} first.", task="Refund an order", by="Ana"
            )
        bare, known = 0, 0
        for n in range(90):
            recall = bank.retrieve("Refund an order")
            if n == 60:
                bank.lessons.edit(recall.candidates[0].lesson_id, content="Call tool d first.", by="Ana")
            bare += not recall.shown
            if n % 5:
                known += not recall.shown
                run = Trajectory(task=recall.task, steps=(Step(action="refund", observation="done"),))
                bank.learn(run, recall=recall, outcome="success" if n % 2 else "failure")
        lift = bank.lift()
    assert (lift.measuring.tasks_without, lift.controls) == (bare, known)
    assert f"{bare} of 90 tasks without memory" in str(lift)
