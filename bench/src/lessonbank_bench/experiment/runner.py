"""Plays an experiment attempt by attempt, so that it can be killed anywhere and goes on as if it had not been.

What was done is told by the lines of the journal and by nothing else. The schedule follows from the experiment, so the
lines are its beginning. A memory is rebuilt by being asked and told again what it was asked and told; each text that it
gives then has to be the one that was given to the agent, which proves that it is the memory that was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, cast

import lessonbank
from lessonbank.contracts.records import Learned, Trajectory, Usage
from lessonbank.contracts.records import Lesson as BankLesson
from lessonbank.contracts.records.ids import digest, now
from lessonbank_bench.arms import Memory
from lessonbank_bench.environments import Environment, Finished

from .budget import Spent
from .checks import checked, recalled, writable
from .guards import failed, guarded
from .journal import BANKS, Journal, begin, versions_now
from .records import AttemptRow, Experiment, Failure, Lesson, Runs, acted, file_name, without_codes
from .recovery import fit, rebuild
from .remembering import memory_for
from .schedule import Slot, check_tasks, learns, run_id, schedule, told_wrongly, total
from .several_runs import Group, Live, Task, judging
from .shared_attempts import Sharing
from .stopping_rule import Stopping


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    done: int
    of: int
    cost: float
    tokens: int
    errors: int
    left: float | None
    """Seconds, at the pace of this call; `None` before its first attempt."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a call of `run` did."""

    rows: int
    """In the journal now."""
    of: int
    made: int
    """By this call."""
    stopped: str = ""
    """Why before the end, if so."""
    enough: bool = False
    """Whether it stopped since all is shown that was asked for; nothing is to be resumed then."""
    errors: int = 0
    cost: float = 0.0
    tokens: int = 0

    @property
    def complete(self) -> bool:
        """Whether every attempt has its row."""
        return self.rows == self.of


def run(
    experiment: Experiment,
    place: Environment,
    folder: Path,
    /,
    *,
    resume: bool = False,
    tell: Callable[[Progress], None] | None = None,
) -> Ran:
    """Make the attempts that are missing, one after the other; see `journal.begin` for what it refuses.

    Raises:
        UsageError: an arm's memory, or a group of tasks, is unknown to the environment, or it has too few tasks; the
            folder does not fit.
        Conflict: a memory could not be rebuilt as it was.
        StoreUnavailable: a row could not be written.
    """
    _check_arms(experiment, place)
    check_tasks(experiment, place)
    runner = _Runner(experiment, place, folder, tell)
    journal = begin(folder, experiment, runner.versions, resume=resume, grown=runner.look_back)
    try:
        return runner.go(journal)
    finally:
        journal.close()


def _check_arms(experiment: Experiment, place: Environment) -> None:
    """Unknown memories are told before the first attempt, not after the last of the arm before."""
    for arm in map(experiment.played, experiment.arms):
        memory_for(experiment, arm, place.memories, experiment.seeds[0], None).close()


