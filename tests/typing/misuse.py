"""Mistakes a type checker must find before they run: read by tests/architecture/test_types.py, never run."""

from __future__ import annotations

from collections.abc import Sequence

import lessonbank
from lessonbank import Step, Trajectory, Verdict
from lessonbank.protocols import Extractor, Judge, Store


def wrong_calls(bank: lessonbank.ReasoningBank, run: Trajectory) -> None:
    bank.retrieve(task="Cancel the order")  # expect: reportCallIssue
    bank.retrieve("Cancel the order", k=3)  # expect: reportCallIssue
    bank.learn(run, outcome="won")  # expect: reportArgumentType
    bank.learn(run, None)  # expect: reportCallIssue
    str(bank.retrieve("Cancel the order").texts)  # expect: reportAttributeAccessIssue
    lessonbank.connect("bank.db")  # expect: reportCallIssue


async def forgotten_await(bank: lessonbank.AsyncReasoningBank) -> str:
    return bank.retrieve("Cancel the order").text  # expect: reportAttributeAccessIssue


def wrong_records() -> None:
    Verdict(outcome="maybe")  # expect: reportArgumentType
    Step(act="ls")  # expect: reportCallIssue


async def judge_of_text(text: str, /) -> Verdict:
    return Verdict(outcome="unknown", reason=text)


def judge_that_does_not_wait(trajectory: Trajectory, /) -> Verdict:
    return Verdict(outcome="unknown", reason=trajectory.task)


async def extractor_of_runs(attempts: Sequence[Trajectory], /) -> list[str]:
    return [run.task for run in attempts]


class HalfAStore:
    async def close(self) -> None: ...


judge: Judge = judge_of_text  # expect: reportAssignmentType
other_judge: Judge = judge_that_does_not_wait  # expect: reportAssignmentType
extractor: Extractor = extractor_of_runs  # expect: reportAssignmentType
store: Store = HalfAStore()  # expect: reportAssignmentType
