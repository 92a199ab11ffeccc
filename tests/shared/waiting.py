"""Waits for what another process or thread does, and leaves it the processor meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], /, *, seconds: float = 60) -> T:
    """What `look` returns, once that is true."""
    pause, end = threading.Event(), time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, f"nothing came of {look} in {seconds} seconds"
        pause.wait(0.02)
    return seen
