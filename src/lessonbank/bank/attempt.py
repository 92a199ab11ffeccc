"""One attempt at a task as a `with` block: recall on entry, learn on `finish`, and never break the agent inside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, TypeVar, Unpack, cast

import anyio

from lessonbank import importers
from lessonbank._base.aio import within
from lessonbank._base.checks import a_flag, a_mapping, a_text, is_instance, kind, short_repr
from lessonbank.contracts.records import (
    RECALLS_AGAIN,
    SECONDS,
    Action,
    Json,
    Learned,
    Lesson,
    Note,
    Observation,
    Outcome,
    Recall,
    Step,
    Trajectory,
    notes_of,
)
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.retrieve_options import PATIENCE, RetrieveKeywords, check_names, some_patience
from lessonbank.errors import FormatError, StoreUnavailable, UsageError
from lessonbank.guard.quote import quoted
from lessonbank.text.messages.runs import runs_from

from .outbox import InSpool, keep_or_spool

V = TypeVar("V")
log = logging.getLogger("lessonbank")
_NO_TASK = "(no task was given)"
_MOST_NOTES = 3
_LEAST = 1 / 8
"""The part of its patience that each further wait has, however long the bank was silent before."""


class Bank(Protocol):
    """What an attempt needs of its bank."""

    @property
    def scope(self) -> str: ...
    async def retrieve(self, *args: Any, **options: Any) -> Recall: ...
    @property
    def lessons(self) -> Any: ...
    async def recall_again(self, *args: Any, **options: Any) -> Recall: ...
    async def learn(self, *args: Any, **options: Any) -> Learned: ...
    async def submit(self, *args: Any, **options: Any) -> Any: ...
    async def keep_unfinished(self, *args: Any, **options: Any) -> Any: ...


class AsyncAttempt:
    """What `async with bank.attempt(task) as attempt` gives. `text` goes into the prompt.

    Nothing in it raises because of the memory. `notes` and a warning say what failed.
    """

    learned: Learned | None = None
    """What `finish` (or a crash) taught, once there; `None` while a submitted run is learned in the background."""

    def __init__(self, bank: Bank, task: str, /, **options: Unpack[RetrieveKeywords]) -> None:
        check_names(options)  # their values are a matter of the memory, which does not break the block
        self._bank, self._retrieve = bank, partial(bank.retrieve, **options)
        self._metadata = _valid(a_mapping, options.get("metadata"))
        self._patience = _valid(some_patience, options.get("patience")) or PATIENCE
        self._left, self._options = self._patience, options
        self._later_recalls, self._inbox = list[str](), list[str]()
        self._recall: Recall | None = None
        self._runs = list[Trajectory]()
        """What `finish` was given last."""
        self._problems: list[str] = []
        self._is_finished = False
        self._began = monotonic()
        self.run_id = new_id()
        """The id of the run, for `bank.tell` later; that of the (first) trajectory, once `finish` was given one."""
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

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know, each with a level and a code: why the text is empty, what was not learned."""
        recalled = self._recall.notes if self._recall else ()
        learned = self.learned.notes if self.learned else ()
        return tuple(dict.fromkeys((*recalled, *notes_of(*self._problems), *learned)))

    def step(self, action: Action | str, observation: Observation | str | None = None, *, thought: str = "") -> None:
        """Note one turn as it happens, so that a crash leaves what led to it."""
        try:
            self.steps.append(Step(thought=thought, action=action, observation=observation))
        except Exception as problem:  # noqa: BLE001 - whatever is in a value that is no text
            self._failed("a step was not noted", problem)

    async def recall_again(self, *, observation: str = "", reason: str = "error", cured: bool = False) -> Recall:
        """Look again where the run stands: `.text`, of at most 400 tokens, shows nothing that was shown before.

        `observation` is what came back last; without it, that of the last step. `cured=True` looks only for the cure of
        this very failure. See `bank.recall_again`. Raises UsageError before the block is entered.
        """
        first, last = self.recall, self.steps[-1] if self.steps else Step()
        observation = observation or "\n".join(seen.text for seen in last.observations)
        arguments: dict[str, Any] = {"recall": self._receipt, "reason": reason, "step": len(self.steps), "cured": cured}
        options, began = {**self._options, "patience": self._left}, monotonic()
        try:
            again = await self._bank.recall_again(observation, doing=importers.doing_of(last), **arguments, **options)
        except Exception as problem:  # noqa: BLE001 - as in `finish`
            self._spend(began, problem)
            note = self._failed("the agent goes on without a second look", problem)
            return Recall(scope=self._bank.scope, task=first.task, notes=notes_of(note), kept=False)
        self._later_recalls += [again.id] if again.kept else []
        return again

    def note(self, text: str, /) -> None:
        """Put what the agent found out into the inbox, with this run as evidence: at most three notes of a run.

        It is kept where the run is, also while that waits on this machine. Nobody is shown it, in any scope or under
        any policy, before a person approves it.
        """
        if len(self._inbox) == _MOST_NOTES:
            self._warn_once(f"a run takes {_MOST_NOTES} notes for the inbox: a later one was left out")
            return
        try:
            self._inbox.append(a_text(text, "the note", blank=False))
        except UsageError as problem:
            self._failed("a note is not in the inbox", problem)

    async def finish(
        self,
        source: object = None,
        /,
        *,
        answer: str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
        wait: bool = True,
    ) -> Learned:
        """Learn from `source` (a trajectory or messages), or from the steps noted so far and an `answer`.

        `wait=False` keeps the run and learns from it in the background. Where the bank does not take it within
        `patience` seconds, the run waits on this machine until it does. A failure of the memory costs the lesson, not
        the run: it is logged, and `notes` has it. If the messages cannot be read, `outcome` or `reward` still settles
        the receipt. After a wrong argument, such as `outcome="sucess"`, `finish` can be called again.

        Raises:
            UsageError: the block was not entered.
        """
        _ = self.recall
        if self._is_finished:
            return self._refused("this attempt is finished already, so nothing more was learned: open another one")
        if source is not None and answer is not None:
            self._warn_once("finish was given both a run and an answer: the answer was ignored")
        self._is_finished = True
        try:
            self._runs = await self._read(source, answer, settles=outcome is not None or reward is not None)
            call = "learn" if a_flag(wait, "wait=") else "submit"
            return self._done(await self._hand_in(call, self._runs, **self._learn_arguments(outcome, reward)))
        except UsageError as problem:
            self._is_finished = False
            return self._refused(self._failed("nothing was learned from this run", problem))
        except Exception as problem:  # noqa: BLE001 - whatever a store, a hook or a judge raises: the run goes on
            return self._refused(self._failed("nothing was learned from this run", problem))
        except BaseException:  # the end of the block keeps what was stopped here
            self._is_finished = False
            raise

    async def __aenter__(self) -> AsyncAttempt:
        self._began = monotonic()
        try:
            self._recall = await self._retrieve(self.task)
        except Exception as problem:  # noqa: BLE001 - whatever a store or a hook raises: the agent works without memory
            self._spend(self._began, problem)
            note = _warned("the agent works without memory", problem)
            self._recall = Recall(
                scope=self._bank.scope, task=self._named_task or short_repr(self.task), notes=notes_of(note), kept=False
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_finished or isinstance(error, GeneratorExit):  # who closes a generator may not wait in it
            return
        self._is_finished = True
        try:
            runs = self._runs or [self._timed_run(self._trajectory())]
            if isinstance(error, Exception):
                crashed = {"error": f"{type(error).__name__}: {error}"}
                runs = [run.model_copy(update=crashed) for run in runs]
                self._done(await self._hand_in("learn", runs, **self._learn_arguments(None, None)))
            else:
                await self._hand_in_unfinished(runs, "was stopped" if error else "ended without finish()")
        except Exception as problem:  # noqa: BLE001 - the caller sees the crash, or goes on: memory hides neither
            self._failed("the attempt could not be kept", problem)

    def _spend(self, began: float, problem: Exception) -> None:
        """Take what a silent bank cost off the patience of this block."""
        if isinstance(problem, StoreUnavailable):
            self._left = max(self._left - (monotonic() - began), _LEAST * self._patience)

    async def _hand_in(self, call: str, run: Any, /, **options: Any) -> Any:
        """Hand in a run and its notes for the inbox, which also come in where the bank fails to learn from the run."""
        try:
            result = await keep_or_spool(self._bank, call, run, inbox=tuple(self._inbox), **options)
        except (UsageError, StoreUnavailable):
            raise
        except Exception:
            await self._put_into_inbox()
            raise
        if not isinstance(result, InSpool):
            await self._put_into_inbox()
        self._inbox.clear()
        return result

    async def _hand_in_unfinished(self, runs: Sequence[Trajectory], why: str) -> None:
        """Also where the block is cancelled, which then takes as long as this does."""
        options = {"recall": self._receipt, "metadata": self._metadata, "patience": self._left}
        with anyio.CancelScope(shield=True):
            for run in runs:
                result = await self._hand_in("keep_unfinished", run, **options)
                where = result.note if isinstance(result, InSpool) else "the run is kept as unfinished"
                self._warn_once(f"the block {why}: {where}")

    async def _put_into_inbox(self) -> None:
        for text in self._inbox:
            began = monotonic()
            try:
                with within(self._left, "it was not kept"):
                    await self._bank.lessons.note(
                        text, task=self._named_task or _NO_TASK, run=self.run_id, metadata=self._metadata
                    )
            except Exception as problem:  # noqa: BLE001 - as in `finish`
                self._spend(began, problem)
                self._failed("a note is not in the inbox", problem)

    def _learn_arguments(self, outcome: Outcome | None, reward: float | None) -> dict[str, Any]:
        return {
            "task": self._named_task,
            "recall": self._receipt,
            "outcome": outcome,
            "reward": reward,
            "metadata": self._metadata,
            "patience": self._left,
        }

    def _done(self, result: Learned | InSpool | tuple[str, ...]) -> Learned:
        if isinstance(result, InSpool):
            result = Learned(notes=notes_of(result.note))
        if isinstance(result, Learned):
            self.learned = result
            return result
        if not result:
            return Learned(notes=self.notes)
        return Learned(notes=notes_of(f"kept, to be learned in the background: {', '.join(result)}"))

    def _refused(self, note: str) -> Learned:
        self._warn_once(note)
        return Learned(notes=notes_of(note))

    def _failed(self, what: str, problem: Exception) -> str:
        note = _warned(what, problem)
        self._problems.append(note)
        return note

    def _warn_once(self, note: str) -> None:
        if note not in self._problems:
            log.warning("%s", note)
            self._problems.append(note)

    @property
    def _named_task(self) -> str | None:
        """The task, where it is a text that says something."""
        task = cast("object", self.task)
        return str.__str__(task) if is_instance(task, str) and str.__str__(task).strip() else None

    @property
    def _receipt(self) -> Recall | None:
        """The recall, where the bank made it: it keeps the receipt, or knows it again."""
        return self._recall if self._recall and (self._recall.kept or self._recall.signature) else None

    def _trajectory(self, answer: str | None = None) -> Trajectory:
        return Trajectory(id=self.run_id, task=self._named_task or _NO_TASK, steps=tuple(self.steps), answer=answer)

    async def _read(self, source: object, answer: str | None, *, settles: bool) -> list[Trajectory]:
        """What `source` holds, nearly always one run; messages have no id, so theirs is `run_id`. Else the steps noted.

        These also where `source` cannot be read, if an outcome then `settles` the receipt. Raises FormatError,
        UsageError.
        """
        try:
            runs = [self._trajectory(answer)] if source is None else await runs_from(source, task=self._named_task)
        except FormatError as problem:
            self._failed("the messages could not be read", problem)
            if not settles:
                raise
            runs = [self._trajectory(answer)]
        if len(runs) > 1 or is_instance(source, Trajectory):
            self.run_id = runs[0].id
        if len(runs) > 1:
            return runs
        return [self._timed_run(runs[0].model_copy(update={"id": self.run_id}))]

    def _timed_run(self, run: Trajectory) -> Trajectory:
        """A trajectory with its later recalls, and, where it does not say how long it took, the time of the block."""
        metadata: dict[str, Json] = {SECONDS: round(monotonic() - self._began, 3), **run.metadata}
        metadata |= {RECALLS_AGAIN: list[Json](self._later_recalls)} if self._later_recalls else {}
        return run.model_copy(update={"metadata": metadata})


def _valid(check: Callable[[Any], V], value: object) -> V | None:
    """A setting of the recall; `None` where it is none: the recall says so, and the run is kept all the same."""
    try:
        return None if value is None else check(value)
    except UsageError:
        return None


def _warned(what: str, problem: Exception) -> str:
    """`what`, and why, as one line; it is in the log, too."""
    line = f"{what}: {kind(problem)}: {quoted(problem)}"
    log.warning("%s", line)
    return line


class Attempt:
    """An attempt for a `with` block."""

    def __init__(self, attempt: AsyncAttempt, /, *, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._attempt, self._run = attempt, run

    @property
    def task(self) -> str:
        """What the agent was asked."""
        return self._attempt.task

    @property
    def run_id(self) -> str:
        """The id of the run, for `bank.tell` later; that of the trajectory, once `finish` was given one."""
        return self._attempt.run_id

    @property
    def recall(self) -> Recall:
        """The receipt."""
        return self._attempt.recall

    @property
    def learned(self) -> Learned | None:
        """What `finish` (or the crash) taught, once there."""
        return self._attempt.learned

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know, each with a level and a code: why the text is empty, what was not learned."""
        return self._attempt.notes

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

    @property
    def steps(self) -> list[Step]:
        """The turns noted so far."""
        return self._attempt.steps

    def recall_again(self, *, observation: str = "", reason: str = "error", cured: bool = False) -> Recall:
        """Look again where the run stands; see `AsyncAttempt.recall_again`."""
        again: Recall = self._run(self._attempt.recall_again(observation=observation, reason=reason, cured=cured))
        return again

    def note(self, text: str, /) -> None:
        """Put what the agent found out into the inbox; see `AsyncAttempt.note`."""
        self._attempt.note(text)

    def finish(
        self,
        source: object = None,
        /,
        *,
        answer: str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
        wait: bool = True,
    ) -> Learned:
        """Learn from `source` (a trajectory or messages), or from the steps noted so far; see `AsyncAttempt.finish`."""
        finishing = self._attempt.finish(source, answer=answer, outcome=outcome, reward=reward, wait=wait)
        learned: Learned = self._run(finishing)
        return learned

    def __enter__(self) -> Attempt:
        self._run(self._attempt.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._attempt.__aexit__(kind, error, trace))
