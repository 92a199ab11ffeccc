"""`python -m lessonbank_bench`: every arm over many worlds, as one table with intervals."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
from rich.console import Console
from rich.table import Table

from lessonbank.demo import READER_VERSION, ScriptedAgent
from lessonbank.text.rendering import estimate_tokens

from .arms import ArmName, arm_from, read_arms
from .runner import play
from .statistics import Interval, paired_bootstrap

_LABEL = f"synthetic world, scripted agent (skill version {READER_VERSION}): it shows the loop, not a language model"
_OTHER_DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One arm over all worlds: success rates, presses per task, and the gain over no memory."""

    arm: str
    success: Interval
    last20: float
    presses: float
    gain: Interval
    seconds: float
    tokens: float = 0.0
    """Estimated tokens of memory in a task's prompt, on average."""
    rates: tuple[float, ...] = ()
    """Of each world, in the order of the seeds."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against another, paired by world."""

    question: str
    arm: str
    against: str
    difference: Interval


@dataclass(frozen=True, slots=True)
class Plan:
    """An arm and how it is set."""

    arm: str
    limit: int = 3
    wrong_verdicts: float = 0.0
    other_draws: bool = False
    """Whether the agent tries things in another order: what chance alone changes."""
    name: str = ""
    """How the table names the arm, where it is not by `arm`."""

    @property
    def title(self) -> str:
        """As the table names it."""
        told = f", {self.wrong_verdicts:.0%} wrong verdicts" if self.wrong_verdicts else ""
        told += ", other draws" if self.other_draws else ""
        sets_no_k = self.arm in ("none", "a/a-none", "oracle") or "limit=" in self.arm
        return f"{self.name or self.arm}{told}" if sets_no_k else f"{self.name or self.arm}, k={self.limit}{told}"


PLANS = (
    Plan("none"),
    Plan("a/a-none"),
    Plan("placebo"),
    Plan("shuffled"),
    Plan("random"),
    Plan("synapse"),
    Plan("awm"),
    Plan("awm-multi"),
    Plan("success-only"),
    Plan("reasoningbank-paper", limit=1),
    Plan("reasoningbank-paper"),
    Plan("lessonbank", limit=1),
    Plan("lessonbank"),
    Plan("a/a"),
    Plan("oracle"),
)
SWEEP = (
    Plan("none", other_draws=True),
    Plan("lessonbank", other_draws=True),
    Plan("synapse", limit=1),
    Plan("awm", limit=1),
    Plan("success-only", limit=1),
    *(Plan("lessonbank", wrong_verdicts=share) for share in (0.1, 0.2, 0.3, 0.4)),
    *(Plan("lessonbank", limit=k) for k in (2, 4, 5)),
    Plan("lessonbank:retrieval=hybrid"),
    Plan("lessonbank:consolidation=recognise"),
    Plan("lessonbank:exclude=template"),
)
CONTRASTS = (
    ("A/A: the same arm twice", "a/a-none", "none"),
    ("A/A: the same arm twice", "a/a, k=3", "lessonbank, k=3"),
    ("what chance changes", "none, other draws", "none"),
    ("what chance changes", "lessonbank, k=3, other draws", "lessonbank, k=3"),
    ("does the mere presence of text do anything?", "placebo, k=3", "none"),
    ("do failures teach?", "lessonbank, k=3", "success-only, k=3"),
    ("do failures teach?", "lessonbank, k=1", "success-only, k=1"),
    ("lessons against raw runs", "lessonbank, k=3", "synapse, k=3"),
    ("lessons against raw runs", "lessonbank, k=1", "synapse, k=1"),
    ("lessons against workflows", "lessonbank, k=3", "awm, k=3"),
    ("lessons against workflows", "lessonbank, k=1", "awm, k=1"),
    ("lessons against workflows", "lessonbank, k=3", "awm-multi, k=3"),
    ("the default against the paper's profile", "lessonbank, k=3", "reasoningbank-paper, k=3"),
    ("the default against the paper's profile", "lessonbank, k=1", "reasoningbank-paper, k=1"),
    ("retrieved against any", "lessonbank, k=3", "random, k=3"),
    ("told the truth", "oracle", "lessonbank, k=3"),
)


