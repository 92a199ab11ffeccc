"""What workers tell of themselves in a bank's settings: who runs, what each lets a scope spend, and what it spent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Usage
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.queue import Allowance, Spending

SPENT: Final = "spent "
"""What the settings begin with under which lies what was spent: day, digest of the scope, worker."""
RUNNING: Final = "running "
"""What the settings begin with under which a worker, by its name, tells that it runs."""


class Running(Allowance):
    """What a worker that runs tells, again and again."""

    until: datetime
    """If it does not tell it again before, it does not run any more."""


async def spending(at: datetime, store: Store, /, *, scope: str) -> Spending:
    """What workers may spend and have spent in a scope, as known at a moment."""
    workers = map(Running.model_validate_json, (await store.settings(RUNNING)).values())
    allowances = tuple(Allowance(tokens=worker.tokens, cost=worker.cost) for worker in workers if worker.until > at)
    return Spending(allowances=allowances, spent=await spent_on(at, store, scope=scope))


async def spent_on(day: datetime, store: Store, /, *, scope: str) -> Usage:
    """What workers that have a budget spent in a scope on the day (UTC) of a moment. Earlier days are forgotten."""
    settings = await store.settings(spent_key(day, scope))
    return sum(map(Usage.model_validate_json, settings.values()), Usage())


def spent_key(at: datetime, scope: str, /) -> str:
    """Without the scope's name, which is contents."""
    return f"{day_key(at)}{digest(scope)} "


def day_key(at: datetime, /) -> str:
    """What the settings of one day begin with."""
    return f"{SPENT}{at.astimezone(UTC).date().isoformat()} "
