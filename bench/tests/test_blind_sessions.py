"""The sessions that somebody wrote blind are played through the real hooks, and each known problem finds its lesson."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.parametrize(("name", "there", "waiting"), [("set1", "8", "0"), ("set2", "8", "2")])
def test_every_known_problem_has_its_lesson_or_the_person_is_told_that_it_waits(
    name: str, there: str, waiting: str
) -> None:
    command = [
        sys.executable,
        "-m",
        "lessonbank_bench.measure.blind_sessions",
        name,
        "--host",
        "codex",
        "--holdout",
        "0",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = str(int(there) + int(waiting))
    assert re.findall(r"(?m)^known kinds: (\d+); their lesson is there: (\d+)", printed) == [(known, there)]
    assert f"their lesson waits for the person, who is told so: {waiting}" in printed
    assert "lessons of another repository: 0; sessions with lessons and no line for the person: 0" in printed
