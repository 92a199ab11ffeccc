"""What the ledger claims, measured on worlds whose truth is planted: one table, with seeds and what others make of it.

    python -m lessonbank_bench.measure.ledger [--json] [--quick | --share F] [--parts NAME …] [--seed N]
        [--read FILE …] [--page FILE]

Each figure stands beside what it must reach, its standard error, and what other estimators and policies make of the
same data; where a target is missed, a bound says how far anybody could get. Exit code 1 when something does not hold.
`--quick` takes one replication in thirty: to see that it works, not to measure. `--seed` draws everything anew.
Parts can be measured one by one: `--json` prints rows, `--read` takes them from files, `--page` writes a summary there.
One thread is used, so that times are comparable.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .reaching import PARTS as REACHING
from .sampling import Sampling
from .table import Row, as_data, as_lines, from_data, on_page

PARTS = {
    "coverage": "covering",
    "peeking": "peeking",
    "ranking": "ranking",
    "flips": "flipping",
    "bank": "driving",
    "cost": "costing",
    "trial": "trying",
}
"""What can be measured, and where it is; and what the default bank reaches, part by part."""
PARTS |= dict.fromkeys(REACHING, "reaching")
QUICK = 1 / 30


def measured(part: str, sampling: Sampling, /) -> list[Row]:
    """The rows of one part."""
    if part in REACHING:
        return REACHING[part](sampling)
    rows: Callable[[Sampling], list[Row]] = import_module(f"lessonbank_bench.measure.ledger.{PARTS[part]}").rows
    return rows(sampling)


def report(parts: Sequence[str], sampling: Sampling, /, *, progress: Callable[[str], None]) -> list[Row]:
    """The rows of several parts, in order."""
    told: list[Row] = []
    for part in parts:
        began = time.monotonic()
        told += measured(part, sampling)
        progress(f"{part}: {time.monotonic() - began:.0f} s")
    return told


def main() -> None:
    """Measure and print."""
    asked = _arguments()
    sampling = Sampling(QUICK if asked.quick else asked.share, asked.seed)
    if asked.read:
        rows = [row for file in asked.read for row in from_data(json.loads(file.read_text(encoding="utf-8")))]
    else:
        rows = report(asked.parts, sampling, progress=lambda line: print(line, file=sys.stderr))
    if asked.page:
        asked.page.write_text(on_page(asked.page.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(json.dumps(as_data(rows), indent=2) if asked.json else "\n".join(as_lines(rows)))
    missed = [row.claim for row in rows if not row.holds]
    if missed and not asked.json:
        print("\nMissed:", *missed, sep="\n* ")
    sys.exit(1 if missed else 0)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="one replication in thirty")
    parser.add_argument("--share", type=float, default=1.0, help="the share of replications, 1 for what is published")
    parser.add_argument("--read", type=Path, nargs="+", help="files that --json wrote: take the rows from these")
    parser.add_argument("--page", type=Path, help="write a summary into this page, too")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
