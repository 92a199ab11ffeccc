"""One write that waits for its turn, and what comes of it in a transaction that it shares with others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ._errors import IMPOSSIBLE, impossible


class Written(Future[Any]):
    """Knows that nobody waits for it any more, also when the thread has taken it up."""

    given_up = False

    def cancel(self) -> bool:
        self.given_up = True
        return super().cancel()


@dataclass(slots=True, eq=False)
class Job:
    """A write, and who waits for it."""

    work: Callable[..., Any]
    arguments: Sequence[Any]
    at_once: bool
    future: Written = field(default_factory=Written)


def outcome(connection: sqlite3.Connection, job: Job) -> tuple[Any, BaseException | None]:
    """What a write returns, or what it fails with: then nothing of it is written."""
    connection.execute("SAVEPOINT part")
    try:
        return job.work(connection, *job.arguments), None
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - it is the caller's, and the other parts go on without it
        connection.execute("ROLLBACK TO part")
        return None, impossible(error) if isinstance(error, IMPOSSIBLE) else error
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE part")
