"""What a bank does while nobody waits: `close` waits for it, as long as the bank answers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from lessonbank.errors import StoreUnavailable

log: Final = logging.getLogger("lessonbank")


class Background:
    """Work under way that nobody waits for. Its errors are warnings."""

    def __init__(self, describe: Callable[[Exception], str], /) -> None:
        self._describe = describe
        self._tasks = set[asyncio.Task[None]]()
        self._left: Counter[str] | None = None
        """What was not done since the bank is closed, and how often."""

    def begin(self, work: Callable[[], Coroutine[Any, Any, object]], /, *, lost: str) -> None:
        """Begin `work` on this event loop; `lost` is what is not done where it fails."""
        task = asyncio.get_running_loop().create_task(self._done(work, lost))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _done(self, work: Callable[[], Coroutine[Any, Any, object]], lost: str) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a part of the caller's own may raise anything; nobody waits here
            if self._left is not None and isinstance(error, StoreUnavailable):
                self._left[lost] += 1
            else:
                log.warning("%s: %s: %s", lost, type(error).__name__, self._describe(error))

    async def drain(self) -> None:
        """Wait until all is done."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def end(self, patience: float, /) -> None:
        """Wait until all is done, or failed because the bank did not answer: one warning says how much."""
        self._left = Counter[str]()
        await self.drain()
        if left := [f"{lost} ({count}×)" for lost, count in self._left.items()]:
            log.warning("the bank gave no answer within %g seconds while it was closed: %s", patience, "; ".join(left))
        self._left = None
