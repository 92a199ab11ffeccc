"""One Chromium for all episodes of an environment, in a thread of its own, behind BrowserGym.

BrowserGym starts two browsers for every episode, the page's and the chat's, and takes a picture of every page. Here
Playwright gives it one browser that stays open, the chat is a list, and there are no pictures: agents see text. Each
episode has a browser context of its own, so that no cookie, tab or storage outlives it. What BrowserGym finds in the
place of its own is put there for the length of a call only.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from lessonbank.errors import UsageError
from lessonbank_bench.extras import missing_extra

from .playwright_thread import DriverGone, Lender, Worker

T = TypeVar("T")

EXTRA = "browser"
EXECUTABLES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)
"""Looked for in this order; a headless shell is about twice as fast as the whole browser."""
_OLDEST = (0, 14)
_TURN = threading.Lock()
"""What BrowserGym takes for Playwright is one variable of the process."""


def check_packages(name: str, modules: Sequence[str], /, *, extra: str = EXTRA) -> None:
    """Raises:
    MissingExtra: one of `modules` is not installed.
    """
    if not all(map(_installed, modules)):
        raise missing_extra(f"environment {name!r}", extra=extra)


def gym_version() -> str:
    """Of BrowserGym: it decides what is seen of a page.

    Raises:
        UsageError: it is too old.
    """
    found = version("browsergym-core")
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _OLDEST:
        raise UsageError(
            f"BrowserGym {found} is too old: pip install 'browsergym-core>=0.14', with Python 3.11 or 3.12 "
            "(for 3.13 its Playwright 1.44 cannot be installed)"
        )
    return f"browsergym {found}"


def find_chromium(name: str, told: str, /) -> str | None:
    """The executable to start; `None` stands for the one that `playwright install chromium` brought.

    Raises:
        UsageError: there is none.
    """
    if told:
        if shutil.which(told) is None:
            raise UsageError(f"environment {name!r}: chromium = {told!r} is no program that can be started")
        return told
    found = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if found is None and not any(folder.glob("chromium*") for folder in [_downloads()] if folder.is_dir()):
        raise UsageError(
            f"environment {name!r} needs Chromium: `apt-get install chromium-headless-shell`, or `playwright install "
            "chromium`, or name one in [settings] with chromium = '/path/of/it'"
        )
    return found


@dataclass(frozen=True, slots=True)
class Setup:
    """What an episode is played with."""

    task: Callable[[int], Any]
    """Makes BrowserGym's task from a seed."""
    actions: Any = None
    """The action set; `None`: the one that BrowserGym chooses by itself."""
    offline: bool = True
    """Whether the page may reach nothing but files."""
    settle: float = 0.05
    """Seconds that a page has after an action, before it is looked at."""


class Seen(NamedTuple):
    """What came of an action: BrowserGym's observation, the reward, and whether the episode is over."""

    observation: dict[str, Any]
    reward: float
    over: bool


class Browser:
    """A browser that starts when it is first needed.

    Args:
        executable: which; `None` for Playwright's own.
        slow: milliseconds that Playwright waits after each of its calls.
    """

    def __init__(self, executable: str | None, /, *, slow: int = 0) -> None:
        self._executable, self._slow = executable, slow
        self._worker: Worker | None = None
        self._lender: Lender | None = None

    def episode(self, setup: Setup, seed: int, /) -> Episode:
        """One task, not begun yet."""
        return Episode(self, setup, seed)

    def on_a_page(self, work: Callable[[Any], T], /) -> T:
        """What `work` makes of a fresh page of Playwright's that cannot reach the network."""

        def visit() -> T:
            context = self._lending().launch().new_context(offline=True)
            try:
                return work(context.new_page())
            finally:
                context.close()

        return self.do(visit)

    def do(self, work: Callable[[], T], /) -> T:
        """`work`, done in the browser's thread; whatever touches Playwright has to be.

        Raises:
            DriverGone: Playwright will never answer again; the next call starts it anew.
        """
        with _TURN:
            self._worker = self._worker or Worker()
            try:
                return self._worker.do(lambda: self._lent_to_browsergym(work), alive=self._alive)
            except DriverGone:
                self._leave()
                raise

    def close(self) -> None:
        """End the browser and its thread."""
        if self._worker is not None and self._lender is not None:
            with suppress(DriverGone):
                self._worker.do(self._lender.stop, alive=self._alive)
        self._leave()

    def _alive(self) -> bool:
        return self._lender is None or self._lender.alive

    def _leave(self) -> None:
        worker, self._worker, self._lender = self._worker, None, None
        if worker is not None:
            worker.leave()

    def _lending(self) -> Lender:
        if self._lender is None:
            self._lender = Lender(self._executable, self._slow)
        return self._lender

    def _lent_to_browsergym(self, work: Callable[[], T]) -> T:
        core, env = cast("list[Any]", [import_module("browsergym.core"), import_module("browsergym.core.env")])
        before = (core._PLAYWRIGHT, env.Chat, env.extract_screenshot)
        core._PLAYWRIGHT, env.Chat, env.extract_screenshot = self._lending(), _Chat, _no_picture
        try:
            return work()
        finally:
            core._PLAYWRIGHT, env.Chat, env.extract_screenshot = before


class Episode:
    """One task in a BrowserGym environment of its own."""

    def __init__(self, browser: Browser, setup: Setup, seed: int, /) -> None:
        self._browser, self._setup, self._seed = browser, setup, seed
        self._env: Any = None

    def begin(self) -> dict[str, Any]:
        """The page as it is first seen."""
        return self._browser.do(self._begin)

    def act(self, action: str, /) -> Seen:
        """Do `action`, a call in the language of the action set."""
        observation, reward, over, _, _ = self._browser.do(lambda: self._env.step(action))
        return Seen(observation, float(reward), bool(over))

    def close(self) -> None:
        """Close its tabs."""
        env, self._env = self._env, None
        if env is not None:
            self._browser.do(env.close)

    def _begin(self) -> dict[str, Any]:
        setup = self._setup
        chosen = {} if setup.actions is None else {"action_mapping": setup.actions.to_python_code}
        make = import_module("browsergym.core.env").BrowserEnv
        self._env = make(
            _called_by_name(setup.task),
            pre_observation_delay=setup.settle,
            pw_context_kwargs={"offline": True} if setup.offline else {},
            **chosen,
        )
        return self._env.reset(seed=self._seed)[0]


class _Chat:
    """BrowserGym's chat between the agent and who asked, without the window."""

    recording_start_time = None

    def __init__(self, **_asked: object) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, msg: str) -> None:
        if role != "info":
            self.messages.append({"role": role, "timestamp": time.time(), "message": msg})

    def close(self) -> None:
        """Nothing is open."""


def _no_picture(_page: object) -> None:
    """In the place of a screenshot: a fifth of what looking at a page takes."""


def _called_by_name(make: Callable[[int], Any]) -> Callable[..., Any]:
    def made(*, seed: int) -> Any:
        return make(seed)

    return made


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _downloads() -> Path:
    told = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if told not in ("", "0"):
        return Path(told)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ms-playwright"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "ms-playwright"
    return Path.home() / ".cache" / "ms-playwright"
