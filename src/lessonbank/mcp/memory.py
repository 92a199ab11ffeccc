"""The bank behind the tools: opened as soon as it can be, one scope for each credential, and the recalls still open."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import NOT_JUDGED, Json, Recall
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import StoreError, StoreReplaced, StoreUnavailable

log = logging.getLogger("lessonbank")
DEADLINE: Final = 10.0
"""Seconds a tool waits for the bank: an agent goes on without memory rather than wait for it."""
_DRAIN: Final = 60.0
"""Seconds that learning may go on after the last client has left; what is not done by then stays on disk."""
SOURCE: Final[Mapping[str, Json]] = {"source": "mcp"}
"""The metadata of runs and recalls that came this way."""
_LEFT: Final = 50
"""Runs that a server takes over from an earlier one."""
_MOST: Final = 1000
"""Open recalls that are remembered: an agent that never records must not fill this process."""


class Memory:
    """A bank that `connect` opens. It stays up while the bank is down, and opens it with the next call."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[AsyncReasoningBank]],
        /,
        *,
        scopes: Sequence[str] = (),
        retrieve: RetrieveOptions | None = None,
        without: Collection[str] = (),
        tells: bool = False,
    ) -> None:
        self._connect = connect
        self.without, self.tells = without, tells
        """Tools that the owner of the server leaves out; whether the client may tell how runs ended."""
        asked = retrieve or RetrieveOptions()
        self.retrieve = replace(asked, metadata={**(asked.metadata or {}), **SOURCE})
        """What the owner of the server asks of each recall."""
        self.scopes = scopes
        """Where keys open scopes: which. A call without a key belongs to none of them."""
        self._bank: AsyncReasoningBank | None = None
        self._replaced: AsyncReasoningBank | None = None
        self._opening, self._users = anyio.Lock(), 0
        self.open_recalls = OpenRecalls()

    async def ready(self) -> None:
        """Open the bank now. Raises UsageError; that the bank is down is only logged."""
        try:
            await self._open()
        except StoreError as error:
            log.warning("memory is down, and is tried again with each call: %s", error)

    @asynccontextmanager
    async def bank(self, scope: str | None = None, /) -> AsyncGenerator[AsyncReasoningBank]:
        """Inside, the bank in `scope`, or in its own, answers in time. Raises UsageError, StoreError."""
        bank: AsyncReasoningBank | None = None
        try:
            with anyio.fail_after(DEADLINE):
                bank = await self._open()
                yield bank if scope is None else bank.scoped(scope)
        except StoreReplaced:
            if bank is self._bank:  # the next call opens the file that lies there now
                self._replaced, self._bank = bank, None
            raise
        except TimeoutError:
            raise StoreUnavailable(f"memory did not answer within {DEADLINE:.0f} seconds: go on without it") from None

    async def _open(self) -> AsyncReasoningBank:
        async with self._opening:
            if self._bank is None:
                self._bank = await self._connect()
                if self._replaced is not None:
                    self._bank.in_background(self._replaced.close, lost="the replaced bank was not closed")
                for scope in self.scopes or (self._bank.scope,):
                    self._bank.in_background(
                        partial(_catch_up, self._bank.scoped(scope)), lost="runs of an earlier server stay pending"
                    )
            return self._bank

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Memory]:
        """Inside, tools may call; when the last block ends, what was recorded is learned and the bank is closed."""
        self._users += 1
        try:
            await self.ready()
            yield self
        finally:
            self._users -= 1
            if not self._users:
                await self._close()

    async def _close(self) -> None:
        banks, self._bank, self._replaced = (self._replaced, self._bank), None, None
        with anyio.move_on_after(_DRAIN, shield=True):
            for bank in banks:
                if bank is not None:
                    await bank.close()
            return
        log.warning("learning took longer than %.0f seconds: `lessonbank learn --waiting` goes on with it", _DRAIN)


async def _catch_up(bank: AsyncReasoningBank) -> None:
    """Learn from what an earlier server left behind: most clients end theirs two seconds after they leave it."""
    left = await bank.runs.list(status="pending", metadata=SOURCE, limit=_LEFT)
    if any(run.verdict.reason == NOT_JUDGED or run.verdict.error for run in left):
        await bank.runs.retry(limit=_LEFT)


class OpenRecalls:
    """The recalls of each session whose task has not ended."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, Recall]] = OrderedDict()
        self._later: OrderedDict[str, list[str]] = OrderedDict()

    def later(self, first: Recall | str | None, again: Recall, /) -> None:
        """Remember a recall in the middle of the task of `first`."""
        if first is not None and again.kept:
            self._later.setdefault(_id(first), []).append(again.id)
            if len(self._later) > _MOST:
                self._later.popitem(last=False)

    def later_ones(self, first: Recall | str | None, /) -> list[str]:
        """The recalls in the middle of the task of `first`."""
        return self._later.get(_id(first), []) if first else []

    def add(self, session: str | None, recall: Recall, /) -> None:
        """Remember a recall. `session`: `None` where the client has none; then only its id finds it again."""
        self._open[recall.id] = session or "", recall
        if len(self._open) > _MOST:
            self._open.popitem(last=False)

    def take(self, recall_id: str, /, *, task: str, scope: str, session: str | None) -> Recall | str | None:
        """The recall that a record of `task` settles: the one it names, else that of the session for this task.

        A session that has one recall open means this one, in whatever words it says its task again.
        """
        if recall_id:
            _, recall = self._open.get(recall_id, ("", None))
            return recall if recall and recall.scope == scope else recall_id
        if session is None:
            return None
        mine = [recall for known, recall in self._open.values() if known == session and recall.scope == scope]
        same = [recall for recall in mine if _plain(recall.task) == _plain(task)]
        return same[-1] if same else mine[0] if len(mine) == 1 else None

    def end(self, recall: Recall | str | None, /) -> None:
        """Forget a recall: its task has ended."""
        self._open.pop(_id(recall), None)
        self._later.pop(_id(recall), None)


def _id(recall: Recall | str | None) -> str:
    return recall.id if isinstance(recall, Recall) else recall or ""


def _plain(task: str) -> str:
    return " ".join(task.casefold().split())
