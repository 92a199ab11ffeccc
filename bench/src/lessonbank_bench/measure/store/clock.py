"""Times calls by turns, so that a noisy minute falls on all of them alike: medians of wall and CPU milliseconds."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

WARM: Final = 5
"""Calls of each kind that are made first and not counted."""
_TURN: Final = 25


@dataclass(slots=True)
class Timing:
    """Milliseconds of every call. CPU counts all threads of this process."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many were counted."""
        return len(self.walls)

    @property
    def wall(self) -> float:
        """The median."""
        return float(np.median(self.walls))

    @property
    def cpu(self) -> float:
        """The median."""
        return float(np.median(self.cpus))

    def percentile(self, share: float) -> float:
        """Of the wall time."""
        return float(np.percentile(self.walls, share))


Call = Callable[[], object]
"""Takes its next input by itself; may be a plain function or a coroutine function."""


async def alternate(
    calls: Mapping[str, Call], times: int, *, warm: int = WARM, seconds: float = 600.0
) -> dict[str, Timing]:
    """Each call `times` times, 25 at a turn; fewer where all of it would take longer than `seconds`."""
    for call in calls.values():
        for _ in range(warm):
            await _done(call)
    made = {name: Timing() for name in calls}
    until = time.perf_counter() + seconds
    turn = max(1, min(_TURN, times // 4))
    for _ in range(0, times, turn):
        for name, call in calls.items():
            await _some(made[name], call, min(turn, times - made[name].calls), until)
    return made


async def _some(timing: Timing, call: Call, times: int, until: float) -> None:
    for _ in range(times):
        if timing.calls and time.perf_counter() > until:
            return
        cpu, wall = time.process_time(), time.perf_counter()
        await _done(call)
        timing.walls.append((time.perf_counter() - wall) * 1e3)
        timing.cpus.append((time.process_time() - cpu) * 1e3)


async def _done(call: Call) -> None:
    made = call()
    if inspect.isawaitable(made):
        await made


def _cpu() -> float:
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


class Stopwatch:
    """Wall and CPU seconds spent inside `with`, summed over all uses; CPU with that of processes that ended in it."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> Stopwatch:
        self._started = time.perf_counter(), _cpu()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = self._started
        self.wall += time.perf_counter() - wall
        self.cpu += _cpu() - cpu
