"""What the default bank reaches on streams whose truth is planted: how often it is wrong, and how soon it is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from lessonbank.contracts.withholding import Withholding
from lessonbank.evidence.policy import AdaptiveHoldout, Holdout
from lessonbank_bench.measure.streams import HARM, HELP, NEVER, Pure, Seen, Stream, Treatment, making, play, seen

from .sampling import Sampling, told
from .table import Row, averaged, counted

_RUNS, _WORKERS, _TRUTH, _ENOUGH = 400, 2, 4, 200
"""Runs of a row; processes; every how many runs intervals and values are compared with the truth; and
how many draws a value needs to be counted for its bias."""
Make: TypeAlias = "Callable[[int], Stream]"
Part: TypeAlias = "Callable[[Sampling], list[Row]]"
Policy: TypeAlias = "Callable[[str], Withholding]"


def trial_periods(seed: str, /) -> Withholding:
    """The default."""
    return AdaptiveHoldout(seed=seed)


def fixed(rate: float, seed: str, /) -> Withholding:
    """The same odds for all and for ever."""
    return Holdout(rate, rate, seed)


def run(make: Make, policy: Policy, seed: int, /) -> Seen:
    """One stream with one bank. Its draws follow from the seed, too."""
    stream = make(seed)
    bank = Pure(stream, policy(f"{seed}"), truth=seed % _TRUTH == 0)
    return seen(play(stream, bank), bank)


def runs(make: Make, seeds: range, /, *, policy: Policy = trial_periods) -> list[Seen]:
    """Many of them, in two processes."""
    one = partial(run, make, policy)
    if len(seeds) < 8:
        return list(map(one, seeds))
    with ProcessPoolExecutor(_WORKERS) as pool:
        return list(pool.map(one, seeds, chunksize=4))


def rows(sampling: Sampling, /) -> list[Row]:
    """Every part, one after another."""
    return [row for part in PARTS.values() for row in part(sampling)]


def nothing(sampling: Sampling, /) -> list[Row]:
    """Worlds in which no lesson does anything."""
    alike, topics = partial(making.nulls, 3000), partial(making.grouped_nulls, 3000)
    worlds: tuple[tuple[str, Make, Policy, int], ...] = (
        ("20 lessons, all tasks alike", alike, trial_periods, _RUNS),
        ("20 lessons in 5 topics and 2 sources, drift", topics, trial_periods, _RUNS),
        ("20 lessons, all tasks alike; odds fixed at .5", alike, partial(fixed, 0.5), _RUNS // 2),
        ("20 lessons, all tasks alike; odds fixed at .1", alike, partial(fixed, 0.1), _RUNS // 4),
    )
    return [row for name, make, policy, count in worlds for row in _null(name, make, policy, sampling.seeds(count))]


def _null(name: str, make: Make, policy: Policy, seeds: range) -> list[Row]:
    found = runs(make, seeds, policy=policy)
    on = f"{len(seeds)} runs of 3000 tasks, a look every 10, {told(seeds)}"
    likely = [_ever_likely([one], _is_lesson) for one in found]
    of_groups = _ever_likely(found, _is_group)
    whole = 100 * float(np.mean([min(one.treatments["*"].firm) < NEVER for one in found]))
    lessons = 100 * float(np.mean([_any(one, _is_lesson) for one in found]))
    groups = 100 * float(np.mean([_any(one, _is_group) for one in found]))
    made = [
        counted(
            f"nothing has an effect ({name}): any false “helps” or “harms” in a bank",
            [_any(one) for one in found],
            on=on,
            most=5.0,
            beside=(("of memory as a whole", whole), ("of groups", groups), ("of lessons", lessons)),
        ),
        averaged(
            f"nothing has an effect ({name}): a lesson ever “likely” to help or to harm",
            [float(np.mean(each)) for each in likely],
            on=on,
            most=1.0,
            beside=(
                ("memory as a whole ever “likely”", 100 * _mean(_ever_likely(found, lambda id: id == "*"))),
                *((("a group ever “likely”", 100 * _mean(of_groups)),) if of_groups else ()),
            ),
        ),
        *_sound(f"nothing has an effect ({name})", found, on=on),
    ]
    if policy is trial_periods:
        made.insert(2, _lost(name, found, on=on))
    return made


def _lost(name: str, found: Sequence[Seen], *, on: str) -> Row:
    return averaged(
        f"nothing has an effect ({name}): tasks that lose memory by the draw for the whole, of the first 2,000",
        [one.lost for one in found],
        on=on,
        most=12.0,
        beside=(
            ("by any draws", 100 * float(np.mean([one.bare for one in found]))),
            ("the worst run", 100 * max(one.lost for one in found)),
        ),
    )


def _any(one: Seen, which: Callable[[str], bool] = lambda id: True) -> bool:
    return any(min(treatment.firm) < NEVER for id, treatment in one.treatments.items() if which(id))


def _ever_likely(found: Sequence[Seen], which: Callable[[str], bool]) -> list[bool]:
    return [min(treatment.likely) < NEVER for one in found for id, treatment in one.treatments.items() if which(id)]


def _is_group(id: str) -> bool:
    return "/" in id


def _is_lesson(id: str) -> bool:
    return id != "*" and not _is_group(id)


def _sound(name: str, found: Sequence[Seen], *, on: str, least: float = 95.0) -> list[Row]:
    """Always-valid coverage of all treatments, and the bias of the values of those with enough draws to speak of."""
    compared = [one for one in found if one.truth and one.treatments]
    held = [float(np.mean([own.held for own in one.treatments.values() if own.draws])) for one in compared]
    covers = [treatment.covers for one in compared for _, treatment in _valued(one, gone=False)]
    both = [[*_valued(one, gone=False), *_valued(one, gone=True)] for one in compared]
    off = [[treatment.value - treatment.true for _, treatment in treatments] for treatments in both]
    gone = [treatment.value - treatment.true for one in compared for _, treatment in _valued(one, gone=True)]
    once = ("the interval for one look, at the end", 100 * _mean(covers))
    back = ("of lessons that were taken back, when they were", 100 * _mean(gone))
    return [
        averaged(
            f"{name}: always-valid intervals that hold the truth at every look",
            held,
            on=on,
            least=least,
            beside=(once,) if covers else (),
        ),
        averaged(
            f"{name}: bias of the values at the end",
            [float(np.mean(errors)) for errors in off if errors] or [float("nan")],
            on=on,
            unit=" points",
            beside=(back,) if gone else (),
        ),
    ]


def _valued(one: Seen, *, gone: bool) -> list[tuple[str, Treatment]]:
    """The treatments with a value from 200 draws or more; lessons that were taken back have one that stopped there."""
    out = {f"lesson-{number}" for number in one.out}
    return [
        (id, treatment)
        for id, treatment in one.treatments.items()
        if (gone or treatment.draws >= _ENOUGH) and np.isfinite(treatment.value) and (id in out) == gone
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def judged(sampling: Sampling, /) -> list[Row]:
    """A judge who likes runs with memory, which does nothing."""
    seeds = sampling.seeds(_RUNS)
    some, none = (runs(partial(_judged, share), seeds) for share in (0.3, 0.0))
    on = f"{len(seeds)} runs of 3000 tasks, 20 lessons that do nothing, a look every 10, {told(seeds)}"
    labelled = [one.basis == "judge" for one in none]
    acted = [bool(one.out) for one in none]
    return [
        counted(
            "a judge prefers memory, 30 % of truth told: any false “helps” or “harms”",
            [_any(one) for one in some],
            on=on,
            most=5.0,
        ),
        counted("… memory as a whole ever “likely”", [min(one.treatments["*"].likely) < NEVER for one in some], on=on),
        *_sound("a judge prefers memory, 30 % of truth told", some, on=on),
        counted("a judge prefers memory, no truth told: labelled “by the judge”", labelled, on=on, least=100.0),
        counted("… any lesson taken back on that", acted, on=on, most=0.0),
    ]


def _judged(share: float, seed: int) -> Stream:
    return making.judged(3000, seed, told=share)


def effects(sampling: Sampling, /) -> list[Row]:
    """Six lessons: +15, -10, -25, +5, and two that do nothing."""
    seeds = sampling.seeds(_RUNS)
    found = runs(partial(making.mixed, 3000), seeds)
    on = f"{len(seeds)} runs of 3000 tasks, 6 lessons (+15, −10, −25, +5, 0, 0) of which 3 are shown, {told(seeds)}"
    wanted = (("+15", 0, HELP, (30.0, 90.0)), ("−10", 1, HARM, (None, 75.0)), ("−25", 2, HARM, (None, None)))
    made = list[Row]()
    for name, lesson, side, least in wanted:
        for tasks, bound in zip((1000, 3000), least, strict=True):
            made.append(
                _said(
                    f"a lesson at {name}: “likely” or better by {tasks:,} tasks", found, lesson, side, tasks, bound, on
                )
            )
    wrong = [_is_wrong(one) for one in found]
    firm = 100 * float(np.mean([one.treatments["lesson-0"].firm[HELP] < NEVER for one in found]))
    back = 100 * float(np.mean([1 in one.out for one in found]))
    beside = (("“helps” of the +15", firm), ("the −10 taken back", back))
    made.append(counted("… anything false ever said for sure", wrong, on=on, most=5.0, beside=beside))
    return [*made, *_sound("six lessons", found, on=on)]


def _is_wrong(one: Seen) -> bool:
    good, bad = {f"lesson-{n}" for n in (0, 3)}, {f"lesson-{n}" for n in (1, 2)}
    return any(
        (treatment.firm[HARM] < NEVER and id not in bad) or (treatment.firm[HELP] < NEVER and id not in good)
        for id, treatment in one.treatments.items()
        if _is_lesson(id)
    )


def _said(claim: str, found: Sequence[Seen], lesson: int, side: int, tasks: int, least: float | None, on: str) -> Row:
    treatments = [one.treatments.get(f"lesson-{lesson}") for one in found]
    likely = [treatment is not None and treatment.likely[side] <= tasks for treatment in treatments]
    return counted(claim, likely, on=on, least=least)


def arriving(sampling: Sampling, /) -> list[Row]:
    """A bank that adds a lesson after each task."""
    seeds = sampling.seeds(_RUNS)
    on = f"{len(seeds)} runs of 2000 tasks, 25 topics by Zipf's law (.8), three lessons found, {told(seeds)}"
    made = list[Row]()
    for name, share in (("a lesson per task", 0.0), ("a lesson per task, 70 % of them recognised", 0.7)):
        found = runs(partial(_arriving, share), seeds)
        right = [_right(one, seed) for one, seed in zip(found, seeds, strict=True)]
        first = [min(whens, default=NEVER) for whens, _ in right]
        bound = (1000.0, 2.5) if not share else (None, None)
        made += [
            Row(
                claim=f"{name}: tasks to the first right “likely” or better of a topic, the median",
                value=_median(first),
                most=bound[0],
                unit=" tasks",
                on=on,
                beside=(("by 1,000 in % of runs", 100 * float(np.mean(np.array(first) <= 1000))),),
            ),
            averaged(
                f"{name}: topics said rightly by 2,000 tasks, of 17.5",
                [len(whens) for whens, _ in right],
                on=on,
                by=1.0,
                unit="",
                least=bound[1],
                beside=(("wrongly", float(np.mean([wrong for _, wrong in right]))),),
            ),
            *_sound(name, found, on=on),
        ]
    return made


def _arriving(share: float, seed: int) -> Stream:
    return making.arriving(2000, seed, recognised=share)


def _right(one: Seen, seed: int) -> tuple[list[int], int]:
    """When topics with an effect were rightly spoken of, and how many were spoken of wrongly."""
    worth = making.topic_effects(25, seed)
    whens, wrong = list[int](), 0
    for id, treatment in one.treatments.items():
        if id.startswith("topic/"):
            effect = worth[int(id.partition("/")[2])]
            whens += [
                treatment.likely[side]
                for side, sign in ((HELP, 1), (HARM, -1))
                if treatment.likely[side] < NEVER and effect * sign > 0
            ]
            wrong += sum(
                treatment.likely[side] < NEVER and effect * sign <= 0 for side, sign in ((HELP, 1), (HARM, -1))
            )
    return whens, wrong


def _median(whens: Sequence[int]) -> float:
    middle = float(np.median(whens))
    return middle if middle < NEVER / 2 else math.inf


def whole(sampling: Sampling, /) -> list[Row]:
    """Memory as a whole adds ten points, and no lesson comes often."""
    seeds = sampling.seeds(_RUNS)
    found = runs(partial(making.wholly, 2000), seeds)
    on = f"{len(seeds)} runs of 2000 tasks, a lesson per task in 25 topics, each recall worth 10 points, {told(seeds)}"
    return [
        *(
            counted(
                f"memory as a whole at +10: “likely” or better by {tasks:,} tasks",
                [one.treatments["*"].likely[HELP] <= tasks for one in found],
                on=on,
                least=least,
            )
            for tasks, least in ((500, 12.0), (2000, 60.0))
        ),
        *_sound("memory as a whole at +10", found, on=on),
    ]


def turning(sampling: Sampling, /) -> list[Row]:
    """A lesson that turns at task 1,000."""
    seeds = sampling.seeds(_RUNS)
    found = runs(partial(making.turning, 8000), seeds)
    on = f"{len(seeds)} runs of 8000 tasks, 6 lessons of which 3 are shown, {told(seeds)}"
    by = [
        (f"by {tasks:,}", 100 * float(np.mean([one.out.get(0, NEVER) < tasks for one in found])))
        for tasks in (3000, 5000)
    ]
    gone = [one.out.get(0, NEVER) < NEVER for one in found]
    name = "a lesson that turns from +25 to −25 at task 1,000"
    early = counted(
        f"{name}: taken back while it still helped", [one.out.get(0, NEVER) < 1000 for one in found], on=on, most=5.0
    )
    return [
        counted(f"{name}: taken back by 8,000 tasks", gone, on=on, least=95.0, beside=tuple(by)),
        early,
        *_sound(name, found, on=on),
    ]


def poisoned(sampling: Sampling, /) -> list[Row]:
    """Three lessons in ten take 15 points away."""
    seeds, made = sampling.seeds(_RUNS), list[Row]()
    for helpful in (0.2, 0.1):
        found = runs(partial(_poisoned, helpful), seeds)
        lifts = 100 * np.array([one.lift for one in found])
        later, lowest = lifts[:, 2:].mean(axis=1), float(np.percentile(lifts[:, 2:].mean(axis=1), 5))
        name = f"poisoned bank, 30 % take 15 points away, {helpful:.0%} add 15"
        on = f"{len(seeds)} runs of 3000 tasks, 30 lessons in 5 topics; tasks 1,000–3,000, {told(seeds)}"
        beside = (
            ("the mean", float(later.mean())),
            ("the worst", float(later.min())),
            ("tasks 0–1,000, the mean", float(lifts[:, :2].mean())),
        )
        made += [
            Row(
                claim=f"{name}: lift, 5th percentile of runs",
                value=lowest,
                least=-1.0,
                unit=" points",
                on=on,
                beside=beside,
            ),
            *_sound(name, found, on=on),
        ]
    return made


def _poisoned(helpful: float, seed: int) -> Stream:
    return making.poisoned(3000, seed, helpful=helpful)


def cost(sampling: Sampling, /) -> list[Row]:
    """What measuring gives up where memory helps."""
    seeds = sampling.seeds(_RUNS // 4)
    worlds = (
        ("one lesson at +15 shown for each task", partial(_helpful, (0.15,) * 6, 1)),
        ("three lessons at +5 shown", partial(_helpful, (0.05,) * 6, 3)),
        ("six lessons (+15, −10, −25, +5, 0, 0)", partial(making.mixed, 4000)),
    )
    made = list[Row]()
    for name, make in worlds:
        found = runs(make, seeds)
        on = f"{len(seeds)} runs of 4000 tasks, {told(seeds)}"
        beside = (
            ("tasks without memory, of the first 2,000, in %", 100 * float(np.mean([one.bare for one in found]))),
        )
        made.append(
            averaged(
                f"success given up for measuring: {name}",
                [one.given_up for one in found],
                on=on,
                most=2.0,
                unit=" points",
                beside=beside,
            )
        )
    return made


def _helpful(effects: Sequence[float], shown: int, seed: int) -> Stream:
    return making.pool(effects, 4000, seed, base=0.5, shown=shown)


def silence(sampling: Sampling, /) -> list[Row]:
    """Outcomes that go missing, where a lesson is the reason and where it is not."""
    seeds = sampling.seeds(_RUNS)
    hung, quiet = runs(partial(making.hanging, 3000), seeds), runs(partial(making.silent, 3000), seeds)
    on = f"{len(seeds)} runs of 3000 tasks, 6 lessons of which 3 are shown, {told(seeds)}"
    noticed = ["lesson-0" in one.differing for one in hung]
    first = _median([one.differs for one in hung])
    return [
        counted(
            "a lesson hangs 30 % of its runs, which nobody tells: noticed by 3,000 tasks",
            noticed,
            on=on,
            least=95.0,
            beside=(("the median, in tasks", first),),
        ),
        counted("… of another lesson, wrongly", [bool(_others(one)) for one in hung], on=on),
        counted(
            "30 % of outcomes are never told, whatever is shown: said to differ",
            [one.differs < NEVER for one in quiet],
            on=on,
            most=5.0,
        ),
    ]


def _others(one: Seen) -> list[str]:
    return [id for id in one.differing if id not in ("*", "lesson-0")]


PARTS: dict[str, Part] = {
    "nothing": nothing,
    "judged": judged,
    "effects": effects,
    "arriving": arriving,
    "whole": whole,
    "turning": turning,
    "poisoned": poisoned,
    "given_up": cost,
    "silence": silence,
}
"""What is measured, by name."""
__all__: tuple[Any, ...] = ("PARTS", "rows", "run", "runs")
