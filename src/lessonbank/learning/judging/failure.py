"""A judge that fails cannot tell, and costs nobody the run."""

from __future__ import annotations

from lessonbank.errors import ModelError
from lessonbank.guard.quote import quoted
from lessonbank.protocols import Judge
from lessonbank.types import Trajectory, Verdict

from .ask import unknown


async def judged(judge: Judge, run: Trajectory, /) -> Verdict:
    """What `judge` says of `run`; `unknown`, with the reason, where its model failed."""
    try:
        return await judge(run)
    except ModelError as error:
        return unknown(f"the judge's model failed: {quoted(error)}", error=error.code)
