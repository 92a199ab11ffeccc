"""A request that is sent twice is done once: the second one gets the answer of the first."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from starlette.responses import Response

from .problems import problem

_MOST: Final = 4096
_LARGEST: Final = 1_000_000
"""Bytes of an answer that is held."""
MOST_BYTES: Final = 64_000_000
"""Bytes of all answers that are held: with the longest of each, a key could fill the memory of the server."""
_SECONDS: Final = 600.0


class Once:
    """The answers of the last minutes, by key and name of the request. They end with the process.

    What must not be done twice after that, either, has ids of its own: a run, a recall, a lesson.
    """

    def __init__(self) -> None:
        self._answers = OrderedDict[tuple[str, ...], tuple[float, bytes, asyncio.Future[Response | None]]]()
        self.size = 0
        """Bytes of the answers that are held."""

    async def __call__(self, name: tuple[str, ...], asked: bytes, /, do: Callable[[], Awaitable[Response]]) -> Response:
        """What `do` answers, or answered to the same request. Failures are not held: they may be tried again."""
        self._forget_old()
        while known := self._answers.get(name):
            if known[1] != asked:
                return problem("idempotency", "this Idempotency-Key was used for another request: use a new one")
            if answer := await asyncio.shield(known[2]):
                return _copy(answer)
        waiting = asyncio.get_running_loop().create_future()
        self._answers[name] = (monotonic(), asked, waiting)
        answer: Response | None = None
        try:
            answer = await do()
            return answer
        finally:
            good = answer is not None and answer.status_code < 300 and len(answer.body) <= _LARGEST
            waiting.set_result(_copy(answer) if good and answer else None)
            if name in self._answers and self._answers[name][2] is waiting:
                self.size += _size(waiting)
                if not good:
                    del self._answers[name]

    def _forget_old(self) -> None:
        while self._answers:
            begun, _, waiting = next(iter(self._answers.values()))
            if len(self._answers) <= _MOST and self.size <= MOST_BYTES and monotonic() - begun < _SECONDS:
                return
            self._answers.popitem(last=False)
            self.size -= _size(waiting)


def _size(waiting: asyncio.Future[Response | None]) -> int:
    answer = waiting.result() if waiting.done() else None
    return len(answer.body) if answer else 0


def _copy(answer: Response) -> Response:
    """Copy an answer, because the one that is sent changes: packed with gzip, it has other headers."""
    return Response(answer.body, answer.status_code, dict(answer.headers), answer.media_type)
