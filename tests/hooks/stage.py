"""Where a driver lets a coding agent play: a home of its own, a project, and a scripted model on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from programs import PROGRAMS
from scripted_model import ScriptedModel, Turn

LIMIT = 400  # seconds
TRIES = 6
"""What is late is left out: a hook's answer after two seconds, a server's tools. On a busy machine that is one session
or two, not all."""


class Stage:
    """One program with its settings in `folder`, in a namespace that has nothing but loopback."""

    def __init__(self, host: str, program: str, folder: Path) -> None:
        self.kind, self.home, self.project = PROGRAMS[host], folder / "home", folder / "project"
        self._program, self.model = program, ScriptedModel()
        for place in (self.home, self.project, folder / "tmp", folder / "run"):
            place.mkdir(parents=True, mode=0o700)
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        self._environment = {
            "PATH": f"{Path(program).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            **self.kind.prepare(self.home, self.project, self.model.url),
        }

    def lessonbank(self, *words: str) -> str:
        """What a command of ours says."""
        return self._run(["-m", "lessonbank.cli", *words])

    def python(self, program: str, *words: str) -> str:
        """What a program says, with the environment of the agent."""
        return self._run(["-c", program, *words])

    def _run(self, words: list[str]) -> str:
        command = [sys.executable, *words]
        given: dict[str, Any] = {"cwd": self.project, "env": self._environment, "timeout": LIMIT}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **given)
        if done.returncode:
            raise SystemExit(f"{words}: {done.stdout} {done.stderr}")
        return done.stdout

    def log_in(self) -> None:
        """Do what the program asks for before its first session."""
        if self.kind.log_in:
            command = [self._program, *self.kind.log_in(self.model.url)]
            subprocess.run(command, env=self._environment, cwd=self.project, timeout=LIMIT, check=True)

    def session(self, prompt: str, *turns: Turn) -> dict[str, Any]:
        """A session with one prompt and what the model answers: how it ended, and the requests."""
        self.model.turns, self.model.requests, self.model.asked_at = list(turns), [], []
        began = time.monotonic()
        command = [self._program, *self.kind.words(prompt)]
        given: dict[str, Any] = {"cwd": self.project, "env": self._environment, "stdin": subprocess.DEVNULL}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, **given)
        told = {"code": done.returncode, "out": done.stdout[-4000:], "err": done.stderr[-4000:]}
        return told | {"seconds": round(time.monotonic() - began, 2), "requests": self.model.requests}


def repeated(session: Callable[[], dict[str, Any]], *, until: Callable[[Any], Any]) -> tuple[dict[str, Any], Any]:
    """The first session of which something came, and what; or the last one."""
    for left in reversed(range(TRIES)):
        told = session()
        if (found := until(told)) or not left:
            return told, found
    raise AssertionError
