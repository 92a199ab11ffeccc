"""What redaction costs: CPU time for one run, and the longest single call, in which Python runs no other thread."""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import redact, redacted
from lessonbank.types import Step, Trajectory
from lessonbank_bench.measure.pauses import messages

from .table import Row

SIZE = 1_000_000
"""Characters of the run."""
_TIMES = 5


async def rows(every: int = 1) -> list[Row]:
    """CPU time of the intake of one run, and its longest call."""
    said = [message["content"] for message in messages(int(SIZE * 0.9), 1)]
    mixed = Trajectory(task="t", steps=tuple(Step(action="look", observation=text) for text in said))
    single = Trajectory(task="t", steps=(Step(action="look", observation="\n".join(said)),))
    size = sum(map(len, said)) / 1e6
    cases = f"{size:.2f} MB, the best of {_TIMES}"
    return [
        Row(
            name="intake of one run, in steps",
            value=round(await _seconds(mixed) / size, 2),
            most=0.4,
            unit=" s CPU a MB",
            cases=cases,
        ),
        Row(
            name="longest call while a run of one text is redacted",
            value=round(longest_call(single), 1),
            most=10.0,
            unit=" ms CPU",
            cases=cases,
        ),
    ]


async def _seconds(run: Trajectory) -> float:
    taken = list[float]()
    for _ in range(_TIMES):
        began = time.process_time()
        await IntakeFilter(redactor=redact).runs([run])
        taken.append(time.process_time() - began)
    return min(taken)


def longest_call(run: Trajectory, /) -> float:
    """Milliseconds of CPU time of the longest call of C code: the best of several readings."""
    return min(_longest(run) for _ in range(_TIMES))


def _longest(run: Trajectory) -> float:
    began, longest = list[float](), 0.0

    def noting(_: FrameType, event: str, __: Any) -> None:
        nonlocal longest
        if event == "c_call":
            began.append(time.thread_time())
        elif event in ("c_return", "c_exception") and began:
            longest = max(longest, time.thread_time() - began.pop())

    before = sys.getprofile()
    sys.setprofile(noting)
    try:
        redacted(run, redact)
    finally:
        sys.setprofile(before)
    return longest * 1000
