"""How much of recorded runs a judge reads: tokens of the rendering that shows what decides, and of the recorded form.

    python -m lessonbank_bench.measure.tokens RUNS… [--budget 6000] [--before 40000]

For each source: all runs, and the long ones (above the budget in the recorded form). Means of estimated tokens (one per
three bytes): the recorded form in `--before`, ours in `--budget`, and the agent's instructions, which stand before the
run and are the same in every run of an agent. Then milliseconds of processor time a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lessonbank import Trajectory, importers
from lessonbank.text.rendering import estimate_tokens, render, render_instructions


@dataclass(frozen=True)
class Size:
    """Tokens of one run in each form."""

    before: int
    after: int
    instructions: int
    milliseconds: float


def size_of(run: Trajectory, /, *, budget: int, before: int) -> Size:
    """The run rendered in each form."""
    start = time.process_time()
    after = estimate_tokens(render(run, budget=budget, instructions=False))
    spent = 1000 * (time.process_time() - start)
    recorded = estimate_tokens(render(run, budget=before, view="recorded"))
    return Size(recorded, after, estimate_tokens(render_instructions(run)), spent)


def table(files: list[Path], /, *, budget: int, before: int) -> dict[str, dict[str, dict[str, int]]]:
    """The means by file."""
    sizes: dict[str, list[Size]] = defaultdict(list)
    for file in files:
        for entry in importers.read(file):
            if isinstance(entry, importers.Imported):
                sizes[file.name].append(size_of(entry.trajectory, budget=budget, before=before))
    return {
        name: {"all": _means(rows), "long": _means([row for row in rows if row.before > budget])}
        for name, rows in sizes.items()
    }


def _means(rows: list[Size], /) -> dict[str, int]:
    if not rows:
        return {"runs": 0}
    fields = ("before", "after", "instructions", "milliseconds")
    return {"runs": len(rows), **{name: round(fmean(getattr(row, name) for row in rows)) for name in fields}}


def main() -> None:
    """Render, count, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=6_000)
    parser.add_argument("--before", type=int, default=40_000)
    options = parser.parse_args()
    json.dump(table(options.runs, budget=options.budget, before=options.before), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
