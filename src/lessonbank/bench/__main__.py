"""`python -m lessonbank.bench`: every arm over many worlds, as one table with intervals."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from .agents import READER_VERSION
from .arms import ArmName
from .runner import play
from .statistics import Interval, paired_bootstrap

_LABEL = f"synthetic world, scripted agent (skill version {READER_VERSION}): it shows the loop, not a language model"


@dataclass(frozen=True, slots=True)
class Row:
    """One arm over all worlds: success rates, presses per task, and the gain over no memory."""

    arm: str
    success: Interval
    last20: float
    presses: float
    gain: Interval
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """An arm and how it is set."""

    arm: ArmName
    limit: int = 3
    wrong_verdicts: float = 0.0

    @property
    def title(self) -> str:
        """As the table names it."""
        told = f", {self.wrong_verdicts:.0%} wrong verdicts" if self.wrong_verdicts else ""
        return f"{self.arm}{told}" if self.arm in ("none", "oracle") else f"{self.arm}, k={self.limit}{told}"


PLANS = (
    Plan("none"),
    Plan("random"),
    Plan("shuffled"),
    Plan("success-only"),
    Plan("lessonbank", limit=1),
    Plan("lessonbank"),
    Plan("oracle"),
)
SWEEP = (Plan("lessonbank", wrong_verdicts=0.2), Plan("lessonbank", wrong_verdicts=0.4))


def measure(plans: Sequence[Plan], /, *, seeds: Sequence[int], tasks: int) -> list[Row]:
    """Play every plan on every world; worlds are the unit of the intervals, paired with the first plan's."""
    rows: list[Row] = []
    baseline: list[float] = []
    for plan in plans:
        started = time.perf_counter()
        results = np.array([_scores(plan, seed, tasks) for seed in seeds])
        rates = [float(rate) for rate in results[:, 0]]
        baseline = baseline or rates
        zero = [0.0] * len(rates)
        rows.append(
            Row(
                plan.title,
                paired_bootstrap(rates, zero),
                float(results[:, 1].mean()),
                float(results[:, 2].mean()),
                paired_bootstrap(rates, baseline),
                time.perf_counter() - started,
            )
        )
    return rows


def _scores(plan: Plan, seed: int, tasks: int) -> tuple[float, float, float]:
    episodes = list(play(plan.arm, seed, tasks=tasks, limit=plan.limit, wrong_verdicts=plan.wrong_verdicts))
    won = [float(e.success) for e in episodes]
    return float(np.mean(won)), float(np.mean(won[-20:])), float(np.mean([e.presses for e in episodes]))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(caption=_LABEL)
    for column in ("arm", "success [95 %]", "last 20", "presses", "gain over none [95 %]", "seconds"):
        table.add_column(column, justify="left" if column == "arm" else "right")
    for row in rows:
        rate = f"{row.success.estimate:.3f} [{row.success.low:.3f}, {row.success.high:.3f}]"
        table.add_row(row.arm, rate, f"{row.last20:.3f}", f"{row.presses:.2f}", str(row.gain), f"{row.seconds:.1f}")
    return table


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or JSON with `--json`."""
    parser = argparse.ArgumentParser(prog="python -m lessonbank.bench", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=_seeds("100-119"), help="worlds; 0-19 were tuned on")
    parser.add_argument("--tasks", type=int, default=80)
    parser.add_argument("--sweep", action="store_true", help="also tell the bank 20 and 40 percent wrong verdicts")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    rows = measure((*PLANS, *(SWEEP if asked.sweep else ())), seeds=asked.seeds, tasks=asked.tasks)
    if asked.json:
        json.dump({"label": _LABEL, "rows": [asdict(row) for row in rows]}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        Console(width=120).print(_table(rows))


if __name__ == "__main__":
    main()
