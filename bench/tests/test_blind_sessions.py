"""The sessions that somebody wrote blind are played through the real hooks, and each known problem finds its lesson."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.full
def test_every_known_problem_of_the_first_set_has_its_lesson_and_its_line() -> None:
    command = [
        sys.executable,
        "-m",
        "lessonbank_bench.measure.blind_sessions",
        "set1",
        "--host",
        "codex",
        "--holdout",
        "0",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(?m)^known kinds: (\d+); their lesson is there: (\d+)", printed) == [("8", "8")]
    assert "lessons of another repository: 0; sessions with lessons and no line for the person: 0" in printed
