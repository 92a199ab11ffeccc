"""What a caller says of a run is on disk with it: whatever stops the learning, the run is settled as it was told."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Extraction, Learning, Parts, Run, Step, Trajectory, Verdict
from lessonbank.contracts.records import Json, Outcome, Submission
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.guard.identity import of_process

pytestmark = pytest.mark.anyio
TASK = "Cancel order W7"


async def pleased(_: Trajectory, /) -> Verdict:
    return Verdict(outcome="success", confidence=0.9, reason="it looks fine")


class Slow:
    """An extractor that never answers while it is asked to wait, and remembers what it was shown."""

    def __init__(self) -> None:
        self.begun, self.waits = anyio.Event(), True
        self.groups: list[list[tuple[str, str]]] = []

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        self.begun.set()
        if self.waits:
            await anyio.sleep_forever()
        self.groups.append([(one.verdict.outcome, one.verdict.source) for one in attempts])
        return Extraction()


async def opened(extractor: Slow, where: str | Path = ":memory:", **more: Any) -> AsyncReasoningBank:
    return await lessonbank.connect_async(
        where,
        scope="t",
        embedder="lexical",
        evidence=Evidence(holdout=None),
        parts=Parts(judge=pleased, extractor=extractor),
        **more,
    )


def run(answer: str = "done", **more: Any) -> Trajectory:
    return Trajectory(task=TASK, steps=(Step(action="cancel", observation="ok"),), answer=answer, **more)


async def interrupted(extractor: Slow, call: Any) -> None:
    """Begin `call`, and cancel it while lessons are drawn."""
    begun = asyncio.ensure_future(call)
    await extractor.begun.wait()
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun
    extractor.waits = False


@pytest.mark.parametrize("told", [{"outcome": "failure"}, {"reward": 0.25}])
async def test_a_failure_that_was_told_is_no_success_of_the_judge_after_a_cancelled_learn(told: Any) -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        recall = await bank.retrieve(TASK)
        mine = run()
        await interrupted(extractor, bank.learn(mine, **told, recall=recall))
        assert (await bank.runs.get(mine.id)).status == "pending"
        await bank.runs.retry()
        kept = await bank.runs.get(mine.id)
        assert (kept.verdict.outcome, kept.verdict.source, kept.recall_id) == ("failure", "ground_truth", recall.id)
        assert kept.verdict.reward == told.get("reward")
        settlement = await settlement_of(bank.store, recall.id, scope="t")
        assert settlement is not None
        assert (settlement.outcome, settlement.identity) == ("failure", of_process())


@pytest.mark.parametrize("source", ["ground_truth", "human"])
async def test_a_success_that_was_taken_back_is_none_again_and_no_success_of_the_judge(source: Any) -> None:
    """As a session that went on, or whose commit was reverted: what was said first does not come back."""
    extractor = Slow()
    extractor.waits = False
    async with await opened(extractor) as bank:
        mine = run()
        await bank.learn(mine, outcome="success")
        await bank.learn(mine, outcome=Verdict(outcome="unknown", source=source, reason="it was reverted"))
        assert (await bank.runs.get(mine.id)).status == "pending"
        for again in (bank.runs.retry, partial(bank.runs.retry, mine.id), partial(bank.learn, mine)):
            await again()
            verdict = (await bank.runs.get(mine.id)).verdict
            assert (verdict.outcome, verdict.source, verdict.reason) == ("unknown", source, "it was reverted")
        await bank.tell(mine.id, outcome="failure")
        assert (await bank.runs.get(mine.id)).verdict.outcome == "failure"


async def test_runs_of_one_call_keep_their_own_outcomes_and_are_contrasted_together() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        call = bank.learn([run("a"), run("b")], outcome=["success", "failure"])
        await interrupted(extractor, call)
        await bank.runs.retry()
        assert [sorted(group) for group in extractor.groups] == [
            [("failure", "ground_truth"), ("success", "ground_truth")]
        ]


async def test_a_scale_that_is_cancelled_keeps_what_the_verifier_said_of_each_run_and_makes_one_contrast() -> None:
    extractor, three = Slow(), anyio.Event()
    extractor.waits = False
    async with await opened(extractor) as bank:

        async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
            if seed == 2:
                three.set()
                await anyio.sleep_forever()
            return run(str(seed))

        scaling = asyncio.ensure_future(
            bank.scale(TASK, agent, k=3, concurrency=1, verify=lambda one: one.answer == "1")
        )
        await three.wait()
        scaling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scaling
        await bank.runs.retry()
        assert [sorted(group) for group in extractor.groups] == [
            [("failure", "ground_truth"), ("success", "ground_truth")]
        ]
        recalls = {kept.recall_id for kept in await bank.runs.list()}
        assert len(recalls) == 1
        assert None not in recalls
        counts = await bank.admin.counts()
        assert (counts.recalls, counts.recalls_with_a_run) == (1, 1)


async def test_a_correction_by_a_person_of_a_run_that_waits_outlives_an_interruption() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        mine = run()
        await bank.store.save_runs([mine], scope="t")
        await interrupted(extractor, bank.runs.correct(mine.id, outcome="failure", by="Ana", reason="I looked"))
        await bank.runs.retry()
        verdict = (await bank.runs.get(mine.id)).verdict
        assert (verdict.outcome, verdict.source, verdict.reason) == ("failure", "human", "Ana: I looked")


async def test_a_run_that_is_handed_in_again_without_a_word_is_learned_as_it_was_told_before() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        mine, recall = run(), await bank.retrieve(TASK)
        await interrupted(extractor, bank.learn(mine, outcome="failure", recall=recall))
        (verdict,) = (await bank.learn(mine)).verdicts
        assert (verdict.outcome, verdict.source) == ("failure", "ground_truth")
        assert (await bank.runs.get(mine.id)).recall_id == recall.id


async def test_a_later_word_goes_before_an_earlier_one() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        mine = run()
        await interrupted(extractor, bank.learn(mine, outcome="failure"))
        extractor.waits, extractor.begun = True, anyio.Event()
        await interrupted(extractor, bank.learn(mine, outcome="success"))
        await bank.runs.retry()
        verdict = (await bank.runs.get(mine.id)).verdict
        assert (verdict.outcome, verdict.source) == ("success", "ground_truth")


async def test_what_the_bank_notes_of_a_run_is_in_no_view_and_no_caller_can_say_it() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        own: dict[str, Json] = {"lessonbank_submitted": {"verdict": {"outcome": "success"}}, "user": "u-1"}
        forged = Submission(verdict=Verdict(outcome="success", source="human"))
        mine = run(metadata=own, submission=forged)
        await interrupted(extractor, bank.learn(mine, outcome="failure"))
        (waiting,) = await bank.runs.pending()
        assert (waiting.metadata, waiting.submission) == (own, None)
        await bank.runs.retry()
        kept = await bank.runs.get(mine.id)
        assert kept.metadata == kept.trajectory.metadata == own
        assert [one.trajectory.submission for one in (kept, *await bank.runs.list())] == [None, None]
        assert kept.verdict.outcome == "failure"


async def test_a_run_of_an_earlier_release_is_learned_as_it_was_submitted() -> None:
    extractor = Slow()
    extractor.waits = False
    async with await opened(extractor) as bank:
        recall = await bank.retrieve(TASK)
        mine = run(submission=Submission(outcome="failure", reward=0.5, recall_id=recall.id))
        await bank.store.save_runs([mine], scope="t")
        await bank.runs.retry()
        kept = await bank.runs.get(mine.id)
        assert (kept.verdict.outcome, kept.verdict.reward, kept.recall_id) == ("failure", 0.5, recall.id)


async def test_a_retry_of_a_learned_run_leaves_a_correction_by_a_person_in_force() -> None:
    extractor = Slow()
    extractor.waits = False
    async with await opened(extractor) as bank:
        mine = run()
        await bank.learn(mine, outcome="success")
        await bank.runs.correct(mine.id, outcome="failure", by="Ana")
        await bank.runs.retry(mine.id)
        verdict = (await bank.runs.get(mine.id)).verdict
        assert (verdict.outcome, verdict.source) == ("failure", "human")


async def test_an_outcome_that_is_submitted_of_a_learned_run_is_on_disk_when_submit_returns() -> None:
    extractor = Slow()
    extractor.waits = False
    async with await opened(extractor, learning=Learning(submit="worker")) as bank:
        mine, recall = run(), await bank.retrieve(TASK)
        await bank.learn(mine)
        await bank.submit([mine, run("other", unfinished=True)], outcome="failure", recall=recall)
        kept = await bank.runs.get(mine.id)
        assert (kept.verdict.outcome, kept.verdict.source) == ("failure", "ground_truth")
        assert len(await bank.runs.pending()) == 1


async def test_an_unfinished_run_that_is_told_its_outcome_waits_like_any_other() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        mine, recall = run(), await bank.retrieve(TASK)
        await bank.keep_unfinished(mine, recall=recall)
        await interrupted(extractor, bank.learn(mine, outcome="failure", recall=recall))
        assert (await bank.runs.get(mine.id)).status == "pending"
        await bank.runs.retry()
        kept = await bank.runs.get(mine.id)
        assert (kept.status, kept.verdict.outcome, kept.recall_id) == ("learned", "failure", recall.id)


async def test_what_somebody_tells_before_a_submitted_run_is_learned_stands_above_what_was_submitted(
    tmp_path: Path,
) -> None:
    extractor, mine = Slow(), run()
    extractor.waits = False
    async with await opened(extractor, tmp_path / "bank.db") as bank:
        await bank.submit(mine, outcome="failure")
        with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as other:
            other.tell(mine.id, outcome="success")  # this event loop begins nothing meanwhile
        await bank.drain()
        assert (await bank.runs.get(mine.id)).verdict.outcome == "success"


@pytest.mark.parametrize("later", [None, "failure"])
@pytest.mark.parametrize("is_interrupted", [False, True])
async def test_no_other_writer_changes_or_takes_over_the_outcome_of_a_run_that_waits(
    later: Outcome | None, is_interrupted: bool
) -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        ana, ben = [bank.scoped(writer=name, key=await bank.admin.add_writer(name)) for name in ("ana", "ben")]
        mine, recall = run(), await bank.retrieve(TASK)
        await interrupted(extractor, ana.learn(mine, outcome="success", recall=recall))
        if is_interrupted:
            extractor.waits, extractor.begun = True, anyio.Event()
            await interrupted(extractor, ben.learn(mine, outcome=later))
            await bank.runs.retry()
        else:
            learned = await ben.learn(mine, outcome=later)
            assert bool(later) == any(note.startswith("told by another writer") for note in learned.notes)
        settlement = await settlement_of(bank.store, recall.id, scope="t")
        assert settlement is not None
        assert (settlement.outcome, settlement.identity) == ("success", "key:ana")


async def test_the_process_and_a_person_may_say_otherwise_of_a_run_that_a_writer_told() -> None:
    extractor = Slow()
    async with await opened(extractor) as bank:
        ana = bank.scoped(writer="ana", key=await bank.admin.add_writer("ana"))
        ben = bank.scoped(writer="ben", key=await bank.admin.add_writer("ben"))
        first, second = run("a"), run("b")
        await interrupted(extractor, ana.learn(first, outcome="success"))
        extractor.waits, extractor.begun = True, anyio.Event()
        await interrupted(extractor, ana.learn(second, outcome="success"))
        await bank.learn(first, outcome="failure")
        await ben.runs.correct(second.id, outcome="failure", by="ben")
        verdicts = [(await bank.runs.get(one.id)).verdict for one in (first, second)]
        assert [(one.outcome, one.source) for one in verdicts] == [("failure", "ground_truth"), ("failure", "human")]


KILLED = """
import sys, time
import lessonbank
from lessonbank import Evidence, Extraction, Parts, Step, Trajectory, Verdict

