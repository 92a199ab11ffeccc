"""Memory-aware test-time scaling of one task, over any bank (paper section 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, Unpack, cast

from lessonbank._base.checks import a_flag, a_text
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options
from lessonbank.contracts.settings import OFF
from lessonbank.errors import UsageError
from lessonbank.guard.quote import redacting_with

if TYPE_CHECKING:
    from lessonbank.contracts.agents import AnyAgent, Verifier

    from .bank import Bank
    from .design import Examining, Mode, Selection
    from .result import Scaled
    from .rollouts import Progress


@takes_retrieve_options
async def scale(
    bank: Bank,
    task: str,
    agent: AnyAgent,
    /,
    *,
    k: int = 3,
    mode: Mode = "parallel",
    verify: Verifier | None = None,
    memory: bool = True,
    learn: bool = True,
    labels: bool | None = None,
    choose: Selection = "auto",
    examine: Examining = "act",
    confirm: int = 2,
    concurrency: int | None = None,
    tokens: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    **options: Unpack[RetrieveKeywords],
) -> Scaled:
    """Let the agent do `task` up to `k` times under one recall, choose the best run, and learn from all of them.

    This is memory-aware test-time scaling (paper section 3.3). A run that raises is a failed attempt (an agent that
    returns a `Trajectory` with `error=` keeps its steps). Every run is on disk as soon as it ends. When memory
    fails, the agent works without it and `notes` says so. `print` the result, or read its fields.

    Args:
        agent: `(task, memory)` to a trajectory or its messages, async or not. Where it has parameters of these
            names, it gets `seed` (`seed` + 0, 1, …), and in re-examinations `check` (what to do, and the record of
            the run before) and `previous` (that run).
        k: the largest number of runs; the first counts, so 1 is no scaling.
        mode: `parallel`: independent runs and one contrast of all. `sequential`: each run re-examines the one
            before. `vanilla`: independent runs, each learned from alone, in their order: the paper's control.
        verify: the world's check of a run, asked as soon as it ends: success or not, a score from 0 to 1, or an
            outcome. It beats the judge, and is not asked about a run that was stopped by an error.
        memory: `False` for the control without memory: nothing is recalled, shown, kept or learned.
        learn: `False` to leave the bank as it is: the runs are only judged, and the recall stays unsettled.
        labels: whether the contrast is told how each run ended; `None` as the profile does (the paper's hides it).
        choose: `model` compares the runs, by the paper's criteria; `verdicts` takes the likeliest success and asks
            nobody; `auto`: a model where the bank has one. In sequential mode the last sound run is taken.
        examine: in sequential mode `act`: the agent is called again, with the check in `check=`, or after the
            memory if it does not take that. `rewrite`: a model rewrites the answer and nothing is done.
        confirm: in sequential mode, how many re-examinations in a row must leave the answer as it is to stop; of a
            run without an answer, all that it did.
        concurrency: how many runs are made at once; by default at most 8. Under a budget of tokens or money one
            goes first, then as many of these as the budget holds by what they cost so far, unless this says
            otherwise.
        tokens: what all runs together may use. Once it is spent no run begins, and what is under way is finished.
        cost: the same in US dollars. Judging and learning come on top.
        seconds: the same in time. What is under way then is cut off and is a failed attempt, except for a plain
            function, which cannot be cut off.
        progress: called after every run. What it raises ends the whole.
        options: those of `retrieve`, for the one recall.

    Raises:
        UsageError: an argument that cannot be, or a verifier that returns no outcome.
    """
    from lessonbank.contracts.agents import check_calls  # noqa: PLC0415 - few banks scale: the rest loads with the call

    from .design import Design  # noqa: PLC0415 - as above
    from .runner import BankMemory, ScaledTask  # noqa: PLC0415 - as above

    design = Design(
        k=k,
        mode=mode,
        memory=a_flag(memory, "memory=") and not bank.options.off,
        learn=a_flag(learn, "learn=") and not bank.options.off,
        labels=labels,
        choose=choose,
        examine=examine,
        confirm=confirm,
        concurrency=concurrency,
        tokens=tokens,
        cost=cost,
        seconds=seconds,
        seed=seed,
    )
    task, asked = a_text(task, "the task", blank=False), RetrieveOptions(**options)
    check_calls(agent, verify=verify, progress=progress)
    if design.asks_model and bank.parts.scaler.model is None:
        raise UsageError(f"{design.asks_model} needs a model, and this bank has none: connect with model=")
    bank, notes = _label_contrast(bank, labels)
    notes += [OFF] if bank.options.off else []
    scaling = ScaledTask(BankMemory(bank, bank.parts.intake, asked), bank.parts.scaler, design, bank.scope, notes)
    with redacting_with(bank.parts.intake.redactor):
        return await scaling.run(task, agent, verifier=verify, progress=progress)


def _label_contrast(bank: Bank, labels: bool | None) -> tuple[Bank, list[str]]:
    """`bank`, with an extractor whose contrast shows how runs ended, or hides it; or why that cannot be."""
    if labels is None:
        return bank, []
    parts = bank.parts.labelled(labels)
    if parts is None:
        return bank, ["labels= changed nothing: this bank's extractor cannot be told whether to show outcomes"]
    relabelled = cast("Any", copy(bank))
    relabelled.parts = parts
    return relabelled, []
