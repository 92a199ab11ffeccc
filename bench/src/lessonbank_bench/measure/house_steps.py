"""How many steps lessons save in ScienceWorld, as far as somebody can tell who reads no meaning.

    pip install 'lessonbank-bench[scienceworld]'
    python -m lessonbank_bench.measure.house_steps

Gold runs of some variations of a task teach a bank by rules. A wanderer does other variations of the same tasks: with
no memory, with the bank's, with the bank's of other tasks, and with the commands of one gold run as they were. It takes
the commands that its memory names and else draws any. A run that fails counts all its steps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final

import lessonbank
from lessonbank import ReasoningBank
from lessonbank.contracts.records import Trajectory
from lessonbank_bench.environments.interface import Job
from lessonbank_bench.environments.scienceworld import ScienceWorldEnvironment
from lessonbank_bench.statistics import paired_bootstrap, wilson

SEED: Final = 20261129


def bank_of(runs: Sequence[Trajectory], /) -> ReasoningBank:
    """A bank that learned from successful runs, by rules."""
    bank = lessonbank.connect(":memory:", scope="house", embedder="lexical", evidence=lessonbank.Evidence(holdout=None))
    for run in runs:
        bank.learn(run, outcome="success")
    return bank


def raw(runs: Sequence[Trajectory], /) -> str:
    """The commands of a run, as the wanderer reads commands."""
    return "\n".join(f"`{step.action.text}`" for run in runs[:1] for step in run.steps)


def main(arguments: Sequence[str] | None = None, /) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m lessonbank_bench.measure.house_steps")
    parser.add_argument("--tasks", default="", help='as the environment\'s setting: "find-plant, melt"')
    parser.add_argument("--jobs", type=int, default=84, help="variations in all; half of them teach")
    told = parser.parse_args(arguments)
    gold = ScienceWorldEnvironment(None, {"tasks": told.tasks})
    wanders = ScienceWorldEnvironment(None, {"tasks": told.tasks, "player": "wanders"})
    try:
        print(*lines(gold, wanders, told.jobs), sep="\n")
    finally:
        gold.close()
        wanders.close()


def lines(gold: ScienceWorldEnvironment, wanders: ScienceWorldEnvironment, jobs: int, /) -> list[str]:
    """What is printed."""
    drawn = gold.tasks(SEED, jobs)
    taught: dict[str, list[Trajectory]] = {}
    paths = [gold.attempt(job, gold.agent(SEED, anew=False), "") for job in drawn]
    for job, done in zip(drawn[: jobs // 2], paths, strict=False):
        taught.setdefault(job.family, []).extend([done.run] if done.success else [])
    banks = {family: bank_of(runs) for family, runs in taught.items()}
    others = {one: bank_of([run for family, runs in taught.items() if family != one for run in runs]) for one in taught}
    arms: dict[str, Callable[[Job], str]] = {
        "none": lambda job: "",
        "lessons": lambda job: banks[job.family].retrieve(job.goal).text,
        "lessons of other tasks": lambda job: others[job.family].retrieve(job.goal).text,
        "a gold run's commands": lambda job: raw(taught[job.family]),
    }
    rest = [(job, done) for job, done in zip(drawn, paths, strict=True)][jobs // 2 :]
    rest = [(job, done) for job, done in rest if job.family in taught]
    told = [f"gold path: {_told([done.success for _, done in rest], [done.scores['steps'] for _, done in rest])}"]
    steps = dict[str, list[float]]()
    for arm, memory in arms.items():
        done = [
            wanders.attempt(job, wanders.agent(SEED + at, anew=False), memory(job)) for at, (job, _) in enumerate(rest)
        ]
        steps[arm] = [one.scores["steps"] for one in done]
        named = sum(bool(memory(job)) for job, _ in rest)
        told.append(f"{arm}: {_told([one.success for one in done], steps[arm])}; memory for {named}")
    for arm in list(arms)[1:]:
        gap = paired_bootstrap(steps[arm], steps["none"])
        told.append(f"steps, {arm} less none: {gap.estimate:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})")
    return told


def _told(won: Sequence[bool | None], steps: Sequence[float]) -> str:
    wins = sum(map(bool, won))
    share = wilson(wins, len(won))
    return f"{wins} of {len(won)} ({100 * share.low:.0f} to {100 * share.high:.0f} %), {fmean(steps):.1f} steps"


if __name__ == "__main__":
    sys.exit(main())
