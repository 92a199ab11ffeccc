"""What measuring costs: per retrieval and per settlement of a real bank, and a report on a million recalls."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import numpy as np
from numpy.typing import NDArray

import lessonbank
from lessonbank import Evidence, Recall, Step, Trajectory
from lessonbank.contracts.records import Candidate, Settle, Settlement
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.report import report
from lessonbank_bench.measure.simulator import Episodes as Simulated
from lessonbank_bench.measure.simulator import Pairs, World, planted_bank
from lessonbank_bench.measure.simulator.driving import SCOPE, task_text

from .sampling import Sampling
from .table import Row, averaged

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.contracts.ports import Store

Floats = NDArray[np.float64]
_SETTLED, _TASKS, _WARM = 2000, 300, 25
_RECALLS, _CANDIDATES, _LESSONS, _FAMILY = 1_000_000, 4, 1000, 20
_STORED, _PORTION = 20_000, 500
_WRITER = "report"
T = TypeVar("T")


def rows(sampling: Sampling, /) -> list[Row]:
    """Overheads in memory and in a file, the report from columns, and what reading them takes."""
    with tempfile.TemporaryDirectory() as folder:
        of_banks = [
            row
            for name, where in (("in memory", None), ("in a file", Path(folder)))
            for row in overheads(name, where, sampling.size(_SETTLED), sampling.size(_TASKS), seed=sampling.first)
        ]
        read = reading(Path(folder) / "read.db", sampling.size(_STORED, least=200), seed=sampling.first)
    recalls = sampling.size(_RECALLS)
    kinds = ((1.0, 0.0), (1.0, 0.05), (0.2, 0.0))
    reports = [reporting(recalls, seed=sampling.first, checked=some, lost=lost) for some, lost in kinds]
    return [*of_banks, *reports, read]


def overheads(name: str, folder: Path | None, settled: int, tasks: int, /, *, seed: int) -> list[Row]:
    """A bank with its ledger against one without (`holdout=None`), on the same tasks in turns."""
    world = World.draw(seed, lessons=30, families=5)
    with ExitStack() as open_:
        banks = [
            open_.enter_context(planted_bank(world, seed=seed, where=_place(folder, kind), holdout=holdout))
            for kind, holdout in (("with", 0.1), ("without", None))
        ]
        for bank in banks:
            _filled(bank, settled, seed=seed)
        _timed(world, banks, min(_WARM, tasks), seed=seed)
        gc.collect()
        gc.freeze()
        times = _timed(world, banks, tasks, seed=seed + 1)
        gc.unfreeze()
    on = f"a bank {name}, {tasks} tasks by turns after {settled} settled recalls, 30 lessons, seed {seed}"
    retrieving, settling = times[:, :, 0], times[:, :, 1]
    return [
        _overhead(f"overhead of a retrieval, {name}", retrieving, most=0.3, on=on),
        _overhead(f"overhead of a settlement, {name}", settling, most=0.5, on=on),
        _shared(f"overhead of a settlement with its share of the reviews, {name}", settling, most=0.5, on=on),
    ]


def _overhead(claim: str, times: Floats, /, *, most: float, on: str) -> Row:
    """`times`: (tasks, 2, 2) milliseconds, with and without, of the wall and of the processor. The median of what is
    between on the wall: a settlement without a review."""
    difference, work = (times[:, 0] - times[:, 1]).T
    with_, without = np.median(times[:, :, 0], axis=0)
    beside = (
        ("of processor", float(np.median(work))),
        ("with the ledger", float(with_)),
        ("without", float(without)),
    )
    error = 1.25 * float(difference[_usual(difference)].std() / np.sqrt(len(difference)))
    return Row(
        claim=claim, value=float(np.median(difference)), error=error, most=most, unit=" ms", on=on, beside=beside
    )


def _shared(claim: str, times: Floats, /, *, most: float, on: str) -> Row:
    """The mean of processor time between: reviews of the evidence fall on few settlements, and waiting is left out."""
    difference, work = (times[:, 0] - times[:, 1]).T
    beside = (("mean on the wall, waiting for the disk included", float(difference.mean())),)
    return averaged(claim, work, by=1.0, most=most, unit=" ms", on=f"{on}, processor time", beside=beside)


def _usual(values: Floats) -> np.ndarray:
    low, high = np.percentile(values, (5, 95))
    return (values >= low) & (values <= high)


def _place(folder: Path | None, kind: str) -> str:
    return ":memory:" if folder is None else str(folder / f"{kind}.db")


def _timed(world: World, banks: Sequence[ReasoningBank], tasks: int, /, *, seed: int) -> Floats:
    """Milliseconds of each task at each bank: of retrieving and of learning, of the wall and of the processor. Shape
    (tasks, banks, 2, 2)."""
    g, times = np.random.default_rng(seed), np.empty((tasks, len(banks), 2, 2))
    for number in range(tasks):
        task, outcome = task_text(number % len(world.families.base), g), "success" if g.random() < 0.5 else "failure"
        for at in np.roll(np.arange(len(banks)), number):
            bank = banks[at]
            recall, times[number, at, 0] = _clocked(partial(bank.retrieve, task))
            run = Trajectory(task=task, steps=(Step(action="look", observation="seen"),), answer="Done.")
            _, times[number, at, 1] = _clocked(partial(bank.learn, run, recall=recall, outcome=outcome))
    return times


def _clocked(call: Callable[[], T], /) -> tuple[T, tuple[float, float]]:
    began, worked = time.perf_counter(), time.process_time()
    made = call()
    return made, (1000 * (time.perf_counter() - began), 1000 * (time.process_time() - worked))


def reporting(recalls: int, /, *, seed: int, checked: float, lost: float = 0.0) -> Row:
    """The report from columns, in seconds of processor; whatever was shown, all outcomes are the toss of a coin."""
    episodes = columns(recalls, seed=seed, checked=checked)
    if lost:
        gone = np.random.default_rng(seed + 1).random(recalls) < lost
        episodes = replace(episodes, outcome=np.where(gone, np.nan, episodes.outcome))
    gc.collect()
    began, worked = time.perf_counter(), time.process_time()
    told = report(episodes, scope=SCOPE)
    seconds, work = time.perf_counter() - began, time.process_time() - worked
    assert told.settled == int((~np.isnan(episodes.outcome)).sum())
    labels = "outcomes are the truth" if checked >= 1.0 else f"outcomes are a judge's, {checked:.0%} checked"
    labels += f", {lost:.0%} missing" if lost else ""
    on = f"{recalls} recalls of {_CANDIDATES} candidates, {_LESSONS} lessons, seed {seed}"
    claim = f"report on a million recalls, of processor; {labels}"
    return Row(claim=claim, value=work, most=6.0, unit=" s", on=on, beside=(("on the wall", seconds),))


def columns(recalls: int, /, *, seed: int, checked: float = 1.0) -> Episodes:
    """Recalls with nothing in them but chance: a fast way to have many. Lessons come in families of 20."""
    g = np.random.default_rng(seed)
    family = g.integers(_LESSONS // _FAMILY, size=recalls)
    own = g.random((recalls, _FAMILY), dtype=np.float32).argpartition(_CANDIDATES, axis=1)[:, :_CANDIDATES]
    lesson = family[:, None] * _FAMILY + own
    shape, some = (recalls, _CANDIDATES), g.random(recalls) < checked
    outcome = (g.random(recalls) < 0.5) * 1.0
    judged = np.where(g.random(recalls) < 0.15, 1 - outcome, outcome)
    steps = 4.0 + g.integers(20, size=recalls)
    pairs = Pairs(
        row=np.repeat(np.arange(recalls), _CANDIDATES),
        lesson=lesson.ravel(),
        withheld=(g.random(shape) < 0.1).ravel(),
        probability=np.full(recalls * _CANDIDATES, 0.1),
        cited=(g.random(shape) < 0.3).ravel(),
    )
    return Simulated(
        outcome=np.where(some, outcome, judged),
        true=some,
        judged=judged if checked < 1.0 else np.full(recalls, np.nan),
        confidence=g.random(recalls),
        judge=np.full(recalls, 0 if checked < 1.0 else -1),
        control=g.random(recalls) < 0.1,
        control_probability=np.full(recalls, 0.1),
        cluster=g.integers(5000, size=recalls),
        steps=steps,
        tokens=steps * 900,
        cost=steps * 0.003,
        seconds=steps * 4,
        at=60.0 * np.arange(recalls),
        pairs=pairs,
        lessons=tuple(f"lesson-{n}" for n in range(_LESSONS)),
        judges=("judge",),
    ).as_evidence()


def reading(place: Path, recalls: int, /, *, seed: int) -> Row:
    """What `bank.lift()` takes in a process that has read nothing yet, per recall."""
    world = World.draw(seed, lessons=30, families=5)
    with planted_bank(world, seed=seed, where=str(place), holdout=0.1) as bank:
        _filled(bank, recalls, seed=seed)
    with lessonbank.connect(str(place), scope=SCOPE, embedder="lexical", evidence=Evidence(holdout=0.1)) as bank:
        began = time.perf_counter()
        told = bank.lift()
        seconds = time.perf_counter() - began
    assert told.settled == recalls
    on = f"bank.lift() of a bank just opened, {recalls} recalls in {seconds:.2f} s, seed {seed}"
    return Row(
        claim="reading recalls and outcomes from a file, per recall", value=1e6 * seconds / recalls, unit=" µs", on=on
    )


def _filled(bank: ReasoningBank, recalls: int, /, *, seed: int) -> None:
    """Put so many settled recalls into a bank, at its store: what a bank knows that has been used for long."""
    g = np.random.default_rng(seed)
    made = [bank.retrieve(task_text(n % 5, g)) for n in range(10)]
    anyio.run(_stored, bank.aio.store, [_again(made[n % 10], g) for n in range(recalls)])


def _again(recall: Recall, g: np.random.Generator) -> Recall:
    """Another receipt of the same kind, drawn anew."""
    held = g.random(len(recall.candidates)) < 0.1
    drawn: list[Candidate] = [
        one.model_copy(update={"withheld": bool(out), "shown": one.placed and not out})
        for one, out in zip(recall.candidates, held, strict=True)
    ]
    return recall.model_copy(update={"id": lessonbank.Recall(scope="s", task="t").id, "candidates": tuple(drawn)})


async def _stored(store: Store, recalls: Sequence[Recall]) -> None:
    for recall in recalls:
        await store.save_recall(recall)
    for start in range(0, len(recalls), _PORTION):
        part = recalls[start : start + _PORTION]
        await store.apply(
            [Settle(settlement=_settled(r, start + n)) for n, r in enumerate(part)], scope=SCOPE, writer=_WRITER
        )


def _settled(recall: Recall, number: int) -> Settlement:
    outcome = "success" if number % 2 else "failure"
    return Settlement(recall_id=recall.id, scope=SCOPE, outcome=outcome, source="ground_truth", steps=5)
