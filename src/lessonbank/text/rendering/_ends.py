"""Says how a run ended: the answer, what stopped it, or that its last effect was not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.contracts.records import Trajectory

from ._excerpt import unify
from ._parts import Part


def last_words(run: Trajectory, /) -> Iterator[Part]:
    """The answer and what stopped the run, where there are such."""
    answer, error, steps = unify(run.answer or ""), unify(run.error or ""), run.steps
    if answer and steps and answer == unify(steps[-1].action.text):
        yield Part(f"[no answer apart from the steps: the last thing the agent wrote is in step {len(steps)}]", "", 30)
    elif answer:
        yield Part("[final answer]", answer, 30)
    if error:
        yield Part("[what stopped the run]", error, 30)


def ending(run: Trajectory, /) -> Iterator[Part]:
    """Its last words, and whether the record ends before anything came of the last step."""
    yield from last_words(run)
    steps = run.steps
    if not steps or unify(run.error or ""):
        return
    last = steps[-1]
    if (last.action.calls or last.action.text) and not last.observations:
        yield Part(f"[the record ends with step {len(steps)}: what it led to was not recorded]", "", 30)
    elif last.action.calls and not unify(run.answer or ""):
        yield Part(
            f"[the record ends with step {len(steps)}: no last word of the agent, no error was recorded]", "", 30
        )
