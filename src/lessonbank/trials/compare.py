"""Compares tasks with and without memory, over any bank."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Protocol, Unpack

from lessonbank.contracts.agents import AnyAgent, Verifier
from lessonbank.contracts.records import Recall
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options

from .design import Design, Question, Trial, asked
from .trial import Tasks, run_trial

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Store
    from lessonbank.search.injection import Injector


class Parts(Protocol):
    """The parts of a bank that a trial uses."""

    @property
    def injector(self) -> Injector: ...


class Bank(Protocol):
    """A bank, as a trial sees it."""

    store: Store
    scope: str

    @property
    def parts(self) -> Parts: ...

    async def _recall_for_trial(self, task: str, /, *, asked: RetrieveOptions) -> Recall:
        """What a user would see if nothing were withheld."""
        ...


@takes_retrieve_options
async def trial(
    bank: Bank,
    tasks: Tasks,
    agent: AnyAgent,
    /,
    *,
    verify: Verifier,
    without: str | None = None,
    with_: str | None = None,
    placebo: str | bool = False,
    max_runs: int = 400,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    rounds: int = 1,
    min_effect: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
    concurrency: int = 1,
    resume: str | PathLike[str] | None = None,
    progress: Callable[[Trial], None] | None = None,
    **options: Unpack[RetrieveKeywords],
) -> Trial:
    """Do `tasks` with and without memory, in pairs, until it is clear what memory changes. `print` the result.

    For worlds that can be reset. Nothing is written into the bank, and nothing is withheld at random. With
    `without`, `with_` or `placebo` the question is about one lesson or group instead of memory as a whole.
    `lessonbank.trials.plan_trial(0.1)` says before how many runs it takes to show an effect of ten points.

    The agent is handed the text, and that is what is measured. The result says how many runs show that text (in the
    run, or as its SHA-256 in `metadata["memory_digest"]`). A run that shows another text ends the trial.

    Args:
        tasks: their texts; or kept recalls of this scope or their ids, for what was shown then.
        agent: `(task, memory)` to a trajectory or its messages, async or not. A parameter `seed` gets the same
            number in both runs of a pair; luck that they share saves most of the runs. What it raises ends the
            trial.
        verify: the world's check of a run: success or not, a score from 0 to 1, or an outcome.
        without: the lesson to leave out of what is shown; or the name of a topic, or the id of a group.
        with_: the lesson to add to what is shown.
        placebo: what to replace with irrelevant words of its length, named as in `without`; `True`: everything.
        max_runs: the largest number of runs; a pair is two.
        max_cost: no pair begins once the runs cost so many US dollars (where they tell `usage.cost`).
        max_seconds: no pair begins once the call took so long. What is under way is finished.
        rounds: how often each side may do each task.
        min_effect: an effect too small to matter; once it is known to be smaller the trial ends. 0: never.
        level: the confidence of the interval, however often one looks.
        seed: decides the order of tasks and sides, and the agent's luck.
        concurrency: how many pairs run at once; a plain function then runs in as many threads.
        resume: a file that keeps each run as it ends. A trial that was interrupted goes on from there, if tasks,
            memory, question, seed, level and agent are the same; budgets and rounds may be larger.
        progress: called after every pair with the result so far. What it raises ends the trial.
        options: those of `retrieve`, for the memory of tasks that are given as texts. `fit` counts where memory as a
            whole is in question, and what it takes is part of what a run with memory costs. Else nothing is fitted.

    Raises:
        UsageError: several of `without`, `with_` and `placebo`, a lesson or a number that cannot be, no tasks,
            recalls of another scope, nothing to compare, or the journal of another trial.
        NotFound: a recall that this scope does not have.
        StoreUnavailable: the journal cannot be read or written.
    """
    question = asked(without=without, with_=with_, placebo=placebo)
    if question != Question():  # the two texts differ by a lesson, and a model would choose anew for each of them
        options = {**options, "fit": "none"}
    return await run_trial(
        bank.store,
        bank.parts.injector,
        tasks,
        agent,
        # A step of the loop and no call for users, who retrieve.
        recaller=partial(bank._recall_for_trial, asked=RetrieveOptions(**options)),  # pyright: ignore[reportPrivateUsage]
        verify=verify,
        question=question,
        design=Design(
            max_runs=max_runs,
            max_cost=max_cost,
            max_seconds=max_seconds,
            rounds=rounds,
            min_effect=min_effect,
            level=level,
            seed=seed,
            concurrency=concurrency,
        ),
        scope=bank.scope,
        resume=resume,
        progress=progress,
    )
