"""Keeps the runs of a trial in a file as they end: a trial that was interrupted goes on, and pays for no run twice.

JSON Lines: first which trial it is and what it asks, then one line for each run. What tells it from others is a digest
of all that its answer depends on: the question, the seed, the level, the agent, and both texts of every task. The rest
(budgets, rounds, when to stop) may change, because the evidence is right whenever one stops.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from anyio import to_thread
from pydantic import ValidationError

from lessonbank._base.atomic_write import spare
from lessonbank._base.checks import a_path, short_path
from lessonbank.contracts.records import Record, Usage
from lessonbank.errors import StoreUnavailable, UsageError

from .design import Design, PairEvidence, Stopped, Trial, TrialRun

Key: TypeAlias = tuple[str, int, str]
_LONGEST_HEAD = 1_000_000
"""Bytes of a first line."""


class _Head(Record):
    """The first line."""

    lessonbank_trial: Literal[1] = 1
    """The format."""
    digest: str
    about: Trial
    """What is asked, before any run."""


class Journal:
    """The runs of one trial that are already there. Without a path they are kept nowhere."""

    def __init__(self, path: object = None, /, *, trial: str, about: Trial) -> None:
        """Open the journal of `trial`, a digest, or begin it. This blocks.

        Raises:
            UsageError: the file is something else, or the journal of another trial.
            StoreUnavailable: it cannot be read or written.
        """
        self._path = None if path is None else a_path(path, "resume=")
        self._runs: dict[Key, TrialRun] = {}
        if self._path is None:
            return
        try:
            spare(self._path, what="journal of a trial")
            self._open(self._path, _Head(digest=trial, about=about))
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _open(self, path: Path, head: _Head) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and content.strip() and not content.startswith(b'{"lessonbank_trial"'):
            raise UsageError(f"{short_path(path)} is no journal of a trial: name another file with resume=")
        if len(whole) < len(content):
            os.truncate(path, len(whole))  # the last line was cut off when the trial was: that run is made again
        if not whole:
            self._write(head.model_dump_json(exclude_defaults=True))
            return
        first, *lines = whole.splitlines()
        if _head(path, first).digest != head.digest:
            raise UsageError(
                f"{short_path(path)} is the journal of another trial (other tasks, memory, question, seed, level or "
                "agent): name another file with resume="
            )
        for run in _runs(path, lines):
            self._runs.setdefault((run.task, run.round, run.arm), run)

    def get(self, task: str, round: int, arm: str, /) -> TrialRun | None:
        """The run, if it was made before."""
        return self._runs.get((task, round, arm))

    async def add(self, run: TrialRun, /) -> None:
        """Keep a run: it is on disk when this returns. Raises StoreUnavailable."""
        if self._path is None:
            return
        try:
            await to_thread.run_sync(self._write, run.model_dump_json(exclude_defaults=True))
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _write(self, line: str) -> None:
        """One write of one line, so that runs that end at once do not mix."""
        assert self._path is not None
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)


def scope_of_trial(path: Path, /) -> str:
    """The scope that the trial of a file belongs to: its first line says so. This blocks.

    Raises UsageError, StoreUnavailable.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST_HEAD)
    except OSError as error:
        raise _unusable(path, error) from error
    return _head(path, first.rstrip(b"\n")).about.scope


def read_trial(path: Path, /) -> Trial:
    """What the file of a trial tells so far, also while the trial goes on. This blocks.

    The pairs are taken in the order in which they ended. Raises UsageError, StoreUnavailable.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from error
    first, *lines = content[: content.rfind(b"\n") + 1].splitlines() or [b""]
    about, runs = _head(path, first).about, list(_runs(path, lines))
    evidence = PairEvidence(Design(level=about.level, min_effect=about.min_effect, seed=about.seed))
    open_: dict[tuple[str, int], TrialRun] = {}
    stopped: Stopped | None = None
    for run in runs:
        other = open_.pop((run.task, run.round), None)
        if other is None:
            open_[run.task, run.round] = run
        else:
            stopped = evidence.take((other, run)) or stopped
    if stopped is None and len(runs) == about.most_runs:
        stopped = "nothing left to run" if about.most_runs >= 2 * about.tasks else "max_runs"
    spent = {
        "runs": len(runs),
        "usage": sum((run.usage for run in runs), Usage()),
        "seconds": round(sum(run.seconds for run in runs), 3),
        "stopped": stopped,
    }
    return evidence.with_findings(about.model_copy(update=spent))


def _head(path: Path, line: bytes) -> _Head:
    try:
        return _Head.model_validate_json(line)
    except ValidationError as error:
        raise UsageError(f"{short_path(path)} is no journal of a trial: name another file with resume=") from error


def _runs(path: Path, lines: Iterable[bytes]) -> Iterator[TrialRun]:
    for number, line in enumerate(lines, 2):
        try:
            yield TrialRun.model_validate_json(line)
        except ValidationError as error:
            raise UsageError(
                f"line {number} of {short_path(path)} is no run of a trial: remove the line, and its run is made again"
            ) from error


def _unusable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"cannot use the journal {short_path(path)}: {error.strerror or error}")
