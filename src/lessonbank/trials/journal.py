"""Keeps the runs of a trial in a file as they end: a trial that was interrupted goes on, and pays for no run twice.

JSON Lines: first which trial it is, then one line for each run. What tells it from others is a digest of all that its
answer depends on: the question, the seed, the level, the agent, and both texts of every task. The rest (budgets,
rounds, when to stop) may change, because the evidence is right whenever one stops.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from anyio import to_thread
from pydantic import ConfigDict, ValidationError

from lessonbank._base.atomic_write import spare
from lessonbank._base.checks import a_path, short_path
from lessonbank.contracts.records import Record
from lessonbank.errors import StoreUnavailable, UsageError

from .design import TrialRun


class _Head(Record):
    """The first line. Earlier versions also wrote there what is asked."""

    model_config = ConfigDict(extra="ignore")
    lessonbank_trial: Literal[1] = 1
    """The format."""
    digest: str


class Journal:
    """The runs of one trial that are already there. Without a path they are kept nowhere."""

    def __init__(self, path: object = None, /, *, trial: str) -> None:
        """Open the journal of `trial`, a digest, or begin it. This blocks.

        Raises:
            UsageError: the file is something else, or the journal of another trial.
            StoreUnavailable: it cannot be read or written.
        """
        self._path = None if path is None else a_path(path, "resume=")
        self._runs: dict[tuple[str, int, str], TrialRun] = {}
        if self._path is not None:
            with _usable(self._path):
                spare(self._path, what="journal of a trial")
                self._open(self._path, _Head(digest=trial))

    def _open(self, path: Path, head: _Head) -> None:
        written, line = path.read_bytes() if path.exists() else b"", head.model_dump_json()
        whole = written[: written.rfind(b"\n") + 1]
        foreign = UsageError(f"{short_path(path)} is no journal of a trial: name another file with resume=")
        if not whole and not line.encode().startswith(written):
            raise foreign
        if len(whole) < len(written):
            os.truncate(path, len(whole))  # the last line was cut off when the trial was: that run is made again
        if not whole:
            _write(path, line)
            return
        first, *lines = whole.splitlines()
        try:
            earlier = _Head.model_validate_json(first)
        except ValidationError as error:
            raise foreign from error
        if earlier.digest != head.digest:
            raise UsageError(
                f"{short_path(path)} is the journal of another trial (other tasks, memory, question, seed, level or "
                "agent): name another file with resume="
            )
        for number, line in enumerate(lines, 2):
            run = _read(path, number, line)
            self._runs.setdefault((run.task, run.round, run.arm), run)

    def get(self, task: str, round: int, arm: str, /) -> TrialRun | None:
        """The run, if it was made before."""
        return self._runs.get((task, round, arm))

    async def add(self, run: TrialRun, /) -> None:
        """Keep a run: it is on disk when this returns. Raises StoreUnavailable."""
        if self._path is not None:
            with _usable(self._path):
                await to_thread.run_sync(_write, self._path, run.model_dump_json(exclude_defaults=True))


def _read(path: Path, number: int, line: bytes) -> TrialRun:
    try:
        return TrialRun.model_validate_json(line)
    except ValidationError as error:
        raise UsageError(
            f"line {number} of {short_path(path)} is no run of a trial: remove the line, and its run is made again"
        ) from error


def _write(path: Path, line: str) -> None:
    """One write of one line, so that runs that end at once do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _usable(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"cannot use the journal {short_path(path)}: {error.strerror or error}") from error
