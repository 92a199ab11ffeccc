"""Calls so short that the event loop makes them itself: a thread would take longer to begin than they to end.

Handing a call to a thread and its result back costs as much as the search of a small bank. So a call that was short
lately is made where it was asked for, unless it would have to wait for somebody or turns out to have much to do.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeVar

R = TypeVar("R")
T = TypeVar("T")

_SHORT: Final = 0.001_5
"""Seconds a call may take in an event loop: it should never stand still for two milliseconds."""
_IN_A_ROW: Final = 4
"""Short calls after which the next is taken to be short."""

_UNWELCOME: Final = "BlockingError"
"""What blockbuster raises in the place of a call that may block."""


class Lengthy(Exception):  # noqa: N818 - not an error: the call is made in a thread instead
    """A call begun in the event loop is one for a thread. It has changed nothing."""


class Pace:
    """Whether calls of one kind are short here and now: that depends on the disk, the machine and the bank."""

    def __init__(self) -> None:
        self._short = 0
        self._unwelcome = False

    @property
    def is_short(self) -> bool:
        """Whether the last ones were."""
        return self._short >= _IN_A_ROW and not self._unwelcome

    def at_once(self, call: Callable[[], T], /) -> T:
        """The result of a call that is made in the event loop.

        Raises:
            Lengthy: it is one for a thread. So is every later one where somebody watches the loop for calls that may
                block, as LangGraph's server does with blockbuster.
        """
        try:
            return self.timed(call)
        except Exception as error:
            self._unwelcome = type(error).__name__ == _UNWELCOME
            if self._unwelcome:
                raise Lengthy from None
            raise

    def timed(self, call: Callable[[], T], /) -> T:
        """The result of a call, which counts."""
        begun = perf_counter()
        try:
            return call()
        finally:
            self.took(perf_counter() - begun)

    def counted(self, call: Callable[[R], T], /) -> Callable[[R], T]:
        """The same call, which counts wherever it is made."""
        return lambda about: self.timed(lambda: call(about))

    def took(self, seconds: float, /) -> None:
        """Count a call."""
        self._short = self._short + 1 if seconds < _SHORT else 0
