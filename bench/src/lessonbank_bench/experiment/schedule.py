"""Which attempts an experiment is, and in which order: all of it follows from the experiment's file."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lessonbank._base.checks import replace_surrogates
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError
from lessonbank_bench.environments import Environment, Job

from .records import Arm, Experiment, Phase

_FETCH = 1.5
"""How many more tasks are looked through each time too few of a group were found."""
_FURTHEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """One attempt that is to be made."""

    seed: int
    place: int
    phase: Phase
    job: Job
    arm: Arm

    @property
    def key(self) -> tuple[int, int, str]:
        """As the row of the attempt has it."""
        return self.seed, self.place, self.arm.name


def total(experiment: Experiment, /) -> int:
    """How many rows an experiment is: one for each arm and task."""
    train = 0 if experiment.mode == "online" else experiment.train
    return len(experiment.seeds) * (experiment.tasks + train) * len(experiment.arms)


def attempts(experiment: Experiment, /) -> int:
    """How many attempts an experiment is at most, each of several runs of a task counted."""
    runs = sum(arm.runs.k if arm.runs else 1 for arm in map(experiment.played, experiment.arms))
    return total(experiment) // len(experiment.arms) * runs


def schedule(experiment: Experiment, place: Environment, seed: int, /) -> Iterator[Slot]:
    """The attempts of one seed: task by task, the arms of a task in an order drawn for it."""
    at = 0
    for phase, jobs in _phases(experiment, place, seed):
        for job in jobs:
            arms = [experiment.played(arm) for arm in experiment.arms]
            random.Random(f"arms {seed} {at}").shuffle(arms)
            yield from (Slot(seed, at, phase, job, arm) for arm in arms)
            at += 1


def check_tasks(experiment: Experiment, place: Environment, /) -> None:
    """Raises:
    UsageError: the environment has fewer tasks of a seed than are asked for.
    """
    for seed in experiment.seeds:
        _phases(experiment, place, seed)


def _phases(experiment: Experiment, place: Environment, seed: int) -> list[tuple[Phase, list[Job]]]:
    train, tasks = experiment.train, experiment.tasks
    if experiment.mode == "online":
        return [("test", _ordered(experiment, seed, _first(place, seed, tasks)))]
    if experiment.mode == "frozen":
        jobs = _first(place, seed, train + tasks)
        learned, kept = jobs[:train], jobs[train:]
    else:
        learned = _of_group(place, seed, experiment.train_on, train)
        kept = _of_group(place, seed, experiment.test_on, tasks)
    return [("train", _ordered(experiment, seed, learned)), ("test", _ordered(experiment, seed, kept))]


def _first(place: Environment, seed: int, n: int) -> Sequence[Job]:
    jobs = place.tasks(seed, n)
    if len(jobs) < n:
        raise UsageError(f"environment {place.name!r} has {len(jobs):,} tasks of seed {seed}; {n:,} are asked for")
    return jobs[:n]


def _ordered(experiment: Experiment, seed: int, jobs: Sequence[Job]) -> list[Job]:
    order = [
        replace(
            job, id=replace_surrogates(job.id), goal=replace_surrogates(job.goal), family=replace_surrogates(job.family)
        )
        for job in jobs
    ]
    if experiment.shuffle:
        random.Random(f"order {seed}").shuffle(order)
    return order


def _of_group(place: Environment, seed: int, group: str, n: int) -> list[Job]:
    looked, found = max(2 * n, 20), list[Job]()
    while looked < _FURTHEST:
        jobs = place.tasks(seed, looked)
        found = [job for job in jobs if job.group == group]
        if len(found) >= n:
            return found[:n]
        if len(jobs) < looked or (not found and looked > 1000):
            break
        looked = int(looked * _FETCH)
    raise UsageError(
        f"environment {place.name!r} has too few tasks of the group {group!r}: {len(found):,} of seed {seed}; "
        f"{n:,} are asked for"
    )


def learns(experiment: Experiment, phase: Phase, /) -> bool:
    """Whether memory is told of the tasks of a phase."""
    return experiment.mode == "online" or phase == "train"


def told_wrongly(slot: Slot, /) -> bool:
    """Whether this is one of the verdicts that are told wrongly; arms with one rate are told alike."""
    return random.Random(f"verdict {slot.seed} {slot.place}").random() < slot.arm.wrong_verdicts


def run_id(slot: Slot, config: str, number: int = 0, /) -> str:
    """The id of an attempt's run, or of one of several: the same whenever it is made."""
    which = f" {number}" if number else ""
    return digest(f"{config} {slot.seed} {slot.place} {slot.arm.name}{which}")[:32]
