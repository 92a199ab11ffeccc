"""Processes that only read a bank while others write to it, and log what no reader may ever see."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

from _crowd import BACK, SPACE, TOGETHER, Log, here, lines, seal, since, vector_of

from lessonbank.contracts.records import Experience, Match
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.store_calls import count_records, get_experience
from lessonbank.errors import LessonbankError, NotFound
from lessonbank.stores.sqlite import SqliteStore


class Reader:
    """Looks, and says what it should never have seen."""

    def __init__(self, store: SqliteStore, log: Log, /, *, logs: Path, seed: int) -> None:
        self.store, self.log = store, log
        self._logs = logs
        self._chance = random.Random(seed)
        self._journal: dict[str, int] = {}
        self._looks = (self.near, self.found, self.everything, self.history, self.counted, self.fresh, self.fresh)

    async def look(self) -> None:
        """One look of some kind."""
        chosen = self._chance.choice(self._looks)
        start = time.perf_counter()
        try:
            for problem in await chosen():
                self.log.line(problem=f"{chosen.__name__}: {problem}")
        except LessonbankError as error:
            self.log.line(problem=f"{chosen.__name__}: {type(error).__name__}: {error}")
        self.log.line(look=chosen.__name__, ms=since(start))

    async def near(self) -> list[str]:
        """Search by vector: best first, whole, active, of this scope."""
        scope = here(f"part-{self._chance.randrange(3)}")
        matches = (await self.store.nearest(vector_of(new_id()), scope=scope, space=SPACE, limit=5)).matches
        return _ranked(matches, scope)

    async def found(self) -> list[str]:
        """Search by words."""
        scope = here(self._chance.choice((TOGETHER, BACK, "part-0")))
        return _ranked(await self.store.search(f"w{self._chance.randrange(4000)} w7", scope=scope, limit=5), scope)

    async def everything(self) -> list[str]:
        """One snapshot: every experience whole, every batch complete, for the word index too."""
        scope = here(TOGETHER)
        seen = [experience async for experience in self.store.scan(scope=scope)]
        problems = [f"{e.id} is not whole" for e in seen if e.metadata.get("seal") != seal(e)]
        problems += [f"{name} has {has} of {size}" for name, has, size in halves(seen)]
        if batches := [e for e in seen if "batch" in e.metadata][-40:]:
            one = self._chance.choice(batches).metadata
            hits = await self.store.search(str(one["batch"]), scope=scope, limit=99)
            if len(hits) != one["size"]:
                problems.append(f"{one['batch']}: words find {len(hits)} of {one['size']}")
        return problems

    async def history(self) -> list[str]:
        """The journal goes on where it ended, and has no gap."""
        scope = here(self._chance.choice((TOGETHER, BACK, "part-1")))
        since = self._journal.get(scope, 0)
        seen = [entry.sequence async for entry in self.store.journal(scope=scope, since=since)]
        self._journal[scope] = seen[-1] if seen else since
        gap = seen != list(range(since + 1, since + 1 + len(seen)))
        return [f"{scope} after {since}: {seen[:9]}"] if gap else []

    async def counted(self) -> list[str]:
        """One snapshot of sums."""
        counts = await count_records(self.store, scope=here("part-2"))
        sound = counts.retired <= counts.lessons and counts.recalls_with_a_run <= counts.recalls
        return [] if sound and counts.experiences <= counts.lessons else [f"impossible: {counts}"]

    async def fresh(self) -> list[str]:
        """What another process was just promised is there, and its vector finds it."""
        promised = self._promised()
        if promised is None:
            return []
        scope, id = promised
        for _ in range(3):  # its owner may retire and restore it between two looks
            nearest = (await self.store.nearest(vector_of(id), scope=scope, space=SPACE, limit=1)).matches
            try:
                known = await get_experience(self.store, id, scope=scope)
            except NotFound:
                return [f"{id} was acknowledged and is not there"]
            if known.metadata.get("seal") != seal(known):
                return [f"{id} is not whole"]
            if not known.active_lessons or [m.experience.id for m in nearest] == [id]:
                return []
        return [f"{id} was acknowledged and its vector finds {[m.experience.id for m in nearest]}"]

    def _promised(self) -> tuple[str, str] | None:
        logs = sorted(self._logs.glob("writer-*.log"), key=lambda path: path.stat().st_mtime)[-8:]
        if not logs:
            return None
        with self._chance.choice(logs).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            tail = list(lines(b"\n".join(file.read().split(b"\n")[1:])))
        done = {line["done"] for line in tail if "done" in line}
        facts = [(op["scope"], kind, id) for op in tail if op.get("op") in done for kind, id, _ in op["facts"]]
        return next(((scope, id) for scope, kind, id in reversed(facts) if kind == "experience"), None)


def halves(seen: Sequence[Experience], /) -> list[tuple[str, int, int]]:
    """Batches that are not complete: name, members seen, members there should be."""
    sizes = {str(e.metadata["batch"]): e.metadata["size"] for e in seen if "batch" in e.metadata}
    members: dict[str, int] = dict.fromkeys(sizes, 0)
    for experience in seen:
        if "batch" in experience.metadata:
            members[str(experience.metadata["batch"])] += 1
    return [(name, has, int(str(sizes[name]))) for name, has in members.items() if has != sizes[name]]


async def read(path: Path, log: Log, name: str, slot: int, seed: int, ready: int) -> None:
    """Read until killed."""
    parent = os.getppid()
    reader = Reader(await SqliteStore.open(path), log, logs=path.parent, seed=seed)
    os.write(ready, b".")
    while os.getppid() == parent:
        await reader.look()


def _ranked(matches: Sequence[Match], scope: str) -> list[str]:
    scores = [m.score for m in matches]
    problems = [] if scores == sorted(scores, reverse=True) else [f"not best first: {scores}"]
    for experience in (m.experience for m in matches):
        if experience.metadata.get("seal") != seal(experience):
            problems.append(f"{experience.id} is not whole")
        if experience.scope != scope or not experience.active_lessons:
            problems.append(f"{experience.id} does not belong here")
    return problems
