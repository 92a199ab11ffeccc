"""An option of `retrieve` is written in one file, and every way to ask a bank for lessons takes it and heeds it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gates
import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import retrieve_doors
from retrieve_doors import DOORS, WORDS

pytestmark = pytest.mark.full
ASKING = Path("contracts") / "retrieve_options.py"


@pytest.fixture(scope="module", autouse=True)
def the_sdk() -> None:
    """Whoever runs these tests imports the SDK, and not each worker that collects them."""
    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra mcp")


@pytest.fixture
def package_with_colour(tmp_path: Path) -> Path:
    """A compiled copy whose options have one more field: in the dataclass and in its keywords, nowhere else."""
    package = tmp_path / "lessonbank"
    shutil.copytree(gates.ROOT / "src" / "lessonbank", package, ignore=shutil.ignore_patterns("*.pyc.*"))
    source = (package / ASKING).read_text(encoding="utf-8")
    planted, keywords = re.subn(r"^(    metadata: .* \| None)$", r"    colour: str | None\n\1", source, flags=re.M)
    planted, fields = re.subn(r"^(    metadata: .* = )", r"    colour: str | None = None\n\1", planted, flags=re.M)
    assert (keywords, fields) == (1, 1)
    (package / ASKING).write_text(planted, encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="hooks need sockets of Unix")
def test_a_new_option_of_retrieve_is_named_by_every_door_and_reaches_every_search(package_with_colour: Path) -> None:
    (where := package_with_colour / "banks").mkdir()
    command = [sys.executable, retrieve_doors.__file__, where, "colour", '"red"']
    environment = {**os.environ, "PYTHONPATH": str(package_with_colour)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert {door for door, names in told["named"].items() if "colour" not in names} == set()
    assert {door: set(seen) for door, seen in told["reached"].items()} == {door: {"red"} for door in DOORS}


@pytest.mark.parametrize("door", DOORS)
def test_only_trusted_lessons_come_through_a_door_that_is_asked_for_them(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if door == "hook" and sys.platform == "win32":
        pytest.skip("hooks need sockets of Unix")
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    for trusted in (False, True):
        retrieve_doors.fill(file := tmp_path / f"{trusted}.db")
        assert (WORDS in DOORS[door](file, {"trusted": trusted})) is not trusted
