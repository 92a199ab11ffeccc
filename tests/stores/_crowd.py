"""Processes that use one bank file at once, each with its own log of what it was promised and of what it saw.

A writer logs what an operation will make true, calls the store, and logs the acknowledgement, each with one unbuffered
write: a killed process leaves every line but perhaps a cut last one. It changes only experiences that it added itself,
so what must be in the bank follows from one log.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import time
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lessonbank.contracts.records import (
    Add,
    Change,
    Experience,
    Lesson,
    Merge,
    Recall,
    Record,
    Replace,
    Restore,
    Retire,
    Rollback,
    RunRef,
    Settle,
    Settlement,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.records.ids import digest, new_id
from lessonbank.errors import LessonbankError
from lessonbank.stores.sqlite import SqliteStore

SPACE, DIMENSIONS = "crowd:32", 32
EPOCH = 10.0
"""Seconds after which the crowd moves on to new scopes, so that a long run reads as fast as a short one."""
CANCELLED, FULL = 0.03, 0.06
"""Of the calls of a writer with faults, 3 % are cancelled and 3 % find the disk full."""
LOG = 1 << 16
"""Bytes by which the log of a process may grow while the disk is full for its bank."""
TOGETHER, BACK = "together", "back"
"""Scopes of batches, whose members are seen together or not at all, and of rollbacks, which move what others added."""

Fact = tuple[str, str, str]
"""Kind, id and mark of a record: what must be in the bank."""


class Log:
    """The lines of one process."""

    def __init__(self, path: Path, /) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self._file).st_size

    def line(self, **fields: Any) -> None:
        """Append one line, at once."""
        os.write(self._file, json.dumps(fields).encode() + b"\n")


def lines(text: bytes, /) -> Iterator[dict[str, Any]]:
    """The whole lines of a log."""
    for line in text.split(b"\n")[:-1]:
        yield json.loads(line)


def mark(record: Record, /) -> str:
    """Short digest of everything a record says."""
    return digest(record.model_dump_json())[:16]


def seal(experience: Experience, /) -> str:
    """Short digest of what retiring and restoring leave as it is; kept in the metadata."""
    return digest(json.dumps([experience.task, *([i.id, i.title, i.content] for i in experience.lessons)]))[:16]


def sealed(experience: Experience, /) -> Experience:
    """The experience with its seal."""
    return experience.model_copy(update={"metadata": {**experience.metadata, "seal": seal(experience)}})


def vector_of(id: str, /) -> np.ndarray:
    """The one unit vector of an experience: far from that of any other."""
    row = np.random.default_rng(int(id, 16)).standard_normal(DIMENSIONS)
    return (row / np.linalg.norm(row)).astype(np.float32)


def here(kind: str, /) -> str:
    """The scope of this kind that is in use now."""
    return f"crowd/{int(time.time() // EPOCH)}/{kind}"


class Writer:
    """Does one thing after another, and now and then several at once."""

    def __init__(
        self, store: SqliteStore, log: Log, /, *, name: str, slot: int, seed: int, full: Path | None = None
    ) -> None:
        self.store, self.log, self.name = store, log, name
        self._full, self._fills = full, 0
        self._own = f"part-{slot % 3}"
        self._chance = random.Random(seed)
        self._number = 0
        self._mine: dict[str, dict[str, Experience]] = {}
        self._last: dict[str, int] = {}
        self._moves: dict[Callable[[], Awaitable[object]], int] = {
            self.learn: 30,
            self.flip: 14,
            self.replace: 10,
            self.merge: 6,
            self.settle: 14,
            self.batch: 12,
            self.roll: 6,
            self.burst: 6,
        }

    async def move(self) -> None:
        """Whatever comes next."""
        (chosen,) = self._chance.choices(list(self._moves), list(self._moves.values()))
        await chosen()

    async def promise(
        self,
        call: Callable[[], Awaitable[Any]],
        /,
        *,
        scope: str,
        facts: Sequence[Fact],
        entries: Sequence[Record] = (),
    ) -> bool:
        """Do it, with a line before and a line after; whether it was acknowledged."""
        self._number += 1
        number = self._number
        self.log.line(op=number, scope=scope, facts=facts, entries=[mark(entry) for entry in entries])
        start, fills, full = time.perf_counter(), self._fills, self._filling()
        pick = self._chance.random() if self._full else 1.0
        try:
            if pick < CANCELLED:
                done = await self._cancelled(call)
            else:
                with self._full_disk(room=self._chance.randrange(40_000) if pick < FULL else None):
                    done = await call()
        except LessonbankError as error:
            # While the disk was full for one call, it was so for those beside it, whichever began or ended first.
            name = "refused" if full or self._fills > fills or self._filling() else "error"
            self.log.line(failed=number, ms=since(start), **{name: f"{type(error).__name__}: {error}"})
            return False
        except asyncio.CancelledError:
            self.log.line(failed=number, ms=since(start), cancelled=True)
            return False
        sequences = [entry.sequence for entry in done] if entries else []
        self.log.line(done=number, ms=since(start), at=time.monotonic(), sequences=sequences)
        self._last[scope] = max([self._last.get(scope, 0), *sequences])
        return True

    async def change(
        self, scope: str, changes: Sequence[Change], after: Sequence[Experience], settlement: Settlement | None = None
    ) -> None:
        """Apply changes that make experiences what `after` says; those that are written whole get their vectors."""
        whole = [c.experience.id for c in changes if isinstance(c, Add | Replace | Merge)]
        facts: list[Fact] = [("experience", e.id, mark(e)) for e in after]
        entries: list[Record] = list(changes)
        if settlement:
            facts.append(("settlement", settlement.recall_id, mark(settlement)))
            entries.append(Settle(settlement=settlement))
        made = await self.promise(
            lambda: self.store.apply(
                changes,
                scope=scope,
                writer=self.name,
                vectors={id: vector_of(id) for id in whole},
                space=SPACE,
                settlement=settlement,
            ),
            scope=scope,
            facts=facts,
            entries=entries,
        )
        mine = self._mine.setdefault(scope, {})
        for experience in after:
            mine.pop(experience.id, None)
            if made:
                mine[experience.id] = experience

    async def add(self, kind: str = "") -> None:
        """One experience and nothing else."""
        scope = here(kind or self._own)
        new = self._fresh(scope)
        await self.change(scope, [Add(experience=new)], [new])

    async def learn(self) -> None:
        """Keep one or two runs, then what was drawn from them."""
        scope = here(self._own)
        runs = [Trajectory(task=f"Run {n}", answer=self._words(60)) for n in range(self._chance.randint(1, 2))]
        facts: list[Fact] = [("run", run.id, mark(run)) for run in runs]
        if await self.promise(lambda: self.store.save_runs(runs, scope=scope), scope=scope, facts=facts):
            new = self._fresh(scope, runs=runs)
            await self.change(scope, [Add(experience=new)], [new])

    async def flip(self) -> None:
        """Retire a lesson, or restore it."""
        scope, known = self._known(1)
        if known:
            change, after = self._flipped(known[0])
            await self.change(scope, [change], [after])

    async def replace(self) -> None:
        """Another version: other lessons, sometimes another task."""
        scope, known = self._known(1)
        if known:
            task = known[0].task if self._chance.random() < 0.7 else f"{known[0].task} again"
            after = sealed(
                known[0].model_copy(update={"task": task, "lessons": (*known[0].lessons[-2:], self._lesson())})
            )
            await self.change(scope, [Replace(experience=after)], [after])

    async def merge(self) -> None:
        """One experience in the place of two lessons."""
        scope, known = self._known(2)
        sources = [(e, next(iter(e.active_lessons), None)) for e in known]
        if len(known) == 2 and all(lesson for _, lesson in sources):
            new = self._fresh(scope)
            ids = tuple(lesson.id for _, lesson in sources if lesson)
            change = Merge(experience=new, source_lesson_ids=ids, reason=self._reason())
            await self.change(scope, [change], [new, *(_with_flipped(e, lesson.id) for e, lesson in sources if lesson)])

    async def settle(self) -> None:
        """A receipt, then its outcome, alone or with the change that came of it."""
        scope = here(self._own)
        recall = Recall(scope=scope, task=self._words(6), text=self._words(80))
        facts: list[Fact] = [("recall", recall.id, mark(recall))]
        if not await self.promise(lambda: self.store.save_recall(recall), scope=scope, facts=facts):
            return
        new = [self._fresh(scope)] if self._chance.random() < 0.5 else []
        changes: list[Change] = [Add(experience=e) for e in new]
        await self.change(scope, changes, new, Settlement(recall_id=recall.id, scope=scope, outcome="success"))

    async def batch(self) -> None:
        """Several new experiences, and an earlier one flipped, in one breath."""
        scope, size, name = here(TOGETHER), self._chance.randint(2, 6), f"batch{new_id()}"
        new = [self._fresh(scope, words=name, metadata={"batch": name, "size": size}) for _ in range(size)]
        changes: list[Change] = [Add(experience=e) for e in new]
        alone = [e for e in self._mine.get(scope, {}).values() if "batch" not in e.metadata]
        if alone:
            change, after = self._flipped(self._chance.choice(alone))
            await self.change(scope, [change, *changes], [after, *new])
        else:
            await self.add(TOGETHER)
            await self.change(scope, changes, new)

    async def roll(self) -> None:
        """Add where everybody rolls back, or roll back. Only the journal can tell what holds there."""
        scope = here(BACK)
        change: Change = Add(experience=self._fresh(scope))
        if self._chance.random() < 0.3:
            change = Rollback(to=self._chance.randint(0, self._last.get(scope, 0)), reason=self._reason())
        vectors = {change.experience.id: vector_of(change.experience.id)} if isinstance(change, Add) else {}
        space = SPACE if vectors else None
        await self.promise(
            lambda: self.store.apply([change], scope=scope, writer=self.name, vectors=vectors, space=space),
            scope=scope,
            facts=[],
            entries=[change],
        )

    async def burst(self) -> None:
        """Several tasks of one process at once."""
        await asyncio.gather(*(self.add() for _ in range(self._chance.randint(2, 8))))

    @contextmanager
    def _full_disk(self, *, room: int | None) -> Generator[None]:
        """No file of this process may grow by more than `room` bytes beyond the bank's own, as on a full disk."""
        if self._full is None or room is None:
            yield
            return
        files = (self._full, self._full.with_name(f"{self._full.name}-wal"))
        sizes = [file.stat().st_size for file in files if file.exists()]
        self._fills += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(*sizes, self.log.size + LOG) + room, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def _filling(self) -> bool:
        return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY

    async def _cancelled(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """What the call gives if it is done before it is cancelled, which happens soon."""
        task = asyncio.ensure_future(call())
        await asyncio.wait([task], timeout=self._chance.uniform(0, 0.01))
        task.cancel()
        return await task

    def _known(self, count: int) -> tuple[str, list[Experience]]:
        scope = here(self._own)
        known = list(self._mine.get(scope, {}).values())
        return scope, self._chance.sample(known, min(count, len(known)))

    def _flipped(self, known: Experience) -> tuple[Change, Experience]:
        lesson = self._chance.choice(known.lessons)
        kind = Restore if lesson.retired else Retire
        return kind(lesson_ids=(lesson.id,), reason=self._reason()), _with_flipped(known, lesson.id)

    def _fresh(
        self, scope: str, *, words: str = "", metadata: dict[str, Any] | None = None, runs: Sequence[Trajectory] = ()
    ) -> Experience:
        id = new_id()
        attempts = tuple(RunRef(trajectory_id=r.id, verdict=Verdict(outcome="success")) for r in runs)
        task = f"case{id} {words or self._words(8)}"
        lessons = tuple(self._lesson() for _ in range(self._chance.randint(1, 3)))
        return sealed(
            Experience(id=id, scope=scope, task=task, lessons=lessons, attempts=attempts, metadata=metadata or {})
        )

    def _lesson(self) -> Lesson:
        length = self._chance.choice((10, 50, 200, 200, 400, 8000 if self._chance.random() < 0.1 else 100))
        return Lesson(title=self._words(4), content=self._words(length))

    def _words(self, count: int) -> str:
        return " ".join(f"w{self._chance.randrange(4000)}" for _ in range(count))

    def _reason(self) -> str:
        return f"{self.name}, after {self._number}"


async def write(path: Path, log: Log, name: str, slot: int, seed: int, ready: int, faults: int = 0) -> None:
    """Write until killed; now and then close the bank and open it again.

    With `faults` some calls are cancelled, and some find the disk full.
    """
    chance, parent = random.Random(seed), os.getppid()
    full = path if faults else None
    writer = Writer(await SqliteStore.open(path), log, name=name, slot=slot, seed=seed, full=full)
    os.write(ready, b".")
    while os.getppid() == parent:
        await writer.move()
        if chance.random() < 0.005:
            await writer.store.close()
            writer.store = await SqliteStore.open(path)


async def stand_in_line(path: Path, log: Log, name: str, slot: int, seed: int, ready: int, count: int, go: int) -> None:
    """Add `count` experiences one by one, beginning when a byte can be read from `go`."""
    writer = Writer(await SqliteStore.open(path), log, name=name, slot=slot, seed=seed)
    os.write(ready, b".")
    os.read(go, 1)
    for _ in range(count):
        await writer.add("line")
    await writer.store.close()


def start(
    work: Callable[..., Awaitable[None]], path: Path, name: str, slot: int, seed: int, *more: int
) -> tuple[int, int]:
    """Fork a process that does `work`; its id, and a pipe on which it says that it is about to begin."""
    hear, ready = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ready)
        return pid, hear
    os.close(hear)
    log, code = Log(path.with_name(f"{name}.log")), 1
    try:
        asyncio.run(work(path, log, name, slot, seed, ready, *more))
        code = 0
    except BaseException:  # noqa: BLE001 - the last thing this process can do is say why it ends
        log.line(problem=traceback.format_exc())
    finally:
        os._exit(code)


def _with_flipped(known: Experience, lesson_id: str) -> Experience:
    flip = {True: False, False: True}
    lessons = tuple(
        i.model_copy(update={"retired": flip[i.retired]}) if i.id == lesson_id else i for i in known.lessons
    )
    return known.model_copy(update={"lessons": lessons})


def since(start: float, /) -> float:
    """Milliseconds."""
    return round((time.perf_counter() - start) * 1e3, 3)