def draw(attempts):
    print("drawing", flush=True)
    time.sleep(600)

run = Trajectory(id="r", task="Cancel order W7", steps=(Step(action="cancel", observation="ok"),), answer="done")
judge = lambda run: Verdict(outcome="success", confidence=0.9)
parts, evidence = Parts(judge=judge, extractor=draw), Evidence(holdout=None)
bank = lessonbank.connect(sys.argv[1], scope="t", embedder="lexical", evidence=evidence, parts=parts)
bank.learn(run, outcome="failure", recall=bank.retrieve("Cancel order W7"))
"""


@pytest.mark.full
async def test_a_process_that_ends_while_lessons_are_drawn_loses_no_outcome(tmp_path: Path) -> None:
    where, extractor = tmp_path / "bank.db", Slow()
    extractor.waits = False
    command = [sys.executable, "-c", KILLED, str(where)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as learner:
        assert learner.stdout is not None
        assert learner.stdout.readline() == "drawing\n"
        learner.kill()
    async with await opened(extractor, where) as bank:
        await bank.runs.retry()
        kept = await bank.runs.get("r")
        assert (kept.status, kept.verdict.outcome, kept.verdict.source) == ("learned", "failure", "ground_truth")
        assert kept.recall_id is not None


@pytest.mark.full
def test_who_interrupts_learning_is_told_what_is_kept(tmp_path: Path) -> None:
    waiting = KILLED.replace("def draw", "async def draw").replace("time.sleep(600)", "await anyio.sleep(600)")
    heard = "import anyio, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{heard}{waiting}", str(tmp_path / "bank.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as learner:
        assert learner.stdout is not None
        assert learner.stdout.readline() == "drawing\n"
        learner.send_signal(signal.SIGINT)
        said = learner.communicate(timeout=60)[1].splitlines()
    told = [line for line in said if "interrupted" in line]
    assert told == ["learning was interrupted: the run r is kept with what was said, and runs.retry() goes on"]
    assert said[-1] == "KeyboardInterrupt"
