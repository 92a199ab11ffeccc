"""Runs a coding agent through two sessions of different tasks, in each of which the same command fails.

Run as a program inside a namespace that has nothing but loopback: `cured_session.py HOST PROGRAM FOLDER`. It leaves
`FOLDER/result.json`.
"""

from __future__ import annotations

import json
import sys
from html import unescape
from pathlib import Path
from typing import Any

from stage import Stage, repeated

CURE = "`make proto` went through"
MAKEFILE = """test:
\t@test -e made || { echo "ModuleNotFoundError: No module named 'rates_pb'"; exit 3; }
proto:
\t@touch made
"""


def tells_the_cure(told: dict[str, Any]) -> bool:
    return CURE in unescape(json.dumps(told["requests"]))


def main(host: str, program: str, folder: Path) -> None:
    stage = Stage(host, program, folder)
    shell, result = stage.kind.shell, dict[str, Any]()
    (stage.project / "Makefile").write_text(MAKEFILE)
    try:
        stage.lessonbank("install", host, "--bank", str(folder / "bank.db"), "--holdout", "0", "--within", "2")
        stage.log_in()
        bank = [
            "--bank",
            str(folder / "bank.db"),
            "--scope",
            f"coding/@folder{stage.project.resolve()}/@cures",
            "--json",
        ]
        steps = [shell("make test"), shell("make proto"), shell("make test"), {"text": "It passes."}]

        def learned(_: object) -> list[Any]:
            result["learned"] = stage.lessonbank("hook", "status", "--learn")
            return json.loads(stage.lessonbank("lessons", "list", *bank))

        (stage.project / "made").unlink(missing_ok=True)
        _, result["cures"] = repeated(lambda: stage.session("Speed up the nightly report", *steps), until=learned)
        (stage.project / "made").unlink(missing_ok=True)
        again = [shell("make test"), {"text": "Done."}]
        second, _ = repeated(lambda: stage.session("Translate the error pages", *again), until=tells_the_cure)
        result["second"] = second
        result["recalls"] = json.loads(stage.lessonbank("recalls", *bank))
        stage.lessonbank("hook", "status", "--stop")
        stage.lessonbank("install", host, "--remove")
    finally:
        (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