class _Runner:
    _journal: Journal
    _began: float

    def __init__(
        self, experiment: Experiment, place: Environment, folder: Path, tell: Callable[[Progress], None] | None
    ) -> None:
        self._experiment, self._place, self._folder, self._tell = experiment, place, folder, tell
        self._of = total(experiment)
        self.versions = versions_now(place.version)
        self._config = experiment.hash
        self._spent = Spent(experiment)
        self._sharing = Sharing(on=experiment.share, judged=experiment.judged)
        self._stopping = Stopping(experiment)
        self._made = 0
        self._again = {arm.name for arm in experiment.arms if arm.again}

    def look_back(self, rows: list[AttemptRow], /) -> None:
        """One more row of an earlier call; the runs of a seed before it are let go, where nothing is to be rebuilt."""
        self._take(rows[-1])
        if len(rows) < 2 or rows[-2].seed == rows[-1].seed:
            return
        seed = rows[-2].seed
        if all(path.is_file() for path in self._banks(seed).values()):
            for at in takewhile(lambda at: rows[at].seed == seed, range(len(rows) - 2, -1, -1)):
                rows[at] = rows[at].model_copy(update={"run": None, "runs": ()})

    def go(self, journal: Journal, /) -> Ran:
        self._journal, rows, self._began = journal, journal.rows, time.monotonic()
        self._spent.forgive()
        done = 0
        for seed in self._experiment.seeds:
            slots = list(schedule(self._experiment, self._place, seed))
            before = rows[done : done + len(slots)]
            done += len(before)
            stopped = self._seed(slots, before)
            if stopped:
                return self._ran(stopped)
        return self._ran("")

    def _ran(self, stopped: str) -> Ran:
        spent = self._spent
        enough = bool(stopped) and stopped == self._stopping.reason
        return Ran(spent.rows, self._of, self._made, stopped, enough, spent.errors, spent.cost, spent.tokens)

    def _seed(self, slots: Sequence[Slot], before: Sequence[AttemptRow]) -> str:
        seed = slots[0].seed
        banks = self._banks(seed)
        finished, arms = len(before) == len(slots), len(self._experiment.arms)
        if finished and all(path.is_file() for path in banks.values()):
            fit(slots, before)
            return ""
        if not finished and len(before) % arms == 0 and (stopped := self._reason):
            return stopped
        memories = self._memories(seed)
        try:
            self._rebuilt(slots, before, memories)
            for _, left in groupby(slots[len(before) :], key=lambda slot: slot.place):
                task = list(left)
                if len(task) == arms and (stopped := self._reason):  # a task that was begun is done in any case
                    return stopped
                for slot in task:
                    self._do(slot, memories[slot.arm.name])
            for name, path in banks.items():
                _export(memories[name], path)
        finally:
            for memory in memories.values():
                memory.close()
        return ""

    def _banks(self, seed: int) -> dict[str, Path]:
        return {arm.name: self._folder / BANKS / file_name(arm.name, seed) for arm in self._experiment.arms}

    def _rebuilt(self, slots: Sequence[Slot], before: Sequence[AttemptRow], memories: dict[str, Memory]) -> None:
        self._place.memories.live = False
        try:
            rebuild(self._experiment, slots, before, memories)
        finally:
            self._place.memories.live = True

    def _memories(self, seed: int) -> dict[str, Memory]:
        arms = map(self._experiment.played, self._experiment.arms)
        banks = self._folder / BANKS
        return {arm.name: memory_for(self._experiment, arm, self._place.memories, seed, banks) for arm in arms}

    @property
    def _reason(self) -> str:
        return self._spent.reason or self._stopping.reason

    def _take(self, row: AttemptRow) -> None:
        self._spent.add(row)
        self._sharing.keep(row, again=row.arm in self._again)
        self._stopping.add(row)

    def _do(self, slot: Slot, memory: Memory) -> None:
        row = writable((self._several if slot.arm.runs else self._attempted)(slot, memory))
        self._journal.add(row)
        self._take(row)
        self._made += 1
        if self._tell is not None:
            spent = self._spent
            pace = (time.monotonic() - self._began) / self._made
            left = pace * (self._of - spent.rows)
            self._tell(Progress(spent.rows, self._of, spent.cost, spent.tokens, spent.errors, left))

    def _attempted(self, slot: Slot, memory: Memory) -> AttemptRow:
        started = time.perf_counter()
        text, failure = guarded("recall", lambda: recalled(memory, slot.job.goal))
        row = self._row(slot, text or "", tuple(getattr(memory, "shown", ())))
        asked = time.perf_counter()
        done: Finished | None = None
        if failure is None:
            done, row, failure = self._done(slot, row)
        acted = time.perf_counter()
        if done is not None:
            row = self._learned(slot, memory, row, done)
        failure = failure or row.error
        elapsed = time.perf_counter() - acted + asked - started
        return row.model_copy(update={"error": failure, "memory_seconds": round(elapsed, 6), "at": now()})

    def _several(self, slot: Slot, memory: Memory) -> AttemptRow:
        """All runs of a task by an arm that makes several, in one row."""
        started, experiment, memories = time.perf_counter(), self._experiment, self._place.memories
        source = Live(self._place, slot, self._config)
        task = Task(
            slot,
            memory,
            source,
            judged=experiment.judged,
            learns=learns(experiment, slot.phase),
            has_model=bool(experiment.model),
        )
        memories.failure = None
        group, failure = guarded("recall", task.play)
        failure = failure or (failed("learn", memories.failure) if memories.failure else None)
        if group is not None:
            crashed = source.failures[-1] if len(source.failures) == len(group.runs) else None
            failure = group.error or crashed or failure
        row = self._row(slot, group.text if group else "", ())
        told = {"at": now(), "seconds": round(time.perf_counter() - started, 6), "error": failure}
        return row.model_copy(update=told | (_of_group(group, slot) if group else {}))

    def _done(self, slot: Slot, row: AttemptRow) -> tuple[Finished | None, AttemptRow, Failure | None]:
        place, made = self._place, self._sharing.find(slot, row.same_digest)
        if made is not None:
            return made.finished, row.model_copy(update=made.shown), None
        started = time.perf_counter()
        agent, failure = guarded("attempt", lambda: place.agent(slot.seed, anew=slot.arm.again))
        given: Any = None
        done: Finished | None = None
        if failure is None:
            given, failure = guarded("attempt", lambda: place.attempt(slot.job, agent, row.memory))
        if failure is None:
            done, failure = guarded("attempt", lambda: checked(given))
        told: dict[str, Any] = {"seconds": round(time.perf_counter() - started, 6)}
        if done is None and isinstance(usage := getattr(agent, "usage", None), Usage):
            told |= _paid(usage)
        return done, row.model_copy(update=told), failure

    def _told(self, memory: Memory, run: Trajectory, success: bool | None) -> tuple[Learned | None, Failure | None]:
        """Also where the memory's model broke, and the bank went on without what it would have said."""
        memories = self._place.memories
        memories.failure = None
        learned, failure = guarded("learn", lambda: memory.learn(run, success=success))
        learned = learned if isinstance(learned, Learned) else None
        return learned, failure or (failed("learn", memories.failure) if memories.failure else None)

    def _row(self, slot: Slot, text: str, shown: tuple[str, ...]) -> AttemptRow:
        return AttemptRow(
            config=self._config,
            versions=self.versions,
            at=now(),
            seed=slot.seed,
            arm=slot.arm.name,
            phase=slot.phase,
            place=slot.place,
            task_id=slot.job.id,
            task=slot.job.goal,
            family=slot.job.family,
            memory=text,
            memory_digest=digest(text),
            same_digest=digest(without_codes(text)),
            shown=shown,
        )

    def _learned(self, slot: Slot, memory: Memory, row: AttemptRow, done: Finished) -> AttemptRow:
        named = done.run.model_copy(update={"id": run_id(slot, self._config)})
        unknown = self._experiment.judged or done.success is None
        told = None if unknown else done.success != told_wrongly(slot)
        learned: Learned | None = None
        failure: Failure | None = None
        if learns(self._experiment, slot.phase):
            learned, failure = self._told(memory, named, told)
        usage = named.usage + (learned.usage if learned else Usage())
        return row.model_copy(
            update={
                "success": done.success,
                "scores": dict(done.scores),
                "told": told,
                "verdict": learned.verdicts[0].outcome if learned and learned.verdicts else None,
                "steps": acted(named),
                **_paid(usage),
                "judging": judging(learned.verdicts if learned else ()),
                "run": named,
                "lessons": _kept(learned.lessons if learned else ()),
                "notes": learned.notes if learned else (),
                "error": failure,
            }
        )


