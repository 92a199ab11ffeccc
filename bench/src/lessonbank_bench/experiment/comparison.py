"""What may be said of arms after an experiment: paired differences, their intervals, and the noise beside each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank_bench.statistics import Interval

from .distributions import Floats, holm, mcnemar, student_below
from .intervals import clustered, error_of
from .records import AttemptRow, Experiment
from .stopping_rule import always, stopping_level

Shown = Literal["more successes", "fewer successes", "no difference shown"]
Key = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """One task done by both arms."""

    treated: AttemptRow
    control: AttemptRow

    @property
    def difference(self) -> int:
        """In success: -1, 0 or 1."""
        return int(bool(self.treated.success)) - int(bool(self.control.success))


@dataclass(frozen=True, slots=True)
class Scored:
    """A number besides success, over the pairs that both have it for."""

    mean: float
    base: float
    difference: Interval | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Compared:
    """One arm against the baseline, on the tasks that both have an outcome for."""

    arm: str
    baseline: str
    again: bool
    """Whether it is the baseline once more: what is found then is noise, and no claim."""
    of: str
    """The arm it was added for, with lessons of a task's own like left out; adjusted only for others of that kind."""
    early: bool
    """Whether the experiment may have stopped early: `always` alone decides what is shown then."""
    pairs: int
    left_out: int
    """Tasks that one of the two has no outcome for: an error of infrastructure, or not yet attempted."""
    seeds: int
    families: int
    success: float
    base: float
    better: int
    worse: int
    by_seed: Interval | None
    """The difference in the success rate; the interval draws whole seeds. `None` with fewer than two seeds."""
    by_family: Interval | None
    """The same with whole families of tasks."""
    always: Interval
    """Right after every whole seed at once, however often one looks."""
    p: float
    """McNemar, exact."""
    p_seeds: float
    """Student's t over seeds, whose tasks go together."""
    adjusted: float
    """The larger of the two, for the number of arms (Holm)."""
    steps: Interval | None
    tokens: Interval | None
    scores: Mapping[str, Scored]
    """What else the verifier measured, by name."""
    level: float
    floor: float | None = None
    """How far the baseline's own repetition reaches from zero, interval included."""

    @property
    def difference(self) -> float:
        """In the success rate."""
        return self.success - self.base

    @property
    def shown(self) -> Shown:
        """Something only where both the interval over seeds leaves zero out and the adjusted test says so."""
        if self.early:
            return _side(self.always)
        span = self.by_seed
        if span is None or span.low <= 0 <= span.high or self.adjusted >= 1 - self.level:
            return "no difference shown"
        return _side(span)

    @property
    def within_noise(self) -> bool:
        """Whether the difference is no further from zero than the baseline's own repetition may be."""
        return self.floor is not None and abs(self.difference) <= self.floor


def compare(
    experiment: Experiment, rows: Sequence[AttemptRow], /, *, baseline: str | None = None
) -> tuple[Compared, ...]:
    """Every arm against the baseline, in the order of the experiment.

    Raises:
        UsageError: no arm has the baseline's name.
    """
    base = baseline or experiment.against.name
    if base not in {arm.name for arm in experiment.arms}:
        raise UsageError(f"there is no arm {one_line(base, limit=60)!r}; there are {_names(experiment)}")
    tested = by_arm(rows)
    apart = stopping_level(experiment) if experiment.stop else None
    repeated = {arm.name for arm in experiment.arms if arm.again} if base == experiment.against.name else set[str]()
    found = [
        compared(
            arm.name, base, tested.get(arm.name, {}), tested.get(base, {}), level=experiment.question.level, early=apart
        )
        for arm in experiment.arms
        if arm.name != base
    ]
    added = {arm.name: arm.of for arm in experiment.arms}
    return _together([replace(one, again=one.arm in repeated, of=added[one.arm]) for one in found])


def compare_two(
    first: tuple[str, Experiment, Sequence[AttemptRow]], second: tuple[str, Experiment, Sequence[AttemptRow]], /
) -> tuple[Compared, ...]:
    """Arms of one name in two experiments, the second against the first, on the tasks that both have.

    Raises:
        UsageError: they have no arm in common, or no task.
    """
    (name, experiment, rows), (other, another, more) = first, second
    names = [arm.name for arm in experiment.arms if arm.name in {arm.name for arm in another.arms}]
    one, two = by_arm(rows, by_task=True), by_arm(more, by_task=True)
    level = experiment.question.level
    early = min(stopping_level(experiment), stopping_level(another)) if experiment.stop or another.stop else None
    kinds = {arm.name: arm for arm in experiment.arms}
    found = [
        replace(
            compared(
                f"{arm} ({other})", f"{arm} ({name})", two.get(arm, {}), one.get(arm, {}), level=level, early=early
            ),
            again=kinds[arm].again,
            of=kinds[arm].of,
        )
        for arm in names
    ]
    found = [one for one in found if one.pairs]
    if not found:
        raise UsageError("the two experiments have no arm in common that did one task in both: nothing can be paired")
    return _together(found)


