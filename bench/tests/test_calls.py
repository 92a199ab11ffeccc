"""The count of calls has a command, and it counts both ways through the loop."""

from __future__ import annotations

from pathlib import Path

from lessonbank_bench.measure.calls import measure, told


def test_a_warm_retrieve_and_a_warm_learn_are_counted(tmp_path: Path) -> None:
    found = measure(tmp_path)
    assert list(found) == ["retrieve", "learn"]
    assert all(any(code.co_qualname.endswith(f"Bank.{name}") for code in calls) for name, calls in found.items())
    assert told("learn", found["learn"], top=3).count("\n") == 3
