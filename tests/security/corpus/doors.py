"""Everything of a store or a bank that takes an id or the number of a change: the doors a tenant can knock at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tenants import collected

from lessonbank import AsyncReasoningBank
from lessonbank.testing._store_samples import START, towards
from lessonbank.types import (
    Experience,
    Lesson,
    Merge,
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
    "store.get": Door("experience", lambda b, s, i: b.store.get(i.experience, scope=s)),
    "store.owner": Door("lesson", lambda b, s, i: b.store.owner(i.lesson, scope=s)),
    "store.trajectory": Door("run", lambda b, s, i: b.store.trajectory(i.run, scope=s)),
    "store.recall": Door("recall", lambda b, s, i: b.store.recall(i.recall, scope=s)),
    "store.settlement": Door("recall", lambda b, s, i: b.store.settlement(i.recall, scope=s)),
    "store.holding": Door("run", lambda b, s, i: b.store.holding([i.run], scope=s)),
    "store.learned": Door("run", lambda b, s, i: b.store.learned([i.run], scope=s)),
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
    "store.search_without": Door(
        "experience", lambda b, s, i: b.store.search("the order", scope=s, limit=9, exclude=[i.experience])
    ),
    "store.nearest_without": Door(
        "experience",
        lambda b, s, i: b.store.nearest(towards(0), scope=s, space="sample:8", limit=9, exclude=[i.experience]),
    ),
    "store.unlearned": Door("run", lambda b, s, i: _on_condition(b, s, unlearned=[i.run])),
    "store.unchanged": Door("experience", lambda b, s, i: _on_condition(b, s, unchanged=[_made(s, i.experience)])),
    "store.purge_lesson": Door(
        "lesson", lambda b, s, i: b.store.purge("lesson", i.lesson, scope=s, writer="w", reason="r")
    ),
    "store.purge_run": Door("run", lambda b, s, i: b.store.purge("trajectory", i.run, scope=s, writer="w", reason="r")),
    "store.rollback": _apply("last", lambda s, i: Rollback(to=i.last, reason="r")),
    "store.journal_since": Door("last", lambda b, s, i: collected(b.store.journal(scope=s, since=i.last))),
    "store.journal_of_kinds": Door(
        "last", lambda b, s, i: collected(b.store.journal(scope=s, since=i.last, kinds={"add", "settle"}))
    ),
    "bank.explain": Door("recall", lambda b, s, i: b.scoped(s).recalls.explain(i.recall)),
    "bank.replay": Door(
        "recall", lambda b, s, i: b.scoped(s).trial([i.recall], str, verify=bool, without="own-lesson")
    ),
    "bank.replay_lesson": Door("lesson", lambda b, s, i: b.scoped(s).trial(["q"], str, verify=bool, without=i.lesson)),
    "bank.get": Door("lesson", lambda b, s, i: b.scoped(s).lessons.get(i.lesson)),
    "bank.experience": Door("experience", lambda b, s, i: b.experience(i.experience, scope=s)),
    "bank.trajectory": Door("run", lambda b, s, i: b.trajectory(i.run, scope=s)),
    "bank.retire": Door("lesson", lambda b, s, i: b.scoped(s).lessons.retire("own-lesson", i.lesson, reason="r")),
    "bank.restore": Door("lesson", lambda b, s, i: b.scoped(s).lessons.restore(i.lesson, reason="r")),
    "bank.approve": Door("lesson", lambda b, s, i: b.scoped(s).lessons.approve("own-lesson", i.lesson, by="ana")),
    "bank.quarantine": Door(
        "lesson", lambda b, s, i: b.scoped(s).lessons.quarantine("own-lesson", i.lesson, reason="r")
    ),
    "bank.history_lesson": Door("lesson", lambda b, s, i: b.scoped(s).history.list(lesson=i.lesson)),
    "bank.history_experience": Door("experience", lambda b, s, i: b.scoped(s).history.list(experience=i.experience)),
    "bank.lineage": Door("lesson", lambda b, s, i: b.scoped(s).history.lineage(i.lesson)),
    "bank.purge_lesson": Door("lesson", lambda b, s, i: b.scoped(s).admin.purge(lesson=i.lesson, reason="r")),
    "bank.purge_trajectory": Door("run", lambda b, s, i: b.scoped(s).admin.purge(run=i.run, reason="r")),
    "bank.learn_recall": Door(
        "recall", lambda b, s, i: b.scoped(s).learn(Trajectory(id="r9", task="t"), recall=i.recall, outcome="failure")
    ),
    "bank.learn_known_run": Door("run", lambda b, s, i: _learn_again(b, s, i.run)),
    "bank.as_of": Door("last", lambda b, s, i: b.scoped(s).history.state(i.last)),
    "bank.diff": Door("last", lambda b, s, i: b.scoped(s).history.diff(0, i.last)),
    "bank.retrieve_as_of": Door("last", lambda b, s, i: b.scoped(s).history.search("the order", at=i.last)),
    "bank.rollback": Door("last", lambda b, s, i: b.scoped(s).history.rollback(to=i.last, reason="r")),
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
