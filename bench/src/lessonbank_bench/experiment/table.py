"""The figures of each arm, of one experiment or of several as one: the cells of the paper's tables, from rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lessonbank.contracts.records import Outcome, Trajectory
from lessonbank.guard import one_line
from lessonbank_bench.statistics import Interval, wilson

from .comparison import spread
from .records import AttemptRow, Experiment, acted

OVERALL = "Overall"
_PASS = "Pass@"
_SCORES = 6
"""Other scores that are printed; `--json` has all."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task, whether its arm makes one or several."""

    steps: int
    success: bool | None
    verdict: Outcome | None
    crashed: bool
    tokens: int
    """Of acting."""


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """What an arm came to; means over tasks. `None` where nothing is known."""

    where: str
    """The experiment, or `Overall`."""
    arm: str
    tasks: int
    """Those with an outcome."""
    left_out: int
    """Those without: an error of infrastructure, or told later."""
    success: float | None
    """The success rate of a run: with several runs of a task, Pass@1."""
    interval: Interval | None
    """95 %, over what `over` says, within 0 and 1; no narrower than if all tasks were independent (Wilson 1927)."""
    over: str
    best_of_n: float | None
    """The success rate of the chosen runs; `None` for arms with one run."""
    pass_at_k: tuple[float, ...]
    """From k = 1; empty for arms with one run."""
    runs: float
    """Runs a task."""
    crashed: int
    """Runs that an error stopped."""
    steps: float | None
    """Of a run."""
    steps_succeeded: float | None
    steps_failed: float | None
    tokens: float | None
    """Of a task: all its runs, and judging, choosing and distilling."""
    tokens_acting: float | None
    tokens_judging: float | None
    tokens_distilling: float | None
    """The rest: distilling, and choosing the best of several runs."""
    cost: float | None
    """US dollars for a task."""
    judge_right: float | None
    """The share of the judge's verdicts, success or failure, that the verifier agrees with."""
    judged: int
    """How many those are."""
    undecided: int
    """Verdicts `unknown` beside them."""
    scores: Mapping[str, float]
    """What else the verifier measured."""


def figures(told: Sequence[tuple[str, Experiment, Sequence[AttemptRow]]], /) -> list[ArmFigures]:
    """Every arm of every experiment, then the arms that all of them have over the tasks of all."""
    found = [
        _arm(name, arm.name, [(name, row) for row in rows if row.arm == arm.name], experiment.judged)
        for name, experiment, rows in told
        for arm in experiment.arms
    ]
    if len(told) < 2:
        return found
    shared = [arm.name for arm in told[0][1].arms if all(arm.name in {a.name for a in e.arms} for _, e, _ in told)]
    judged = all(experiment.judged for _, experiment, _ in told)
    return found + [
        _arm(OVERALL, arm, [(name, row) for name, _, rows in told for row in rows if row.arm == arm], judged)
        for arm in shared
    ]


def _arm(where: str, arm: str, placed: Sequence[tuple[str, AttemptRow]], judged: bool) -> ArmFigures:
    tested = [(name, row) for name, row in placed if row.phase == "test"]
    known = [(name, row) for name, row in tested if row.success is not None]
    rates = [(name, row, rate) for name, row in known if (rate := _rate(row)) is not None]
    rows = [row for _, row in known]
    runs = [run for row in rows for run in runs_of(row)]
    over, units = _units([(name, row) for name, row, _ in rates])
    several = [row for row in rows if row.runs]
    verdicts = [run for run in runs if judged and run.verdict is not None and run.success is not None]
    decided = [run for run in verdicts if run.verdict != "unknown"]
    costs = [row.cost for row in rows if row.cost is not None]
    return ArmFigures(
        where=where,
        arm=arm,
        tasks=len(rows),
        left_out=len(tested) - len(rows),
        success=_mean([rate for *_, rate in rates]),
        interval=_interval([rate for *_, rate in rates], units),
        over=over,
        best_of_n=_mean([float(bool(row.success)) for row in several]),
        pass_at_k=_pass_at_k(several),
        runs=_mean([float(len(runs_of(row))) for row in rows]) or 0.0,
        crashed=sum(run.crashed for run in runs),
        steps=_mean([run.steps for run in runs]),
        steps_succeeded=_mean([run.steps for run in runs if run.success]),
        steps_failed=_mean([run.steps for run in runs if run.success is False]),
        tokens=_mean([row.tokens for row in rows]),
        tokens_acting=_mean([_acting(row) for row in rows]),
        tokens_judging=_mean([row.judging for row in rows]),
        tokens_distilling=_mean([row.tokens - _acting(row) - row.judging for row in rows]),
        cost=_mean(costs),
        judge_right=_mean([float((run.verdict == "success") is run.success) for run in decided]),
        judged=len(decided),
        undecided=len(verdicts) - len(decided),
        scores=_scores(rows),
    )


def runs_of(row: AttemptRow, /) -> list[Run]:
    """The runs of a row that was read with them."""
    if row.runs:
        return [_run(one.trajectory, one.success, one.verdict) for one in row.runs]
    verdict = row.verdict if row.told is None else None
    if row.run is None:
        return [Run(row.steps, row.success, verdict, crashed=False, tokens=row.tokens)]
    return [_run(row.run, row.success, verdict)]


