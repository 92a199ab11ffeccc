"""Runs a coding agent through two sessions, with a scripted model, in a namespace that has nothing but loopback.

Run as a program inside that namespace: `two_sessions.py HOST PROGRAM FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import sys
from html import unescape
from pathlib import Path
from typing import Any

from programs import OPENING
from stage import Stage, repeated

FIX = r"printf 'from rates import BASE\n\n\ndef add(a, b):\n    return a + b + BASE\n' > calc.py"
GENERATE = "python3 generate.py"
"""Without it the test fails, whatever stands in calc.py: this is what the first session can teach."""
TEST = "python3 -m unittest -q"
PROMPT = "Fix the failing test of add in calc.py"
AGAIN = "Fix the failing test of add in calc.py again"


def shows_lessons(told: dict[str, Any]) -> bool:
    return OPENING in unescape(json.dumps(told["requests"]))


def main(host: str, program: str, folder: Path) -> None:
    stage = Stage(host, program, folder)
    kind = stage.kind
    _write_project(stage.project)
    result: dict[str, Any] = {}
    try:
        options = ["--bank", str(folder / "bank.db"), "--scope", "team", "--holdout", "0", "--within", "2"]
        result["install"] = stage.lessonbank("install", host, *options)
        stage.log_in()
        bank = ["--bank", str(folder / "bank.db"), "--scope", "team", "--json"]
        steps = [
            kind.shell(FIX),
            kind.shell(TEST),
            kind.shell(GENERATE),
            kind.shell(TEST),
            {"text": "The sign was wrong; the tests pass now."},
        ]

        def learned(_: object) -> list[Any]:
            if kind.transcripts:
                stage.lessonbank("learn", str(stage.home / kind.transcripts), *bank)
            result["learned"] = stage.lessonbank("hook", "status", "--learn")
            return json.loads(stage.lessonbank("runs", "list", *bank))

        first, result["runs"] = repeated(lambda: stage.session(PROMPT, *steps), until=learned)
        result["lessons"] = json.loads(stage.lessonbank("lessons", "list", *bank))
        recall = [] if kind.has_hooks else [{**kind.tool("recall"), "arguments": {"task": AGAIN}}]
        second, _ = repeated(lambda: stage.session(AGAIN, *recall, {"text": "Done."}), until=shows_lessons)
        result["sessions"] = [first, second]
        stage.lessonbank("hook", "status", "--stop")
        result["uninstall"] = stage.lessonbank("install", host, "--remove")
    finally:
        (folder / "result.json").write_text(json.dumps(result))


def _write_project(project: Path) -> None:
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "generate.py").write_text("open('rates.py', 'w').write('BASE = 0\\n')\n")
    test = "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test(self):\n"
    (project / "test_calc.py").write_text(f"{test}        self.assertEqual(add(2, 2), 4)\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
