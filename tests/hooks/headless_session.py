"""Asks the own model of a coding agent that has memory files, hooks and our plug-in.

Run as a program inside a namespace that has nothing but loopback: `headless_session.py HOST PROGRAM FOLDER`. It leaves
`FOLDER/result.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from stage import Stage

ASK = """
import sys
from pathlib import Path
from lessonbank.hosts.headless import host_model
print(host_model("host:" + sys.argv[1], Path(sys.argv[2]))("MARK-OF-THE-PROMPT"))
"""


def main(host: str, program: str, folder: Path) -> None:
    stage = Stage(host, program, folder)
    stage.lessonbank("install", host, "--bank", str(folder / "bank.db"), "--model", "host")
    mark, settings = folder / "a-hook-ran", stage.home / ".claude/settings.json"
    told = json.loads(settings.read_text())
    hook = [{"hooks": [{"type": "command", "command": f"touch {mark}"}]}]
    settings.write_text(
        json.dumps({**told, "hooks": dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop"), hook)})
    )
    (settings.parent / "CLAUDE.md").write_text("MARK-OF-A-MEMORY-FILE")
    answer = stage.python(ASK, host, str(folder))
    result = {"answer": answer, "requests": stage.model.requests, "hook": mark.exists()}
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
