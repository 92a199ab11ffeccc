"""Writes of one process, joined: those that wait at the same moment are made durable by one commit."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lessonbank._concurrency import rested

from ._causes import is_busy
from ._connecting import patiently

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]

_MOST: Final = 64
"""Writes in one commit."""
_IDLE: Final = 5.0
"""Seconds without a write after which the thread ends; the next write starts another."""


@dataclass(slots=True)
class _Job:
    work: Work
    bare: bool
    """Whether it goes alone, and outside of a transaction."""
    future: Future[Any] = field(default_factory=Future)


class Committer:
    """One thread that does what is handed to it in order. `turn` gives it the connection for one commit.

    A write that fails takes nothing with it: the others of its commit are done without it. When the commit itself
    fails, each write is tried once more by itself, so that every caller learns the fate of its own.
    """

    def __init__(self, turn: Callable[[], AbstractContextManager[sqlite3.Connection]], /, *, patience: float) -> None:
        self._turn, self._patience = turn, patience
        self._state = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._thread: threading.Thread | None = None
        self._idle = _IDLE
        self._committing = False

    def submit(self, work: Callable[[sqlite3.Connection], T], /, *, bare: bool = False) -> Future[T]:
        """The future result of `work`, there once everything it wrote is on disk;
        cancelled while it still waits, it is not done at all.

        Raises:
            RuntimeError: it was stopped, or no thread can be started; nothing was handed in.
        """
        job = _Job(work, bare)
        with self._state:
            if not self._idle:
                raise RuntimeError("stopped")
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="lessonbank-writer", daemon=True)
                thread.start()
                self._thread = thread
            self._jobs.append(job)
            self._state.notify_all()
        return job.future

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return not (self._jobs or self._committing)

    def stop(self) -> None:
        """Wait until what was handed in is done, and let the thread end."""
        with self._state:
            self._idle = 0.0
            self._state.notify_all()
            self._state.wait_for(lambda: self._thread is None)

    def _run(self) -> None:
        while jobs := self._next():
            live = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if live:
                self._commit(live)
            self._committing = False

    def _next(self) -> list[_Job]:
        with self._state:
            if not self._jobs:
                self._state.wait_for(lambda: self._jobs or not self._idle, timeout=self._idle)
            if not self._jobs:
                self._thread = None
                self._state.notify_all()
                return []
            taken = [self._jobs.popleft()]
            self._committing = True
            while self._jobs and len(taken) < _MOST and not (taken[0].bare or self._jobs[0].bare):
                taken.append(self._jobs.popleft())
            return taken

    def _commit(self, jobs: Sequence[_Job]) -> None:
        rested()
        try:
            with self._turn() as connection:
                outcomes = [_bare(connection, jobs[0])] if jobs[0].bare else _together(connection, jobs, self._patience)
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the callers, not to this thread
            self._failed(jobs, error)
            return
        self._committing = False  # before anybody hears of it: who goes on with another write must not find this one
        for job, (result, error) in zip(jobs, outcomes, strict=True):
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

    def _failed(self, jobs: Sequence[_Job], error: BaseException) -> None:
        if len(jobs) == 1 or is_busy(error.__cause__):  # one wait is enough for all
            for job in jobs:
                job.future.set_exception(error)
            return
        for job in jobs:
            self._commit([job])


_Outcome = tuple[Any, BaseException | None]


def _bare(connection: sqlite3.Connection, job: _Job) -> _Outcome:
    return job.work(connection), None


def _together(connection: sqlite3.Connection, jobs: Sequence[_Job], patience: float) -> list[_Outcome]:
    if len(jobs) == 1:
        return [(transacted(connection, jobs[0].work, patience=patience), None)]
    return transacted(connection, lambda connection: [_part(connection, job) for job in jobs], patience=patience)


def _part(connection: sqlite3.Connection, job: _Job) -> _Outcome:
    rested()  # its statements let others in
    connection.execute("SAVEPOINT part")
    try:
        result = job.work(connection)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - it is the caller's, and the other parts go on without it
        connection.execute("ROLLBACK TO part")
        connection.execute("RELEASE part")
        return None, error
    connection.execute("RELEASE part")
    return result, None


def transacted(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], /, *, patience: float) -> T:
    """What `work` returns, once all it wrote is on disk; if anything fails, nothing was written."""
    patiently(connection, "BEGIN IMMEDIATE", patience=patience)
    try:
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has ended it already after some failures, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return done
