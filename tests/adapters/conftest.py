"""What the adapters' tests share: a bank with a lesson, and no test meets the log file of one before it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.testing.adapter_contract import LESSON, TASK


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


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[lessonbank.ReasoningBank]:
    """The memory of one user, with the lesson of the contract. Nothing is withheld in it."""
    unmeasured = lessonbank.Evidence(holdout=None)
    with lessonbank.connect(tmp_path / "bank.db", scope="acme/ana", evidence=unmeasured, embedder="lexical") as bank:
        bank.lessons.add(title=LESSON, content="The report has a second page.", task=TASK, by="Ana")
        yield bank


def kept(bank: lessonbank.ReasoningBank) -> list[lessonbank.Run]:
    """The runs, when all that was handed in is learned."""
    bank.drain()
    return list(bank.runs.list())
