"""How often a bank whose lessons do nothing prints "helps" or "harms", in worlds that are unkind to estimates.

    python -m lessonbank_bench.measure.null_banks                    # every row, 100 banks each: about half an hour
    python -m lessonbank_bench.measure.null_banks --rows failures-late-120 graded --banks 300 --seed 5000
    python -m lessonbank_bench.measure.null_banks --rows failures-late-120 --effect 0.2      # what an effect takes
    python -m lessonbank_bench.measure.null_banks --rows failures-late-120 --banks 2 --tasks 300 --real

Each bank has six lessons on two topics, of which a task finds two or three. No lesson has an effect unless `--effect`
says so: then memory adds that to the chance of success. Outcomes are told when the row says so. The default policy
draws. Somebody looks after 40 new tasks, later after 8 % more, and a bank is wrong if any look shows any such word.
The world is made here and shares no code with the bank: receipts and settlements go in, words come out. `--real` goes
through `lessonbank.connect` instead, which takes ten times as long.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Literal, Protocol

import lessonbank
from lessonbank import Experience, Extraction, Lesson, Parts, Trajectory
from lessonbank.contracts.records import Recall, Settlement, Topic
from lessonbank.evidence import AdaptiveHoldout, Lift
from lessonbank.evidence.effects import Standing
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.report import report
from lessonbank.evidence.review import review
from lessonbank.evidence.stored_ledger import treatment_reviews

from .policy.drive import BEGAN, receipt
from .policy.world import SOURCE, Candidate

SCOPE: Final = "s"
TOPICS: Final = ("cancel an order in the shop", "refund a ticket of the railway")
_FIRST, _SHARE = 40, 0.08
"""Somebody looks after so many new tasks, and after so large a share of all."""

Ending = Literal["success", "failure"]


@dataclass(frozen=True, slots=True)
class World:
    """How tasks end and when that is told."""

    late: float = 0.0
    """By how many tasks on average an outcome of the kind `which` is told late (exponential)."""
    which: tuple[Ending, ...] = ()
    with_memory: float = 1.0
    """What `late` is multiplied by where memory was shown."""
    lost: dict[Ending, float] | None = None
    """The share of outcomes that are never told, by kind; half as many where memory was shown if `with_memory` < 1."""
    models: int = 1
    """By turns of 25 tasks; each model succeeds at another rate."""
    graded: bool = False
    """Whether a task ends with a reward between 0 and 1."""
    rate: float = 0.5
    effect: float = 0.0
    tasks: int = 1_200


_KINDS: Final[tuple[tuple[str, Ending], ...]] = (("failures", "failure"), ("successes", "success"))
ROWS: Final[dict[str, World]] = {
    f"{name}-late-{late}{'-halved' if halved < 1 else ''}": World(late, (which,), halved)
    for late in (20, 120, 400)
    for name, which in _KINDS
    for halved in (1.0, 0.5)
} | {
    "all-late-120-halved": World(120, ("failure", "success"), 0.5),
    "failures-lost": World(lost={"failure": 0.4, "success": 0.05}),
    "failures-lost-halved": World(lost={"failure": 0.4}, with_memory=0.5),
    "two-models": World(models=2),
    "graded": World(graded=True),
    "graded-late-120-halved": World(120, ("failure",), 0.5, graded=True),
}


@dataclass(frozen=True, slots=True)
class Told:
    """How one task ended, as the bank is told."""

    reward: float
    ending: Ending
    delay: float
    """In tasks."""
    model: str


class Bank(Protocol):
    """What a world needs of a bank."""

    def ask(self, number: int, topic: int, chance: random.Random, /) -> tuple[str, bool]:
        """A recall for a task: its id, and whether it showed anything."""
        ...

    def tell(self, recall_id: str, told: Told, /, *, number: int) -> None: ...

    def look(self) -> Mapping[str, Standing]:
        """What is printed of memory (`*`), of each group and of each lesson."""
        ...

    def lift(self) -> Lift: ...


class Records:
    """A ledger over receipts that are made here, with the default policy."""

    def __init__(self, chance: random.Random, /) -> None:
        self._chance, self._columns, self._policy = chance, EvidenceTable(), AdaptiveHoldout()
        self._lessons = [
            [Candidate(f"{topic}{n}" + "0" * 8, groups=(SOURCE, f"topic/{topic:08x}")) for n in range(3)]
            for topic in range(len(TOPICS))
        ]

    def ask(self, number: int, topic: int, chance: random.Random, /) -> tuple[str, bool]:
        placed = chance.sample(self._lessons[topic], chance.choice((2, 3)))
        id = f"{self._chance.getrandbits(128):032x}"
        recall = receipt(self._policy, placed, id=id, task=f"{TOPICS[topic]} {number}", number=number)
        self._columns.receipt(recall)
        return id, any(one.shown for one in recall.candidates)

    def tell(self, recall_id: str, told: Told, /, *, number: int) -> None:
        at = BEGAN + timedelta(minutes=number, seconds=30)
        settlement = Settlement(
            recall_id=recall_id,
            scope=SCOPE,
            outcome=told.ending,
            reward=told.reward,
            source="ground_truth",
            agent=told.model,
            at=at,
        )
        self._columns.settle(settlement)

    def look(self) -> Mapping[str, Standing]:
        episodes = self._columns.episodes()
        found = review(episodes)
        self._policy.tell(SCOPE, treatment_reviews(episodes, found))
        return dict(zip(episodes.treatments, found.standing, strict=True))

    def lift(self) -> Lift:
        return report(self._columns.episodes(), scope=SCOPE)


async def _nothing(_runs: object) -> Extraction:
    return Extraction()


class Connected:
    """A real bank in memory."""

    def __init__(self, _chance: random.Random, /) -> None:
        self._bank = lessonbank.connect(":memory:", scope=SCOPE, embedder="lexical", parts=Parts(extractor=_nothing))
        for number, topic in enumerate(TOPICS):
            lessons = tuple(
                Lesson(title=f"Do {word} first", content=f"Do {word} first.", topic=Topic(id=f"{number:08x}"))
                for word in (("alpha", "beta", "gamma"), ("delta", "epsilon", "zeta"))[number]
            )
            self._bank.consolidate(Experience(scope=SCOPE, task=f"{topic} 0", lessons=lessons))
        self._recalls = dict[str, Recall]()

    def ask(self, number: int, topic: int, _chance: random.Random, /) -> tuple[str, bool]:
        recall = self._bank.retrieve(f"{TOPICS[topic]} {number}")
        self._recalls[recall.id] = recall
        return recall.id, bool(recall.shown)

    def tell(self, recall_id: str, told: Told, /, *, number: int) -> None:
        recall = self._recalls.pop(recall_id)
        run = Trajectory(task=recall.task, answer="x", metadata={"model": told.model} if told.model else {})
        self._bank.learn(run, recall=recall, reward=told.reward)

    def look(self) -> Mapping[str, Standing]:
        lift = self.lift()
        parts = {one.group: one.standing for one in lift.groups} | {one.title: one.standing for one in lift.lessons}
        return {"*": lift.standing, **parts}

    def lift(self) -> Lift:
        return self._bank.lift()


@dataclass(frozen=True, slots=True)
class Looks:
    """What the looks at one bank showed."""

    words: frozenset[str]
    """Every "helps" or "harms", with what it was said of."""
    first: int | None
    """After how many tasks memory as a whole had one."""
    turns: int
    """How often the word on memory as a whole went back to nothing."""
    last: Lift


def watch(bank: Bank, world: World, chance: random.Random, /) -> Looks:
    """Live through a world, and look every so often."""
    words, first, turns, before = set[str](), None, 0, False
    open_, looked = list[tuple[float, int, str, Told]](), 0
    for number in range(world.tasks):
        while open_ and open_[0][0] <= number:
            _, _, id, told = heapq.heappop(open_)
            bank.tell(id, told, number=number)
        topic = chance.randrange(len(TOPICS))
        id, shown = bank.ask(number, topic, chance)
        if told := _told(world, number, topic, chance, shown=shown):
            heapq.heappush(open_, (number + told.delay, number, id, told))
        if number + 1 - looked >= max(_FIRST, _SHARE * looked) or number + 1 == world.tasks:
            seen, looked = bank.look(), number + 1
            words |= {f"{word}: {treatment}" for treatment, word in seen.items() if word in ("helps", "harms")}
            if first is None and seen["*"] in ("helps", "harms"):
                first = number + 1
            turns += before and seen["*"] == "no evidence yet"
            before = seen["*"] != "no evidence yet"
    return Looks(frozenset(words), first, turns, bank.lift())


def _told(world: World, number: int, topic: int, chance: random.Random, /, *, shown: bool) -> Told | None:
    """How a task ends; `None`: nobody tells."""
    model = number // 25 % world.models
    rate = min(max(world.rate + 0.15 * topic - 0.2 * model + world.effect * shown, 0.02), 0.98)
    reward = chance.betavariate(4 * rate, 4 * (1 - rate)) if world.graded else float(chance.random() < rate)
    ending: Ending = "success" if reward >= 0.5 else "failure"
    less = world.with_memory if shown else 1.0
    if chance.random() < (world.lost or {}).get(ending, 0.0) * less:
        return None
    delay = chance.expovariate(1 / (world.late * less)) if ending in world.which else 0.5
    return Told(reward, ending, delay, f"model-{model}" if world.models > 1 else "")


def one_bank(seed: int, /, *, name: str, world: World, real: bool) -> Looks:
    """One bank in a world."""
    chance = random.Random(f"{name} {seed}")
    make: Callable[[random.Random], Bank] = Connected if real else Records
    return watch(make(chance), world, chance)


def wilson(count: int, of: int, /, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share (Wilson 1927)."""
    share, spread = count / of, z * math.sqrt(count * (of - count) / of + z * z / 4) / of
    middle, size = share + z * z / (2 * of), 1 + z * z / of
    return max((middle - spread) / size, 0.0), min((middle + spread) / size, 1.0)


