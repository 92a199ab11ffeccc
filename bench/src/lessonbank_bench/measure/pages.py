"""Measures how long the review pages take to answer, with few lessons in the bank and with many.

    python -m lessonbank_bench.measure.pages [--lessons 1000 100000] [--calls 15] [--banks FOLDER]

To fill a large bank takes minutes: with `--banks` it is kept there, and used again.
Each page is asked for over HTTP, as a browser does, from a server in this process; a first call is not counted.
"""

from __future__ import annotations

import argparse
import http.client
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import anyio.lowlevel

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.contracts.records import Add
from lessonbank.pages.serving import serve
from lessonbank.stores.sqlite import SqliteStore

from .store.banks import BATCH, experience
from .store.workload import SCOPE, texts

RUNS = 100
"""Runs with a recall and an outcome."""


def filled(path: Path, lessons: int) -> None:
    """Make a bank with so many lessons, each of a task of its own, and some runs."""
    anyio.run(_with_lessons, path, lessons)
    told = [text.task for text in texts(0, RUNS)]
    with lessonbank.connect(path, scope=SCOPE, embedder="lexical") as bank:
        for number, task in enumerate(told):
            recall = bank.retrieve(task)
            run = Trajectory(id=f"run-{number}", task=task, steps=(Step(action="look", observation="done " * 200),) * 8)
            bank.learn(run, recall=recall, outcome="success" if number % 3 else "failure")
        waiting = bank.lessons.list(limit=100)
        bank.lessons.quarantine(*(lesson.id for lesson in waiting), reason="to be looked at")


async def _with_lessons(path: Path, lessons: int) -> None:
    store = await SqliteStore.open(path)
    for start in range(0, lessons, BATCH):
        adds = [Add(experience=experience(text)) for text in texts(start, min(BATCH, lessons - start))]
        await store.apply(adds, scope=SCOPE, writer="measure")
    await store.close()


@contextmanager
def served(path: Path) -> Generator[tuple[str, str]]:
    """The host and the cookie of the pages of a bank, while the block runs."""
    ready: queue.Queue[str] = queue.Queue()
    begun: queue.Queue[tuple[anyio.CancelScope, Any]] = queue.Queue()

    async def run() -> None:
        with anyio.CancelScope() as cancel:
            begun.put((cancel, anyio.lowlevel.current_token()))
            await serve(str(path), scope=SCOPE, name="Ana", ready=ready.put, settings={})

    thread = threading.Thread(target=anyio.run, args=(run,), daemon=True)
    thread.start()
    cancel, token = begun.get()
    host, _, at = ready.get(timeout=600).removeprefix("http://").partition("/")
    try:
        yield host, _asked(host, f"/{at}", {})[1].partition(";")[0]
    finally:
        anyio.from_thread.run_sync(cancel.cancel, token=token)
        thread.join()


def pages(path: Path) -> Mapping[str, str]:
    """Each page with an address that shows something."""
    with lessonbank.connect(path, scope=SCOPE) as bank:
        lesson, waiting = bank.lessons.list(state="probation", limit=1)[0], bank.lessons.list(limit=1)[0]
        deep = bank.lessons.list(limit=200)[-1]
        recall = bank.recalls.list(limit=1)[0]
    return {
        "home": "/",
        "lessons": "/lessons",
        "lessons, page 5": f"/lessons?after={deep.id}",
        "lessons, two words": "/lessons?q=" + "+".join(lesson.content.split()[:2]),
        "lesson": f"/lessons/{lesson.id}",
        "inbox": f"/inbox?at={waiting.id}",
        "runs": "/runs",
        "run": "/runs/run-7",
        "why": "/why",
        "recall": f"/why/{recall.id}",
        "try a task": "/why?task=" + "+".join(recall.task.split()[:8]),
        "topics": "/topics",
        "history": "/history",
        "administration": "/administration",
        "part: does it help": "/helps",
        "part: what was taken back": "/taken-back",
        "part: near lessons and tasks": f"/lessons/{waiting.id}/near",
        "part: the proposals": "/inbox/proposed",
        "lessons, words that few hold": "/lessons?q=" + "+".join(sorted(lesson.content.split(), key=len)[-2:]),
        "lessons, a word that none holds": "/lessons?q=zanzibar",
        "part: what a task would be shown": "/why/try?task=" + "+".join(recall.task.split()[:8]),
        "part: what a long task would be shown": "/why/try?task=" + "+".join(recall.task.split()),
        "part: lift of a lesson": f"/lessons/{lesson.id}/lift",
        "part: versions of a lesson": f"/lessons/{lesson.id}/versions",
        "part: doctor": "/doctor",
        "part: doctor, every record": "/doctor?records=yes",
    }


@dataclass(frozen=True, slots=True)
class Taken:
    """How long the calls of one page took, in milliseconds."""

    median: float
    slowest: float
    processor: float
    """What one call costs this process, server and asker: the time on a machine that does nothing else."""

    def __str__(self) -> str:
        return f"{self.processor:,.0f}; {self.median:,.0f} ({self.slowest:,.0f})"


def measured(host: str, cookie: str, at: str, calls: int, *, is_part: bool = False) -> Taken:
    """So many calls of one page, or of a part that comes into a page later."""
    taken, headers = list[float](), {"Cookie": cookie, **({"HX-Request": "true"} if is_part else {})}
    processor = time.process_time()
    for number in range(calls + 1):
        if number == 1:
            processor = time.process_time()
        begun = time.perf_counter()
        status, _ = _asked(host, at, headers)
        taken.append((time.perf_counter() - begun) * 1000)
        if status != 200:
            raise SystemExit(f"{at} answered {status}")
        if taken[-1] > 10_000:
            break
    counted = taken[1:] or taken
    used = (time.process_time() - processor) * 1000 / len(counted)
    return Taken(median(counted), max(counted), used)


def _asked(host: str, at: str, headers: Mapping[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, timeout=600)
    connection.request("GET", at, headers=dict(headers))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("set-cookie") or ""


def main(arguments: list[str]) -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--banks", type=Path)
    told = parser.parse_args(arguments)
    found: dict[str, list[str]] = {}
    for lessons in told.lessons:
        with tempfile.TemporaryDirectory() as folder:
            path = (told.banks or Path(folder)) / f"{lessons}.db"
            if not path.exists():
                filled(new := Path(folder) / "new.db", lessons)
                shutil.move(new, path)
            with served(path) as (host, cookie):
                for name, at in pages(path).items():
                    taken = measured(host, cookie, at, told.calls, is_part=name.startswith("part"))
                    found.setdefault(name, []).append(str(taken))
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"Milliseconds: processor time of a call; median (slowest) of {told.calls} by the clock; {load}.\n")
    print(f"| page | {' | '.join(f'{lessons:,} lessons' for lessons in told.lessons)} |")
    print(f"|---{'|---:' * len(told.lessons)}|")
    for name, row in found.items():
        print(f"| {name} | {' | '.join(row)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
