"""The sessions that somebody wrote blind are played through the real hooks, and each known problem finds its lesson."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lessonbank_bench.measure.blind_sessions import main


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "there", "waiting"), [pytest.param("set1", 8, 0, marks=pytest.mark.release), ("set2", 8, 2)]
)
def test_every_known_problem_has_its_lesson_or_the_person_is_told_that_it_waits(
    name: str,
    there: int,
    waiting: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):  # which the command sets for its hooks
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["blind_sessions", name, "--host", "codex", "--holdout", "0"])
    main()
    printed = capsys.readouterr().out
    assert f"known kinds: {there + waiting}; their lesson is there: {there};" in printed
    assert f"their lesson waits for the person, who is told so: {waiting}" in printed
    assert "lessons of another repository: 0; sessions with lessons and no line for the person: 0" in printed