def row(name: str, seen: Sequence[Looks], /) -> str:
    """One line of the table."""
    wrong = sum(bool(looks.words) for looks in seen)
    low, high = wilson(wrong, len(seen))
    firsts = [looks.first for looks in seen if looks.first]
    values = [looks.last.success.value for looks in seen if looks.last.success.value is not None]
    mean = statistics.fmean(values) if values else math.nan
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    settled, missing = seen[-1].last.settled, sum(bool(looks.last.missing_differs) for looks in seen)
    return (
        f"{name:28s} {wrong:4d}/{len(seen)} = {wrong / len(seen):5.1%} [{low:.1%}, {high:.1%}]   whole named in "
        f"{len(firsts)}, median {int(statistics.median(firsts)) if firsts else 0}   effect {100 * mean:+.1f} ± "
        f"{100 * error:.1f}   turned back {sum(looks.turns for looks in seen)}   no verdict {missing}   "
        f"settled {settled}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--banks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--tasks", type=int, help="tasks of each bank; 1,200")
    parser.add_argument("--effect", type=float, default=0.0, help="what memory adds to the chance of success")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="through lessonbank.connect")
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        for name in asked.rows:
            world = replace(ROWS[name], effect=asked.effect, tasks=asked.tasks or ROWS[name].tasks)
            play = partial(one_bank, name=name, world=world, real=asked.real)
            seen = list(pool.map(play, range(asked.seed, asked.seed + asked.banks)))
            print(row(name, seen), *sorted({word for looks in seen for word in looks.words})[:4], flush=True)


if __name__ == "__main__":
    main()
