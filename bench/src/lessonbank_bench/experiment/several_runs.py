"""Several runs of one task in one memory: made with an agent, or made again from their rows when memory is rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from lessonbank._base.checks import replace_surrogates
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Learned, Lesson, Outcome, Trajectory, Usage, Verdict
from lessonbank.errors import LessonbankError
from lessonbank.guard import one_line
from lessonbank.matts import Mode, Scaled
from lessonbank.matts.best_of_n import candidates
from lessonbank.matts.figures import of_group, of_rounds
from lessonbank_bench.arms import PATIENCE, BankMemory, Memory
from lessonbank_bench.environments import Environment, Finished

from .checks import checked, recalled
from .guards import guarded
from .records import Failure, OneRun, Runs
from .reflection import reflect
from .remembering import Chooser, MemoryPerTask, bank_of
from .schedule import Slot, run_id, told_wrongly
from .scripted_model import looked_at_again

_APART = 10_007
"""Between the seeds of the agents of two runs."""


class Source(Protocol):
    """Where runs come from: the run of a number, from 0, by an agent that is shown this text."""

    def __call__(self, number: int, text: str, /) -> Finished: ...


@dataclass(slots=True)
class Live:
    """Runs that an agent makes. One that crashes is a run without success, with the error and what it cost."""

    place: Environment
    slot: Slot
    config: str
    failures: list[Failure] = field(default_factory=list[Failure])

    def __call__(self, number: int, text: str, /) -> Finished:
        agent: Any = None

        def attempted() -> Finished:
            nonlocal agent
            agent = self.place.agent(self.slot.seed + number * _APART, anew=self.slot.arm.again)
            return checked(self.place.attempt(self.slot.job, agent, text))

        done, failure = guarded("attempt", attempted)
        if failure is not None:
            self.failures.append(failure)
            done = _crashed(self.slot.job.goal, failure, getattr(agent, "usage", None))
        done = cast("Finished", done)
        id = run_id(self.slot, self.config, number)
        return done._replace(run=done.run.model_copy(update={"id": id}))


def _crashed(goal: str, failure: Failure, usage: object) -> Finished:
    spent = usage if isinstance(usage, Usage) else Usage()
    return Finished(
        Trajectory(task=goal, error=replace_surrogates(f"{failure.code}: {failure.message}"), usage=spent), False
    )


def recorded(runs: Sequence[OneRun], /) -> Source:
    """The runs of a row again."""

    def made(number: int, text: str, /) -> Finished:
        return Finished(runs[number].trajectory, runs[number].success)

    return made


@dataclass(frozen=True, slots=True)
class Group:
    """What several runs of a task came to."""

    text: str
    """What the agent was shown; in `retry` mode the texts of all attempts."""
    runs: tuple[OneRun, ...]
    choice: int | None
    lessons: tuple[Lesson, ...]
    notes: tuple[str, ...]
    overhead: Usage
    """Of judging, choosing, reflecting and distilling."""
    judging: int
    """Tokens of judging alone."""
    error: Failure | None

    @property
    def usage(self) -> Usage:
        """What everything cost."""
        return sum((one.trajectory.usage for one in self.runs), self.overhead)

    @property
    def success(self) -> bool | None:
        """Of the chosen run; where every run crashed there is none, and that is no success."""
        if self.choice is not None:
            return self.runs[self.choice].success
        return None if all(one.success is None for one in self.runs) else False

    def figures(self, asked: Runs, /) -> dict[str, float]:
        """Pass@1 to Pass@k, by the verifier's word. A run that crashed counts as 0; after the last attempt of a retry
        nothing changes any more."""
        outcomes: list[Outcome] = [outcome_of(one.success) for one in self.runs]
        rounds = asked.mode in ("sequential", "retry")
        each = list((of_rounds if rounds else of_group)(outcomes, self.choice).pass_at_k)
        each += each[-1:] * (asked.k - len(each)) if rounds else []
        return {f"Pass@{k}": value for k, value in enumerate(each, 1)}


def outcome_of(success: bool | None, /) -> Outcome:
    """A verifier's word as an outcome."""
    return "unknown" if success is None else "success" if success else "failure"


