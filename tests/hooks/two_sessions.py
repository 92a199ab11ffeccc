"""Runs a coding agent through two sessions, with a scripted model, in a namespace that has nothing but loopback.

Run as a program inside that namespace: `two_sessions.py HOST PROGRAM FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

from programs import OPENING, PROGRAMS
from scripted_model import ScriptedModel

FIX = r"printf 'def add(a, b):\n    return a + b\n' > calc.py"
TEST = "python3 -m unittest -q"
PROMPT = "Fix the failing test of add in calc.py"
AGAIN = "Fix the failing test of add in calc.py again"
LIMIT = 400  # seconds
TRIES = 6
"""A hook that cannot answer in its two seconds gives up. On a busy machine that is one session or two, not all."""


def repeated(session: Callable[[], dict[str, Any]], *, until: Callable[[Any], Any]) -> tuple[dict[str, Any], Any]:
    """The first session of which something came, and what; or the last one."""
    for left in reversed(range(TRIES)):
        told = session()
        if (found := until(told)) or not left:
            return told, found
    raise AssertionError


def shows_lessons(told: dict[str, Any]) -> bool:
    return OPENING in unescape(json.dumps(told["requests"]))


def main(host: str, program: str, folder: Path) -> None:
    home, project = folder / "home", folder / "project"
    for place in (home, project, folder / "tmp", folder / "run"):
        place.mkdir(parents=True, mode=0o700)
    _write_project(project)
    model = ScriptedModel()
    threading.Thread(target=model.serve_forever, daemon=True).start()
    kind = PROGRAMS[host]
    environment = {
        "PATH": f"{Path(program).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(folder / "tmp"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **kind.prepare(home, project, model.url),
    }
    result: dict[str, Any] = {}

    def lessonbank(*words: str) -> str:
        command = [sys.executable, "-m", "lessonbank.cli", *words]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            raise SystemExit(f"{words}: {done.stdout} {done.stderr}")
        return done.stdout

    def session(prompt: str, *turns: dict[str, Any]) -> dict[str, Any]:
        model.turns, model.requests = list(turns), []
        began = time.monotonic()
        command = [program, *kind.words(prompt)]
        given = {"cwd": project, "env": environment, "stdin": subprocess.DEVNULL, "timeout": LIMIT}
        done = subprocess.run(command, capture_output=True, text=True, **given)
        told = {"code": done.returncode, "out": done.stdout[-4000:], "err": done.stderr[-4000:]}
        return told | {"seconds": round(time.monotonic() - began, 2), "requests": model.requests}

    try:
        options = ["--bank", str(folder / "bank.db"), "--scope", "team", "--holdout", "0", "--within", "2"]
        result["install"] = lessonbank("install", host, *options)
        if kind.log_in:
            subprocess.run([program, *kind.log_in(model.url)], env=environment, cwd=project, timeout=LIMIT, check=True)
        bank = ["--bank", str(folder / "bank.db"), "--scope", "team", "--json"]
        steps = [kind.shell(FIX), kind.shell(TEST), {"text": "The sign was wrong; the tests pass now."}]

        def learned(_: object) -> list[Any]:
            if kind.transcripts:
                lessonbank("learn", str(home / kind.transcripts), *bank)
            result["learned"] = lessonbank("hook", "learn")
            return json.loads(lessonbank("runs", "list", *bank))

        first, result["runs"] = repeated(lambda: session(PROMPT, *steps), until=learned)
        lessons = result["lessons"] = json.loads(lessonbank("lessons", "list", *bank))
        for lesson in lessons:  # a person's word: hosts that show lessons among instructions ask for it
            lessonbank("lessons", "approve", lesson["id"], *bank[:-1], "--by", "Ana")
        recall = [{"tool": kind.recall, "arguments": {"task": AGAIN}}] if kind.recall else []
        second, _ = repeated(lambda: session(AGAIN, *recall, {"text": "Done."}), until=shows_lessons)
        result["sessions"] = [first, second]
        result["status"] = json.loads(lessonbank("hook", "status", "--json"))
        result["recalls"] = json.loads(lessonbank("recalls", "list", *bank))
        lessonbank("hook", "stop")
        result["uninstall"] = lessonbank("uninstall", host)
    finally:
        (folder / "result.json").write_text(json.dumps(result))


def _write_project(project: Path) -> None:
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    test = "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test(self):\n"
    (project / "test_calc.py").write_text(f"{test}        self.assertEqual(add(2, 2), 4)\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