def _run(run: Trajectory, success: bool | None, verdict: Outcome | None) -> Run:
    tokens = run.usage.input_tokens + run.usage.output_tokens
    return Run(acted(run), success, verdict, crashed=bool(run.error), tokens=tokens)


def _acting(row: AttemptRow) -> int:
    return sum(run.tokens for run in runs_of(row))


def _rate(row: AttemptRow) -> float | None:
    return row.scores.get(f"{_PASS}1") if row.runs else float(bool(row.success))


def _units(placed: Sequence[tuple[str, AttemptRow]]) -> tuple[str, list[tuple[str, int]]]:
    """What goes together: the tasks of a seed. With one seed nobody knows how a second would differ."""
    seeds: dict[str, set[int]] = {}
    for name, row in placed:
        seeds.setdefault(name, set()).add(row.seed)
    if all(len(each) > 1 for each in seeds.values()):
        return "seeds", [(name, row.seed) for name, row in placed]
    return "tasks", [(name, place) for place, (name, _) in enumerate(placed)]


def _interval(rates: Sequence[float], units: Sequence[tuple[str, int]]) -> Interval | None:
    if not rates:
        return None
    alone, over = wilson(round(sum(rates)), len(rates)), spread(rates, units, within=(0.0, 1.0))
    told = over or alone
    return Interval(sum(rates) / len(rates), min(told.low, alone.low), max(told.high, alone.high))


def _pass_at_k(rows: Sequence[AttemptRow]) -> tuple[float, ...]:
    most = max((len([name for name in row.scores if name.startswith(_PASS)]) for row in rows), default=0)
    each = [
        _mean([row.scores[name] for row in rows if (name := f"{_PASS}{k}") in row.scores]) for k in range(1, most + 1)
    ]
    return tuple(value for value in each if value is not None)


def _scores(rows: Sequence[AttemptRow]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row.scores if not name.startswith(_PASS))
    means = {name: _mean([row.scores[name] for row in rows if name in row.scores]) for name in names}
    return {name: value for name, value in means.items() if value is not None}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def in_words(found: Sequence[ArmFigures], /) -> str:
    """The figures as plain text, one block for each experiment and one over all."""
    places = list(dict.fromkeys(one.where for one in found))
    return "\n\n".join(_block(place, [one for one in found if one.where == place]) for place in places)


def _block(place: str, rows: Sequence[ArmFigures]) -> str:
    parts = [f"{one_line(place, limit=80)}, 95 % over {rows[0].over}", _aligned(_SUCCESS, map(_success, rows))]
    if any(one.pass_at_k for one in rows):
        most = max(len(one.pass_at_k) for one in rows)
        parts.append(_aligned(_several_columns(most), (_several(one, most) for one in rows if one.pass_at_k)))
    if any(one.tokens or one.judged for one in rows):
        parts.append(_aligned(_COSTS, map(_costs, rows)))
    names = list(dict.fromkeys(name for one in rows for name in one.scores))[:_SCORES]
    if names:
        head = ("arm", *(one_line(name, limit=24) for name in names))
        parts.append(_aligned(head, ((_name(one), *(_number(one.scores.get(n), 3) for n in names)) for one in rows)))
    return "\n\n".join(parts)


_SUCCESS = ("arm", "tasks", "success [95 %]", "steps", "succeeded", "failed")
_COSTS = ("arm", "tokens a task", "acting", "judging", "distilling", "US dollars", "judge right")


def _success(one: ArmFigures) -> tuple[str, ...]:
    span = "" if one.interval is None else f" [{100 * one.interval.low:.1f}, {100 * one.interval.high:.1f}]"
    tasks = f"{one.tasks:,}" + (f" (+{one.left_out:,} open)" if one.left_out else "")
    steps = (_number(value, 1) for value in (one.steps, one.steps_succeeded, one.steps_failed))
    return _name(one), tasks, _percent(one.success) + span, *steps


def _several_columns(most: int) -> tuple[str, ...]:
    return ("arm", "runs", "best of n", *(f"{_PASS}{k}" for k in range(1, most + 1)), "crashed")


def _several(one: ArmFigures, most: int) -> tuple[str, ...]:
    each = [*map(_percent, one.pass_at_k), *[""] * (most - len(one.pass_at_k))]
    return _name(one), f"{one.runs:.1f}", _percent(one.best_of_n), *each, f"{one.crashed:,}"


def _costs(one: ArmFigures) -> tuple[str, ...]:
    undecided = f" (+{one.undecided:,} unknown)" if one.undecided else ""
    judge = f"{_percent(one.judge_right)} of {one.judged:,}{undecided}" if one.judged else "–"
    tokens = (one.tokens, one.tokens_acting, one.tokens_judging, one.tokens_distilling)
    return _name(one), *(_number(value, 0) for value in tokens), _number(one.cost, 4), judge


def _name(one: ArmFigures) -> str:
    return one_line(one.arm, limit=60)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _aligned(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if at else f"{cell:<{width}}"
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
