"""What comes into a bank goes through its redactor first: nothing else has seen it by then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from anyio import to_thread

from lessonbank.protocols import Redactor
from lessonbank.types import Attempt, Experience, Trajectory

from ._walking import checked, redacted, redacted_experience
from .redact import Redacting

T = TypeVar("T")
_QUICK = 4096
"""Characters that the built-in redactor reads faster than a thread starts."""


async def task_in(task: str, redactor: Redactor | None, /) -> str:
    """A task that is asked about, as the runs of the same task have it."""
    if redactor is None or (isinstance(redactor, Redacting) and len(task) <= _QUICK):
        return _task(task, redactor)
    return await to_thread.run_sync(_task, task, redactor)


async def runs_in(runs: Iterable[Trajectory], redactor: Redactor | None, /) -> list[Trajectory]:
    """Runs as they may be kept, judged and learned from."""
    return await _each(runs, redacted, redactor)


async def attempts_in(attempts: Sequence[Attempt], redactor: Redactor | None, /) -> list[Attempt]:
    """Attempts with their runs as they may be read."""
    runs = await runs_in((attempt.trajectory for attempt in attempts), redactor)
    return [Attempt(trajectory=run, verdict=a.verdict) for run, a in zip(runs, attempts, strict=True)]


async def experience_in(experience: Experience, redactor: Redactor | None, /) -> Experience:
    """An experience as it may be kept."""
    return (await _each([experience], redacted_experience, redactor))[0]


def _task(task: str, redactor: Redactor | None) -> str:
    return task if redactor is None else checked(redactor(task)).strip() or "[removed]"


async def _each(things: Iterable[T], through: Callable[[T, Redactor], T], redactor: Redactor | None) -> list[T]:
    """In a thread: a run may be long, and a redactor of the caller's own may be slow."""
    if redactor is None:
        return list(things)
    return [await to_thread.run_sync(through, thing, redactor) for thing in things]