def measure(
    plans: Sequence[Plan], /, *, seeds: Sequence[int], tasks: int, done: Callable[[Row], None] | None = None
) -> list[Row]:
    """Play every plan on every world; worlds are the unit of the intervals, paired with the first plan's.

    `done` is told of every row as soon as there is one.
    """
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
                float(results[:, 3].mean()),
                tuple(rates),
            )
        )
        if done:
            done(rows[-1])
    return rows


def _scores(plan: Plan, seed: int, tasks: int) -> tuple[float, float, float, float]:
    agent = ScriptedAgent(seed + _OTHER_DRAWS) if plan.other_draws else None
    arm = cast("ArmName", plan.arm)  # a name with settings is understood as well
    episodes = list(play(arm, seed, tasks=tasks, limit=plan.limit, agent=agent, wrong_verdicts=plan.wrong_verdicts))
    won = [float(e.success) for e in episodes]
    shown = [estimate_tokens(e.memory) for e in episodes]
    presses = [e.presses for e in episodes]
    return float(np.mean(won)), float(np.mean(won[-20:])), float(np.mean(presses)), float(np.mean(shown))


def contrasts(rows: Sequence[Row], /) -> list[Contrast]:
    """The comparisons of `CONTRASTS` that `rows` allow; no interval is corrected for the others."""
    by = {row.arm: row.rates for row in rows}
    return [
        Contrast(question, arm, against, paired_bootstrap(by[arm], by[against]))
        for question, arm, against in CONTRASTS
        if arm in by and against in by
    ]


def _cells(row: Row) -> tuple[str, ...]:
    rate = f"{row.success.estimate:.3f} [{row.success.low:.3f}, {row.success.high:.3f}]"
    shown = f"{row.tokens:.0f}"
    return row.arm, rate, f"{row.last20:.3f}", f"{row.presses:.2f}", shown, str(row.gain), f"{row.seconds:.1f}"


def _verdict(found: Interval) -> str:
    if found.low <= 0.0 <= found.high:
        return "no difference shown"
    return "more" if found.low > 0 else "less"


_COLUMNS = ("arm", "success [95 %]", "last 20", "presses", "tokens", "gain over none [95 %]", "seconds")
_CONTRAST_COLUMNS = ("question", "arm", "against", "difference [95 %]", "shown")


def _told(found: Contrast) -> tuple[str, ...]:
    return found.question, found.arm, found.against, str(found.difference), _verdict(found.difference)


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> Table:
    table = Table(caption=_LABEL)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    for line in lines:
        table.add_row(*line)
    return table


def _markdown(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + f"\n\n{_LABEL}\n"


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lessonbank_bench", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=_seeds("100-119"), help="worlds; 0-19 were tuned on")
    parser.add_argument("--tasks", type=int, default=80)
    parser.add_argument("--sweep", action="store_true", help="also wrong verdicts from 10 to 40 percent, k, parts")
    parser.add_argument("--arm", action="append", default=[], help="only this arm, beside none; may be given again")
    parser.add_argument("--arms", metavar="FILE", help="also the tables [arm.NAME] of a TOML file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args(arguments)


def _plans(asked: argparse.Namespace) -> list[Plan]:
    plans = [Plan("none"), *map(Plan, asked.arm)] if asked.arm else [*PLANS, *(SWEEP if asked.sweep else ())]
    for plan in plans:
        arm_from(plan.arm)
    extra = read_arms(asked.arms) if asked.arms else {}
    return [*plans, *(Plan(arm, name=name) for name, arm in extra.items())]


def _progress(row: Row) -> None:
    sys.stderr.write(f"{row.arm}: {row.success.estimate:.3f}, {row.seconds:.0f} s\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or JSON with `--json`."""
    asked = _asked(arguments)
    rows = measure(_plans(asked), seeds=asked.seeds, tasks=asked.tasks, done=_progress)
    found = contrasts(rows)
    if asked.json:
        told = {"label": _LABEL, "rows": [asdict(row) for row in rows], "contrasts": [asdict(c) for c in found]}
        json.dump(told, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    parts = [(_COLUMNS, [_cells(row) for row in rows], 1), (_CONTRAST_COLUMNS, [_told(c) for c in found], 3)]
    for columns, lines, left in parts[: 2 if found else 1]:
        if asked.markdown:
            sys.stdout.write(_markdown(columns, lines) + "\n")
        else:
            Console(width=140).print(_table(columns, lines, left))


if __name__ == "__main__":
    main()
