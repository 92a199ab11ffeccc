"""Is this checkout slower than another? `retrieve` and `learn` of both on the same lessons, by turns on one machine.

    python -m lessonbank_bench.measure.beside OTHER_CHECKOUT/src [--lessons 10000 100000] [--turns 8] [--banks FOLDER]

Each checkout runs in a process of its own, on a bank that its own store wrote: 384 dimensions, one scope, one lesson
an experience. A turn is 25 retrieves, or 10 learns of runs with tools and a stated outcome. Printed are the medians in
milliseconds and their ratio, this one to the other. Only names that both checkouts have are used.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import lessonbank
from lessonbank import Action, Evidence, Experience, Lesson, Observation, Step, ToolCall, Trajectory
from lessonbank.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from .store import workload
else:
    sys.path.append(str(Path(__file__).parent))
    workload = importlib.import_module("store.workload")

_BATCH: Final = 1000
_TURN: Final = {"retrieve": 25, "learn": 10}


class _Embedder:
    """Vectors of the workload without a model: the row is drawn from the text's hash."""

    space = workload.SPACE

    def __init__(self) -> None:
        self._rows = workload.rows(0, 10_000, stream=4)

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> np.ndarray:
        """One row for each text, at once."""
        return self._rows[[sum(text.encode()) * 31 % len(self._rows) for text in texts]]


async def fill(path: Path, lessons: int, /) -> None:
    """Write the bank through the store of this process's checkout."""
    store, add = await SqliteStore.open(path), _add_of_checkout()
    for start in range(0, lessons, _BATCH):
        written = [_experience(text) for text in workload.texts(start, _BATCH)]
        vectors = dict(zip((each.id for each in written), workload.rows(start, _BATCH), strict=True))
        changes = [add(experience=each) for each in written]
        await store.apply(changes, scope=workload.SCOPE, writer="bench", vectors=vectors, space=workload.SPACE)
    await store.close()


def _add_of_checkout() -> Any:
    for room in ("lessonbank.contracts.records", "lessonbank.types"):
        try:
            return importlib.import_module(room).Add
        except ModuleNotFoundError:
            continue
    raise SystemExit("that checkout has no lessonbank.contracts.records and no lessonbank.types")


def _experience(text: workload.Text) -> Experience:
    lesson = Lesson(title=text.title, description=text.description, content=text.content)
    return Experience(scope=workload.SCOPE, task=text.task, lessons=(lesson,))


def _run(number: int, task: str) -> Trajectory:
    calls = (("find_order", f"O-{number}", "open"), ("check_policy", "refund", "30 days"), ("refund", "all", "done"))
    return Trajectory(task=task, steps=tuple(_step(*call) for call in calls))


def _step(tool: str, value: str, answer: str) -> Step:
    call = ToolCall(id=f"{tool}-1", name=tool, arguments={"id": value})
    return Step(action=Action(calls=(call,)), observations=(Observation(text=answer, call_id=call.id),))


def serve(path: Path, lessons: int) -> None:
    """Answer each line `retrieve` or `learn` of the standard input with the milliseconds of one turn."""
    if not path.exists():
        asyncio.run(fill(path, lessons))
    evidence = Evidence(holdout=None)
    with lessonbank.connect(path, scope=workload.SCOPE, embedder=_Embedder(), evidence=evidence) as bank:
        tasks = iter([text.task for text in workload.texts(lessons, 5000)])
        bank.learn(_run(0, next(tasks)), recall=bank.retrieve(next(tasks)), outcome="success")
        print("[]", flush=True)
        for line in sys.stdin:
            print(json.dumps(_turn(bank, line.strip(), tasks)), flush=True)


def _turn(bank: Any, name: str, tasks: Any) -> list[float]:
    spent: list[float] = []
    for number in range(_TURN[name]):
        task = next(tasks)
        if name == "retrieve":
            spent.append(_milliseconds(lambda task=task: bank.retrieve(task)))
            continue
        run, recall = _run(number, task), bank.retrieve(task)
        spent.append(_milliseconds(lambda run=run, recall=recall: bank.learn(run, recall=recall, outcome="success")))
    return spent


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


class _Process:
    """One checkout, with its bank open."""

    def __init__(self, source: Path, path: Path, lessons: int) -> None:
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._running = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(path), "--lessons", str(lessons)],
            env={**os.environ, **threads, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> _Process:
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.communicate()

    def turn(self, name: str) -> list[float]:
        """Milliseconds of one turn's calls."""
        assert self._running.stdin is not None
        self._running.stdin.write(f"{name}\n")
        self._running.stdin.flush()
        return self._answer()

    def _answer(self) -> list[float]:
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if not line:
            raise SystemExit("a checkout's process ended early: its error is above")
        return json.loads(line)


def compare(ours: Path, other: Path, *, lessons: int, turns: int, folder: Path) -> list[str]:
    """One line for each call: both medians, and their ratio."""
    with (
        _Process(other, folder / f"other-{lessons}.db", lessons) as before,
        _Process(ours, folder / f"this-{lessons}.db", lessons) as now,
    ):
        lines: list[str] = []
        for name in _TURN:
            spent: dict[_Process, list[float]] = {before: [], now: []}
            for number in range(turns):
                for process in (before, now) if number % 2 else (now, before):
                    spent[process] += process.turn(name)
            old, new = statistics.median(spent[before]), statistics.median(spent[now])
            lines.append(f"{lessons:>9,}  {name:<9}{old:>9.2f} ms{new:>9.2f} ms{new / old:>8.2f}")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", nargs="?", type=Path, help="the src folder of the other checkout")
    parser.add_argument("--lessons", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--banks", type=Path, help="keep the banks here for the next time")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve, args.lessons[0])
    if args.other is None:
        parser.error("name the src folder of the other checkout")
    print(f"{'lessons':>9}  {'call':<9}{'other':>12}{'this':>12}{'ratio':>8}")
    ours = Path(lessonbank.__file__).parents[1]
    with tempfile.TemporaryDirectory() as spare:
        for lessons in args.lessons:
            folder = args.banks or Path(spare)
            print(*compare(ours, args.other, lessons=lessons, turns=args.turns, folder=folder), sep="\n", flush=True)
    return None


if __name__ == "__main__":
    main()
