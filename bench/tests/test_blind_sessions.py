"""The sessions that somebody wrote blind are played through the real hooks, and each known problem finds its lesson."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "there", "waiting"), [pytest.param("set1", 8, 0, marks=pytest.mark.release), ("set2", 8, 2)]
)
def test_every_known_problem_has_its_lesson_or_the_person_is_told_that_it_waits(
    name: str, there: int, waiting: int
) -> None:
    command = [sys.executable, "-m", "lessonbank_bench.measure.blind_sessions", name]
    done = subprocess.run([*command, "--host", "codex", "--holdout", "0"], capture_output=True, text=True, check=True)
    printed = done.stdout
    assert f"known kinds: {there + waiting}; their lesson is there: {there};" in printed
    assert f"their lesson waits for the person, who is told so: {waiting}" in printed
    assert "lessons of another repository: 0; sessions with lessons and no line for the person: 0" in printed
