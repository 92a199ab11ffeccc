"""What the adapters' tests share: no test meets the log file of one before it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def inspect_ai_lets_go_of_the_log() -> Iterator[None]:
    """Inspect AI adds a handler to the root logger for good, and its file stands in a folder that pytest removes."""
    yield
    kept: Any = sys.modules.get("inspect_ai._util.logger")
    if kept and (handler := kept._logHandler["handler"]):
        for name in (None, "inspect_ai"):
            logging.getLogger(name).removeHandler(handler)
        handler.trace_logger.close()
        kept._logHandler["handler"] = None  # the next evaluation makes its own
