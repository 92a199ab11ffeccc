"""Prints how often a lesson is recalled when the same few truths come again and again, and what that does to success.

    python -m lessonbank_bench.measure.recurrence                 # the counter and the desk, a few minutes
    python -m lessonbank_bench.measure.recurrence --repo-desk     # real repositories; needs mini-swe-agent

There is no model: the extractive distiller writes the lessons. `copies` is the paper's profile, which keeps every
lesson; `append` keeps each wording once; `recognise` is the default.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import lessonbank
from lessonbank import Action, Evidence, Learning, Observation, ReasoningBank, Recall, Step, ToolCall, Trajectory
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.interface import Environment
from lessonbank_bench.environments.repo_desk import RepoDeskEnvironment

BANKS: Final[dict[str, dict[str, Any]]] = {
    "copies": {"profile": "paper"},
    "append": {"learning": Learning(consolidation="append")},
    "recognise": {},
}
DESKS: Final = ("billing", "warehouse", "travel")
ACTS: Final = ("refund", "cancel", "reroute", "escalate")
CHECKS: Final = ("check_identity", "check_contract", "check_stock")
FORMS: Final = (
    "For the {desk} desk, {act} case {case}.",
    "Please {act} case {case}, which is with the {desk} desk.",
    "The {desk} desk asks you to {act} case {case}.",
    "Case {case} waits at the {desk} desk: {act} it.",
)

Play = Callable[[Recall], tuple[Trajectory, bool]]


def counter(seed: int, tasks: int, /) -> Iterator[tuple[str, Play]]:
    """Tasks at a service counter with 36 truths: each of 12 jobs wants one of three checks and rejects the others.

    A task is worded in one of four ways. Some truths are asked for more often than others (Zipf, 0.8).
    """
    draw = random.Random(f"counter {seed}")
    jobs = [(desk, act, draw.choice(CHECKS)) for desk in DESKS for act in ACTS]
    draw.shuffle(jobs)
    weights = [(place + 1) ** -0.8 for place in range(len(jobs))]
    for _ in range(tasks):
        desk, act, check = draw.choices(jobs, weights)[0]
        case = f"{draw.choice('ABCDEFGH')}-{draw.randint(1000, 9999)}"
        task = draw.choice(FORMS).format(desk=desk, act=act, case=case)
        order = draw.sample(CHECKS, len(CHECKS))
        yield task, _Counter(task, desk, act, check, case, order, draw.randint(20, 900)).play


@dataclass(frozen=True, slots=True)
class _Counter:
    """One task at the counter, and an agent that follows what it was told and else tries checks in a drawn order."""

    task: str
    desk: str
    act: str
    check: str
    case: str
    order: Sequence[str]
    amount: int

    def play(self, recall: Recall, /) -> tuple[Trajectory, bool]:
        """The run, and whether it succeeded."""
        steps = [_step("find_case", self.case, f'{{"status": "open", "amount": {self.amount}}}')]
        check = max(self.order, key=lambda check: self._advice(recall, check))
        if check != self.check:
            steps.append(_step(check, self.case, '{"error": "not the check that is wanted here"}'))
            return Trajectory(task=self.task, steps=tuple(steps), answer="It did not work."), False
        steps += [_step(check, self.case, '{"passed": true}'), _step(self.act, self.case, '{"state": "closed"}')]
        return Trajectory(task=self.task, steps=tuple(steps), answer="Done."), True

    def _advice(self, recall: Recall, check: str) -> int:
        """How far the lessons shown for this act at this desk speak for a check."""
        told = [i for i in recall.lessons if self.desk in i.text and re.search(rf"\b{self.act}\b", i.text)]
        return sum((check in i.content) * (1 if i.kind == "strategy" else -1) for i in told)


def _step(tool: str, case: str, seen: str) -> Step:
    call = ToolCall(id=f"{tool}-1", name=tool, arguments={"case": case})
    return Step(action=Action(calls=(call,)), observations=(Observation(text=seen, call_id=call.id),))


def environment(world: Environment, seed: int, tasks: int, /) -> Iterator[tuple[str, Play]]:
    """The tasks of an environment of this distribution, with its scripted agent."""
    agent = world.agent(seed, anew=False)
    for job in world.tasks(seed, tasks):

        def play(recall: Recall, /, job: Any = job) -> tuple[Trajectory, bool]:
            done = world.attempt(job, agent, recall.text)
            return done.run, bool(done.success)

        yield job.goal, play


@dataclass(frozen=True, slots=True)
class Figures:
    """What one stream of tasks came to."""

    success: float
    lessons: int
    recalled: Sequence[int]
    """How often each lesson was in a recall."""

    @property
    def mean(self) -> float:
        """Recalls a lesson."""
        return statistics.fmean(self.recalled) if self.recalled else 0.0


def played(stream: Iterator[tuple[str, Play]], bank: ReasoningBank, /) -> Figures:
    """Play the tasks one after the other; what is learned from one is there for the next."""
    found, wins, count = Counter[str](), 0, 0
    with bank:
        for task, play in stream:
            recall = bank.retrieve(task)
            found.update(candidate.lesson_id for candidate in recall.candidates)
            run, success = play(recall)
            bank.learn(run, recall=recall, outcome="success" if success else "failure")
            wins, count = wins + success, count + 1
        held = [lesson.id for lesson in bank.lessons.list(retired=True, limit=10_000)]
    return Figures(wins / count, len(held), [found[id] for id in held])


def measured(streams: Callable[[int], Iterator[tuple[str, Play]]], seeds: Sequence[int], /) -> Iterator[str]:
    """A table: one line for each bank, means over the seeds."""
    yield f"{'':<12}{'success':>9}{'lessons':>9}{'recalls a lesson':>18}{'median':>8}{'times copies':>14}"
    base = 0.0
    for name, options in BANKS.items():
        rows = [
            played(
                streams(seed),
                lessonbank.connect(
                    ":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=None), **options
                ),
            )
            for seed in seeds
        ]
        mean = statistics.fmean(row.mean for row in rows)
        base = base or mean
        yield (
            f"{name:<12}{statistics.fmean(row.success for row in rows):>9.3f}"
            f"{statistics.fmean(row.lessons for row in rows):>9.1f}{mean:>18.2f}"
            f"{statistics.fmean(statistics.median(row.recalled) for row in rows):>8.1f}{mean / base:>14.1f}"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--repo-desk", action="store_true", help="play the repo-desk instead: slow")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    if options.repo_desk:
        worlds = {"repo-desk": lambda seed: environment(RepoDeskEnvironment(), seed, options.tasks)}
    else:
        worlds = {
            "counter": lambda seed: counter(seed, options.tasks),
            "desk": lambda seed: environment(DeskEnvironment(), seed, options.tasks),
        }
    for name, streams in worlds.items():
        print(f"{name}: {options.tasks} tasks, seeds 1 to {options.seeds}")
        print("\n".join(measured(streams, seeds)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
