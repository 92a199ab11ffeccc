"""An outcome that becomes known later is told of a run: it teaches, settles and corrects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Learning, Parts, Safety, Step, Trajectory, Verdict
from lessonbank.contracts.records import Extraction, Lesson, Run
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.errors import ModelUnavailable, NotFound, UsageError

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


async def test_an_outcome_that_is_told_of_a_run_beside_one_that_waits_corrects_it_and_judges_nothing_again() -> None:
    judged: list[str] = []

    async def judge(one: Trajectory, /) -> Verdict:
        judged.append(one.id)
        return Verdict(outcome="unknown", confidence=0.0, reason="cannot tell")

    async with await opened(parts=Parts(judge=judge)) as bank:
        first, second = run(), run()
        await bank.learn([first, second], outcome=["success", None])  # type: ignore[list-item]
        told = await bank.tell(first.id, outcome="failure")
        assert [change.kind for change in told.changes] == ["verdict"]
        corrected = await bank.runs.correct(first.id, outcome="success", by="Ana", reason="it arrived")
        assert [change.kind for change in corrected.changes] == ["verdict"]
        verdict = (await bank.runs.get(first.id)).verdict
        assert (verdict.outcome, verdict.reason) == ("success", "Ana: it arrived")
        assert judged == [second.id]
        assert [one.id for one in await bank.runs.pending()] == [second.id]
        both = await bank.learn([first, second], outcome=["failure", "failure"])
        assert {one.verdict.outcome for one in await bank.runs.list()} == {"failure"}
        assert "verdict" in [change.kind for change in both.changes]


async def test_runs_that_were_learned_apart_are_corrected_together() -> None:
    async with await opened() as bank:
        first, second = run(), run()
        for one in (first, second):
            await bank.learn(one, outcome="success")
        told = await bank.learn([first, second], outcome="failure")
        assert [change.kind for change in told.changes] == ["verdict", "verdict"]
        assert {one.verdict.outcome for one in await bank.runs.list()} == {"failure"}


async def with_writers(*names: str) -> tuple[AsyncReasoningBank, dict[str, AsyncReasoningBank]]:
    bank = await opened(learning=Learning(submit="worker"))
    keys = {name: await bank.admin.add_writer(name) for name in names}
    return bank, {name: bank.scoped(writer=name, key=key) for name, key in keys.items()}


async def test_runs_that_two_others_told_are_learned_once_and_each_with_the_word_of_who_told_it() -> None:
    bank, writers = await with_writers("ana", "ben", "cem")
    first, second, third = run(), run(), run()
    await writers["ana"].submit(first, outcome="success")
    await writers["ben"].submit(second, outcome="failure")
    learned = await writers["cem"].learn([first, second], outcome=["failure", "success"])
    assert sum("told by another writer" in note for note in learned.notes) == 2
    assert {one.trajectory.id: one.verdict.outcome for one in await bank.runs.list()} == {
        first.id: "success",
        second.id: "failure",
    }
    await writers["ana"].submit(third, outcome="success")
    beside = await writers["cem"].learn([third, run()], outcome="failure")  # a fresh run beside it lifts no protection
    assert any("told by another writer" in note for note in beside.notes)
    assert (await bank.runs.get(third.id)).verdict.outcome == "success"
    await bank.close()


async def test_an_attempt_that_ended_without_an_outcome_is_measured_once_it_is_told() -> None:
    async with await opened() as bank:
        for named in ("run", "recall"):
            async with bank.attempt("Ship the parcel to Rome") as attempt:
                attempt.step("print label", "error: customs form missing")
            await bank.tell(attempt.run_id if named == "run" else attempt.recall, outcome="failure")
            settlement = await settlement_of(bank.store, attempt.recall.id, scope="t")
            assert settlement is not None
            assert settlement.outcome == "failure"


async def test_one_run_whose_judge_breaks_holds_up_no_other() -> None:
    async def judge(one: Trajectory, /) -> Verdict:
        if "Rome" in one.task:
            raise ValueError("no such town")
        return Verdict(outcome="failure", confidence=0.9, reason="the form is missing")

    async with await opened(parts=Parts(judge=judge), learning=Learning(submit="worker")) as bank:
        for town in ("Rome", "Oslo"):
            await bank.submit(run(f"Ship the parcel to {town}"))
        broken, fine = await bank.runs.retry()
        assert "ValueError: no such town" in broken.notes[0]
        assert fine.verdicts[0].outcome == "failure"
        assert [one.task for one in await bank.runs.pending()] == ["Ship the parcel to Rome"]


async def test_an_embedder_that_fails_while_a_person_writes_a_lesson_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        space = "broken"

        async def embed(self, texts: Any, /, *, role: str) -> Any:
            raise ModelUnavailable("no connection")

    bank = await lessonbank.connect_async(":memory:", scope="t", embedder=Broken())
    async with bank:
        await bank.lessons.add(title="Weigh it", content="Weigh it first.", task="Ship it", by="Ana")
    assert any("not embedded yet" in record.message for record in caplog.records)


class Overtaken:
    """An extractor that is slower than another call for the first run, which was judged a success."""

    def __init__(self) -> None:
        self.drawn_from = list[list[str]]()
        self.begun, self.other_waits, self.other_is_done = anyio.Event(), anyio.Event(), anyio.Event()

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        self.drawn_from.append([attempt.verdict.outcome for attempt in attempts])
        if not self.begun.is_set():
            self.begun.set()
            await self.other_waits.wait()
        elif not self.other_is_done.is_set():
            self.other_waits.set()
            await self.other_is_done.wait()
        told = f"Fill the customs form first: without it the label number {len(self.drawn_from)} is not printed."
        return Extraction(lessons=(Lesson(title="Fill the form", content=told),))


async def judge(_: Trajectory, /) -> Verdict:
    return Verdict(outcome="success", confidence=0.9)


async def overtaken(bank: AsyncReasoningBank, slow: Overtaken, first: Trajectory, call: Any) -> Any:
    """What `call` says, which began while a learn of `first` was at it, and ends after it."""

    async def learn() -> None:
        await bank.learn(first)
        slow.other_is_done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(learn)
        await slow.begun.wait()
        return await call()


async def test_an_outcome_that_is_told_while_a_judge_decides_stands_above_the_judge() -> None:
    slow, one = Overtaken(), run()
    async with await opened(parts=Parts(judge=judge, extractor=slow)) as bank:
        told = await overtaken(bank, slow, one, lambda: bank.tell(one.id, outcome="failure"))
        assert any("is now said to be a failure" in note for note in told.notes), told.notes
        verdict = (await bank.runs.get(one.id)).verdict
        assert (verdict.outcome, verdict.source) == ("failure", "ground_truth")


async def test_what_is_told_while_a_run_is_learned_stands_above_what_was_told_before() -> None:
    slow, one = Overtaken(), run()
    async with await opened(parts=Parts(extractor=slow)) as bank:
        slow.other_is_done.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: bank.learn(one, outcome="success"))
            await slow.begun.wait()
            await bank.tell(one.id, outcome="failure")
            slow.other_waits.set()
        assert (await bank.runs.get(one.id)).verdict.outcome == "failure"


async def test_of_two_runs_the_one_that_no_other_call_learned_meanwhile_teaches() -> None:
    slow, one, other = Overtaken(), run(), run()
    async with await opened(parts=Parts(judge=judge, extractor=slow)) as bank:
        told = await overtaken(bank, slow, one, lambda: bank.learn([one, other], outcome=["success", "failure"]))
        assert slow.drawn_from == [["success"], ["success", "failure"], ["failure"]]
        assert told.known == (one.id,)
        assert len(told.lessons) == 1
        assert not await bank.runs.pending()


@pytest.mark.parametrize(("when", "ends"), [("its text is redacted", "success"), ("it is judged", "failure")])
async def test_a_run_that_another_process_learns_meanwhile_is_learned_once_and_the_last_word_counts(
    when: str, ends: str, tmp_path: Path
) -> None:
    path, one, overtakes = tmp_path / "bank.db", run(), [True]

    def learn() -> None:
        if overtakes:
            overtakes.clear()
            with lessonbank.connect(path, scope="t", embedder="lexical") as other:
                other.learn(one, outcome="failure")

    def redact(text: str) -> str:
        learn()
        return text

    own: dict[str, Any] = (
        {"safety": Safety(redact=redact)} if "redacted" in when else {"parts": Parts(hooks=[lambda _: learn()])}
    )
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical", **own) as bank:
        assert (await bank.learn(one, outcome="success")).known == (one.id,)
        assert (await bank.admin.counts()).experiences == 1
        assert (await bank.runs.get(one.id)).verdict.outcome == ends
