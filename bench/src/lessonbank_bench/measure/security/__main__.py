"""What the guard promises, measured: one table of every outcome, on the corpora of `tests/security/corpus`.

    python -m lessonbank_bench.measure.security [--json] [--parts NAME …] [--every N]

Each figure stands beside what it must be, and beside the cases that count against it. Exit code 1 when something does
not hold. Recorded runs are drawn from where `../shared/data` is there. `--every 10` takes each tenth case and a tenth
of the episodes: to see that it works, not to measure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

import anyio

from .rendering import Score, compare
from .table import Row, as_data, as_lines

from structural_checks import read  # isort: skip - `places` makes it importable

_PACKAGE = "lessonbank_bench.measure.security"
PARTS = {
    "structure": "surfaces",
    "secrets": "leaking",
    "tenancy": "tenants_apart",
    "abuse": "abusing",
    "admission": "admitting",
    "echo": "echoing",
    "poison": "poisoning",
    "harmless": "harmless",
    "time": "timing",
}
"""What can be measured, and where it is."""


async def measured(part: str, /, *, every: int = 1) -> list[Row]:
    """The rows of one part."""
    rows: Callable[[int], Awaitable[list[Row]]] = import_module(f"{_PACKAGE}.{PARTS[part]}").rows
    return await rows(every)


async def report(
    parts: Sequence[str],
    /,
    *,
    every: int = 1,
    progress: Callable[[str], None],
    row: Callable[[Row], None] = lambda _: None,
) -> list[Row]:
    """The rows of several parts, in order; each is handed on as soon as its part is measured."""
    told: list[Row] = []
    for part in parts:
        began, used = time.monotonic(), time.process_time()
        found = await measured(part, every=every)
        for one in found:
            row(one)
        told += found
        progress(f"{part}: {time.monotonic() - began:.0f} s, {time.process_time() - used:.0f} s CPU")
    return told


def main() -> None:
    """Measure and print."""
    asked = _arguments()
    if not asked.json:
        print("\n".join(as_lines([])))
    rows = anyio.run(_told, asked)
    compared = compare(read("structural")[:: asked.every]) if "structure" in asked.parts else {}
    if asked.json:
        scores = {name: asdict(score) for name, score in compared.items()}
        print(json.dumps({"outcomes": as_data(rows), "renderers": scores}, indent=2))
    else:
        print("\n".join(_renderers(compared)))
    sys.exit(0 if all(row.holds for row in rows) else 1)


async def _told(asked: argparse.Namespace) -> list[Row]:
    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def row(one: Row) -> None:
        if not asked.json:
            print(as_lines([one])[-1], flush=True)

    return await report(asked.parts, every=asked.every, progress=progress, row=row)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--every", type=int, default=1, help="take each N-th case only")
    return parser.parse_args()


def _renderers(compared: dict[str, Score]) -> list[str]:
    if not compared:
        return []
    lines = ["", "| renderer | cases without a fault | faults |", "|---|---|---|"]
    for name, told in compared.items():
        broken = ", ".join(f"{kind} {times}" for kind, times in told.broken.items())
        lines.append(f"| {name} | {told.passed} of {told.of} | {broken or 'none'} |")
    return lines


if __name__ == "__main__":
    main()
