"""Runs the command line as a user does, in a process of its own, on a few runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

RUNS: list[dict[str, Any]] = [
    {
        "source": "test",
        "run_id": f"r{n}",
        "task_id": f"t{n}",
        "task": f"Ship parcel {n} abroad",
        "messages": [
            {"role": "user", "content": f"Ship parcel {n} abroad"},
            {"role": "assistant", "content": "print label"},
            {"role": "user", "content": "error: customs form missing"},
            {"role": "assistant", "content": "fill customs form"},
            {"role": "user", "content": "form saved"},
            {"role": "assistant", "content": "print label"},
            {"role": "user", "content": "label printed"},
        ],
        "reward": float(n % 2),
        "success": bool(n % 2),
    }
    for n in range(4)
]


def lessonbank_cli(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lessonbank.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False, encoding="utf-8")


def learn(runs: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return lessonbank_cli("learn", runs, "--bank", "bank.db", "--scope", "t", *more, cwd=runs.parent)
