"""Plays streams of tasks through `bank.scale`, each arm in a bank of its own, and counts what came of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

import lessonbank
from lessonbank.contracts.records import Outcome, Trajectory
from lessonbank.errors import LessonbankError
from lessonbank.guard.gate import LessonGate
from lessonbank.matts import Mode, Scaled
from lessonbank_bench.environments import Environment, Job

from .scripted import FormExtractor, looked_at_again, selector

OTHER_DRAWS = 500
"""Added to the number of a rollout where an arm is played again with other luck."""
_APART = 10_007
"""Between the agents of two rollouts of one world."""
_NEXT_PLAY = 50
"""Between the numbers of the rollouts of two plays."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to spend runs on a task."""

    name: str
    k: int
    mode: Mode = "parallel"
    memory: bool = True
    labels: bool = True
    """Whether the contrast of several runs is told how each ended."""
    draws: int = 0
    """Where the numbers of its rollouts begin: another start is other luck and nothing else."""
    plays: int = 1
    """How often each world is played, with other luck each time; a world's figures are the means."""


def _arms(name: str, *ks: int, mode: Mode = "parallel", memory: bool = True, labels: bool = True) -> list[Arm]:
    """One for each number of runs."""
    return [Arm(name.format(_runs(k)), k, mode, memory, labels) for k in ks]


def _runs(k: int) -> str:
    return f"{k} run" if k == 1 else f"{k} runs"


def _again(arm: Arm) -> Arm:
    kind, _, rest = arm.name.partition(",")
    return replace(arm, name=f"{kind} again,{rest}{LUCK}", draws=OTHER_DRAWS)


LUCK = ", other draws"
_NONE, _ONE = _arms("no memory, {}", 1, memory=False) + _arms("memory, {}", 1)
_SHOWN = _arms("parallel, {}, labels shown", 3, 5)
NOTHING, SINGLE = _NONE.name, _ONE.name
ARMS: tuple[Arm, ...] = (
    _NONE,
    _ONE,
    _again(_ONE),
    *_arms("no memory, {}", 3, 5, memory=False),
    *_arms("vanilla, {}", 3, 5, mode="vanilla"),
    *_SHOWN,
    *_arms("parallel, {}, labels hidden", 3, 5, labels=False),
    _again(_SHOWN[0]),
    *_arms("sequential, {}", 3, 5, mode="sequential"),
)


@dataclass(frozen=True, slots=True)
class World:
    """What an arm came to in one world: means over its tasks."""

    pass_at_1: float
    """The chance that one run, drawn from those of a task, succeeded; in sequential mode, that the first did."""
    later: float
    """The same over the second half of the stream: what was learned in the first shows here."""
    best_of_n: float
    """That the chosen run succeeded. The chooser does not know the truth. No run to choose counts as no success."""
    pass_at_n: float
    """That one of a task's runs succeeded: what a chooser who knows the truth would come to."""
    mixed: float
    """That some of a task's runs succeeded and others failed: only these show what made the difference."""
    attempts: float
    """Runs made for a task."""
    steps: float
    """Actions taken for a task, in all its runs."""


MEASURES = tuple(field.name for field in fields(World))


def play(place: Environment, arm: Arm, seed: int, /, *, tasks: int, limit: int = 1) -> World:
    """One arm through the first `tasks` tasks of a world, in their order: what a task taught is there for the next.

    Raises:
        LessonbankError, or what the environment raises: a failure of infrastructure is nobody's failed run.
    """
    starts = (arm.draws + _NEXT_PLAY * play for play in range(arm.plays))
    worlds = [_played(place, replace(arm, draws=start), seed, tasks=tasks, limit=limit) for start in starts]
    return World(**{name: float(np.mean([getattr(world, name) for world in worlds])) for name in MEASURES})


def _played(place: Environment, arm: Arm, seed: int, *, tasks: int, limit: int) -> World:
    extractor = FormExtractor(labels=arm.labels)
    with lessonbank.connect(
        ":memory:",
        scope=f"scales/{seed}",
        model={"judge": selector},
        embedder="lexical",
        parts=lessonbank.Parts(extractor=extractor),
        evidence=lessonbank.Evidence(holdout=None),
        retrieval=lessonbank.Retrieval(limit=limit),
        safety=lessonbank.Safety(caps=None, admission=LessonGate()),  # its judge is scripted and knows no lessons
    ) as bank:
        told = [_told(_scaled(bank, place, arm, job)) for job in place.tasks(seed, tasks)]
    extractor.close()
    means = {name: float(np.mean([one[name] for one in told])) for name in told[0]}
    later = float(np.mean([one["pass_at_1"] for one in told[len(told) // 2 :]]))
    return World(later=later, **means)


def _scaled(bank: lessonbank.ReasoningBank, place: Environment, arm: Arm, job: Job) -> Scaled:
    rollouts = _Rollouts(place, job)
    scaled = bank.scale(
        job.goal,
        rollouts,
        k=arm.k,
        mode=arm.mode,
        memory=arm.memory,
        choose="auto" if arm.mode == "sequential" else "model",
        verify=rollouts.outcome,
        concurrency=1,
        seed=arm.draws,
    )
    if rollouts.broken:
        raise rollouts.broken
    return scaled


class _Rollouts:
    """The runs of one task: the same agent in another draw each, and the verifier's word, which it never sees."""

    def __init__(self, place: Environment, job: Job, /) -> None:
        self._place, self._job = place, job
        self._ended: dict[str, bool | None] = {}
        self.broken: Exception | None = None

    def __call__(
        self, task: str, memory: str, *, seed: int, check: str = "", previous: Trajectory | None = None
    ) -> Trajectory:
        notes = looked_at_again(previous) if previous else ""
        text = "\n\n".join(part for part in (memory, check, notes) if part)
        agent = self._place.agent(self._job.seed + seed * _APART, anew=False)
        try:
            finished = self._place.attempt(self._job, agent, text)
        except Exception as problem:
            self.broken = problem
            raise
        self._ended[finished.run.id] = finished.success
        return finished.run

    def outcome(self, run: Trajectory, /) -> Outcome:
        """What the verifier said of a run."""
        return {True: "success", False: "failure", None: "unknown"}[self._ended[run.id]]  # type: ignore[return-value]


def _told(scaled: Scaled) -> dict[str, float]:
    """The figures of one task."""
    if scaled.pass_at_1 is None:
        raise LessonbankError("nobody knows how these runs ended: this table needs an environment with a verifier")
    runs = [attempt.trajectory for attempt in scaled.attempts]
    return {
        "pass_at_1": scaled.pass_at_1,
        "best_of_n": scaled.best_of_n or 0.0,
        "pass_at_n": scaled.pass_at_k[-1],
        "mixed": float(scaled.mixed),
        "attempts": float(len(runs)),
        "steps": float(sum(_acted(run) for run in runs)),
    }


def _acted(run: Trajectory) -> int:
    return sum(bool(step.action.text.strip() or step.action.calls) for step in run.steps)
