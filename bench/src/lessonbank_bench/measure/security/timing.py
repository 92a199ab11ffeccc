"""What taking in one run costs: CPU time of redaction and of a whole `learn`, and the longest call of each kind.

The longest call is one of C code, in which Python runs no other thread.
"""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

import lessonbank
from lessonbank.contracts.records import Extraction, Lesson, Step, Trajectory
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import redact, redacted
from lessonbank_bench.measure.pauses import messages

from .table import Row

SIZE = 1_000_000
"""Characters of the run."""
_TIMES = 5
_SECRETS = "log in with password=hunter2Xy9! as jane.doe@example.com"


async def rows(every: int = 1) -> list[Row]:
    """CPU time of the intake of one run, and its longest call."""
    said = [message["content"] for message in messages(int(SIZE * 0.9), 1)]
    mixed = Trajectory(task="t", steps=tuple(Step(action="look", observation=text) for text in said))
    leaking = Trajectory(task="t", steps=tuple(Step(action="look", observation=f"{text}\n{_SECRETS}") for text in said))
    single = Trajectory(task="t", steps=(Step(action="look", observation="\n".join(said)),))
    size = sum(map(len, said)) / 1e6
    whole, loop = await _learned(mixed)
    cases = f"{size:.2f} MB, the best of {_TIMES}"
    named = {"intake of one run, in steps": mixed, "the same with two secrets in each step": leaking}
    intake = [
        Row(name=name, value=round(await _seconds(run) / size, 2), most=0.4, unit=" s CPU a MB", cases=cases)
        for name, run in named.items()
    ]
    return [
        *intake,
        Row(
            name="longest call while a run of one text is redacted",
            value=round(longest_call(single), 1),
            most=10.0,
            unit=" ms CPU",
            cases=cases,
        ),
        Row(
            name="the same run learned: redaction, the gate, the store",
            value=round(whole / size, 2),
            unit=" s CPU a MB",
            cases=f"{cases}, no model",
        ),
        Row(
            name="of that in the thread of the event loop, all its moments together",
            value=round(loop * 1000, 1),
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


async def _learned(run: Trajectory) -> tuple[float, float]:
    """CPU seconds of the process and of this thread, for the quietest of several runs."""

    async def draws(_: object, /) -> Extraction:
        content = "Open the label of the parcel before the address is changed, since it is printed only once."
        return Extraction(lessons=(Lesson(title="Open the label first", content=content),))

    taken = list[tuple[float, float]]()
    async with await lessonbank.connect_async(
        ":memory:", scope="s", embedder="lexical", parts=lessonbank.Parts(extractor=draws)
    ) as bank:
        for number in range(_TIMES):
            began, here = time.process_time(), time.thread_time()
            await bank.learn(run.model_copy(update={"id": f"run-{number}"}), outcome="success")
            taken.append((time.process_time() - began, time.thread_time() - here))
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
