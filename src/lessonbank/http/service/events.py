"""The journal of a scope as a stream: each change as it comes, and after a break from where the reader was."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import StreamingResponse

from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.records import JournalEntry
from lessonbank.errors import UsageError

_PAGE: Final = 100
_LOOKS: Final = 0.8
"""Seconds between two looks at the journal, which other servers and workers write, too, and at the reader's key."""
_ALIVE: Final = 15
"""Looks without a change after which a line says that the server is there."""


def stream(request: Request, bank: AsyncReasoningBank, is_open: Callable[[], Awaitable[bool]], /) -> StreamingResponse:
    """Server-sent events: the id is the number of the change, the event its kind, the data the journal's entry.

    They end when the key of the request does, about which `is_open` is asked before each page.

    `Last-Event-ID`, or `?after=`, names the last one that the reader has. Without: changes from the first on.
    Raises UsageError.
    """
    last_id = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    if not (last_id.isascii() and last_id.isdigit() and len(last_id) < 19):
        raise UsageError("Last-Event-ID is the number of a change: leave it out to begin with the first")
    return StreamingResponse(_events(bank, int(last_id), is_open), media_type="text/event-stream")


async def _events(bank: AsyncReasoningBank, after: int, is_open: Callable[[], Awaitable[bool]]) -> AsyncGenerator[str]:
    quiet = 0
    yield ": open\n\n"
    while await is_open():
        for entry in await bank.history.list(after=after, limit=_PAGE):
            after, quiet = entry.sequence, 0
            yield _event(entry)
        quiet += 1
        if quiet % _ALIVE == 0:
            yield ": still here\n\n"
        await anyio.sleep(_LOOKS)
    yield ": the key has ended\n\n"


def _event(entry: JournalEntry) -> str:
    return f"id: {entry.sequence}\nevent: {entry.entry.kind}\ndata: {entry.model_dump_json()}\n\n"
