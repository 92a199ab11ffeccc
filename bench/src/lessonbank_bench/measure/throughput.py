"""How many recorded runs a second are learned without a model, reading apart.

    python -m lessonbank_bench.measure.throughput RUNS… [--workers 2] [--every 1]

Every worker is a process with a bank of its own on disk; the runs are dealt out in turn. The outcomes are the recorded
ones. Prints runs a second on the clock and per core, and the mean size of a run. Close other programs first: processor
time is counted too, but a busy machine also makes that longer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import lessonbank
from lessonbank import Trajectory, importers

Labelled = tuple[Trajectory, str]


def labelled(files: list[Path], /, *, every: int = 1) -> list[Labelled]:
    """Each `every`-th run with a known outcome."""
    runs = [
        (entry.trajectory, entry.verdict.outcome)
        for file in files
        for entry in importers.read(file)
        if isinstance(entry, importers.Imported) and entry.verdict
    ]
    return [(run, outcome) for run, outcome in runs if outcome != "unknown"][::every]


def learn(runs: list[Labelled], /) -> tuple[float, float]:
    """Seconds on the clock and of processor time for learning `runs` into a new bank, after one run to warm up."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(f"{folder}/bank.db", scope="bench/throughput", embedder="lexical") as bank,
    ):
        bank.learn(Trajectory(task="warm up", steps=()), outcome="failure")
        clock, spent = time.perf_counter(), time.process_time()
        for run, outcome in runs:
            bank.learn(run, outcome=outcome)
        return time.perf_counter() - clock, time.process_time() - spent


def measure(runs: list[Labelled], /, *, workers: int) -> dict[str, object]:
    """The figures of learning `runs` in `workers` processes at once."""
    shares = [runs[i::workers] for i in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        times = list(pool.map(learn, shares))
    size = sum(len(run.model_dump_json()) for run, _ in runs)
    return {
        "runs": len(runs),
        "kilobytes a run": round(size / len(runs) / 1000, 1),
        "runs a second": round(len(runs) / max(clock for clock, _ in times), 1),
        "runs a second of processor time": round(len(runs) / sum(spent for _, spent in times), 1),
    }


def main() -> None:
    """Learn, time, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    json.dump(measure(labelled(options.runs, every=options.every), workers=options.workers), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
