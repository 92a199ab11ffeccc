"""Measures how much later a coding agent asks its model because of the hooks, and what they leave in its settings.

    PYTHONPATH=$PWD/src:$PWD/tests/hooks python tests/hooks/first_request.py HOST PROGRAM FOLDER [SESSIONS]

Sessions without hooks, with hooks that do nothing, and with ours take turns, in homes of their own. Run it in a
namespace that has nothing but loopback. It prints medians, with the processor time, and leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from stage import Stage

PROMPT = "Ship parcel number 7 to Norway"
SETTINGS = (".claude/settings.json", ".codex/config.toml", ".codex/hooks.json", ".gemini/settings.json")


def main(host: str, program: str, folder: Path, sessions: int = 7) -> None:
    stages = {name: Stage(host, program, folder / name) for name in ("plain", "hollow", "hooked")}
    hooked = stages["hooked"]
    before = settings_in(hooked.home)
    bank = ["--bank", str(folder / "bank.db")]
    lesson = ["--title", "Use the form", "--content", "The customs ask for it.", "--task", PROMPT, "--by", "Ana"]
    hooked.lessonbank("lessons", "add", *bank, "--scope", "team", *lesson)
    for stage in (stages["hollow"], hooked):
        stage.lessonbank("install", host, *bank, "--scope", "team", "--holdout", "0")
    hollow_out(stages["hollow"].home)
    for stage in stages.values():
        timed(stage)  # the first one starts the resident process, and writes what a program writes once
    rounds = [{name: timed(stage) for name, stage in stages.items()} for _ in range(sessions)]
    times = {name: [one[name] for one in rounds] for name in stages}
    shown = "Use the form" in json.dumps(hooked.model.requests)
    hooked.lessonbank("hook", "status", "--stop")
    hooked.lessonbank("install", host, "--remove")
    told: dict[str, Any] = {
        name: {"first request, s": median(one[0] for one in each), "processor, s": median(one[1] for one in each)}
        for name, each in times.items()
    }
    told |= {"shown": shown, "load": os.getloadavg()[0], "unchanged": settings_in(hooked.home) == before}
    (folder / "result.json").write_text(json.dumps(told))
    print(json.dumps(told, indent=1))


def hollow_out(home: Path) -> None:
    """Put a command that does nothing in the place of ours."""
    for file in home.rglob("*.json"):
        told = file.read_text()
        if "hosts/client.py" in told:
            file.write_text(re.sub(r'"command": "(?:[^"\\]|\\.)*\|\| true"', '"command": "true"', told))


def timed(stage: Stage) -> tuple[float, float]:
    """Seconds until the program asked its model, and seconds of the processor until it ended."""
    began, used = time.monotonic(), processor()
    done = stage.session(PROMPT, {"text": "Done."})
    if done["code"]:
        raise SystemExit(done["err"])
    return stage.model.asked_at[0] - began, processor() - used


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def settings_in(home: Path) -> dict[str, bytes | None]:
    files = {name: home / name for name in SETTINGS}
    return {name: file.read_bytes() if file.exists() else None for name, file in files.items()}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))
