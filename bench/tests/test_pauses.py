"""The pauses of the event loop have a command, and what it measures is a whole learn."""

from __future__ import annotations

import re
import subprocess
import sys


def test_pauses_are_measured_while_runs_of_three_sizes_are_judged_and_learned_from() -> None:
    command = [sys.executable, "-m", "lessonbank_bench.measure.pauses", "1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(?m)^ *([\d,]+) characters: median +[\d.]+ ms, worst +[\d.]+ ms$", said) == [
        "10,000",
        "100,000",
        "1,000,000",
    ]
    runs, pending, lessons = map(int, re.findall(r"\d+", said.splitlines()[-1]))
    assert runs == 6
    assert pending == 0
    assert lessons > 0
