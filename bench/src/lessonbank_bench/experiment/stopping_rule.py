"""When enough is known: intervals over seeds that are right however often one looks, and how soon they get there.

Tasks of one seed go together: what one of them teaches is there for the next. So it is seeds that are counted, and one
looks at the end of each. Two intervals have to agree, since each covers what the other supposes:

- over seeds, by the wealth of a bet on the t-statistic of their means, spread over effects of usual size: right at any
  number of seeds at once where the means are normal (Lai 1976; Wang and Ramdas 2025);
- over pairs, by bets on differences between -1 and 1: right for any distribution, where pairs do not go together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from lessonbank.evidence.episodes import Flags, Ints
from lessonbank.trials.paired_sequential import STAKES, PairedTest
from lessonbank_bench.statistics import Interval

from .distributions import Floats
from .records import AttemptRow, Experiment

_SPREAD = 3.0
"""One over the variance of the effects betted on, in standard deviations of the seeds' means."""
_DRAWS = 4000


def always(differences: Mapping[int, Sequence[int]], /, *, level: float) -> Interval:
    """The mean of the seeds' mean differences, right after any number of whole seeds.

    Args:
        differences: by seed, between -1 and 1 for each pair; whole seeds only.
        level: of the interval.
    """
    if not differences:
        return Interval(0.0, -1.0, 1.0)
    means: Floats = np.array([sum(each) / len(each) for each in differences.values()], dtype=float)
    pairs = PairedTest(level)
    for each in differences.values():
        for difference in each:
            pairs.add(difference)
    low, high = pairs.interval()
    middle, half = float(means.mean()), _half(means, 1 - level)
    return Interval(middle, max(-1.0, min(low, middle - half)), min(1.0, max(high, middle + half)))


def _half(means: Floats, alpha: float) -> float:
    n = len(means)
    edge = _edge(n, alpha)
    return 2.0 if math.isinf(edge) else float(edge * means.std(ddof=1) / math.sqrt(n))


def _edge(n: int, alpha: float) -> float:
    """The t-statistic of n means from which the wealth is 1 / alpha and more; infinite while no t is enough."""
    if n < 2:
        return math.inf
    freedom, ratio = n - 1, 1 + n / _SPREAD
    wanted = math.exp(2 / (freedom + 1) * (math.log(ratio) / 2 - math.log(alpha)))
    if wanted >= ratio:
        return math.inf
    return math.sqrt(freedom * (wanted - 1) / (1 - wanted / ratio))


class Stopping:
    """Watches the arms' differences from the baseline, and looks at them whenever a seed is done.

    Each arm has a share of the error that all may make together (Bonferroni).
    """

    def __init__(self, experiment: Experiment, /) -> None:
        self._waits_for = tuple(arm.name for arm in experiment.claims) if experiment.stop else ()
        if isinstance(experiment.stop, tuple):
            self._waits_for = experiment.stop
        self._base = experiment.against.name
        self._level = stopping_level(experiment)
        self._of_a_seed = experiment.tasks * len(experiment.arms)
        self._seed: int | None = None
        self._rows: list[AttemptRow] = []
        self._differences: dict[str, dict[int, list[int]]] = {name: {} for name in self._waits_for}
        self._enough = False

    def add(self, row: AttemptRow, /) -> None:
        """One more row, in the order of the schedule."""
        if not self._waits_for or row.phase != "test":
            return
        if row.seed != self._seed:
            self._seed, self._rows = row.seed, []
        self._rows.append(row)
        if len(self._rows) == self._of_a_seed:
            self._look()

    def _look(self) -> None:
        base = {row.place: row.success for row in self._rows if row.arm == self._base}
        for name, known in self._differences.items():
            own = [(row.success, base.get(row.place)) for row in self._rows if row.arm == name]
            told = [int(new) - int(old) for new, old in own if new is not None and old is not None]
            if told:
                known[self._rows[0].seed] = told
        spans = [always(known, level=self._level) for known in self._differences.values()]
        self._enough = all(span.low > 0 or span.high < 0 for span in spans)

    @property
    def reason(self) -> str:
        """Why to stop; empty while something is open."""
        return f"shown to differ from the baseline: {', '.join(self._waits_for)}" if self._enough else ""


def stopping_level(experiment: Experiment, /) -> float:
    """The level of each arm's interval, so that all of them are right together at the question's level."""
    return 1 - (1 - experiment.question.level) / max(1, len(experiment.claims))


def always_power(seeds: int, tasks: int, gained: float, lost: float, alpha: float, /, *, clustering: float) -> float:
    """The chance that `always` leaves zero out once there are so many seeds of so many tasks.

    Drawn 4,000 times, from the same draws each time; to have left zero out before is a little likelier. What seeds
    differ by is drawn from a normal distribution with the variance that `clustering` makes.
    """
    if math.isinf(edge := _edge(seeds, alpha)):
        return 0.0
    draw = np.random.default_rng(1)
    apart = gained + lost - (gained - lost) ** 2
    moved = draw.normal(0.0, math.sqrt(clustering * apart), size=(_DRAWS, seeds))
    shares = np.clip(np.stack([gained + moved / 2, lost - moved / 2], axis=-1), 0.0, 0.5)
    chances = np.concatenate([shares, 1 - shares.sum(axis=-1, keepdims=True)], axis=-1)
    counts = draw.multinomial(tasks, chances)
    wins, losses = counts[..., 0], counts[..., 1]
    means = (wins - losses) / tasks
    error = means.std(axis=1, ddof=1) / math.sqrt(seeds)
    over_seeds = np.abs(means.mean(axis=1)) > edge * error
    return float((over_seeds & _over_pairs(wins.sum(axis=1), losses.sum(axis=1), alpha)).mean())


def _over_pairs(wins: Ints, losses: Ints, alpha: float) -> Flags:
    stakes = np.asarray(STAKES)[:, None]
    up = np.logaddexp.reduce(wins * np.log1p(stakes) + losses * np.log1p(-stakes), axis=0)
    down = np.logaddexp.reduce(losses * np.log1p(stakes) + wins * np.log1p(-stakes), axis=0)
    return np.maximum(up, down) >= math.log(2 / alpha) + math.log(len(STAKES))
