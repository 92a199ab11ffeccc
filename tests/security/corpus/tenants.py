"""A tenant who calls everything a store can be asked, from numbers alone: two who share a store, or one without the
other, make the same calls, so that whatever is answered differently was let through from one to the other."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lessonbank.contracts.ports import Imported, LessonFilter, RecallFilter, RunFilter
from lessonbank.contracts.records import (
    Add,
    Change,
    Experience,
    Lesson,
    Merge,
    Provenance,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Rollback,
    RunRef,
    Settlement,
    Trajectory,
    Trust,
    Verdict,
)
from lessonbank.contracts.store_calls import (
    count_records,
)
from lessonbank.errors import LessonbankError
from lessonbank.guard.wording import wording_of
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import START, towards

SPACES = ("tasks", "lessons")
_WORDS = ("cancel", "order", "boots", "oslo", "\u6ce8", "42", "the")
_IDS = range(4)
"""Few, and the same for everybody: whatever is unique in one scope only would meet here."""
_MOMENTS = {"at"}
"""What a store says of the time of a write."""


def plain(answer: Any, /) -> Any:
    """An answer as something that compares, without the time it was given."""
    if isinstance(answer, BaseModel):
        return {name: plain(value) for name, value in answer if name not in _MOMENTS}
    if isinstance(answer, str | bytes | int | float | None):
        return answer
    if isinstance(answer, dict):
        return {plain(key): plain(value) for key, value in answer.items()}
    if isinstance(answer, set | frozenset):
        return sorted(map(plain, answer))
    if isinstance(answer, Sequence):
        return [plain(value) for value in answer]
    if is_dataclass(answer):
        return {one.name: plain(getattr(answer, one.name)) for one in fields(answer)}
    return repr(answer)


def refusal(error: BaseException, /) -> tuple[Any, ...]:
    """All that can be read off an error: its kind, code, words, attributes, and the errors behind it."""
    behind = [refusal(e) for e in (error.__cause__, error.__context__) if isinstance(e, LessonbankError)]
    return type(error).__name__, getattr(error, "code", ""), str(error), plain(error.args), plain(vars(error)), behind


async def collected(records: AsyncIterator[Any]) -> list[Any]:
    return [record async for record in records]


class Tenant:
    """One of those who share a store.

    Attributes:
        told: every call it made, and all that it was answered.
    """

    def __init__(self, store: Any, scopes: Sequence[str], folder: Path, /, *, mark: str) -> None:
        self.store, self.scopes, self.folder, self.mark = store, scopes, folder, mark
        self.scope = scopes[0]
        self.told: list[Any] = []

    async def act(self, method: str, number: int) -> None:
        """One call, its details drawn from `number`."""
        chance = random.Random(number)
        self.scope = chance.choice(self.scopes)
        try:
            answer = plain(await CALLS[method](self, chance))
        except LessonbankError as error:
            answer = refusal(error)
        self.told.append((method, self.scope, answer))

    # -- what it calls with

    def id(self, letter: str, chance: random.Random) -> str:
        return f"{letter}{chance.choice(_IDS)}"

    def text(self, chance: random.Random) -> str:
        return " ".join(chance.choices(_WORDS, k=chance.choice((1, 2, 4))))

    def run(self, chance: random.Random) -> Trajectory:
        return Trajectory(id=self.id("r", chance), task=self.text(chance), answer=self.mark)

    def verdict(self, chance: random.Random) -> Verdict:
        return Verdict(outcome=chance.choice(("success", "failure", "unknown")), reason=self.mark)

    def experience(self, chance: random.Random) -> Experience:
        id, runs = self.id("e", chance), sorted({self.id("r", chance) for _ in range(chance.randrange(3))})
        lessons = [
            Lesson(
                id=f"{id}-{n}",
                title=self.text(chance),
                content=self.mark,
                retired=chance.random() < 0.2,
                created_at=START,
                provenance=Provenance(trajectory_ids=tuple(runs[:n])),
            )
            for n in range(chance.choice((0, 1, 2)))
        ]
        return Experience(
            id=id,
            scope=self.scope,
            task=self.text(chance),
            lessons=tuple(lessons),
            attempts=tuple(RunRef(trajectory_id=run, verdict=self.verdict(chance)) for run in runs),
            created_at=START + timedelta(minutes=chance.randrange(3)),
        )

    def lesson_id(self, chance: random.Random) -> str:
        return f"{self.id('e', chance)}-{chance.randrange(2)}"

    def change(self, chance: random.Random) -> Change:
        kind = chance.choice(("add", "add", "add", "add", "replace", "retire", "restore", "merge", "rejudge", "trust"))
        ids, reason = (self.lesson_id(chance),), self.mark
        if kind == "add":
            return Add(experience=self.experience(chance))
        if kind == "replace":
            return Replace(experience=self.experience(chance), reason=reason)
        if kind == "merge":
            return Merge(experience=self.experience(chance), source_lesson_ids=ids, reason=reason)
        if kind == "rejudge":
            names = {"experience_id": self.id("e", chance), "trajectory_id": self.id("r", chance)}
            return Rejudge(**names, verdict=self.verdict(chance))
        if kind == "trust":
            state = chance.choice(("active", "quarantined"))
            return Trust(lesson_ids=ids, state=state, by="person", reason=reason)  # type: ignore[arg-type]
        return (Retire if kind == "retire" else Restore)(lesson_ids=ids, reason=reason)

    def settlement(self, chance: random.Random) -> Settlement:
        runs = (self.id("r", chance),)
        return Settlement(
            recall_id=self.id("q", chance), scope=self.scope, trajectory_ids=runs, outcome="success", at=START
        )

    def vectors(self, ids: Sequence[str], chance: random.Random) -> dict[str, Any]:
        return {id: towards(chance.randrange(8), tilt=chance.choice((0.0, 0.5))) for id in ids}


async def _apply(t: Tenant, chance: random.Random) -> Any:
    if chance.random() < 0.15:
        back = Rollback(to=chance.randrange(6), reason=t.mark)
        return await t.store.apply([back], scope=t.scope, writer=t.mark)
    changes = [t.change(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
    new = [c.experience.id for c in changes if isinstance(c, Add)] if chance.random() < 0.6 else []
    return await t.store.apply(
        changes,
        scope=t.scope,
        writer=t.mark,
        vectors=t.vectors(new, chance),
        space="tasks" if new else None,
        settlement=t.settlement(chance) if chance.random() < 0.2 else None,
        if_unlearned=[t.id("r", chance)] if chance.random() < 0.1 else (),
    )


async def _index(t: Tenant, chance: random.Random) -> Any:
    space = chance.choice(SPACES)
    ids = [t.id("e", chance)] if space == "tasks" else [t.lesson_id(chance)]
    return await t.store.index(t.vectors(ids, chance), scope=t.scope, space=space, replace=chance.random() < 0.2)


async def _nearest(t: Tenant, chance: random.Random) -> Any:
    (vector,) = t.vectors(["query"], chance).values()
    return (await t.store.nearest(vector, scope=t.scope, space=chance.choice(SPACES), limit=3)).matches


async def _search(t: Tenant, chance: random.Random) -> Any:
    return await t.store.search(t.text(chance), scope=t.scope, limit=chance.choice((1, 9)))


async def _unindexed(t: Tenant, chance: random.Random) -> Any:
    lessons = chance.random() < 0.5
    return await t.store.unindexed(scope=t.scope, space=SPACES[lessons], limit=9, lessons=lessons)


async def _save_recall(t: Tenant, chance: random.Random) -> Any:
    at = START + timedelta(minutes=chance.randrange(3))
    recall = Recall(id=t.id("q", chance), scope=t.scope, task=t.text(chance), text=t.mark, created_at=at)
    return await t.store.save_recall(recall)


async def _purge(t: Tenant, chance: random.Random) -> Any:
    these = [("lesson", t.lesson_id(chance)), ("trajectory", t.id("r", chance)), ("recall", t.id("q", chance))]
    what: Any = chance.choice(
        (
            [these[0]],
            [these[1]],
            [these[1]],
            [("scope", "")],
            chance.sample(these, 2),
            START + timedelta(days=chance.choice((-1, 36_500))),
        )
    )
    return await t.store.purge(what, scope=t.scope, writer=t.mark, reason=t.mark)


async def _runs(t: Tenant, chance: random.Random) -> Any:
    wanted = RunFilter(
        ids=chance.choice((None, None, [t.id("r", chance)])),
        outcome=chance.choice((None, "success")),
        status=chance.choice((None, None, "pending", "learned")),
        text=chance.choice((None, *_WORDS)),
        oldest_first=chance.random() < 0.5,
        limit=chance.choice((1, 9)),
        after=chance.choice((None, t.id("r", chance))),
    )
    return await t.store.runs(wanted, scope=t.scope)


async def _lessons(t: Tenant, chance: random.Random) -> Any:
    wanted = LessonFilter(
        state=chance.choice((None, "active", "quarantined", "retired")),
        text=chance.choice((None, *_WORDS)),
        retired=chance.random() < 0.5,
        limit=chance.choice((1, 9)),
        after=chance.choice((None, t.lesson_id(chance))),
    )
    return await t.store.lessons(wanted, scope=t.scope)


async def _recalls(t: Tenant, chance: random.Random) -> Any:
    wanted = RecallFilter(
        ids=chance.choice((None, None, [t.id("q", chance)])),
        text=chance.choice((None, *_WORDS)),
        settled=chance.choice((None, True, False)),
        settlements=chance.random() < 0.5,
        oldest_first=chance.random() < 0.5,
        limit=chance.choice((1, 9)),
        after=chance.choice((None, t.id("q", chance))),
    )
    return await t.store.recalls(wanted, scope=t.scope)


async def _experiences(t: Tenant, chance: random.Random) -> Any:
    by = chance.choice(("id", "lesson", "run", "wording", "repeats"))
    value = {
        "id": t.id("e", chance),
        "run": t.id("r", chance),
        "wording": wording_of(Lesson(title=t.text(chance), content="x")),
    }
    return await t.store.experiences(by, [value.get(by, t.lesson_id(chance))], scope=t.scope)  # type: ignore[arg-type]


async def _import(t: Tenant, chance: random.Random) -> Any:
    brought = Imported(runs=[t.run(chance)], experiences=[t.experience(chance)])
    return await t.store.import_records(lambda: [brought], scope=t.scope, writer=t.mark)


async def _put_setting(t: Tenant, chance: random.Random) -> Any:
    # Settings are the file's, not a scope's: who shares a file agrees on their names.
    return await t.store.put_setting(f"{t.mark}{chance.choice(_IDS)}", t.text(chance))


async def _settings(t: Tenant, chance: random.Random) -> Any:
    return [await t.store.settings(t.mark), await t.store.settings(f"{t.mark}{chance.choice(_IDS)}", exact=True)]


async def _count(t: Tenant, chance: random.Random) -> Any:
    # All scopes are for the owner of the file, who sees everybody: a tenant's own is among them, or not.
    return await t.store.count(scope=t.scope), (await t.store.count()).get(t.scope)


async def _backup(t: Tenant, chance: random.Random) -> Any:
    path = t.folder / f"{t.mark}.backup"
    await t.store.backup(path)
    copy = await SqliteStore.open(path)
    try:
        return await count_records(copy, scope=t.scope), await collected(copy.scan(scope=t.scope))
    finally:
        await copy.close()


async def _close(t: Tenant, chance: random.Random) -> Any:
    await t.store.close()
    await t.store.close()
    return await count_records(t.store, scope=t.scope)


async def _claim(t: Tenant, chance: random.Random) -> Any:
    include_given_up = chance.random() < 0.8  # a run that was just kept may not be taken yet
    taken = await t.store.claim(worker=t.mark, limit=2, seconds=600, scope=t.scope, include_given_up=include_given_up)
    return [(one.scope, one.trajectory.id, one.tries) for one in taken]


async def _extend(t: Tenant, chance: random.Random) -> Any:
    return sorted(await t.store.extend([f"r{n}" for n in _IDS], scope=t.scope, worker=t.mark, seconds=600))


async def _queue(t: Tenant, chance: random.Random) -> Any:
    told = await t.store.queue(scope=t.scope)
    return told.model_dump(exclude={"oldest"})


CALLS: dict[str, Callable[[Tenant, random.Random], Awaitable[Any]]] = {
    "claim": _claim,
    "extend": _extend,
    "release": lambda t, c: t.store.release(t.id("r", c), scope=t.scope, worker=t.mark, wait=c.choice((0.0, None))),
    "queue": _queue,
    "save_runs": lambda t, c: t.store.save_runs([t.run(c) for _ in range(c.choice((1, 2)))], scope=t.scope),
    "save_recall": _save_recall,
    "runs": _runs,
    "lessons": _lessons,
    "recalls": _recalls,
    "experiences": _experiences,
    "import_records": _import,
    "apply": _apply,
    "scan": lambda t, c: collected(t.store.scan(scope=t.scope)),
    "nearest": _nearest,
    "search": _search,
    "unindexed": _unindexed,
    "index": _index,
    "journal": lambda t, c: collected(t.store.journal(scope=t.scope, since=c.choice((0, 0, 2)))),
    "count": _count,
    "settings": _settings,
    "put_setting": _put_setting,
    "purge": _purge,
    "rebuild": lambda t, c: t.store.rebuild(),
    "verify": lambda t, c: t.store.verify(),
    "backup": _backup,
    "close": _close,
}
"""A call of every method of the ports."""

MOVES = (
    *("apply",) * 20,
    *("save_runs",) * 4,
    *("save_recall",) * 4,
    *("experiences",) * 4,
    *("runs", "recalls") * 3,
    *(name for name in CALLS if name != "close"),
)
"""What a walk draws from: more writes than a draw by name would give. Closing comes last."""
LOOKS = ("scan", "runs", "lessons", "recalls", "experiences", "journal", "count", "verify")
