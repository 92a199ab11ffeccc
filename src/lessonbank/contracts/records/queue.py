"""The records of the queue: kept runs are what workers wait for, so that no second table can disagree with them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from .changes import Learned
from .record import Record
from .runs import Trajectory
from .usage import Usage

IN_HAND: Final = 600.0
"""Seconds for which a kept run is left to the process that kept it, which mostly learns from it at once."""


def problem_of(learned: Learned, /) -> str:
    """Why runs still wait after a try to learn from them."""
    return "; ".join(learned.notes) or "the run was neither judged nor learned"


class Claim(Record):
    """A run that a worker took, and nobody else until its time is over."""

    scope: str
    trajectory: Trajectory
    tries: int = 0
    """How often it was taken before. One that ends its worker each time is seen by this."""


class QueueStatus(Record):
    """How many runs wait to be learned, and for how long. It names no scope and holds no contents."""

    waiting: int = 0
    """Those that no worker holds. Some wait for the end of a pause after a try that failed."""
    claimed: int = 0
    failed: int = 0
    """Those that were tried so often that no worker takes them any more."""
    oldest: datetime | None = None
    """When the oldest of those that wait, or are claimed, was kept."""

    def __add__(self, other: QueueStatus, /) -> QueueStatus:
        """Both together."""
        return QueueStatus(
            waiting=self.waiting + other.waiting,
            claimed=self.claimed + other.claimed,
            failed=self.failed + other.failed,
            oldest=min(filter(None, (self.oldest, other.oldest)), default=None),
        )


class Allowance(Record):
    """What a worker lets one scope spend on one day (UTC). Without a bound it does not count what it spends."""

    tokens: int | None = None
    """Tokens read and written by models; `None`: as many as it takes."""
    cost: float | None = None
    """US dollars; `None`: as many as it takes."""


class Spending(Record):
    """What learning in one scope may cost on a day, and what it cost today (UTC)."""

    allowances: tuple[Allowance, ...] = ()
    """One for each worker of the bank that runs now."""
    spent: Usage = Usage()
    """What workers with a bound spent in the scope today."""
