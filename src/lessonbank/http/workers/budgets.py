"""What a scope may spend in a day, and what it has spent: kept with the bank, so that all workers know."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from lessonbank._base.checks import a_number, maybe_count
from lessonbank.bank.views.spending import RUNNING, SPENT, Running, day_key, spent_key, spent_on
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Usage
from lessonbank.contracts.records.ids import now

log = logging.getLogger("lessonbank")


@dataclass(frozen=True, slots=True)
class Budget:
    """What models may cost in one scope on one day (UTC). What is under way when it is spent is finished.

    Counted is what learning from a run takes, and what fitting lessons to its task took.

    Raises:
        UsageError: a bound that is not above 0.
    """

    tokens: int | None = None
    """Tokens read and written by models; `None`: as many as it takes."""
    cost: float | None = None
    """US dollars, where the price of the model is known."""

    def __post_init__(self) -> None:
        maybe_count(self.tokens, "Budget(tokens=)")
        if self.cost is not None:
            a_number(self.cost, "Budget(cost=)", "is a number of US dollars above 0", above=0.0)

    def is_spent(self, usage: Usage, /) -> bool:
        """Whether a scope that has spent `usage` today has to wait for tomorrow."""
        if self.tokens is not None and usage.input_tokens + usage.output_tokens >= self.tokens:
            return True
        return self.cost is not None and (usage.cost or 0.0) >= self.cost


class Budgets:
    """Counts what `worker` spends beside what the others of the same bank do, and tells what it may spend.

    Each worker has entries of its own.
    """

    def __init__(
        self, store: Store, budget: Budget | None, /, *, worker: str, clock: Callable[[], datetime] = now
    ) -> None:
        self._store, self._budget, self._worker, self._clock = store, budget, worker, clock
        self._spent = dict[str, Usage]()
        self._is_warned = False

    async def wait(self, scope: str, /) -> float:
        """Seconds until `scope` may spend again; 0 where it may."""
        if self._budget is None:
            return 0.0
        at = self._clock().astimezone(UTC)
        if not self._budget.is_spent(await spent_on(at, self._store, scope=scope)):
            return 0.0
        tomorrow = datetime.combine(at.date() + timedelta(days=1), time(), UTC)
        return (tomorrow - at).total_seconds()

    async def spend(self, scope: str, usage: Usage, /) -> None:
        """Count what a run of `scope` cost."""
        if self._budget is None or not usage.requests:
            return
        if self._budget.cost is not None and usage.cost is None and not self._is_warned:
            log.warning("the price of this model is not known: a budget in US dollars does not bound it")
            self._is_warned = True
        entry = f"{spent_key(self._clock(), scope)}{self._worker}"
        if entry not in self._spent:
            await self._forget_other_days()
        self._spent[entry] = self._spent.get(entry, Usage()) + usage
        await self._store.put_setting(entry, self._spent[entry].model_dump_json())

    async def tell(self, seconds: float, /) -> None:
        """Have the bank know for so many seconds that the worker runs, and what it lets a scope spend."""
        bounds = self._budget or Budget()
        until = self._clock() + timedelta(seconds=seconds)
        notice = Running(tokens=bounds.tokens, cost=bounds.cost, until=until)
        await self._store.put_setting(f"{RUNNING}{self._worker}", notice.model_dump_json())

    async def leave(self) -> None:
        """Have the bank know that the worker does not run any more; nor do those that ended without a word."""
        for key, text in (await self._store.settings(RUNNING)).items():
            if key == f"{RUNNING}{self._worker}" or Running.model_validate_json(text).until < self._clock():
                await self._store.put_setting(key, None)

    async def _forget_other_days(self) -> None:
        today = day_key(self._clock())
        for key in await self._store.settings(SPENT):
            if not key.startswith(today):
                await self._store.put_setting(key, None)
        self._spent = {key: usage for key, usage in self._spent.items() if key.startswith(today)}
