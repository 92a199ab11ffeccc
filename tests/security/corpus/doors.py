"""Everything of a store or a bank that takes an id or the number of a change: the doors a tenant can knock at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tenants import collected

from lessonbank import AsyncReasoningBank
from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter
from lessonbank.contracts.records import (
    Edit,
    Experience,
    Lesson,
    Merge,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    Settlement,
    Trajectory,
    Trust,
    Verdict,
)
from lessonbank.contracts.store_calls import (
    experience_of_lesson,
    experience_of_runs,
    get_experience,
    get_recall,
    get_run,
    get_trajectory,
    list_recalls,
    pending_runs,
    purge_one,
    settled_runs,
    settlement_of,
)
from lessonbank.testing.store_samples import START, towards


@dataclass(frozen=True, slots=True)
class Ids:
    """One of each kind, all of one tenant's, or all of nobody's; `last` is the number of a last change."""

    experience: str
    lesson: str
    run: str
    recall: str
    last: int

    def of(self, kind: str) -> Any:
        return getattr(self, kind)


@dataclass(frozen=True, slots=True)
class Door:
    """What it takes, and how one knocks: with a bank, the scope one may act in, and ids."""

    takes: str
    knock: Callable[[AsyncReasoningBank, str, Ids], Awaitable[Any]]


def _made(scope: str, id: str = "new") -> Experience:
    return Experience(
        id=id,
        scope=scope,
        task="a new task",
        created_at=START,
        lessons=(Lesson(id="new-lesson", title="t", content="c"),),
    )


def _apply(takes: str, change: Callable[[str, Ids], Any]) -> Door:
    return Door(takes, lambda b, s, i: b.store.apply([change(s, i)], scope=s, writer="w"))


DOORS: dict[str, Door] = {
    "store.get": Door("experience", lambda b, s, i: get_experience(b.store, i.experience, scope=s)),
    "store.owner": Door("lesson", lambda b, s, i: experience_of_lesson(b.store, i.lesson, scope=s)),
    "store.trajectory": Door("run", lambda b, s, i: get_trajectory(b.store, i.run, scope=s)),
    "store.recall": Door("recall", lambda b, s, i: get_recall(b.store, i.recall, scope=s)),
    "store.settlement": Door("recall", lambda b, s, i: settlement_of(b.store, i.recall, scope=s)),
    "store.holding": Door("run", lambda b, s, i: experience_of_runs(b.store, [i.run], scope=s)),
    "store.learned": Door("run", lambda b, s, i: settled_runs(b.store, [i.run], scope=s)),
    "store.replace": _apply("experience", lambda s, i: Replace(experience=_made(s, i.experience))),
    "store.rejudge": _apply(
        "experience",
        lambda s, i: Rejudge(experience_id=i.experience, trajectory_id="r", verdict=Verdict(outcome="failure")),
    ),
    "store.rejudge_run": _apply(
        "run", lambda s, i: Rejudge(experience_id="own", trajectory_id=i.run, verdict=Verdict(outcome="failure"))
    ),
    "store.retire": _apply("lesson", lambda s, i: Retire(lesson_ids=("own-lesson", i.lesson), reason="r")),
    "store.restore": _apply("lesson", lambda s, i: Restore(lesson_ids=(i.lesson,), reason="r")),
    "store.trust": _apply(
        "lesson", lambda s, i: Trust(lesson_ids=("own-lesson", i.lesson), state="quarantined", by="person", reason="r")
    ),
    "store.merge": _apply(
        "lesson", lambda s, i: Merge(experience=_made(s), source_lesson_ids=("own-lesson", i.lesson), reason="r")
    ),
    "store.settle": Door(
        "recall",
        lambda b, s, i: b.store.apply(
            [], scope=s, writer="w", settlement=Settlement(recall_id=i.recall, scope=s, outcome="success")
        ),
    ),
    "store.place": Door(
        "experience",
        lambda b, s, i: b.store.apply([], scope=s, writer="w", vectors={i.experience: towards(0)}, space="sample:8"),
    ),
    "store.index": Door("lesson", lambda b, s, i: b.store.index({i.lesson: towards(0)}, scope=s, space="lessons:8")),
    "store.if_unlearned": Door("run", lambda b, s, i: _on_condition(b, s, if_unlearned=[i.run])),
    "store.if_unchanged": Door(
        "experience", lambda b, s, i: _on_condition(b, s, if_unchanged=[_made(s, i.experience)])
    ),
    "store.purge_lesson": Door(
        "lesson", lambda b, s, i: purge_one(b.store, "lesson", i.lesson, scope=s, writer="w", reason="r")
    ),
    "store.purge_run": Door(
        "run", lambda b, s, i: purge_one(b.store, "trajectory", i.run, scope=s, writer="w", reason="r")
    ),
    "store.rollback": _apply("last", lambda s, i: Rollback(to=i.last, reason="r")),
    "store.journal_since": Door("last", lambda b, s, i: collected(b.store.journal(scope=s, since=i.last))),
    "store.journal_of_kinds": Door(
        "last", lambda b, s, i: collected(b.store.journal(scope=s, since=i.last, kinds={"add", "settle"}))
    ),
    "store.get_run": Door("run", lambda b, s, i: get_run(b.store, i.run, scope=s)),
    "store.edit": _apply(
        "lesson", lambda s, i: Edit(lesson_id=i.lesson, title="t", description="d", content="c", by="ana")
    ),
    "store.list_runs_after": Door("run", lambda b, s, i: b.store.runs(RunFilter(after=i.run), scope=s)),
    "store.pending_after": Door("run", lambda b, s, i: pending_runs(b.store, scope=s, after=i.run)),
    "store.list_lessons_after": Door("lesson", lambda b, s, i: b.store.lessons(LessonFilter(after=i.lesson), scope=s)),
    "store.list_recalls_after": Door(
        "recall", lambda b, s, i: list_recalls(b.store, RecallFilter(after=i.recall), scope=s)
    ),
    "store.list_recalls_of": Door(
        "lesson", lambda b, s, i: list_recalls(b.store, RecallFilter(lesson=i.lesson), scope=s)
    ),
    "store.purge_recall": Door(
        "recall", lambda b, s, i: purge_one(b.store, "recall", i.recall, scope=s, writer="w", reason="r")
    ),
    "store.purge_many": Door(
        "run",
        lambda b, s, i: b.store.purge(
            [("lesson", "own-lesson"), ("trajectory", i.run)], scope=s, writer="w", reason="r"
        ),
    ),
    "lessons.get": Door("lesson", lambda b, s, i: b.scoped(s).lessons.get(i.lesson)),
    "lessons.experience": Door("lesson", lambda b, s, i: b.scoped(s).lessons.experience(i.lesson)),
    "lessons.list_after": Door("lesson", lambda b, s, i: b.scoped(s).lessons.list(after=i.lesson)),
    "lessons.search_after": Door("lesson", lambda b, s, i: b.scoped(s).lessons.search("order", after=i.lesson)),
    "lessons.narrow": Door("lesson", lambda b, s, i: b.scoped(s).lessons.narrow(i.lesson, to="refund", by="ana")),
    "lessons.merge": Door(
        "lesson",
        lambda b, s, i: b.scoped(s).lessons.merge("own-lesson", i.lesson, title="Ours", content="Now.", by="ana"),
    ),
    "lessons.unmerge": Door("lesson", lambda b, s, i: b.scoped(s).lessons.unmerge(i.lesson, reason="r")),
    "lessons.edit": Door("lesson", lambda b, s, i: b.scoped(s).lessons.edit(i.lesson, title="Ours now", by="ana")),
    "lessons.retire": Door("lesson", lambda b, s, i: b.scoped(s).lessons.retire("own-lesson", i.lesson, reason="r")),
    "lessons.restore": Door("lesson", lambda b, s, i: b.scoped(s).lessons.restore(i.lesson, reason="r")),
    "lessons.approve": Door("lesson", lambda b, s, i: b.scoped(s).lessons.approve(i.lesson, by="ana")),
    "lessons.quarantine": Door(
        "lesson", lambda b, s, i: b.scoped(s).lessons.quarantine("own-lesson", i.lesson, reason="r")
    ),
    "runs.get": Door("run", lambda b, s, i: b.scoped(s).runs.get(i.run)),
    "runs.list_after": Door("run", lambda b, s, i: b.scoped(s).runs.list(after=i.run)),
    "runs.search_after": Door("run", lambda b, s, i: b.scoped(s).runs.search("order", after=i.run)),
    "runs.pending_after": Door("run", lambda b, s, i: b.scoped(s).runs.pending(after=i.run)),
    "runs.correct": Door("run", lambda b, s, i: b.scoped(s).runs.correct(i.run, outcome="failure", by="ana")),
    "recalls.get": Door("recall", lambda b, s, i: b.scoped(s).recalls.get(i.recall)),
    "recalls.list_after": Door("recall", lambda b, s, i: b.scoped(s).recalls.list(after=i.recall)),
    "recalls.list_of": Door("lesson", lambda b, s, i: b.scoped(s).recalls.list(lesson=i.lesson)),
    "recalls.search_after": Door("recall", lambda b, s, i: b.scoped(s).recalls.search("order", after=i.recall)),
    "recalls.explain": Door("recall", lambda b, s, i: b.scoped(s).recalls.explain(i.recall)),
    "recalls.explain_record": Door(
        "recall", lambda b, s, i: b.scoped(s).recalls.explain(Recall(id=i.recall, scope=s, task="t"))
    ),
    "history.list_lesson": Door("lesson", lambda b, s, i: b.scoped(s).history.list(lesson=i.lesson)),
    "history.list_experience": Door("experience", lambda b, s, i: b.scoped(s).history.list(experience=i.experience)),
    "history.lineage": Door("lesson", lambda b, s, i: b.scoped(s).history.lineage(i.lesson)),
    "history.state": Door("last", lambda b, s, i: b.scoped(s).history.state(i.last)),
    "history.diff": Door("last", lambda b, s, i: b.scoped(s).history.diff(0, i.last)),
    "history.retrieve": Door("last", lambda b, s, i: b.scoped(s).history.retrieve("the order", at=i.last)),
    "history.rollback": Door("last", lambda b, s, i: b.scoped(s).history.rollback(to=i.last, reason="r")),
    "admin.purge_lesson": Door("lesson", lambda b, s, i: b.scoped(s).admin.purge(lesson=i.lesson, reason="r")),
    "admin.purge_run": Door("run", lambda b, s, i: b.scoped(s).admin.purge(run=i.run, reason="r")),
    "admin.purge_recall": Door("recall", lambda b, s, i: b.scoped(s).admin.purge(recall=i.recall, reason="r")),
    "admin.purge_preview": Door("run", lambda b, s, i: b.scoped(s).admin.purge(run=i.run, reason="r", preview=True)),
    "bank.trial_lesson": Door("lesson", lambda b, s, i: b.scoped(s).trial(["t"], str, verify=bool, without=i.lesson)),
    "bank.trial_with": Door("lesson", lambda b, s, i: b.scoped(s).trial(["t"], str, verify=bool, with_=i.lesson)),
    "bank.learn_recall": Door(
        "recall", lambda b, s, i: b.scoped(s).learn(Trajectory(id="r9", task="t"), recall=i.recall, outcome="failure")
    ),
    "bank.submit_recall": Door(
        "recall", lambda b, s, i: b.scoped(s).submit(Trajectory(id="r9", task="t"), recall=i.recall, outcome="failure")
    ),
    "bank.learn_known_run": Door("run", lambda b, s, i: _learn_again(b, s, i.run)),
}


async def _on_condition(bank: AsyncReasoningBank, scope: str, **condition: Any) -> Any:
    """What a change that names a run or an experience as its condition comes to; it is undone if it was made."""
    await bank.store.apply([Retire(lesson_ids=("own-lesson",), reason="r")], scope=scope, writer="w", **condition)
    await bank.store.apply([Restore(lesson_ids=("own-lesson",), reason="r")], scope=scope, writer="w")
    return "made"


async def _learn_again(bank: AsyncReasoningBank, scope: str, run: str) -> Any:
    """A run of that id is new here, whoever else has one; it is erased again."""
    learned = await bank.scoped(scope).learn(Trajectory(id=run, task="t", answer="a"), outcome="failure")
    await bank.scoped(scope).admin.purge(run=run, reason="r")
    return learned.known, len(learned.changes), learned.notes
