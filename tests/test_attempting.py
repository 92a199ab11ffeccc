"""One attempt as a `with` block."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Evidence, Parts, ReasoningBank, Step, Trajectory, Verdict
from lessonbank.errors import UsageError

STUCK = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


@pytest.fixture
def bank() -> Iterator[ReasoningBank]:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as opened:
        yield opened


def test_an_attempt_retrieves_on_entry_and_learns_on_finish(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        assert attempt.text == ""
        learned = attempt.finish(STUCK, outcome="failure")
    assert attempt.learned == learned
    assert learned.verdicts[0].outcome == "failure"
    with bank.attempt("open the valve") as second:
        assert second.lessons
        assert second.lessons[0].title in second.text


def test_a_receipt_says_whether_the_bank_keeps_it(tmp_path: Path) -> None:
    opened = lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", evidence=Evidence(holdout=None))
    with opened.attempt("open the valve") as attempt:
        assert attempt.recall.kept
    opened.close()
    with opened.attempt("open the valve") as attempt:
        assert not attempt.recall.kept
        assert "the agent works without memory" in attempt.recall.notes[0]
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as again:
        learned = again.learn(STUCK, recall=attempt.recall, outcome="failure")
        assert learned.verdicts[0].outcome == "failure"
        assert again.admin.counts().recalls_with_a_run == 0


def test_steps_noted_as_they_happen_are_the_trajectory(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn left", "error: stuck")
        attempt.step("turn right", "open", thought="the other way")
        assert [step.action.text for step in attempt.steps] == ["turn left", "turn right"]
        attempt.finish(answer="open", outcome="success")
    kept = bank.runs.get(attempt.learned.experience.attempts[0].trajectory_id).trajectory  # type: ignore[union-attr]
    assert [s.action.text for s in kept.steps] == ["turn left", "turn right"]
    assert kept.answer == "open"


def test_an_exception_inside_is_a_failed_attempt_and_still_reaches_the_caller(bank: ReasoningBank) -> None:
    with pytest.raises(ZeroDivisionError), bank.attempt("divide") as attempt:
        attempt.step("divide by zero", "about to")
        1 / 0  # noqa: B018
    assert attempt.learned
    (verdict,) = attempt.learned.verdicts
    assert (verdict.outcome, verdict.source) == ("failure", "framework_error")
    assert bank.admin.counts().recalls_with_a_run == 1


def test_a_learning_problem_does_not_hide_the_exception(bank: ReasoningBank) -> None:
    with pytest.raises(ZeroDivisionError), bank.attempt("divide"):
        bank.close()
        1 / 0  # noqa: B018


def test_a_block_that_ends_without_finish_is_kept_as_unfinished_and_teaches_nothing(
    bank: ReasoningBank, caplog: pytest.LogCaptureFixture
) -> None:
    with bank.attempt("open the valve", metadata={"user": "u-1"}) as attempt:
        attempt.step("turn", "open")
    assert attempt.learned is None
    (run,) = bank.runs.list(status="unfinished")
    assert [step.action.text for step in run.trajectory.steps] == ["turn"]
    assert run.metadata["user"] == "u-1"
    assert run.trajectory.recall_id == attempt.recall.id
    assert bank.runs.pending() == ()
    assert (bank.admin.counts().experiences, bank.admin.counts().recalls_with_a_run) == (0, 0)
    assert "without finish()" in attempt.notes[-1]
    assert any("without finish()" in record.getMessage() for record in caplog.records)


def test_what_cannot_be_noted_or_learned_is_said_and_never_breaks_the_block(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step(42, "open")  # type: ignore[arg-type]
        attempt.step("turn", "open")
        attempt.finish(answer=42, outcome="success")  # type: ignore[arg-type]
        attempt.finish(answer="open", outcome="success")
    assert [note.split(":")[0] for note in attempt.notes if "InvalidRecord" in note] == [
        "a step was not noted",
        "nothing was learned from this run",
    ]
    (kept,) = bank.runs.list()
    assert (kept.status, kept.trajectory.answer, len(kept.trajectory.steps)) == ("learned", "open", 1)


def test_an_interrupt_is_nobodys_failure(bank: ReasoningBank) -> None:
    with pytest.raises(KeyboardInterrupt), bank.attempt("open the valve") as attempt:
        attempt.step("turn", "…")
        raise KeyboardInterrupt
    assert attempt.learned is None


def test_finishing_twice_learns_once_and_says_so(bank: ReasoningBank, caplog: pytest.LogCaptureFixture) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
        first = attempt.finish(outcome="success")
        second = attempt.finish(outcome="failure")
    assert (attempt.learned, second.experience) == (first, None)
    assert "finished already" in second.notes[0]
    assert any("finished already" in note for note in attempt.notes)
    assert any("finished already" in record.getMessage() for record in caplog.records)
    assert bank.runs.list()[0].verdict.outcome == "success"
    assert bank.admin.counts().trajectories == 1


@pytest.mark.parametrize("source", [None, STUCK, [{"role": "assistant", "content": "done"}]])
@pytest.mark.parametrize(
    "wrong", [{"outcome": "success", "reward": 0.0}, {"outcome": "sucess"}, {"outcome": "failure", "wait": "no"}]
)
def test_a_run_whose_finish_was_refused_is_kept_and_is_not_the_agents_failure(
    bank: ReasoningBank, source: object, wrong: dict[str, Any]
) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
        learned = attempt.finish(source, **wrong)
    assert str(list(wrong.values())[-1]) in learned.notes[0]
    assert (attempt.learned, bank.admin.counts().experiences) == (None, 0)
    (run,) = bank.runs.list()
    assert run.status == "unfinished"
    assert run.trajectory.steps or run.trajectory.answer == "done"


def test_a_refused_finish_can_be_tried_again(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
        assert "contradicts" in attempt.finish(outcome="success", reward=0.0).notes[0]
        attempt.finish(outcome="success")
    assert attempt.learned
    assert [run.status for run in bank.runs.list()] == ["learned"]


def test_an_attempt_that_was_not_entered_says_how(bank: ReasoningBank) -> None:
    attempt = bank.attempt("open the valve")
    with pytest.raises(UsageError, match="its block is entered"):
        attempt.finish(STUCK, outcome="failure")
    with pytest.raises(UsageError, match="its block is entered"):
        _ = attempt.text
    assert bank.admin.counts().trajectories == 0


# -- what goes wrong inside costs the lesson, never the run ------------------------------------------------------------


@pytest.mark.parametrize("task", ["", "   ", None, 3])
def test_a_task_that_says_nothing_does_not_break_the_agent(
    bank: ReasoningBank, task: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with bank.attempt(task) as attempt:
        assert attempt.text == ""
        assert (attempt.lessons, attempt.recall.kept) == ((), False)
        attempt.step("turn", "error: stuck")
        attempt.finish(outcome="failure")
    assert "the agent works without memory" in attempt.notes[0]
    assert any("works without memory" in record.getMessage() for record in caplog.records)
    assert len(bank.runs.list(outcome="failure")) == 1


@pytest.mark.parametrize("messages", [object(), 3, [{"odd": 1}], [3], {"messages": 5}, b"bytes"])
def test_messages_that_cannot_be_read_still_settle_the_receipt_with_their_outcome(
    bank: ReasoningBank, messages: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "error: stuck")
        attempt.note("The valve turns left.")
        attempt.finish(messages, outcome="failure")
    assert any("messages could not be read" in note for note in attempt.notes)
    assert any("messages could not be read" in record.getMessage() for record in caplog.records)
    (run,) = bank.runs.list()
    assert (run.verdict.outcome, run.recall_id) == ("failure", attempt.recall.id)
    assert bank.admin.counts().recalls_with_a_run == 1
    assert [one.title for one in bank.lessons.list(state="quarantined")] == ["The valve turns left."]


@pytest.mark.parametrize("told", [{}, {"wait": False}, {"outcome": "sucess"}, {"outcome": "success", "wait": "no"}])
def test_what_was_noted_outlives_messages_that_cannot_be_read(bank: ReasoningBank, told: dict[str, Any]) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "error: stuck")
        attempt.note("The valve turns left.")
        learned = attempt.finish(object(), **told)
    assert "nothing was learned from this run" in learned.notes[-1]
    assert (attempt.learned, learned.experience) == (None, None)
    (run,) = bank.runs.list(status="unfinished")
    assert [step.action.text for step in run.trajectory.steps] == ["turn"]
    assert [one.title for one in bank.lessons.list(state="quarantined")] == ["The valve turns left."]


def test_a_store_that_is_down_does_not_break_the_agent(tmp_path: Path) -> None:
    bank = lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical")
    bank.close()
    done = []
    for wait in (True, False):
        with bank.attempt("open the valve") as attempt:
            attempt.step("turn", "open")
            done.append(attempt.text)
            attempt.finish(outcome="success", wait=wait)
        assert any("works without memory" in note for note in attempt.notes)
        assert any("nothing was learned from this run" in note for note in attempt.notes)
    with bank.attempt("open the valve") as attempt:
        pass
    assert any("waits on this machine" in note for note in attempt.notes)
    assert done == ["", ""]


# -- submit: on disk at once, learned in the background ----------------------------------------------------------------


def test_a_submitted_run_is_on_disk_at_once_and_learned_by_the_time_the_bank_is_closed(tmp_path: Path) -> None:
    evidence = Evidence(holdout=None)
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", evidence=evidence) as bank:
        recall = bank.retrieve("open the valve")
        (id,) = bank.submit(STUCK, recall=recall, outcome="failure")
        assert bank.runs.get(id).trajectory.steps == STUCK.steps
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", evidence=evidence) as bank:
        run = bank.runs.get(id)
        assert (run.status, run.verdict.outcome, run.recall_id) == ("learned", "failure", recall.id)
        assert bank.lessons.list()
        assert bank.admin.counts().recalls_with_a_run == 1


def test_finish_that_does_not_wait_is_learned_by_the_time_the_bank_is_closed(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        with bank.attempt("open the valve") as attempt:
            told = attempt.finish(STUCK, outcome="failure", wait=False)
        assert "in the background" in told.notes[0]
        assert STUCK.id in told.notes[0]
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        assert bank.runs.get(STUCK.id).status == "learned"
        assert bank.admin.counts().recalls_with_a_run == 1


def test_close_waits_for_everything_that_was_submitted() -> None:
    asked = list[str]()

    async def slow(attempts: Any) -> lessonbank.Extraction:
        for _ in range(20):
            await asyncio.sleep(0)
        asked.append(attempts[0].trajectory.id)
        return lessonbank.Extraction()

    bank = lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(extractor=slow))
    ids = [bank.submit(STUCK.model_copy(update={"id": f"run-{n}"}), outcome="failure")[0] for n in range(10)]
    bank.close()
    assert sorted(asked) == sorted(ids)


def test_what_a_submitted_run_meets_in_the_background_is_logged_and_it_stays_pending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: Any) -> Any:
        raise RuntimeError("a bug of mine")

    bank = lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(judge=broken, extractor=broken))
    (id,) = bank.submit(STUCK, outcome="failure")
    while not any(id in str(record.args) or "a bug of mine" in record.getMessage() for record in caplog.records):
        assert bank.runs.get(id).trajectory.id == id
    assert [run.id for run in bank.runs.pending()] == [id]
    bank.close()


CRASH = """
import os, sys, lessonbank
from lessonbank import Evidence, Parts, Step, Trajectory

