"""What BrowserGym gets in the place of Playwright: one browser for all who launch one, in a thread that can be left.

The thread is for the caller's sake. Playwright's blocking interface leaves a running event loop behind in whichever
thread it was started, and nobody could run asyncio there any more. Worse, once the program that it talks to is gone,
every call of it spins for ever: only another thread can notice that, and go on without.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from lessonbank.errors import UsageError
from lessonbank.guard import one_line

T = TypeVar("T")

_FLAGS = ("--disable-features=OverlayScrollbars,ExtendedOverlayScrollbars", "--disable-gpu", "--disable-quic")
_LOOK = 1.0
"""Seconds between two looks at whether the driver still lives."""


class DriverGone(RuntimeError):  # noqa: N818 - reads as what it is
    """The program between Playwright and the browser has ended."""


class Lender:
    """As much of Playwright as BrowserGym asks for, with one browser that stays open.

    Args:
        executable: which; `None` for Playwright's own.
        slow: milliseconds to wait after each call.
    """

    def __init__(self, executable: str | None, slow: int, /) -> None:
        api = import_module("playwright.sync_api")
        self._playwright: Any = _started_apart(api.sync_playwright())
        self._failure: type[Exception] = api.Error
        self._executable, self._slow = executable, slow
        self._browser: Any = None
        self.selectors: Any = self._playwright.selectors
        self.chromium = self

    def launch(self, **_asked: object) -> Lent:
        """The browser that is open, or a new one where it crashed; how it is started is not for the asker to say."""
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._launched()
        return Lent(self._browser)

    def stop(self) -> None:
        """End the browser and the driver."""
        if self._browser is not None:
            self._browser.close()
        self._playwright.stop()

    @property
    def alive(self) -> bool:
        """Whether the driver runs. What cannot be asked counts as alive."""
        process: Any = self._playwright
        for name in ("_impl_obj", "_connection", "_transport", "_proc"):
            process = getattr(process, name, None)
        return getattr(process, "returncode", None) is None

    def _launched(self) -> Any:
        try:
            return self._playwright.chromium.launch(
                executable_path=self._executable,
                headless=True,
                slow_mo=self._slow,
                args=list(_FLAGS),
                ignore_default_args=["--hide-scrollbars"],
            )
        except self._failure as error:
            raise UsageError(f"Chromium does not start: {one_line(str(error), limit=300)}") from error


class Lent:
    """The browser, for somebody who closes it when done."""

    def __init__(self, browser: Any, /) -> None:
        self._browser = browser

    def new_context(self, **asked: Any) -> Any:
        return self._browser.new_context(**asked)

    def close(self) -> None:
        """It stays open; contexts are closed by who made them."""


class Worker:
    """A thread that does one piece of work after another, and ends with the process at the latest."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="lessonbank-browser", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T], /, *, alive: Callable[[], bool]) -> T:
        """What `work` returns or raises.

        Raises:
            DriverGone: it has not ended, and `alive` says that it never will.
        """
        done: Future[T] = Future()
        self._work.put(lambda: _into(done, work))
        while not wait([done], timeout=_LOOK).done:
            if not alive():
                raise DriverGone("the program that drives the browser has ended")
        return done.result()

    def leave(self) -> None:
        """Let it end when its work is done; if it spins, now."""
        self._work.put(None)
        self._thread.join(timeout=_LOOK)
        if self._thread.is_alive():
            number = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(SystemExit))

    def _serve(self) -> None:
        with suppress(SystemExit):  # asked for by `leave`
            while (work := self._work.get()) is not None:
                work()


def _into(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001 - raised again where the work was asked for
        done.set_exception(error)


def _started_apart(manager: Any) -> Any:
    """Playwright, its driver in a session of its own: Ctrl-C is for us, and the driver has to live until we stop it.

    A Playwright that starts it elsewhere starts as it is used to.
    """
    try:
        transport = cast("Any", import_module("playwright._impl._transport"))
        before = transport.asyncio
    except (ImportError, AttributeError):
        return manager.start()
    transport.asyncio = _Apart()
    try:
        return manager.start()
    finally:
        transport.asyncio = before


class _Apart:
    """asyncio, but for how it starts a program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def create_subprocess_exec(self, *command: str, **asked: Any) -> Any:
        return await asyncio.create_subprocess_exec(*command, start_new_session=True, **asked)
