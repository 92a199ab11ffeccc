"""An outcome that becomes known later is told of a run: it teaches, settles and corrects."""

from __future__ import annotations

from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Step, Trajectory
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.errors import NotFound, UsageError

pytestmark = pytest.mark.anyio


async def opened(**more: Any) -> AsyncReasoningBank:
    evidence = Evidence(holdout=None)
    return await lessonbank.connect_async(":memory:", scope="t", embedder="lexical", evidence=evidence, **more)


def run(task: str = "Ship the parcel to Rome") -> Trajectory:
    steps = (
        Step(action="print label", observation="error: customs form missing"),
        Step(action="fill customs form", observation="saved"),
        Step(action="print label", observation="printed"),
    )
    return Trajectory(task=task, steps=steps)


@pytest.mark.parametrize("named", ["run", "recall id", "recall", "metadata"])
async def test_a_run_that_waits_is_named_in_four_ways_and_teaches_once_its_outcome_is_told(named: str) -> None:
    async with await opened() as bank:
        other = await bank.retrieve("Ship the parcel to Oslo")
        await bank.learn(run("Ship the parcel to Oslo"), recall=other, metadata={"ticket": "T-1"})
        async with bank.attempt("Ship the parcel to Rome", metadata={"ticket": "T-2"}) as attempt:
            await attempt.finish(run())
        assert (await bank.runs.get(attempt.run_id)).status == "pending"
        of = {
            "run": attempt.run_id,
            "recall id": attempt.recall.id,
            "recall": attempt.recall,
            "metadata": {"ticket": "T-2"},
        }
        told = await bank.tell(of[named], outcome="success")  # type: ignore[arg-type]
        assert told.lessons
        assert (await bank.runs.get(attempt.run_id)).verdict.source == "ground_truth"
        settlement = await settlement_of(bank.store, attempt.recall.id, scope="t")
        assert settlement is not None
        assert settlement.outcome == "success"
        assert len(await bank.runs.pending()) == 1


async def test_what_is_told_of_a_learned_run_corrects_its_verdict_and_what_its_recall_counts() -> None:
    async with await opened() as bank, bank.attempt("Ship the parcel to Rome") as attempt:
        await attempt.finish(run(), outcome="success")
        told = await bank.tell(attempt.run_id, reward=0.0)
        assert (told.lessons, [change.kind for change in told.changes]) == ((), ["verdict"])
        assert any("was learned as a success" in note for note in told.notes)
        settlement = await settlement_of(bank.store, attempt.recall.id, scope="t")
        assert settlement is not None
        assert settlement.outcome == "failure"


async def test_a_run_of_messages_has_the_id_that_its_attempt_names() -> None:
    messages = [
        {"role": "user", "content": "Ship the parcel to Rome"},
        {"role": "assistant", "content": "It is shipped."},
    ]
    async with await opened() as bank:
        async with bank.attempt("Ship the parcel to Rome") as attempt:
            await attempt.finish(messages, wait=False)
        await bank.drain()
        assert (await bank.runs.get(attempt.run_id)).trajectory.answer == "It is shipped."


async def test_what_names_no_run_or_several_is_refused_with_what_to_do() -> None:
    async with await opened() as bank:
        for town in ("Rome", "Oslo"):
            await bank.learn(run(f"Ship to {town}"), metadata={"user": "u-1"})
        with pytest.raises(NotFound, match=r"no run with the id 'run-9', nor one of a recall with it .*`learn` first"):
            await bank.tell("run-9", outcome="success")
        with pytest.raises(UsageError, match=r"more than one run with the metadata .*: name one by its id"):
            await bank.tell({"user": "u-1"}, outcome="success")
        with pytest.raises(UsageError, match="these are empty"):
            await bank.tell({}, outcome="success")
        with pytest.raises(UsageError, match="give outcome= or reward="):
            await bank.tell("run-9")
        assert all(one.status == "pending" for one in await bank.runs.list())
