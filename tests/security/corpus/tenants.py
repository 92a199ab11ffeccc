"""A tenant who calls everything a store can be asked, from numbers alone: two who share a store, or one without the
other, make the same calls, so that whatever is answered differently was let through from one to the other."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lessonbank.contracts.ports import Imported, LessonFilter, RecallFilter, RunFilter, Store
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
    drop_index,
    every_recall,
    experience_of_lesson,
    experience_of_runs,
    forget,
    get_experience,
    get_recall,
    get_run,
    get_setting,
    get_trajectory,
    list_recalls,
    list_scopes,
    pending_runs,
    purge_one,
    settled_runs,
    settlement_of,
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

    def __init__(self, store: Store, scopes: Sequence[str], folder: Path, /, *, mark: str) -> None:
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
        unlearned=[t.id("r", chance)] if chance.random() < 0.1 else (),
    )


async def _index(t: Tenant, chance: random.Random) -> Any:
    space = chance.choice(SPACES)
    ids = [t.id("e", chance)] if space == "tasks" else [t.lesson_id(chance)]
    return await t.store.index(t.vectors(ids, chance), scope=t.scope, space=space)


async def _nearest(t: Tenant, chance: random.Random) -> Any:
    (vector,) = t.vectors(["query"], chance).values()
    exclude = [t.id("e", chance)] if chance.random() < 0.3 else []
    return (await t.store.nearest(vector, scope=t.scope, space=chance.choice(SPACES), limit=3, exclude=exclude)).matches


async def _search(t: Tenant, chance: random.Random) -> Any:
    exclude = [t.id("e", chance)] if chance.random() < 0.3 else []
    return await t.store.search(t.text(chance), scope=t.scope, limit=chance.choice((1, 9)), exclude=exclude)


async def _unindexed(t: Tenant, chance: random.Random) -> Any:
    lessons = chance.random() < 0.5
    return await t.store.unindexed(scope=t.scope, space=SPACES[lessons], limit=9, lessons=lessons)


async def _record(t: Tenant, chance: random.Random) -> Any:
    at = START + timedelta(minutes=chance.randrange(3))
    recall = Recall(id=t.id("q", chance), scope=t.scope, task=t.text(chance), text=t.mark, created_at=at)
    return await t.store.save_recall(recall)


async def _purge(t: Tenant, chance: random.Random) -> Any:
    what = chance.choice(("lesson", "trajectory", "trajectory", "scope"))
    id = {"lesson": t.lesson_id(chance), "trajectory": t.id("r", chance), "scope": ""}[what]
    return await purge_one(t.store, what, id, scope=t.scope, writer=t.mark, reason=t.mark)  # type: ignore[arg-type]


async def _purge_many(t: Tenant, chance: random.Random) -> Any:
    these = [("lesson", t.lesson_id(chance)), ("trajectory", t.id("r", chance)), ("recall", t.id("q", chance))]
    chosen = chance.sample(these, chance.choice((1, 1, 2)))
    return await t.store.purge(chosen, scope=t.scope, writer=t.mark, reason=t.mark)  # type: ignore[arg-type]


async def _forget(t: Tenant, chance: random.Random) -> Any:
    before = START + timedelta(days=chance.choice((-1, 36_500)))
    return await forget(t.store, scope=t.scope, before=before, writer=t.mark)


async def _list_runs(t: Tenant, chance: random.Random) -> Any:
    return await t.store.runs(
        RunFilter(
            outcome=chance.choice((None, "success")),
            text=chance.choice((None, *_WORDS)),
            limit=chance.choice((1, 9)),
            after=chance.choice((None, t.id("r", chance))),
        ),
        scope=t.scope,
    )


async def _list_lessons(t: Tenant, chance: random.Random) -> Any:
    return await t.store.lessons(
        LessonFilter(
            state=chance.choice((None, "active", "quarantined", "retired")),
            text=chance.choice((None, *_WORDS)),
            retired=chance.random() < 0.5,
            limit=chance.choice((1, 9)),
            after=chance.choice((None, t.lesson_id(chance))),
        ),
        scope=t.scope,
    )


async def _list_recalls(t: Tenant, chance: random.Random) -> Any:
    return await list_recalls(
        t.store,
        RecallFilter(
            text=chance.choice((None, *_WORDS)),
            settled=chance.choice((None, True, False)),
            limit=chance.choice((1, 9)),
            after=chance.choice((None, t.id("q", chance))),
        ),
        scope=t.scope,
    )


async def _import(t: Tenant, chance: random.Random) -> Any:
    brought = Imported(runs=[t.run(chance)], experiences=[t.experience(chance)])
    return await t.store.import_records(lambda: [brought], scope=t.scope, writer=t.mark)


async def _setting(t: Tenant, chance: random.Random) -> Any:
    return await get_setting(t.store, f"{t.mark}{chance.choice(_IDS)}")


async def _set_setting(t: Tenant, chance: random.Random) -> Any:
    # Settings are the file's, not a scope's: who shares a file agrees on their names.
    return await t.store.put_setting(f"{t.mark}{chance.choice(_IDS)}", t.text(chance))


async def _scopes(t: Tenant, chance: random.Random) -> Any:
    # For the owner of the file, who sees everybody: a tenant's own name is in it, or not, whatever the others do.
    return t.scope in await list_scopes(t.store)


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
    anyway = chance.random() < 0.8  # a run that was just kept may not be taken yet
    taken = await t.store.claim(worker=t.mark, limit=2, seconds=600, scope=t.scope, anyway=anyway)
    return [(one.scope, one.trajectory.id, one.tries) for one in taken]


async def _extend(t: Tenant, chance: random.Random) -> Any:
    return sorted(await t.store.extend([f"r{n}" for n in _IDS], scope=t.scope, worker=t.mark, seconds=600))


async def _queue(t: Tenant, chance: random.Random) -> Any:
    told = await t.store.queue(scope=t.scope)
    return told.model_dump(exclude={"oldest"})


async def _storage(t: Tenant, chance: random.Random) -> Any:
    """Of the whole store: for its owner."""
    return sorted((await t.store.verify(tables=False)).storage)


CALLS: dict[str, Callable[[Tenant, random.Random], Awaitable[Any]]] = {
    "claim": _claim,
    "extend": _extend,
    "release": lambda t, c: t.store.release(t.id("r", c), scope=t.scope, worker=t.mark, wait=c.choice((0.0, None))),
    "queue": _queue,
    "storage": _storage,
    "keep": lambda t, c: t.store.save_runs([t.run(c) for _ in range(c.choice((1, 2)))], scope=t.scope),
    "learned": lambda t, c: settled_runs(t.store, [f"r{n}" for n in _IDS], scope=t.scope),
    "holding": lambda t, c: experience_of_runs(t.store, [t.id("r", c)], scope=t.scope),
    "repeating": lambda t, c: t.store.experiences("repeats", [t.lesson_id(c)], scope=t.scope),
    "pending": lambda t, c: pending_runs(
        t.store, scope=t.scope, limit=c.choice((None, 1)), after=c.choice((None, None, t.id("r", c)))
    ),
    "get_run": lambda t, c: get_run(t.store, t.id("r", c), scope=t.scope),
    "list_runs": _list_runs,
    "list_lessons": _list_lessons,
    "list_recalls": _list_recalls,
    "import_records": _import,
    "trajectory": lambda t, c: get_trajectory(t.store, t.id("r", c), scope=t.scope),
    "apply": _apply,
    "get": lambda t, c: get_experience(t.store, t.id("e", c), scope=t.scope),
    "owner": lambda t, c: experience_of_lesson(t.store, t.lesson_id(c), scope=t.scope),
    "owners": lambda t, c: t.store.experiences("lesson", [t.lesson_id(c), t.lesson_id(c)], scope=t.scope),
    "scan": lambda t, c: collected(t.store.scan(scope=t.scope)),
    "nearest": _nearest,
    "search": _search,
    "unindexed": _unindexed,
    "index": _index,
    "drop_index": lambda t, c: drop_index(t.store, scope=t.scope, space=c.choice(SPACES)),
    "record": _record,
    "recall": lambda t, c: get_recall(t.store, t.id("q", c), scope=t.scope),
    "receipts": lambda t, c: collected(every_recall(t.store, scope=t.scope)),
    "settlement": lambda t, c: settlement_of(t.store, t.id("q", c), scope=t.scope),
    "journal": lambda t, c: collected(t.store.journal(scope=t.scope, since=c.choice((0, 0, 2)))),
    "counts": lambda t, c: count_records(t.store, scope=t.scope),
    "scopes": _scopes,
    "setting": _setting,
    "set_setting": _set_setting,
    "settings": lambda t, c: t.store.settings(t.mark),
    "worded": lambda t, c: t.store.experiences(
        "wording", [wording_of(Lesson(title=t.text(c), content="x"))], scope=t.scope
    ),
    "purge": _purge,
    "purge_many": _purge_many,
    "forget": _forget,
    "rebuild": lambda t, c: t.store.rebuild(),
    "verify": lambda t, c: t.store.verify(),
    "backup": _backup,
    "close": _close,
}
"""A call of every method of the port."""

MOVES = (
    *("apply",) * 20,
    *("keep",) * 4,
    *("record",) * 4,
    "owner",
    "owner",
    *(name for name in CALLS if name != "close"),
)
"""What a walk draws from: more writes than a draw by name would give. Closing comes last."""
LOOKS = (
    "scan",
    "list_runs",
    "list_lessons",
    "list_recalls",
    "journal",
    "counts",
    "receipts",
    "pending",
    "learned",
    "verify",
    "scopes",
)