def _of_group(group: Group, slot: Slot) -> dict[str, Any]:
    return {
        "success": group.success,
        "scores": group.figures(cast("Runs", slot.arm.runs)),
        "steps": sum(acted(one.trajectory) for one in group.runs),
        **_paid(group.usage),
        "judging": group.judging,
        "runs": group.runs,
        "choice": group.choice,
        "lessons": _kept(group.lessons),
        "notes": group.notes,
    }


def _kept(lessons: Sequence[BankLesson]) -> tuple[Lesson, ...]:
    return tuple(Lesson(kind=lesson.kind, title=lesson.title, content=lesson.content) for lesson in lessons)


def _paid(usage: Usage) -> dict[str, Any]:
    return {
        "requests": usage.requests,
        "tokens": usage.input_tokens + usage.output_tokens,
        "cost": usage.cost,
    }


def _bank(memory: Memory) -> lessonbank.ReasoningBank | None:
    held: Any = getattr(memory, "bank", None)
    return held if isinstance(held, lessonbank.ReasoningBank) else None


def _export(memory: Memory, path: Path) -> None:
    """What the memory holds in the end; an empty file where it keeps no bank."""
    bank = _bank(memory)
    if bank is not None:
        bank.admin.export(path)
    else:
        path.write_bytes(b"")
