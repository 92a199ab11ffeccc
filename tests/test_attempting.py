"""One attempt as a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lessonbank
from lessonbank import Evidence, Parts, ReasoningBank, Step, Trajectory
from lessonbank.errors import UsageError
from lessonbank.events import Event, Judged

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
        assert again.admin.counts().settled == 0


def test_steps_noted_as_they_happen_are_the_trajectory(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn left", "error: stuck")
        attempt.step("turn right", "open", thought="the other way")
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
    assert bank.admin.counts().settled == 1


def test_a_learning_problem_does_not_hide_the_exception(bank: ReasoningBank) -> None:
    with pytest.raises(ZeroDivisionError), bank.attempt("divide"):
        bank.close()
        1 / 0  # noqa: B018


def test_leaving_without_finish_keeps_the_run_and_learns_nothing(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
    assert attempt.learned is None
    assert "without finish()" in attempt.notes[-1]
    (kept,) = bank.runs.list()
    assert (kept.status, [step.action.text for step in kept.trajectory.steps]) == ("unfinished", ["turn"])
    assert bank.runs.pending() == ()


def test_what_cannot_be_noted_or_learned_is_said_and_never_breaks_the_block(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step(42, "open")  # type: ignore[arg-type]
        attempt.step("turn", "open")
        attempt.finish(answer=42, outcome="success")  # type: ignore[arg-type]
        attempt.finish(answer="open", outcome="success")
    assert [note.split(":")[0] for note in attempt.notes if "Validation" in note] == [
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


def test_finishing_twice_learns_once_and_says_so(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
        attempt.finish(outcome="success")
        assert "finished already" in attempt.finish(outcome="success").notes[0]
    assert bank.admin.counts().experiences == 1
    assert any("finished already" in note for note in attempt.notes)


def test_a_finish_that_is_refused_is_not_the_agents_failure_and_its_run_is_kept(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.finish(STUCK, outcome="sucess")  # type: ignore[arg-type]
    assert attempt.learned is None
    assert any("sucess" in note for note in attempt.notes)
    (kept,) = bank.runs.list()
    assert (kept.trajectory.id, kept.status) == (STUCK.id, "unfinished")


def test_a_refused_finish_can_be_tried_again(bank: ReasoningBank) -> None:
    with bank.attempt("open the valve") as attempt:
        attempt.step("turn", "open")
        assert attempt.finish(outcome="success", reward=0.0).experience is None
        attempt.finish(outcome="success")
    assert attempt.learned
    assert bank.admin.counts().experiences == 1


def test_a_hook_that_raises_does_not_hide_the_exception() -> None:
    def hook(event: Event) -> None:
        if isinstance(event, Judged):
            raise OSError("audit log full")

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(hooks=[hook])) as bank:
        with pytest.raises(ZeroDivisionError), bank.attempt("divide") as attempt:
            1 / 0  # noqa: B018
        (kept,) = bank.runs.list()
        assert (kept.status, kept.verdict.outcome) == ("learned", "failure")
    assert "audit log full" in attempt.notes[-1]


def test_an_attempt_that_was_not_entered_says_how(bank: ReasoningBank) -> None:
    attempt = bank.attempt("open the valve")
    with pytest.raises(UsageError, match="its block is entered"):
        attempt.finish(STUCK, outcome="failure")
    with pytest.raises(UsageError, match="its block is entered"):
        _ = attempt.text
    assert bank.admin.counts().trajectories == 0
