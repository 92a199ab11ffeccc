"""Runs a driver of a coding agent alone: in a namespace of its own, where there is no network but loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from loopback import alone, namespace

from .programs import PROGRAMS

HERE = Path(__file__).parent
INSTALLED = Path(os.environ.get("LESSONBANK_HOSTS", HERE.parents[1] / ".hosts"))
OFTEN = ("codex",)
"""The quickest, which `bash .ci/hosts` installs. The others run by `just test-hosts` and in `just release`."""


def agents(names: Iterable[str] = PROGRAMS) -> list[Any]:
    """The programs as parameters of a test: those that do not run often carry the mark `release`."""
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.release) for name in names]


def driven(driver: str, host: str, folder: Path) -> dict[str, Any]:
    """What the driver noted. The test is skipped where the program is not installed, or cannot be alone."""
    program = INSTALLED / PROGRAMS[host].command
    if not program.exists():
        pytest.skip(f"{host} is not installed: bash .ci/hosts {host}")
    if not namespace():
        pytest.skip("no namespace of its own can be made for a program here")
    node = INSTALLED / "node/node_modules/.bin"
    environment = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}"}
    words = [sys.executable, str(HERE / driver), host, str(program), str(folder)]
    done = subprocess.run(alone(words), capture_output=True, text=True, timeout=3500, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "result.json").read_text())
