"""Runs the caller's agent several times: side by side, or each time upon the run before."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import anyio

from lessonbank._base.aio import gather
from lessonbank.contracts.agents import AnyAgent, Verifier, as_awaitable, stated, taken
from lessonbank.contracts.records import SECONDS, Outcome, Trajectory, Usage
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.usage import usage_of
from lessonbank.errors import FormatError, UsageError
from lessonbank.guard.quote import quoted, redact_before_cut, words_of
from lessonbank.text.messages import trajectory_from

from .design import Design, Meter
from .result import Stopped
from .sequential import Examiner, check_text, unchanged

_ERROR = 4_000
"""Characters kept of what stopped a run."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One run, and what the verifier said of it."""

    run: Trajectory
    outcome: Outcome | None = None
    reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is told after every run."""

    done: int
    of: int
    """The most there will be."""
    run: Trajectory
    usage: Usage
    """Of all runs so far."""
    seconds: float
    """Since the first began."""


@dataclass(slots=True)
class Rollouts:
    """The runs of one task, under one memory text and one budget.

    A run that raises is a failed attempt: a trajectory with an `error`. What the verifier or `progress` raises for
    being used wrongly ends the whole.
    """

    agent: AnyAgent
    task: str
    memory: str
    design: Design
    keep: Callable[[Sequence[Rollout]], Awaitable[None]]
    """Takes the runs so far as soon as one more ends, and again when its outcome is known: a crash or a cancellation
    later costs none of them."""
    verifier: Verifier | None = None
    progress: Callable[[Progress], None] | None = None
    stopped: Stopped = "all were run"
    notes: list[str] = field(default_factory=list[str])
    meter: Meter = field(init=False)
    _done: dict[int, Rollout] = field(default_factory=dict[int, Rollout])
    _ended_runs: dict[int, Rollout] = field(default_factory=dict[int, Rollout])
    """Those that ended, also where their outcome is not known yet."""
    _keeping: anyio.Lock = field(default_factory=anyio.Lock)
    _ids: set[str] = field(default_factory=set[str])
    _broken: bool = False

    def __post_init__(self) -> None:
        self.meter = Meter(self.design, anyio.current_time)

    @property
    def done(self) -> list[Rollout]:
        """In the order in which they were begun."""
        return [self._done[number] for number in sorted(self._done)]

    async def side_by_side(self) -> None:
        """All runs, as many at once as the design says; none is begun once the budget is spent."""
        self.meter.start()
        agent = as_awaitable(self.agent, threads=self.design.concurrent_runs)
        numbers = iter(range(1, self.design.k + 1))
        while wave := list(islice(numbers, self.meter.wave())):
            calls = (partial(self._unless_spent, number, agent) for number in wave)
            await gather(calls, limit=self.design.concurrent_runs)

    async def one_after_another(self, rewriter: Examiner | None = None) -> None:
        """Each run re-examines the one before, until its answer is confirmed; with `rewriter`, the agent acts once."""
        self.meter.start()
        agent = as_awaitable(self.agent, threads=1)
        previous: Trajectory | None = None
        checks = same = 0
        for number in range(1, self.design.k + 1):
            if self._spent() or same >= self.design.confirm:
                break
            # In a task of its own: so an agent that cancels itself can be told from a caller who cancels us.
            run = (await gather([partial(self._round, number, agent, rewriter, previous, first=checks == 0)]))[0]
            if run is None:
                break
            checks += previous is not None
            if not run.error:
                same = same + 1 if previous and unchanged(previous, run) else 0
                previous = run
        if same >= self.design.confirm:
            self.stopped = "confirmed"

    async def _unless_spent(self, number: int, agent: Callable[..., Awaitable[Any]]) -> None:
        if self._broken or self._spent():
            return
        try:
            await self._end(number, await self._act(number, agent, self.memory, {}))
        except BaseException:  # a run that waits for its turn gets it before it hears that all is over
            self._broken = True
            raise

    def _spent(self) -> bool:
        spent = self.meter.spent()
        self.stopped = spent or self.stopped
        return spent is not None

    async def _round(
        self,
        number: int,
        agent: Callable[..., Awaitable[Any]],
        rewriter: Examiner | None,
        previous: Trajectory | None,
        *,
        first: bool,
    ) -> Trajectory | None:
        if previous is None:
            run = await self._act(number, agent, self.memory, {})
        elif rewriter:
            run = await self._rewrite(rewriter, previous, first=first)
        else:
            run = await self._act_again(number, agent, previous, first=first)
        return await self._end(number, run) if run else None

    async def _act_again(
        self, number: int, agent: Callable[..., Awaitable[Any]], previous: Trajectory, *, first: bool
    ) -> Trajectory:
        """The check goes where the agent takes it, else after the memory: the task stays the task."""
        check = check_text(previous, first=first)
        given = {name: {"check": check, "previous": previous}[name] for name in taken(self.agent, "check", "previous")}
        memory = self.memory if "check" in given else "\n\n".join(part for part in (self.memory, check) if part)
        return await self._act(number, agent, memory, given)

    async def _rewrite(self, rewriter: Examiner, previous: Trajectory, *, first: bool) -> Trajectory | None:
        """A model that fails is no failed attempt of the agent: the run before stands, and the notes say why."""
        began = anyio.current_time()
        with anyio.move_on_at(self.meter.deadline):
            try:
                return _run_in_time(await rewriter(previous, first=first), anyio.current_time() - began)
            except Exception as problem:  # noqa: BLE001 - whatever a model or a redactor raises: the run before stands
                if spent := usage_of(problem):
                    self.meter.add(spent)
                self.notes.append(f"the run was not re-examined any further: {quoted(problem)}")
                self.stopped = "not examined"
                return None
        self.stopped = "seconds"
        return None

    async def _act(
        self, number: int, agent: Callable[..., Awaitable[Any]], memory: str, given: Mapping[str, object]
    ) -> Trajectory:
        keywords = {**given, **({"seed": self.design.seed + number - 1} if taken(self.agent, "seed") else {})}
        began, result, error = anyio.current_time(), None, ""
        with anyio.move_on_at(self.meter.deadline) as scope:
            try:
                result = await agent(self.task, memory, **keywords)
            except Exception as problem:  # noqa: BLE001 - whatever an agent raises is a failed attempt
                error = redact_before_cut(f"{type(problem).__name__}: {words_of(problem)}", limit=_ERROR)[:_ERROR]
            except anyio.get_cancelled_exc_class():
                if anyio.current_effective_deadline() == -math.inf:  # we are cancelled, not the agent by itself
                    raise
                error = "the run cancelled itself"
        if scope.cancelled_caught:
            self.stopped = "seconds"
            error = f"the run was cut off: its {self.design.seconds:g} seconds were over"
        return _run_in_time(self._read(result, error), anyio.current_time() - began)

    def _read(self, result: object, error: str) -> Trajectory:
        if not error:
            try:
                return trajectory_from(result, task=self.task)
            except FormatError as problem:
                error = f"the agent gave no run: {problem}"
                self.notes.append(error)
        return Trajectory(task=self.task, error=error)

    async def _end(self, number: int, run: Trajectory) -> Trajectory:
        """Keep it first, and to the end whoever cancels; then ask how it ended, while its world is as it left it."""
        if run.id in self._ids:
            run = run.model_copy(update={"id": new_id()})
        self._ids.add(run.id)
        self.meter.add(run.usage, broken=bool(run.error))
        await self._keep(number, Rollout(run, None, None))
        outcome, reward = await self._verify(run)
        self._done[number] = Rollout(run, outcome, reward)
        if outcome is not None or reward is not None:
            await self._keep(number, self._done[number])
        if self.progress:
            progress = Progress(
                done=len(self._done),
                of=self.design.k,
                run=run,
                usage=sum((rollout.run.usage for rollout in self._done.values()), Usage()),
                seconds=self.meter.seconds,
            )
            self.progress(progress)
        return run

    async def _keep(self, number: int, rollout: Rollout) -> None:
        with anyio.CancelScope(shield=True):
            async with self._keeping:
                self._ended_runs[number] = rollout
                await self.keep([self._ended_runs[run_number] for run_number in sorted(self._ended_runs)])

    async def _verify(self, run: Trajectory) -> tuple[Outcome | None, float | None]:
        if self.verifier is None or run.error:
            return None, None
        try:
            answer = await as_awaitable(self.verifier)(run)
        except UsageError:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a verifier raises: the run is there, and can be judged
            self.notes.append(
                f"verify= failed on a run, the judge decides: {type(problem).__name__}: {quoted(problem)}"
            )
            return None, None
        return stated(answer)


def _run_in_time(run: Trajectory, seconds: float) -> Trajectory:
    if SECONDS in run.metadata:
        return run
    return run.model_copy(update={"metadata": {**run.metadata, SECONDS: round(seconds, 3)}})
