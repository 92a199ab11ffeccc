"""Fresh processes: one at a time, or several that start at the same moment. Each prints one JSON object."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
"""These parts import nothing of this package but each other, since the peers' environments lack it."""
_READY = "ready"


class Failed(Exception):  # noqa: N818 - what became of the process, said in one line
    """A process ended without an answer; the message is its last words."""


def fresh(module: str, *args: object, python: str = sys.executable, seconds: float = 3600) -> dict[str, Any]:
    """Run `module` of these parts by itself, and what it printed."""
    return _answer(_started(module, args, python), seconds)


def at_once(module: str, each: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
    """Run one process for each list of arguments; all of them go on when the last one is ready."""
    started = [_started(module, args, sys.executable) for args in each]
    for process in started:
        if process.stdout and process.stdout.readline().strip() != _READY:
            raise Failed(_last_words(process.communicate()[1]))
    for process in started:
        if process.stdin:
            process.stdin.write("go\n")
            process.stdin.flush()
    return [_answer(process, 600) for process in started]


def wait_for_start() -> None:
    """Called in a process of `at_once` when it is ready."""
    print(_READY, flush=True)
    sys.stdin.readline()


def _started(module: str, args: Sequence[object], python: str) -> subprocess.Popen[str]:
    command = [python, "-m", f"{HERE.name}.{module}", *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=HERE.parent, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _answer(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    try:
        said, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"gave no answer in {seconds:g} s") from None
    if process.returncode:
        raise Failed(_last_words(errors))
    return json.loads(said.strip().splitlines()[-1])


def _last_words(errors: str) -> str:
    return (errors.strip().splitlines() or ["ended without a word"])[-1]
