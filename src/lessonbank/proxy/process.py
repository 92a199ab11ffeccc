"""Keeps the memory's process: starts it, asks it within a deadline, and does without it when it is gone or late."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any, Final

from lessonbank.contracts.records import Outcome
from lessonbank.contracts.retrieve_options import PATIENCE
from lessonbank.errors import LessonbankError, UsageError

from .conversations import Ended
from .entrance import Whose
from .frames import HEAD, Frame, packed, unpacked

log = logging.getLogger("lessonbank")
_STARTING: Final = 60.0
"""Seconds for a bank to open."""
_ENDING: Final = 30.0
"""Seconds for what is left to learn; what is not learned then stays pending in the bank."""
_WAITING: Final = 64 * 1024 * 1024
"""Bytes that may wait for a memory that does not read."""
_LONGEST_PAUSE: Final = 60.0


class MemoryProcess:
    """The proxy's side of its memory. Nothing in it raises once it has started, and nothing waits beyond `patience`."""

    def __init__(self, settings: Mapping[str, Any], /) -> None:
        self._settings = {**settings}
        self._patience: float = settings.get("retrieve", {}).get("patience", PATIENCE)
        self._cures: bool = settings.get("cures", True)
        self._process: asyncio.subprocess.Process | None = None
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._numbers, self._is_late, self._is_full = count(), False, False
        self._held = list[bytes]()
        """What ended while the memory was not there, until it is started again."""
        self._keeping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process, while it is there."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Open the bank.

        Raises:
            LessonbankError: it cannot be opened; the sentence says why.
        """
        process = await self._open()
        self._keeping = asyncio.create_task(self._keep(process))

    async def close(self) -> None:
        """Let the memory learn what it was given, and end it."""
        if self._keeping is None:
            return
        process, self._process = self._process, None
        if process is None:
            self._keeping.cancel()
            if self._held:
                log.warning("%d ends of runs are not remembered: the memory is not there", len(self._held))
        elif process.stdin:
            process.stdin.close()
        _, late = await asyncio.wait([self._keeping], timeout=_ENDING)
        if late and process:
            log.warning("the memory is still learning: it is ended, and the runs stay pending in the bank")
            with suppress(ProcessLookupError):
                process.kill()
            await asyncio.wait([self._keeping])

    async def begin(self, run: str, task: str, /, *, whose: Whose) -> str | None:
        """The text for a run; `None` where memory did not answer."""
        return await self._text({"op": "begin", "run": run, "task": task, **whose._asdict()})

    async def look_again(self, run: str, messages: list[Any], /, *, whose: Whose) -> str | None:
        """What got past the failure of a tool before; mostly empty, and `None` where memory did not answer."""
        if not self._cures:
            return None
        return await self._text({"op": "again", "run": run, "messages": messages, **whose._asdict()})

    async def _text(self, frame: Frame) -> str | None:
        if self._is_late:  # one request waits for a memory that hangs, not each
            return None
        try:
            return await self._ask(frame, self._patience)
        except TimeoutError:
            self._is_late = True
            log.warning("requests go on without memory: it did not answer within %g seconds", self._patience)
            return None

    async def drain(self, seconds: float, /) -> bool:
        """Wait until what was handed over is learned. Whether it is."""
        try:
            return await self._ask({"op": "drain"}, seconds) is not None
        except TimeoutError:
            return False

    def end(self, ended: Ended, /, *, outcome: Outcome | None = None, reward: float | None = None) -> None:
        """Hand a run over that is over. Returns at once."""
        frame: Frame = {"op": "end", "outcome": outcome, "reward": reward, **ended.whose._asdict()}
        frame |= {name: getattr(ended, name) for name in ("run", "begins", "seconds", "usage", "error", "stopped")}
        self._hand_over(frame, parts=ended.parts, system=ended.system, tools=ended.tools)

    def tell(self, run: str, /, *, whose: Whose, outcome: Outcome | None, reward: float | None) -> None:
        """How a run really ended, told when it was over. Returns at once."""
        self._hand_over({"op": "tell", "run": run, **whose._asdict(), "outcome": outcome, "reward": reward})

    def _hand_over(self, frame: Frame, **raw: str | list[str]) -> None:
        if not self._send(frame, **raw) and self._process is None:
            self._held.append(packed(frame, **raw))
        while sum(map(len, self._held)) > _WAITING:
            del self._held[0]
            log.warning("a run is not remembered: the memory is away for too long")

    async def _ask(self, frame: Frame, seconds: float) -> str | None:
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            if not self._send({**frame, "id": number}):
                return None
            async with asyncio.timeout(seconds):
                return await answer
        except ConnectionError:
            return None
        finally:
            del self._asked[number]

    def _send(self, frame: Frame, **raw: str | list[str]) -> bool:
        to = self._process.stdin if self._process else None
        if to is None or to.is_closing():
            return False
        if to.transport.get_write_buffer_size() > _WAITING:
            if not self._is_full:
                log.warning("runs are not remembered: the memory does not read what it is given")
            self._is_full = True
            return False
        self._is_full = False
        to.write(packed(frame, **raw))
        return True

    async def _open(self) -> asyncio.subprocess.Process:
        """The process, once its bank is open."""
        # -P: a file in the working directory must not pose as a module.
        command = (sys.executable, "-P", "-m", "lessonbank.proxy.memory")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        if problem := await self._greet(process):
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
            raise problem
        self._process, self._is_late = process, False
        _input(process).writelines(self._held)
        self._held.clear()
        return process

    async def _greet(self, process: asyncio.subprocess.Process) -> LessonbankError | None:
        """Why a new process is of no use; `None` for one that is."""
        try:
            _input(process).write(packed(self._settings))
            async with asyncio.timeout(_STARTING):
                frame = await _next(process)
        except (EOFError, OSError, TimeoutError):
            return LessonbankError("the memory did not start: see what it said above")
        if "error" not in frame:
            return None
        return (UsageError if frame["code"] == UsageError.code else LessonbankError)(frame["error"])

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """Take in answers; when the process ends although nobody closed it, start another one after a pause."""
        pause = 1.0
        while True:
            began = monotonic()
            await self._answers(process)
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(ConnectionResetError())
            await process.wait()
            if self._process is None:
                return
            self._process = None
            log.warning("the memory ended unexpectedly: requests go on without it, and it is started again")
            pause = 1.0 if monotonic() - began > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            process = await self._again(pause)

    async def _again(self, pause: float) -> asyncio.subprocess.Process:
        while True:
            await asyncio.sleep(pause)
            with suppress(LessonbankError, OSError):
                return await self._open()
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _answers(self, process: asyncio.subprocess.Process) -> None:
        with suppress(EOFError, OSError):
            while True:
                frame = await _next(process)
                self._is_late = False
                if (answer := self._asked.get(frame["id"])) and not answer.done():
                    answer.set_result(frame["text"])


def _input(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    if process.stdin is None:
        raise OSError("the process has no input")
    return process.stdin


async def _next(process: asyncio.subprocess.Process) -> Frame:
    """Raises EOFError (asyncio.IncompleteReadError is one)."""
    if process.stdout is None:
        raise EOFError
    size = int.from_bytes(await process.stdout.readexactly(HEAD), "big")
    return unpacked(await process.stdout.readexactly(size))
