"""`python -m lessonbank_bench.scaling_table`: one run of a task against several, over many worlds, with intervals."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from rich.console import Console
from rich.table import Table

from lessonbank.errors import UsageError

from .environments import Environment, environment
from .scales import ARMS, Arm, World, play
from .scales.playing import LUCK, MEASURES, NOTHING, SINGLE
from .statistics import Interval, paired_bootstrap

COMPARED = ("pass_at_1", "later", "best_of_n")
"""The measures that two arms are compared by."""
TITLES: Mapping[str, str] = {
    "pass_at_1": "Pass@1",
    "later": "Pass@1, later half",
    "best_of_n": "best of n",
    "pass_at_n": "Pass@n",
    "mixed": "mixed groups",
    "attempts": "runs a task",
    "steps": "steps a task",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One arm over all worlds."""

    arm: str
    worlds: tuple[World, ...]
    """In the order of the seeds."""
    seconds: float

    def values(self, measure: str, /) -> list[float]:
        """A measure of each world."""
        return [getattr(world, measure) for world in self.worlds]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against another, paired by world."""

    question: str
    arm: str
    against: str
    differences: Mapping[str, Interval]

    @property
    def shown(self) -> str:
        """In which measures the interval leaves out zero."""
        signs = ((name, "more" if i.low > 0 else "less") for name, i in self.differences.items() if i.low * i.high > 0)
        return "; ".join(f"{sign} {TITLES[name]}" for name, sign in signs) or "no difference shown"


def measure(
    place: Environment,
    arms: Sequence[Arm],
    /,
    *,
    seeds: Sequence[int],
    tasks: int,
    limit: int,
    done: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Play every arm on every world. `done` is told of every row as soon as there is one."""
    rows: list[Row] = []
    for arm in arms:
        started = time.perf_counter()
        worlds = tuple(play(place, arm, seed, tasks=tasks, limit=limit) for seed in seeds)
        rows.append(Row(arm.name, worlds, time.perf_counter() - started))
        if done:
            done(rows[-1])
    return rows


def contrasts(rows: Sequence[Row], arms: Sequence[Arm] = ARMS, /) -> list[Contrast]:
    """Every arm against one run with memory, those with memory against vanilla of as many runs, and what luck does."""
    by = {row.arm: row for row in rows}
    pairs = [pair for arm in arms for pair in _questions(arm)]
    return [
        Contrast(question, arm, against, _differences(by[arm], by[against]))
        for question, arm, against in sorted(pairs, key=lambda pair: _ORDER.index(pair[0]))
        if arm in by and against in by
    ]


_LUCK, _ONE, _VANILLA, _HIDDEN = "what luck alone changes", "against one run", "against vanilla", "labels hidden"
_ORDER = (_LUCK, _ONE, _VANILLA, _HIDDEN)


def _questions(arm: Arm) -> list[tuple[str, str, str]]:
    if arm.draws:
        return [(_LUCK, arm.name, arm.name.replace(" again", "").removesuffix(LUCK))]
    asked = [(_ONE, arm.name, SINGLE)] if arm.name != SINGLE else []
    if arm.k > 1 and arm.memory and arm.mode != "vanilla":
        asked.append((_VANILLA, arm.name, f"vanilla, {arm.k} runs"))
    if not arm.labels:
        asked.append((_HIDDEN, arm.name, arm.name.replace("hidden", "shown")))
    return asked


def _differences(arm: Row, against: Row) -> dict[str, Interval]:
    return {name: paired_bootstrap(arm.values(name), against.values(name)) for name in COMPARED}


def mean(row: Row, measure: str, /) -> Interval:
    """The mean over worlds, with its interval."""
    return paired_bootstrap(row.values(measure), [0.0] * len(row.worlds))


_COLUMNS = ("arm", *(f"{TITLES[name]} [95 %]" for name in MEASURES))
_CONTRAST_COLUMNS = ("question", "arm", "against", *(f"{TITLES[name]} [95 %]" for name in COMPARED), "shown")


def _cells(row: Row) -> tuple[str, ...]:
    figures = ((mean(row, name), 2 if name in ("attempts", "steps") else 3) for name in MEASURES)
    return row.arm, *(f"{i.estimate:.{n}f} [{i.low:.{n}f}, {i.high:.{n}f}]" for i, n in figures)


def _compared(found: Contrast) -> tuple[str, ...]:
    return found.question, found.arm, found.against, *map(str, found.differences.values()), found.shown


def _markdown(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]], caption: str) -> Table:
    table = Table(*columns, caption=caption)
    for line in lines:
        table.add_row(*line)
    return table


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lessonbank_bench.scaling_table", description=__doc__)
    parser.add_argument("--environment", default="desk", help="any that has a scripted agent and a verifier")
    parser.add_argument("--seeds", type=_seeds, default=_seeds("200-219"), help="worlds; below 200 were used before")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--limit", type=int, default=1, help="experiences that a recall draws on")
    parser.add_argument(
        "--runs", type=int, default=6, help="an arm of n runs plays each world RUNS // n times, or once"
    )
    parser.add_argument("--arm", action="append", default=[], help="only arms whose name holds this; may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--json", action="store_true", help="with the figures of every world")
    return parser.parse_args(arguments)


def _arms(names: Sequence[str], runs: int) -> list[Arm]:
    """Those asked for, and the two with one run; each with so many plays that about `runs` runs of a task are made.

    Raises:
        UsageError: none has such a name.
    """
    if names and not any(name in arm.name for arm in ARMS for name in names):
        raise UsageError(f"there is no such arm: there are {'; '.join(arm.name for arm in ARMS)}")
    wanted = (arm for arm in ARMS if not names or arm.name in (NOTHING, SINGLE) or any(n in arm.name for n in names))
    return [replace(arm, plays=max(1, runs // arm.k)) for arm in wanted]


def _label(place: Environment, asked: argparse.Namespace) -> str:
    worlds = f"{len(asked.seeds)} worlds ({asked.seeds[0]} to {asked.seeds[-1]}) of {asked.tasks} tasks"
    return (
        f"synthetic, scripted model ({place.version}); {worlds}; a recall draws on {asked.limit} experience(s); "
        f"an arm of n runs plays each {max(1, asked.runs)} // n times, or once; "
        "95 % bootstrap intervals over worlds, none corrected for their number"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, or with `--json` everything they are made of."""
    asked = _asked(arguments)
    place = environment(asked.environment)
    try:
        arms, label = _arms(asked.arm, asked.runs), _label(place, asked)
        rows = measure(place, arms, seeds=asked.seeds, tasks=asked.tasks, limit=asked.limit, done=_progress)
    finally:
        place.close()
    found = contrasts(rows)
    if asked.json:
        compared = [{**asdict(one), "shown": one.shown} for one in found]
        told = {"label": label, "rows": [_told(row) for row in rows], "contrasts": compared}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return
    for columns, lines in ((_COLUMNS, [*map(_cells, rows)]), (_CONTRAST_COLUMNS, [*map(_compared, found)])):
        if asked.markdown:
            sys.stdout.write(f"{_markdown(columns, lines)}\n{label}\n\n")
        else:
            Console(width=220).print(_table(columns, lines, label))


def _told(row: Row) -> dict[str, object]:
    return {**asdict(row), "means": {name: asdict(mean(row, name)) for name in MEASURES}}


def _progress(row: Row) -> None:
    sys.stderr.write(f"{row.arm}: Pass@1 {mean(row, 'pass_at_1').estimate:.3f}, {row.seconds:.0f} s\n")


if __name__ == "__main__":
    main()
