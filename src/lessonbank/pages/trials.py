"""The trials whose files lie in a folder: how far each is, and what it found so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from anyio import to_thread
from starlette.responses import Response

from lessonbank.errors import LessonbankError, NotFound
from lessonbank.trials import Trial
from lessonbank.trials.journal import read_trial, scope_of_trial

from .visit import Visit

_MOST: Final = 50
_LOOKED_AT: Final = 1_000
"""Files whose first line is read."""
_LARGEST: Final = 20_000_000
"""Bytes of a file that is read."""


@dataclass(frozen=True, slots=True)
class TrialFile:
    """A file of a trial."""

    name: str
    at: datetime
    """When it was written last."""
    trial: Trial | None
    problem: str = ""
    """Why it cannot be read."""


async def page(visit: Visit) -> Response:
    """The trials of the scope, the last one first."""
    folder = visit.site.trials
    if folder is None:
        raise NotFound("these pages know no folder of trials: start them with --trials FOLDER")
    trials = await to_thread.run_sync(
        lambda: list(islice(_list_trials(folder, visit.scope, whole=visit.is_owner), _MOST))
    )
    return visit.page("trials.html", {"kept": trials})


def _list_trials(folder: Path, scope: str, /, *, whole: bool) -> Iterator[TrialFile]:
    """The trials of a scope. `whole`: also what is none, for who owns the bank: its name may be another tenant's."""
    files = [(file.stat(), file) for file in folder.glob("*.jsonl") if file.is_file()]
    for stat, file in sorted(files, key=lambda pair: pair[0].st_mtime, reverse=True)[:_LOOKED_AT]:
        try:
            if scope_of_trial(file) != scope:
                continue
        except LessonbankError:
            if not whole:
                continue
        yield _read(file, stat.st_mtime, stat.st_size)


def _read(file: Path, at: float, size: int) -> TrialFile:
    moment = datetime.fromtimestamp(at, UTC)
    if size > _LARGEST:
        return TrialFile(file.name, moment, None, f"it has {size:,} bytes, and at most {_LARGEST:,} are read")
    try:
        return TrialFile(file.name, moment, read_trial(file))
    except LessonbankError as error:
        return TrialFile(file.name, moment, None, str(error))