@dataclass(slots=True)
class Task:
    """One task of an arm that does it several times.

    Attributes:
        slot: which.
        memory: what remembers.
        source: where the runs come from.
        judged: whether memory is not told how runs ended.
        learns: whether memory learns of the task.
        has_model: whether a model chooses and reflects; else rules do.
        live: whether the best run is to be chosen; when a memory is rebuilt it is known.
    """

    slot: Slot
    memory: Memory
    source: Source
    judged: bool
    learns: bool
    has_model: bool
    live: bool = True
    _shown: list[str] = field(default_factory=list[str])
    _made: list[Finished] = field(default_factory=list[Finished])

    def play(self) -> Group:
        """All runs, and what memory made of them.

        Raises:
            UsageError: what was asked for cannot be.
        """
        if isinstance(self.memory, MemoryPerTask):
            self.memory = self.memory.begin(self.slot.place)
        return self._retried() if self._asked.mode == "retry" else self._scaled()

    @property
    def _asked(self) -> Runs:
        return cast("Runs", self.slot.arm.runs)

    def _run(self, *texts: str) -> Finished:
        text = "\n\n".join(filter(None, texts))
        done = self.source(len(self._made), text)
        self._shown.append(text)
        self._made.append(done)
        return done

    def _told(self, success: bool | None) -> bool | None:
        """What memory is told, where it is told anything."""
        return success if success is None else success != told_wrongly(self.slot)

    def _scaled(self) -> Group:
        asked, bank = self._asked, bank_of(self.memory)
        remembers = not isinstance(self.memory, Chooser)
        verify = None if self.judged and remembers else self._verified
        contrasts = remembers and self.learns and asked.mode != "vanilla"
        scaled = bank.scale(
            self.slot.job.goal,
            self._rolled_out,
            k=asked.k,
            mode=cast("Mode", asked.mode),
            memory=remembers,
            learn=self.learns,
            labels=asked.labels if contrasts else None,
            choose="auto" if asked.mode == "sequential" else "model" if self.live else "verdicts",
            confirm=asked.k,
            concurrency=1,
            verify=verify,
            limit=self.memory.limit if isinstance(self.memory, BankMemory) else None,
            patience=PATIENCE,
        )
        runs = tuple(
            OneRun(trajectory=done.run, success=done.success, verdict=_judged(one.verdict))
            for one, done in zip(scaled.attempts, self._made, strict=True)
        )
        learned = scaled.learned or Learned()
        error = None
        if remembers and scaled.recall_id is None:
            error = Failure(stage="recall", code="recall", message=one_line("; ".join(scaled.notes), limit=500))
        judged = judging([one.verdict for one in scaled.attempts])
        choice = _blind(scaled) if verify else scaled.choice
        return Group(self._shown[0], runs, choice, learned.lessons, scaled.notes, scaled.overhead, judged, error)

    def _rolled_out(self, task: str, memory: str, *, check: str = "", previous: Trajectory | None = None) -> Trajectory:
        notes = "" if self.has_model or previous is None else looked_at_again(previous)
        return self._run(memory, check, notes).run

    def _verified(self, run: Trajectory) -> Outcome:
        """Where the environment cannot tell, this fails, and then the judge decides."""
        told = self._told(next(done.success for done in self._made if done.run.id == run.id))
        if told is None:
            raise LessonbankError("how the run ended is told later, by somebody else")
        return outcome_of(told)

    def _retried(self) -> Group:
        """One attempt after the other, until one counts as a success."""
        runs, reflections = list[OneRun](), list[str]()
        lessons, notes, verdicts, spent, error = list[Lesson](), list[str](), list[Verdict](), Usage(), None
        for number in range(1, self._asked.k + 1):
            text, failure = guarded("recall", lambda: recalled(self.memory, self.slot.job.goal))
            done = self._run(text or "", *reflections)
            learned, broken = self._learned(done)
            verdict = learned.verdicts[0] if learned.verdicts else None
            runs.append(OneRun(trajectory=done.run, success=done.success, verdict=verdict and _judged(verdict)))
            lessons += learned.lessons
            verdicts += learned.verdicts
            notes += map(str, learned.notes)
            spent, error = spent + learned.usage, error or failure or broken
            if (verdict.outcome if verdict else outcome_of(self._told(done.success))) == "success":
                break
            if self._asked.reflect and number < self._asked.k:
                said, broken = guarded("learn", lambda done=done: reflect(done.run, self._model))
                reflections.append(said[0] if said else "")
                spent, error = spent + (said[1] if said else Usage()), error or broken
        sound = [place for place, one in enumerate(runs) if not one.trajectory.error]
        shown = "\n\n".join(filter(None, self._shown))
        return Group(
            shown,
            tuple(runs),
            sound[-1] if sound else None,
            tuple(lessons),
            tuple(notes),
            spent,
            judging(verdicts),
            error,
        )

    def _learned(self, done: Finished) -> tuple[Learned, Failure | None]:
        told = None if self.judged else self._told(done.success)
        if self.learns:
            learned, failure = guarded("learn", lambda: self.memory.learn(done.run, success=told))
            return learned or Learned(), failure
        if told is not None:
            return Learned(), None
        verdict, failure = guarded("learn", lambda: bank_of(self.memory).judge(done.run))
        return (Learned(verdicts=(verdict,), usage=verdict.usage) if verdict else Learned()), failure

    @property
    def _model(self) -> LanguageModel | None:
        return bank_of(self.memory).aio.parts.scaler.model if self.has_model else None


def _blind(scaled: Scaled) -> int | None:
    """The choice, or the first sound run where the model's reply could not be read and the truth chose in its place."""
    if scaled.mode == "sequential" or not scaled.why.startswith("by verdict"):
        return scaled.choice
    return next(iter(candidates([one.trajectory for one in scaled.attempts])), None)


def judging(verdicts: Sequence[Verdict], /) -> int:
    """The tokens that a judge took."""
    return sum(verdict.usage.input_tokens + verdict.usage.output_tokens for verdict in verdicts)


def _judged(verdict: Verdict) -> Outcome | None:
    """What a judge said; an error that stopped a run, and the truth, are no judge's word."""
    return verdict.outcome if verdict.source == "judge" else None
