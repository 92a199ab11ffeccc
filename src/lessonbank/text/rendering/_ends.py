"""Says how a run ended: the answer, what stopped it, or that its last effect was not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.types import Trajectory

from ._excerpt import unify
from ._parts import Part


def ending(run: Trajectory, /) -> Iterator[Part]:
    """The last words of the run, each under a label of ours."""
    answer, error, steps = unify(run.answer or ""), unify(run.error or ""), run.steps
    if answer and steps and answer == unify(steps[-1].action.text):
        yield Part(f"[no answer apart from the steps: the last thing the agent wrote is in step {len(steps)}]", "", 30)
    elif answer:
        yield Part("[final answer]", answer, 30)
    if error:
        yield Part("[what stopped the run]", error, 30)
    if steps and not error and (steps[-1].action.calls or steps[-1].action.text) and not steps[-1].observations:
        yield Part(f"[the record ends with step {len(steps)}: what it led to was not recorded]", "", 30)
    elif steps and not error and not answer and steps[-1].action.calls:
        yield Part(
            f"[the record ends with step {len(steps)}: no last word of the agent, no error was recorded]", "", 30
        )
