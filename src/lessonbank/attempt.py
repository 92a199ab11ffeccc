"""One attempt at a task as a `with` block: retrieve on entry, learn on `finish`, and a failure learned, not lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, TypeVar

from .errors import FormatError, UsageError
from .guard.quote import quoted
from .types import SECONDS, Action, Learned, Lesson, Observation, Outcome, Recall, Step, Trajectory

T = TypeVar("T")
log = logging.getLogger("lessonbank")


class Loop(Protocol):
    """The two halves of the loop an attempt needs from its bank."""

    async def retrieve(self, task: str, /, *, limit: int | None = None, scope: str | None = None) -> Recall: ...

    async def learn(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        outcome: Outcome | Sequence[Outcome] | None = None,
        reward: float | Sequence[float] | None = None,
        scope: str | None = None,
    ) -> Learned: ...


class AsyncAttempt:
    """What `async with bank.attempt(task) as attempt` gives. `text` goes into the prompt."""

    learned: Learned | None = None

    def __init__(self, bank: Loop, task: str, /, *, limit: int | None = None, scope: str | None = None) -> None:
        self._bank, self._limit, self._scope = bank, limit, scope
        self._recall: Recall | None = None
        self._refusal: Exception | None = None
        self._began = monotonic()
        self.task = task
        self.steps: list[Step] = []

    @property
    def recall(self) -> Recall:
        """The receipt. Raises UsageError before the block is entered."""
        if self._recall is None:
            raise UsageError("an attempt begins where its block is entered: `with bank.attempt(task) as attempt:`")
        return self._recall

    @property
    def text(self) -> str:
        """The memory text for the prompt; empty when nothing is worth showing."""
        return self.recall.text

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """The lessons that `text` shows."""
        return self.recall.shown

    def step(self, action: Action | str, observation: Observation | str | None = None, *, thought: str = "") -> None:
        """Note one turn as it happens, so that a crash leaves what led to it."""
        self.steps.append(Step(thought=thought, action=action, observation=observation))

    async def finish(
        self,
        source: object = None,
        /,
        *,
        answer: str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
    ) -> Learned:
        """Learn from `source` (a trajectory or messages), or from the steps noted so far.

        What goes wrong with the memory itself costs the lesson, not the run: it is logged, and in the answer's `notes`.

        Raises:
            UsageError: called twice, or with both `source` and `answer`, or anything else that `learn` cannot take.
            FormatError: messages in no known shape.
        """
        if self.learned is not None:
            raise UsageError("this attempt is finished already: open another one for the next run")
        if source is not None and answer is not None:
            raise UsageError("give `finish` a trajectory (or messages), or an answer to the noted steps, not both")
        whole = self._timed(source if source is not None else self._trajectory(answer=answer))
        receipt = self._receipt
        try:
            self.learned = await self._bank.learn(
                whole, task=self.task, recall=receipt, outcome=outcome, reward=reward, scope=self._scope
            )
        except (UsageError, FormatError) as error:
            self._refusal = error
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a store, a hook or a judge raises: the run goes on
            self.learned = Learned(notes=(_told("nothing was learned from this run", problem),))
        return self.learned

    @property
    def _receipt(self) -> Recall | None:
        """The recall, if the bank keeps it: not where it could not be asked. Raises UsageError as `recall` does."""
        return self.recall if self.recall.kept else None

    def _trajectory(self, *, answer: str | None = None, error: str | None = None) -> Trajectory:
        return Trajectory(task=self.task, steps=tuple(self.steps), answer=answer, error=error)

    def _timed(self, source: object) -> object:
        """A trajectory that does not say how long it took, with the time since the block was entered."""
        if not isinstance(source, Trajectory) or SECONDS in source.metadata:
            return source
        seconds = round(monotonic() - self._began, 3)
        return source.model_copy(update={"metadata": {**source.metadata, SECONDS: seconds}})

    async def __aenter__(self) -> AsyncAttempt:
        self._began = monotonic()
        try:
            self._recall = await self._bank.retrieve(self.task, limit=self._limit, scope=self._scope)
        except UsageError:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a store or a hook raises: the agent works without memory
            note = _told("the agent works without memory", problem)
            self._recall = Recall(scope=self._scope or "", task=self.task, notes=(note,), kept=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.learned is not None or (error is None and not self.steps):
            return
        if error is None:
            await self._learn_from_steps()
            return
        if isinstance(error, Exception) and error is not self._refusal:
            await self._fail(error)

    async def _learn_from_steps(self) -> None:
        try:
            await self.finish()
        except Exception as problem:  # noqa: BLE001 - nobody handed anything in: whatever is wrong is the memory's fault
            self.learned = Learned(notes=(_told("nothing was learned from this run", problem),))

    async def _fail(self, error: Exception) -> None:
        """A crash is a failed attempt, unless it was learning that failed. What goes wrong here must not hide it."""
        crashed = self._trajectory(error=f"{type(error).__name__}: {error}")
        try:
            self.learned = await self._bank.learn(crashed, recall=self._receipt, scope=self._scope)
        except Exception as problem:  # noqa: BLE001 - whatever a hook or a judge raises, the caller sees the crash
            _told("the failed attempt could not be learned", problem)


def _told(what: str, problem: Exception) -> str:
    """`what`, and why, as one line; it is in the log, too."""
    told = f"{what}: {type(problem).__name__}: {quoted(str(problem))}"
    log.warning("%s", told)
    return told


class Attempt:
    """The same for a `with` block."""

    def __init__(self, attempt: AsyncAttempt, /, *, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._attempt, self._wait = attempt, wait

    @property
    def recall(self) -> Recall:
        """The receipt."""
        return self._attempt.recall

    @property
    def learned(self) -> Learned | None:
        """What `finish` (or the crash) taught, once there."""
        return self._attempt.learned

    @property
    def text(self) -> str:
        """The memory text for the prompt; empty when nothing is worth showing."""
        return self._attempt.text

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """The lessons that `text` shows."""
        return self._attempt.lessons

    def step(self, action: Action | str, observation: Observation | str | None = None, *, thought: str = "") -> None:
        """Note one turn as it happens, so that a crash leaves what led to it."""
        self._attempt.step(action, observation, thought=thought)

    def finish(
        self,
        source: object = None,
        /,
        *,
        answer: str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
    ) -> Learned:
        """Learn from `source` (a trajectory or messages), or from the steps noted so far."""
        learned: Learned = self._wait(self._attempt.finish(source, answer=answer, outcome=outcome, reward=reward))
        return learned

    def __enter__(self) -> Attempt:
        self._wait(self._attempt.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self._attempt.__aexit__(kind, error, trace))
