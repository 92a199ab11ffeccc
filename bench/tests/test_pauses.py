"""The pauses of the event loop have a command, and what it measures is a whole learn."""

from __future__ import annotations

import asyncio
import gc
import re

import pytest

from lessonbank_bench.measure import pauses


@pytest.fixture(autouse=True)
def what_other_tests_loaded_stays() -> None:
    """Before each learn the command collects garbage: here it need not go through what this process holds besides."""
    gc.freeze()


def test_pauses_are_measured_while_runs_of_each_size_are_judged_and_learned_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "SIZES", (1_000, 10_000))
    asyncio.run(pauses.main(1))
    said = capsys.readouterr().out
    sizes = re.findall(r"(?m)^ *([\d,]+) characters: median +[\d.]+ ms, worst +[\d.]+ ms$", said)
    assert sizes == ["1,000", "10,000"]
    runs, pending, lessons = map(int, re.findall(r"\d+", said.splitlines()[-1]))
    assert (runs, pending) == (4, 0)
    assert lessons > 0