async def hangs(attempts):
    import anyio
    await anyio.sleep_forever()

bank = lessonbank.connect(
    sys.argv[1], scope="t", embedder="lexical", evidence=Evidence(holdout=None), parts=Parts(extractor=hangs)
)
recall = bank.retrieve("open the valve", metadata={"user": "u-1"})
runs = [
    Trajectory(id=id, task="open the valve", steps=(Step(action=id, observation="error: stuck"),))
    for id in ("left", "right")
]
bank.submit(runs, recall=recall, reward=0.0, metadata={"user": "u-1"})
bank.submit(Trajectory(id="alone", task="close the valve", steps=(Step(action="turn"),)), outcome="success")
print(recall.id, flush=True)
os._exit(1)
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a bank whose process crashed, and the recall of its runs."""
    folder = tmp_path_factory.mktemp("crashed")
    command = [sys.executable, "-c", CRASH, str(folder / "bank.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    return folder, done.stdout.strip()


@pytest.mark.full
def test_after_a_crash_retry_goes_on_with_the_outcome_and_the_recall_that_were_submitted(
    crashed: tuple[Path, str], tmp_path: Path
) -> None:
    path, recall = Path(shutil.copytree(crashed[0], tmp_path / "copy")) / "bank.db", crashed[1]
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        assert [run.id for run in bank.runs.pending()] == ["left", "right", "alone"]
        together, alone = bank.runs.retry()
        assert together.experience
        assert [ref.trajectory_id for ref in together.experience.attempts] == ["left", "right"]
        assert {verdict.outcome for verdict in together.verdicts} == {"failure"}
        assert {verdict.source for verdict in together.verdicts} == {"ground_truth"}
        assert alone.verdicts[0].outcome == "success"
        assert bank.runs.get("left").recall_id == recall
        assert bank.runs.get("left").verdict.reward == 0.0
        assert len(bank.runs.search(metadata={"user": "u-1"})) == 2
        assert bank.admin.counts().recalls_with_a_run == 1
        assert bank.runs.pending() == ()
        assert bank.runs.retry() == ()


@pytest.mark.full
def test_retry_goes_on_where_the_recall_was_erased_meanwhile(crashed: tuple[Path, str], tmp_path: Path) -> None:
    path, recall = Path(shutil.copytree(crashed[0], tmp_path / "copy")) / "bank.db", crashed[1]
    with lessonbank.connect(path, scope="t", embedder="lexical") as bank:
        bank.admin.purge(recall=recall, reason="erasure request")
        assert len(bank.runs.retry()) == 2
        assert bank.runs.pending() == ()


@pytest.mark.parametrize("given", [{"patience": 0.005}, {"patience": -1}, {"metadata": [1]}, {"limit": 0}])
def test_an_option_that_cannot_be_costs_the_recall_and_not_the_run(bank: ReasoningBank, given: dict[str, Any]) -> None:
    with bank.attempt("open the valve", **given) as attempt:
        attempt.finish(STUCK, outcome="failure")
    assert "the agent works without memory" in " ".join(attempt.notes)
    assert [run.verdict.outcome for run in bank.runs.list()] == ["failure"]


def test_a_note_for_the_inbox_outlives_a_judge_that_fails() -> None:
    async def judge(run: Trajectory) -> Verdict:
        raise ValueError(run.task)

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(judge=judge)) as bank:
        with bank.attempt("open the valve") as attempt:
            attempt.note("The valve turns left.")
            attempt.finish(answer="open")
        assert [run.status for run in bank.runs.list()] == ["pending"]
        assert [one.title for one in bank.lessons.list(state="quarantined")] == ["The valve turns left."]


async def kept_after(stop: Callable[[], AbstractAsyncContextManager[object]]) -> tuple[list[str], str]:
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:
        attempt = bank.attempt("open the valve")
        with contextlib.suppress(TimeoutError):
            async with stop(), attempt:
                attempt.step("turn left", "error: stuck")
                await asyncio.Event().wait()
        runs = await bank.runs.list()
        assert [len(run.trajectory.steps) for run in runs] == [1]
        return [run.status for run in runs], " ".join(attempt.notes)


@pytest.mark.anyio
async def test_a_block_that_is_cancelled_keeps_its_run_as_unfinished() -> None:
    @contextlib.asynccontextmanager
    async def scope() -> AsyncGenerator[None]:
        with anyio.move_on_after(0.2):
            yield

    for stop in (partial(asyncio.timeout, 0.2), scope):
        statuses, notes = await kept_after(stop)
        assert statuses == ["unfinished"]
        assert "was stopped" in notes


@pytest.mark.anyio
async def test_a_run_whose_finish_is_cancelled_is_kept_or_waits_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        attempt = bank.attempt("open the valve", patience=1)
        with contextlib.suppress(TimeoutError), contextlib.closing(sqlite3.connect(tmp_path / "bank.db")) as other:
            async with asyncio.timeout(None) as limit, attempt:
                other.execute("BEGIN IMMEDIATE")
                limit.reschedule(asyncio.get_running_loop().time() + 0.2)
                await attempt.finish(STUCK, outcome="failure")
        assert "waits on this machine" in " ".join(attempt.notes)
        await bank.retrieve("open the valve")
        await bank.drain()
        assert (await bank.runs.get(STUCK.id)).status == "unfinished"


@pytest.mark.anyio
async def test_a_run_whose_finish_is_cancelled_while_it_is_judged_waits_for_its_verdict() -> None:
    limit = asyncio.timeout(None)

    async def judge(run: Trajectory) -> Verdict:
        limit.reschedule(0)
        await asyncio.Event().wait()
        raise AssertionError(run)

    bank = await lessonbank.connect_async(":memory:", scope="t", embedder="lexical", parts=Parts(judge=judge))
    async with bank:
        with contextlib.suppress(TimeoutError):
            async with limit, bank.attempt("open the valve") as attempt:
                await attempt.finish(STUCK)
        assert limit.expired()
        assert (await bank.runs.get(STUCK.id)).status == "pending"


def test_several_runs_of_a_refused_call_are_all_kept(bank: ReasoningBank) -> None:
    runs = [Trajectory(task="open the valve", answer=answer) for answer in ("stuck", "open")]
    with bank.attempt("open the valve") as attempt:
        attempt.note("The valve turns left.")
        attempt.finish(runs, outcome="sucess")  # type: ignore[arg-type]
    assert {run.trajectory.id for run in bank.runs.list(status="unfinished")} == {run.id for run in runs}
    assert [one.title for one in bank.lessons.list(state="quarantined")] == ["The valve turns left."]
    with pytest.raises(KeyError), bank.attempt("open the valve") as attempt:
        told = [Trajectory(task="open the valve", id=f"run-{n}") for n in (1, 2)]
        attempt.finish(told, outcome="sucess")  # type: ignore[arg-type]
        raise KeyError("after")
    assert [bank.runs.get(f"run-{n}").trajectory.error for n in (1, 2)] == ["KeyError: 'after'"] * 2


def test_an_attempt_that_was_given_several_runs_names_the_first(bank: ReasoningBank) -> None:
    runs = [Trajectory(task="open the valve", answer=answer) for answer in ("stuck", "open")]
    with bank.attempt("open the valve") as attempt:
        attempt.finish(runs, outcome="failure")
    assert attempt.run_id == runs[0].id
    assert bank.tell(attempt.run_id, outcome="success").changes