def by_arm(rows: Iterable[AttemptRow], /, *, by_task: bool = False) -> dict[str, dict[Key, AttemptRow]]:
    """The attempts that are compared, by arm and place in the experiment, or by task where two are compared."""
    arms: dict[str, dict[Key, AttemptRow]] = {}
    for row in rows:
        if row.phase == "test":
            arms.setdefault(row.arm, {})[_task_key(row) if by_task else (row.seed, row.place, row.task_id)] = row
    return arms


def _task_key(row: AttemptRow) -> Key:
    """The same for one task in two environments, as the desk's in a browser."""
    return row.seed, 0, f"{row.task_id.partition('/')[2]} {row.task}"


def compared(
    arm: str,
    baseline: str,
    treated: Mapping[Key, AttemptRow],
    control: Mapping[Key, AttemptRow],
    /,
    *,
    level: float = 0.95,
    early: float | None = None,
) -> Compared:
    """One comparison, alone: not adjusted for others, without a floor. `early`: the level where it may have stopped."""
    keys = [key for key in treated if key in control]
    pairs = [Pair(treated[key], control[key]) for key in keys]
    kept = [pair for pair in pairs if pair.treated.success is not None and pair.control.success is not None]
    differences = [pair.difference for pair in kept]
    better, worse = differences.count(1), differences.count(-1)
    seeds = [pair.control.seed for pair in kept]
    families = [pair.control.family for pair in kept]
    p, over = mcnemar(better, worse), _over_seeds(differences, seeds)
    return Compared(
        arm=arm,
        baseline=baseline,
        again=False,
        of="",
        early=early is not None,
        pairs=len(kept),
        left_out=len(treated.keys() | control.keys()) - len(kept),
        seeds=len(set(seeds)),
        families=len(set(families)),
        success=_mean([bool(pair.treated.success) for pair in kept]),
        base=_mean([bool(pair.control.success) for pair in kept]),
        better=better,
        worse=worse,
        by_seed=spread(differences, seeds, level=level, within=(-1.0, 1.0)),
        by_family=spread(differences, families, level=level, within=(-1.0, 1.0)),
        always=always(_whole(kept, keys), level=early or level),
        p=p,
        p_seeds=over,
        adjusted=max(p, over),
        steps=spread([pair.treated.steps - pair.control.steps for pair in kept], seeds, level=level),
        tokens=spread([pair.treated.tokens - pair.control.tokens for pair in kept], seeds, level=level),
        scores=_scores(kept, level),
        level=level,
    )


def _scores(pairs: Sequence[Pair], level: float) -> dict[str, Scored]:
    names = dict.fromkeys(name for pair in pairs for name in pair.control.scores)
    found: dict[str, Scored] = {}
    for name in names:
        both = [p for p in pairs if name in p.treated.scores and name in p.control.scores]
        if both:
            new, old = [p.treated.scores[name] for p in both], [p.control.scores[name] for p in both]
            apart = [one - other for one, other in zip(new, old, strict=True)]
            span = spread(apart, [p.control.seed for p in both], level=level)
            found[name] = Scored(_mean(new), _mean(old), span, len(both))
    return found


def spread(
    values: Sequence[float],
    clusters: Sequence[object],
    /,
    *,
    level: float = 0.95,
    within: tuple[float, float] | None = None,
) -> Interval | None:
    """The mean with its interval over clusters, cut to what is possible; `None` with fewer than two of them."""
    return clustered(*_sums(values, clusters), level=level, within=within)


def _sums(values: Sequence[float], clusters: Sequence[object]) -> tuple[Floats, Floats]:
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    index = np.array([places[cluster] for cluster in clusters], dtype=np.int64)
    sums = np.bincount(index, weights=np.asarray(values, dtype=float), minlength=len(places)).astype(float)
    return sums, np.bincount(index, minlength=len(places)).astype(float)


def _whole(pairs: Sequence[Pair], keys: Sequence[Key]) -> dict[int, list[int]]:
    """By seed the differences of those seeds that are done, as far as one can see: no seed has more tasks."""
    tasks = Counter(seed for seed, _, _ in keys)
    most = max(tasks.values(), default=0)
    found: dict[int, list[int]] = {}
    for pair in pairs:
        if tasks[pair.control.seed] == most:
            found.setdefault(pair.control.seed, []).append(pair.difference)
    return found


