"""How often a model as judge agrees with the recorded truth, and how much its confidence is worth.

    python -m lessonbank_bench.measure.judge RUNS… --model openai:gpt-5-mini [--domain general|web|code]
        [--profile paper]

Reads recorded runs with a label (any format of `lessonbank learn`), draws as many successes as failures, hides the
labels, judges, and compares. Prints accuracy, the precision of each verdict, and accuracy by confidence.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

import lessonbank
from lessonbank import Learning, Model, Trajectory, Verdict, importers
from lessonbank_bench.statistics import wilson


@dataclass(frozen=True)
class Judged:
    """A verdict beside the truth."""

    success: bool
    verdict: Verdict

    @property
    def decided(self) -> bool:
        """Whether the judge said one or the other."""
        return self.verdict.outcome != "unknown"

    @property
    def right(self) -> bool:
        """Whether it said the true one."""
        return self.decided and (self.verdict.outcome == "success") == self.success


def sample(files: list[Path], *, size: int, seed: int) -> list[tuple[Trajectory, bool]]:
    """`size` labelled runs, half of them successes, at most one for a task while there are enough tasks."""
    labelled = [
        (entry.trajectory, entry.verdict.outcome == "success")
        for file in files
        for entry in importers.read(file)
        if isinstance(entry, importers.Imported) and entry.verdict and entry.verdict.source == "ground_truth"
    ]
    random.Random(seed).shuffle(labelled)
    seen: set[str] = set()
    first = [pair for pair in labelled if pair[0].task not in seen and not seen.add(pair[0].task)]
    rest = [pair for pair in labelled if pair not in first]
    sides = [[pair for pair in first + rest if pair[1] is side][: size // 2] for side in (True, False)]
    drawn = sides[0] + sides[1]
    random.Random(seed).shuffle(drawn)
    return drawn


async def judge_all(drawn: list[tuple[Trajectory, bool]], options: argparse.Namespace) -> list[Judged]:
    """Every drawn run judged, eight at a time; the truth never leaves this function."""
    judged: list[Judged] = []
    async with await lessonbank.connect_async(
        ":memory:",
        scope="bench/judge",
        profile=options.profile,
        embedder="lexical",
        model=Model(options.model, base_url=options.base_url, api_key=options.api_key, timeout=options.timeout),
        learning=Learning(domain=options.domain),
    ) as bank:

        async def one(run: Trajectory, success: bool) -> None:
            judged.append(Judged(success, await bank.judge(run.model_copy(update={"error": None}))))

        async with anyio.create_task_group() as tasks:
            for run, success in drawn:
                tasks.start_soon(one, run, success)
    return judged


def report(judged: list[Judged]) -> dict[str, object]:
    """The figures, each with the number of runs it rests on."""
    decided = [j for j in judged if j.decided]
    rows: dict[str, list[Judged]] = {
        "decided": decided,
        "said success": [j for j in decided if j.verdict.outcome == "success"],
        "said failure": [j for j in decided if j.verdict.outcome == "failure"],
        "confidence >= 0.8": [j for j in decided if j.verdict.confidence >= 0.8],
        "confidence >= 0.9": [j for j in decided if j.verdict.confidence >= 0.9],
    }
    return {"runs": len(judged), **{name: _share(part, len(judged)) for name, part in rows.items() if part}}


def _share(part: list[Judged], runs: int) -> dict[str, object]:
    right = sum(j.right for j in part)
    interval = wilson(right, len(part))
    return {
        "runs": len(part),
        "coverage": round(len(part) / runs, 3),
        "right": round(right / len(part), 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
    }


def main() -> None:
    """Judge, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url")
    parser.add_argument("--api-key")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--domain", default="general")
    parser.add_argument("--profile", default="default")
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = sample(options.runs, size=options.size, seed=options.seed)
    json.dump(report(anyio.run(partial(judge_all, drawn, options))), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
