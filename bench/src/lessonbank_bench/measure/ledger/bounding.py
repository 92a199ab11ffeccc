"""Prints how far anybody could get in two worlds of the report: what chance and the promised bounds leave open.

    python -m lessonbank_bench.measure.ledger.bounding [--runs N] [--seed N]

Nothing of the ledger is used here. The first lines are about a bank that adds a lesson per task: what one task tells of
a topic, in nats, and when a bettor who knows each effect beforehand, and only has to show it, is at an e-value of 40.
The last lines are about the poisoned bank: what draws reach that know each effect from the first task on, stay between
.05 and .5 and look at what each task finds. Nothing is taken back.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from lessonbank_bench.measure.streams import NEVER, making
from lessonbank_bench.measure.streams.stream import NOBODY, Floats, Ints, Stream

_TASKS, _BASE = 2000, 0.5
_LIKELY = math.log(40.0)
_FLOOR, _CEILING = 0.05, 0.5


def information(effect: float, withheld: float, /, *, base: float = _BASE) -> float:
    """Nats that one recall tells of whether showing matters: the mutual information of the draw and the outcome.

    No e-process that is valid at any rate of success grows faster on average where the truth is `effect`.
    """
    joint = [withheld * base, (1 - withheld) * (base + effect)]
    mean = sum(joint)
    return _entropy(mean) - withheld * _entropy(base) - (1 - withheld) * _entropy(base + effect)


def _entropy(share: float) -> float:
    return -sum(part * math.log(part) for part in (share, 1 - share) if part)


def knowing(seed: int, withheld: float, /, *, diluted: float = 0.0) -> list[int]:
    """When a bettor who knows each effect shows each topic: the tasks.

    `diluted`: the share of each topic's lessons that draws of their own leave out where the topic is shown.
    """
    stream, g = _arriving(seed), np.random.default_rng((seed, 18))
    worth = making.topic_effects(25, seed) * (1 - diluted)
    first = stream.found[:, 0] != NOBODY
    whens = [_shown_at(np.flatnonzero((stream.template == n) & first), worth[n], withheld, g) for n in range(25)]
    return [when for when in whens if when < NEVER]


@lru_cache(maxsize=2)
def _arriving(seed: int) -> Stream:
    """Takes a tenth of a second, and is the same however much of it is diluted."""
    return making.arriving(_TASKS, seed)


def _shown_at(task: Ints, effect: float, withheld: float, g: np.random.Generator) -> int:
    if not effect:
        return NEVER
    shown = g.random(len(task)) >= withheld
    likely, mean = _BASE + effect * shown, _BASE + effect * (1 - withheld)
    success = g.random(len(task)) < likely
    won = np.cumsum(np.log(np.where(success, likely / mean, (1 - likely) / (1 - mean))))
    hits = np.flatnonzero(won >= _LIKELY)
    return int(task[hits[0]]) + 1 if len(hits) else NEVER


def informed(seed: int, helpful: float, /) -> float:
    """The lift in points of the poisoned bank in tasks 1,000 to 3,000, by draws that know everything.

    Each lesson, then each source, then memory as a whole (which is the topic, because a task finds lessons of one) is
    withheld as often as may be where what is left of it harms in this recall, and as seldom as may be where it helps.
    That is the best within the bounds, but for chances that end at .02 and .98.
    """
    stream, g = making.poisoned(3000, seed, helpful=helpful), np.random.default_rng((seed, 19))
    lifts = list[float]()
    for task in range(1000, len(stream)):
        placed = stream.placed(task)
        left, odds = _drawn_knowing(stream, placed, g)
        lifts.append((1 - odds) * (stream.chance(task, placed, left) - stream.chance(task, placed, ())))
    return 100 * float(np.mean(lifts))


def _drawn_knowing(stream: Stream, placed: Sequence[int], g: np.random.Generator) -> tuple[list[int], float]:
    """What draws for lessons and sources leave of a recall, and with which odds the whole is withheld."""
    by_source: dict[str, list[int]] = {}
    for n in placed:
        by_source.setdefault(stream.lessons[n].groups[0], []).append(n)
    kept, total = list[int](), 0.0
    for own in by_source.values():
        effects = [float(stream.effect[0, n]) for n in own]
        lessons = [_odds(effect) for effect in effects]
        adds = sum(effect * (1 - odds) for effect, odds in zip(effects, lessons, strict=True))
        total += adds * (1 - _odds(adds))
        if g.random() >= _odds(adds):
            kept += [n for n, odds in zip(own, lessons, strict=True) if g.random() >= odds]
    return kept, _odds(total)


def _odds(adds: float) -> float:
    return _CEILING if adds < 0 else _FLOOR


def lines(runs: int, seed: int, /) -> Iterator[str]:
    """What is printed."""
    seeds = range(seed, seed + runs)
    for withheld, diluted in ((0.3, 0.1), (0.3, 0.0), (0.4, 0.0), (0.5, 0.0)):
        nats = information(0.2 * (1 - diluted), withheld)
        found = [knowing(one, withheld, diluted=diluted) for one in seeds]
        first = float(np.median([min(whens, default=NEVER) for whens in found]))
        counts: Floats = np.array([len(whens) for whens in found], float)
        yield (
            f"a topic at +20 withheld at {withheld:g}, of its lessons {diluted:g}: {nats:.4f} nats a recall, "
            f"{_LIKELY / nats:.0f} recalls to an e-value of 40; the first topic after {first:.0f} tasks, "
            f"{counts.mean():.2f} ± {counts.std() / math.sqrt(runs):.2f} topics by 2,000"
        )
    for helpful in (0.2, 0.1):
        lift = np.array([informed(one, helpful) for one in seeds])
        yield (
            f"poisoned, {helpful:.0%} help, all effects known, draws from .05 to .5: lift {lift.mean():+.2f} points on "
            f"average, 5th percentile {np.percentile(lift, 5):+.2f} ({runs} runs)"
        )
    for withheld in (0.1, 0.5):
        yield (
            f"a lesson at -15 withheld at {withheld:g}: {information(-0.15, withheld):.4f} nats a recall; "
            f"400 recalls tell {400 * information(-0.15, withheld):.1f} nats"
        )


def main() -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    for line in lines(asked.runs, asked.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
