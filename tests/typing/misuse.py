"""Mistakes that type checkers must find: each `# expect:` names the rule of basedpyright, then the code of mypy."""

from __future__ import annotations

from collections.abc import Sequence

import lessonbank
from lessonbank import Evidence, File, Learning, Model, Parts, Retrieval, Safety, Step, Trajectory, Verdict
from lessonbank.contracts.ports import Extractor, Judge, Store


def wrong_calls(bank: lessonbank.ReasoningBank, run: Trajectory) -> None:
    bank.retrieve(task="Cancel the order")  # expect: reportCallIssue, call-arg
    bank.retrieve("Cancel the order", k=3)  # expect: reportCallIssue, call-arg
    bank.retrieve("Cancel the order", scope="acme")  # expect: reportCallIssue, call-arg
    bank.learn(run, outcome="won")  # expect: reportArgumentType, arg-type
    bank.learn(run, None)  # expect: reportCallIssue, call-arg
    bank.learn(run, recall=5)  # expect: reportArgumentType, arg-type
    str(bank.retrieve("Cancel the order").texts)  # expect: reportAttributeAccessIssue, attr-defined
    bank.scoped("acme", "u-17")  # expect: reportCallIssue, call-arg
    bank.scoped(writer="u-17", key=17)  # expect: reportArgumentType, arg-type
    bank.scale("Cancel the order", None)  # expect: reportArgumentType, arg-type
    bank.trial([], lambda task, memory: memory)  # expect: reportCallIssue, call-arg
    bank.lift(level="high")  # expect: reportArgumentType, arg-type


def wrong_settings() -> None:
    lessonbank.connect("bank.db")  # expect: reportCallIssue, call-arg
    lessonbank.connect("bank.db", scope="a", limit=3)  # expect: reportCallIssue, call-arg
    lessonbank.connect("bank.db", scope="a", profile="best")  # expect: reportArgumentType, arg-type
    lessonbank.connect("bank.db", scope="a", retrieval="nearest")  # expect: reportArgumentType, arg-type
    lessonbank.connect("bank.db", scope="a", safety="strict")  # expect: reportArgumentType, arg-type
    lessonbank.connect("bank.db", scope="a", learning="code")  # expect: reportArgumentType, arg-type
    lessonbank.connect("bank.db", scope="a", evidence=Retrieval())  # expect: reportArgumentType, arg-type
    lessonbank.connect(5, scope="a")  # expect: reportArgumentType, arg-type
    lessonbank.connect("bank.db", "a")  # expect: reportCallIssue, call-arg
    Retrieval("nearest")  # expect: reportArgumentType, arg-type
    Retrieval(limit="3")  # expect: reportArgumentType, arg-type
    Retrieval(level="item")  # expect: reportArgumentType, arg-type
    Learning(consolidation="merge")  # expect: reportArgumentType, arg-type
    Learning(domain="shell")  # expect: reportArgumentType, arg-type
    Evidence(hold_out=0.1)  # expect: reportCallIssue, call-arg
    Safety(trust="everyone")  # expect: reportArgumentType, arg-type
    Safety(redact="emails")  # expect: reportArgumentType, arg-type
    Safety(trust="witnessed")  # expect: reportArgumentType, arg-type
    Model()  # expect: reportCallIssue, call-arg
    Parts(hooks=print)  # expect: reportArgumentType, arg-type
    File("bank.db").read_only = True  # expect: reportAttributeAccessIssue, misc


def wrong_views(bank: lessonbank.ReasoningBank, id: str) -> None:
    bank.lessons.list(state="hidden")  # expect: reportArgumentType, arg-type
    bank.lessons.list(scope="acme")  # expect: reportCallIssue, call-arg
    bank.lessons.approve(id)  # expect: reportCallIssue, call-arg
    bank.lessons.retire(id)  # expect: reportCallIssue, call-arg
    bank.lessons.add(title="Ask", content="Ask first.", by="Ana")  # expect: reportCallIssue, call-arg
    bank.runs.correct(id, outcome="won", by="Ana")  # expect: reportArgumentType, arg-type
    bank.runs.correct(id, outcome="failure")  # expect: reportCallIssue, call-arg
    bank.history.retrieve("Cancel an order")  # expect: reportCallIssue, call-arg
    bank.history.rollback(3, reason="a bad import")  # expect: reportCallIssue, call-arg
    bank.lessons.proposals(limit=5)  # expect: reportCallIssue, call-arg
    bank.admin.add_writer(name="u-17")  # expect: reportCallIssue, call-arg
    lessonbank.restore("backup.db")  # expect: reportCallIssue, call-arg
    lessonbank.salvage("bank.db", new="new.db")  # expect: reportCallIssue, call-arg
    bank.admin.purge(lesson=id)  # expect: reportCallIssue, call-arg
    bank.admin.purge(item=id, reason="asked")  # expect: reportCallIssue, call-arg
    bank.lessons = bank.runs  # expect: reportAttributeAccessIssue, misc
    bank.items()  # expect: reportAttributeAccessIssue, attr-defined


def wrong_block(bank: lessonbank.ReasoningBank) -> None:
    with bank.attempt("Cancel the order") as attempt:
        attempt.finish(outcome="won")  # expect: reportArgumentType, arg-type
        attempt.finish(reward="1.0")  # expect: reportArgumentType, arg-type
        attempt.finish(messages=[])  # expect: reportCallIssue, call-arg


async def forgotten_await(bank: lessonbank.AsyncReasoningBank) -> None:
    str(bank.retrieve("Cancel the order").text)  # expect: reportAttributeAccessIssue, attr-defined
    len(bank.lessons.list())  # expect: reportArgumentType, arg-type
    str(lessonbank.connect_async("bank.db", scope="a").scope)  # expect: reportAttributeAccessIssue, attr-defined


def wrong_records() -> None:
    Verdict(outcome="maybe")  # expect: reportArgumentType, arg-type
    Step(act="ls")  # expect: reportCallIssue, call-arg
    Trajectory(tsk="List the files")  # expect: reportCallIssue, call-arg


async def judge_of_text(text: str, /) -> Verdict:
    return Verdict(outcome="unknown", reason=text)


def judge_that_does_not_wait(trajectory: Trajectory, /) -> Verdict:
    return Verdict(outcome="unknown", reason=trajectory.task)


async def extractor_of_runs(attempts: Sequence[Trajectory], /) -> list[str]:
    return [run.task for run in attempts]


class HalfAStore:
    async def close(self) -> None: ...


judge: Judge = judge_of_text  # expect: reportAssignmentType, assignment
other_judge: Judge = judge_that_does_not_wait  # expect: reportAssignmentType, assignment
extractor: Extractor = extractor_of_runs  # expect: reportAssignmentType, assignment
store: Store = HalfAStore()  # expect: reportAssignmentType, assignment
