"""The rows of the policy's table: by world, what a number of banks with fresh seeds show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from . import effects, from_docs, nulls
from .drive import Bank, Played, Policy
from .world import World

NULLS: tuple[Callable[[int], World], ...] = (
    nulls.Alike,
    nulls.Drift,
    nulls.OneUser,
    nulls.Autocorrelated,
    nulls.Untold,
    nulls.Corrected,
    nulls.ThreeRuns,
    nulls.Retries,
    nulls.LastTry,
    nulls.AskAgain,
    nulls.TemplateAfter,
    nulls.TwoModels,
    nulls.BiggerAfterFailure,
    nulls.TwoProcesses,
    nulls.Broken,
    nulls.Growing,
    nulls.Late,
    nulls.Graded,
    nulls.OneTopicOne,
    nulls.OneTopicTwo,
    nulls.OneTopicThree,
    nulls.NearnessOnly,
    from_docs.SameTasks,
    from_docs.NewModel,
    from_docs.NightlyBatch,
    from_docs.EasyThenHard,
    from_docs.OfficeHours,
    from_docs.ThreeTasksEach,
    from_docs.FiveRuns,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What to look at in one world."""

    world: Callable[[int], World]
    say: Callable[[Sequence[Played]], str]


def first(banks: Sequence[Played]) -> str:
    """How many of the first tasks that have a lesson get none."""
    return (
        f"without any lesson: tasks 1-30 {percent(banks, lambda b: b.empty(0, 30))}, "
        f"1-60 {percent(banks, lambda b: b.empty(0, 60))}, "
        f"later {percent(banks, lambda b: b.empty(60, len(b.shown)))}"
    )


def found(*treatments: tuple[str, str], gone: str = "", after: int = 0) -> Callable[[Sequence[Played]], str]:
    """What is said and retired, and when, and the success in all."""

    def say(banks: Sequence[Played]) -> str:
        said = [
            f"{treatment} {word} {when([b.said(treatment, word) for b in banks])}" for treatment, word in treatments
        ]
        said += [f"{gone} retired {when([b.retired.get(gone, math.inf) - after for b in banks])}"] if gone else []
        return ", ".join([*said, f"success {percent(banks, lambda b: fmean(b.chance))}"])

    return say


def net(banks: Sequence[Played]) -> str:
    """What memory adds."""
    early, late = ([b.net(*span(b)) for b in banks] for span in (lambda b: (0, 1000), lambda b: (1000, len(b.shown))))
    return f"net points of tasks 1-1000 {mean(early)}, later {mean(late)}"


def place(id: str) -> Callable[[Sequence[Played]], str]:
    """How soon and how often a lesson is shown."""

    def say(banks: Sequence[Played]) -> str:
        soon = fmean(any(id in shown for shown in b.shown[:30]) for b in banks)
        often = [fmean(id in shown for shown in b.shown[100:]) for b in banks]
        return (
            f"{id} shown within 30 tasks in {soon:.0%}, in half of the tasks from 100 on in "
            f"{fmean(one >= 0.5 for one in often):.0%}, of these tasks in {fmean(often):.0%}"
        )

    return say


def success(banks: Sequence[Played]) -> str:
    """The rate of success."""
    return f"success {percent(banks, lambda b: fmean(b.chance))}"


ROWS: tuple[Row, ...] = (
    Row(effects.Six, found(("l0", "helps"), ("l1", "helps"), ("*", "helps"), gone="l2")),
    Row(effects.Turning, found(gone="l0", after=1000)),
    Row(effects.Poisoned, net),
    Row(effects.PoisonedFour, net),
    Row(nulls.OneTopicOne, first),
    Row(nulls.OneTopicTwo, first),
    Row(nulls.OneTopicThree, first),
    Row(from_docs.FirstDayNothing, first),
    Row(effects.FirstTasksOne, first),
    Row(effects.FirstTasks, first),
    Row(effects.FirstTasksThree, first),
    Row(from_docs.FirstDay, first),
    Row(effects.Nearer, place("l1")),
    Row(effects.NearerOfFour, place("l1")),
    Row(from_docs.Rules, success),
    Row(effects.NearIsGood, success),
    Row(effects.NearIsGoodThree, success),
    Row(effects.SixOpen, success),
    Row(from_docs.OneBadOfTen, found(gone="l2")),
    Row(from_docs.StaleShop, success),
    Row(from_docs.TeamBank, success),
    Row(from_docs.BadSource, net),
)


def banks(world: Callable[[int], World], policy: Callable[[str], Policy], seeds: Sequence[int]) -> list[Played]:
    """The banks of one world, each with a seed of its own."""
    return [Bank(policy, f"{seed}").play(world(seed)) for seed in seeds]


def percent(banks: Sequence[Played], of: Callable[[Played], float]) -> str:
    """A mean of shares."""
    return f"{100 * fmean(map(of, banks)):.1f} %"


def mean(values: Sequence[float]) -> str:
    """A mean with its standard error."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return f"{fmean(values):+.2f} ± {error:.2f}"


def when(tasks: Sequence[float]) -> str:
    """In how many banks, and after how many tasks in the middle one."""
    middle = median(tasks)
    return f"{share(sum(map(math.isfinite, tasks)), len(tasks))} (median {middle:,.0f})"


def share(count: int, of: int) -> str:
    """A share with Wilson's interval of 95 %."""
    z, p = 1.96, count / of
    centre, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    low, high = ((centre + side) / (1 + z * z / of) for side in (-half, half))
    return f"{p:.0%} [{100 * max(low, 0.0):.0f}, {100 * min(high, 1.0):.0f}]"
