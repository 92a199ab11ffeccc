"""Shows a coding agent as many long lessons as fit, in writings whose letters take several bytes, alone on loopback.

Run as a program inside that namespace: `long_lessons.py HOST PROGRAM FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from stage import Stage, repeated
from two_sessions import PROMPT, shows_lessons
from writings import WRITINGS

from lessonbank import connect


def main(host: str, program: str, folder: Path) -> None:
    stage = Stage(host, program, folder)
    where = ["--bank", str(folder / "bank.db"), "--scope", "team"]
    result: dict[str, Any] = {}
    try:
        result["install"] = stage.lessonbank("install", host, *where, "--holdout", "0", "--within", "2")
        stage.log_in()
        content = "".join(words * 5 for words in WRITINGS.values())
        with connect(folder / "bank.db", scope="team") as bank:
            for number in range(9):
                told = {"task": f"{PROMPT} {number}", "title": f"Lesson {number}", "content": f"{number} {content}"}
                bank.lessons.add(**told, by="Ana")
        result["session"], _ = repeated(lambda: stage.session(PROMPT, {"text": "Done."}), until=shows_lessons)
        stage.lessonbank("hook", "status", "--stop")
    finally:
        (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
