"""Serves one client over stdin and stdout: a message of JSON-RPC on each line, and nothing else.

Source: the specification of the Model Context Protocol, "Lifecycle" and "Transports", revision 2025-11-25.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import anyio
from anyio import CancelScope, to_thread
from anyio.abc import TaskGroup

from lessonbank._version import VERSION

from .offer import NAME, TITLE, Offer, ProtocolError, memory_of
from .tools import Caller

if TYPE_CHECKING:
    from lessonbank.wiring import Place

log = logging.getLogger("lessonbank")
_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`. A client of another one is offered the last."""
_INVALID: Final = -32600


async def serve_stdio(where: Place, /, *, scope: str, **settings: Any) -> None:
    """Serve one client over stdin and stdout until it leaves, then learn what it recorded. Raises UsageError."""
    memory = memory_of(where, scope=scope, **settings)
    offer = Offer(memory)
    async with memory.serving():
        with _wire() as (lines, out):
            await Conversation(offer, out).hold(lines)


class Conversation:
    """What one client asks, and its answers: each in a task of its own, so that none waits for another."""

    def __init__(self, offer: Offer, out: IO[bytes], /) -> None:
        self._offer, self._out = offer, out
        self._caller = Caller(offer.memory)
        self._writing, self._running = anyio.Lock(), dict[str | int, CancelScope]()

    async def hold(self, lines: IO[bytes], /) -> None:
        """Answer each line until there is none; what was asked before is still done."""
        async with anyio.create_task_group() as tasks:
            while line := await to_thread.run_sync(lines.readline, abandon_on_cancel=True):
                self._take(line, tasks)

    def _take(self, line: bytes, tasks: TaskGroup) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            log.warning("a line over MCP is no JSON, and was passed over")
            return
        if not isinstance(message, dict):
            log.warning("a message over MCP is no object, and was passed over")
            return
        fields = cast("dict[str, Any]", message)
        id, method, given = fields.get("id"), fields.get("method"), fields.get("params")
        about = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        if method == "notifications/cancelled":
            self._cancel(about.get("requestId"))
        elif isinstance(id, str | int) and method is not None:
            tasks.start_soon(self._reply, id, method, about)

    def _cancel(self, id: object) -> None:
        if isinstance(id, str | int) and (running := self._running.get(id)):
            running.cancel()

    async def _reply(self, id: str | int, method: object, given: Mapping[str, Any]) -> None:
        with CancelScope() as scope:
            self._running[id] = scope
            try:
                reply: dict[str, Any] = {"result": await self._result(method, given)}
            except ProtocolError as error:
                reply = {"error": {"code": error.code, "message": str(error)}}
            finally:
                self._running.pop(id, None)
            await self._write({"jsonrpc": "2.0", "id": id, **reply})

    async def _result(self, method: object, given: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(method, str):
            raise ProtocolError(_INVALID, "the method of a request is a text")
        if method == "initialize":
            return _greeting(self._offer, given.get("protocolVersion"))
        return {} if method == "ping" else await self._offer.answer(method, given, self._caller)

    async def _write(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        async with self._writing:
            await to_thread.run_sync(partial(_write_line, self._out, line))


def _greeting(offer: Offer, asked: object) -> dict[str, Any]:
    return {
        "protocolVersion": asked if asked in _VERSIONS else _VERSIONS[-1],
        "capabilities": {
            "tools": {"listChanged": False},
            "resources": {"subscribe": False, "listChanged": False},
            "prompts": {"listChanged": False},
        },
        "serverInfo": {"name": NAME, "title": TITLE, "version": VERSION},
        "instructions": offer.instructions,
    }


def _write_line(out: IO[bytes], line: bytes) -> None:
    try:
        out.write(line)
        out.flush()
    except (OSError, ValueError):  # the client has left: what it asked is done all the same
        log.info("a client over MCP left before its answer")


@contextmanager
def _wire() -> Generator[tuple[IO[bytes], IO[bytes]]]:
    """The stdin and stdout of this process. Inside, nothing else reads or writes them: stray words go to stderr."""
    taken = os.dup(0), os.dup(1)
    try:
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        yield os.fdopen(taken[0], "rb", closefd=False), os.fdopen(taken[1], "wb", closefd=False)
    finally:
        sys.stdout.flush()
        os.dup2(taken[0], 0)
        os.dup2(taken[1], 1)