def _over_seeds(differences: Sequence[int], seeds: Sequence[int]) -> float:
    """The two-sided p-value of Student's t over the seeds; 1 where there are fewer than two."""
    sums, counts = _sums(differences, seeds)
    if len(sums) < 2:
        return 1.0
    middle, error = float(sums.sum() / counts.sum()), error_of(sums, counts)
    if not error:
        return float(middle == 0)
    return 2 * (1 - student_below(abs(middle) / error, len(sums) - 1))


def _side(span: Interval) -> Shown:
    if span.low <= 0 <= span.high:
        return "no difference shown"
    return "more successes" if span.low > 0 else "fewer successes"


def _together(found: Sequence[Compared]) -> tuple[Compared, ...]:
    """Adjusted for their number, with the floor of the baseline's repetitions beside each."""
    claims = holm({one.arm: one.adjusted for one in found if not (one.again or one.of)})
    claims |= holm({one.arm: one.adjusted for one in found if one.of})
    reaches = [max(abs(one.by_seed.low), abs(one.by_seed.high)) for one in found if one.again and one.by_seed]
    floor = max(reaches, default=None)
    return tuple(
        replace(one, adjusted=claims.get(one.arm, one.adjusted), floor=None if one.again else floor) for one in found
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _names(experiment: Experiment) -> str:
    return ", ".join(arm.name for arm in experiment.arms)


def in_words(found: Sequence[Compared], /) -> str:
    """The comparisons as plain text."""
    return "\n\n".join("\n".join(_told(one)) for one in found)


def _told(one: Compared) -> list[str]:
    if not one.pairs:
        return [f"{one_line(one.arm)} against {one_line(one.baseline)}: no pair of outcomes yet."]
    head = f"{one_line(one.arm)} against {one_line(one.baseline)}: {claim(one)}"
    lines = [
        head,
        f"  {one.success:.1%} and {one.base:.1%} of {many(one.pairs, 'pair')} ({many(one.seeds, 'seed')}); "
        f"{one.better} went better, {one.worse} worse",
        f"  difference {points(one.difference)}: over seeds {between(one.by_seed)}, "
        f"over {many(one.families, 'family', 'families')} {between(one.by_family)}, "
        f"however often one looks {between(one.always)}",
        f"  McNemar p = {one.p:.3g}, over seeds p = {one.p_seeds:.3g}"
        + ("" if one.again else f"; {one.adjusted:.3g} for all arms (Holm)"),
    ]
    lines += [f"  {noise(one)}"] if noise(one) else []
    lines += [f"  steps {_change(one.steps)}, tokens {_change(one.tokens)}"]
    for name, told in one.scores.items():
        some = "" if told.pairs == one.pairs else f" ({told.pairs:,} pairs)"
        lines.append(
            f"  {one_line(name, limit=40)} {told.mean:,.3f} and {told.base:,.3f}: {_change(told.difference)}{some}"
        )
    if one.left_out:
        lines.append(f"  left out, since one of the two has no outcome: {many(one.left_out, 'task')}")
    return lines


def many(n: int, one: str, more: str = "", /) -> str:
    """A number with its noun."""
    return f"{n:,} {one if n == 1 else more or f'{one}s'}"


def claim(one: Compared, /) -> str:
    """What is said of it, in one line."""
    if one.again:
        return "the baseline once more; what differs is noise"
    if one.by_seed is None and not one.early:
        return "no difference shown (one seed is not enough to show one)"
    return one.shown if one.shown == "no difference shown" else f"{one.shown}, {points(one.difference)}"


def noise(one: Compared, /) -> str:
    """The floor beside a claim; empty where no arm measured it."""
    if one.floor is None:
        return ""
    told = f"noise floor (A/A): up to {100 * one.floor:.1f} points"
    return f"{told}; this difference is within it" if one.within_noise else told


def points(value: float, /) -> str:
    """A difference of rates in percentage points."""
    return f"{100 * value:+.1f} points"


def between(span: Interval | None, /) -> str:
    """An interval of rates in points; says so where there is none."""
    return "(too few)" if span is None else f"[{100 * span.low:+.1f}, {100 * span.high:+.1f}]"


def _change(span: Interval | None) -> str:
    return "(too few seeds)" if span is None else f"{span.estimate:+,.2f} [{span.low:+,.2f}, {span.high:+,.2f}]"
