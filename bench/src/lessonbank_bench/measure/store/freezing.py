"""How long the event loop stands still while the store works: a task that wants to run every millisecond tells."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.contracts.store_calls import count_records
from lessonbank.stores.sqlite import SqliteStore

from .banks import BATCH, Adding, Part, experience, portions
from .figures import Figure, Target
from .retrieving import Asking
from .workload import SCOPE, SPACE, TOP, Queries, Text, texts
from .writing import New

_TICK, _WINDOWS = 0.001, 3
_GOAL = Target(2.0)
IDLE = "an idle loop in the same run, seen for as long"


@dataclass(slots=True)
class Ticker:
    """Wakes every millisecond; `late` holds by how many milliseconds it came too late.

    `own` is the CPU time that the loop's own thread spent between two ticks: it does not grow with a busy machine.
    """

    late: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            wall, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_TICK)
            self.late.append(max(0.0, (time.perf_counter() - wall - _TICK) * 1e3))
            self.own.append((time.thread_time() - cpu) * 1e3)


@dataclass(frozen=True, slots=True)
class Watched:
    """A call, how often it is made at least in a window, and at most."""

    name: str
    call: Callable[[], Awaitable[object]]
    least: int = 1
    most: int = 100_000


@dataclass(slots=True)
class Lateness:
    """What was seen in all windows: `worst` of each, and the longest gap of every call."""

    ticker: Ticker = field(default_factory=Ticker)
    windows: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    @property
    def usual(self) -> float:
        """The median of the windows' longest gaps: one hiccup of the machine does not decide it."""
        return statistics.median(self.windows)

    def __str__(self) -> str:
        late, own = self.ticker.late, max(self.ticker.own)
        tail = f"p99.9 {np.percentile(late, 99.9):.2f}, longest of all {max(late):.2f} ms in {len(late):,} ticks"
        single = f"{len(self.calls)} calls, median of their longest gaps {statistics.median(self.calls):.2f}"
        return f"{tail}; {single}; the loop's own CPU at most {own:.2f} ms between two ticks"


async def watched(what: Watched, seconds: float) -> Lateness:
    """Make the call again and again, in three windows of `seconds`."""
    seen = Lateness()
    task = asyncio.create_task(seen.ticker.run())
    for _ in range(_WINDOWS):
        began, until = len(seen.ticker.late), time.perf_counter() + seconds
        for done in range(what.most):
            if done >= what.least and time.perf_counter() > until:
                break
            before = len(seen.ticker.late)
            await what.call()
            await asyncio.sleep(2 * _TICK)  # so that a gap that ends with the call is seen
            seen.calls.append(max(seen.ticker.late[before:], default=0.0))
        seen.windows.append(max(seen.ticker.late[began:]))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return seen


async def freezing(path: Path, lessons: int, *, seconds: float, everything: bool) -> list[Figure]:
    """Every figure. `everything`: `verify` and `rebuild` too, which read the whole file."""
    query = Queries().take(1)[0]
    asking = await Asking.of(path, Queries())
    async with asking.bank:
        calls = [*_calls(asking), *(_whole(asking) if everything else [])]
        calls.append(Watched("open and first answer", lambda: _first(path, query)))
        before_others = _before_others()
        gc.collect()
        gc.freeze()  # what was prepared here is no work for the collector while the store is watched
        idle = await watched(Watched("idle", lambda: asyncio.sleep(0.05)), seconds)
        busy = await watched(Watched("busy", lambda: asyncio.to_thread(_plain_python)), seconds)
        seen = [(each.name, await watched(each, seconds)) for each in calls]
    gc.unfreeze()
    if before_others:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    turn = "goes before other programs; " if before_others else "has to wait for other programs; "
    return [
        Figure("loop late, idle", lessons, idle.usual, "ms", note=turn + str(idle)),
        _figure("beside a thread of plain Python, no store", lessons, busy, idle.usual, None),
        *(_figure(name, lessons, late, idle.usual, _GOAL) for name, late in seen),
    ]


def _before_others() -> bool:
    """Let the loop's thread, and no other, run as soon as it can: then a gap is the store's, not another program's."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (AttributeError, OSError):
        return False
    return True


def _figure(name: str, lessons: int, late: Lateness, idle: float, goal: Target | None) -> Figure:
    return Figure(
        f"loop late, {name}",
        lessons,
        late.usual,
        "ms",
        raw=idle,
        under=IDLE,
        target=goal,
        note=str(late),
        quiet=idle <= _GOAL.limit,
    )


def _plain_python() -> int:
    return sum(number % 7 for number in range(2_000_000))


# --- what is called --------------------------------------------------------------------------------------------------


def _calls(asking: Asking) -> list[Watched]:
    """Everything that is written is made before, so that the loop does nothing else meanwhile."""
    store = asking.bank.store
    single = New(60_000_000, 1500).ready(1500)
    batches = [_batch(40_000_000 + BATCH * number) for number in range(15)]
    runs = [_run(text) for text in texts(70_000_000, 400)]

    async def search() -> None:
        await store.search(next(asking.tasks), scope=SCOPE, limit=TOP)

    async def apply() -> None:
        await next(single).into(store)

    async def apply_many() -> None:
        await batches.pop().into(store)

    async def keep() -> None:
        await store.save_runs([runs.pop()], scope=SCOPE)

    async def scan() -> None:
        async for _ in store.scan(scope=SCOPE):
            pass

    return [
        Watched("retrieve", asking.retrieve, 30),
        Watched("nearest + record", asking.nearest_and_record, 30),
        Watched("search", search, 15),
        Watched("apply of one", apply, 30, most=500),
        Watched("apply of 1,000", apply_many, 2, most=5),
        Watched("keep of a run of 50 KB", keep, 30, most=130),
        Watched("scan of all", scan),
        Watched("counts", lambda: count_records(store, scope=SCOPE), 30),
    ]


def _whole(asking: Asking) -> list[Watched]:
    store = asking.bank.store
    return [Watched("verify", store.verify, most=1), Watched("rebuild", store.rebuild, most=1)]


def _batch(start: int) -> Adding:
    said, vectors = next(portions(Part(BATCH, start=start)))
    return Adding.of([experience(text) for text in said], vectors)


def _run(text: Text) -> Trajectory:
    steps = tuple(Step(thought=text.content, action=text.title, observation=text.task * 10) for _ in range(20))
    return Trajectory(task=text.task, steps=steps, answer=text.description)


async def _first(path: Path, query: np.ndarray) -> None:
    store = await SqliteStore.open(path)
    await store.nearest(query, scope=SCOPE, space=SPACE, limit=TOP)
    await store.close()
