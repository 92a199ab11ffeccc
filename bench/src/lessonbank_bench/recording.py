"""The terminal recording of the README: the first commands of a new user, run for real, as one SVG made by rich."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH: Final = 104
RUN: Final = {
    "task": "Publish release 1.4 of the parser",
    "success": True,
    "messages": [
        {"role": "user", "content": "Publish release 1.4 of the parser"},
        {"role": "assistant", "content": "make release"},
        {"role": "user", "content": "error: CHANGELOG.md has no entry for this version"},
        {"role": "assistant", "content": "make changelog"},
        {"role": "user", "content": "CHANGELOG.md updated"},
        {"role": "assistant", "content": "make release"},
        {"role": "user", "content": "released"},
    ],
}
COMMANDS: Final = ("lessonbank learn runs.jsonl", 'lessonbank retrieve "Publish release 2.0 of the parser"')
SETTINGS: Final = {"LESSONBANK_BANK": "bank.db", "LESSONBANK_SCOPE": "acme/parser"}
_FETCHED: Final = re.compile(r"@font-face \{.*?\}\s*", re.S)
_CLIPS: Final = re.compile(r'<clipPath.*?</clipPath>\s*| clip-path="[^"]*"', re.S)
_DEFINED: Final = re.compile(r"<defs>\s*</defs>\s*")


def recording() -> str:
    """The picture. Nothing in it is fetched; the ids in it are other ones each time."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "runs.jsonl").write_text(json.dumps(RUN), encoding="utf-8")
        given = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
        console.print(Text.assemble(("$ ", "green"), (f"export {given}", "bold")))
        for command in COMMANDS:
            console.print(Text.assemble(("\n$ ", "green"), (command, "bold")))
            console.print(Text.from_ansi(_printed(command, folder)))
    svg = console.export_svg(title="lessonbank", theme=MONOKAI, unique_id="recording")
    plain = _DEFINED.sub("", _CLIPS.sub("", _FETCHED.sub("", svg)))
    return "\n".join(line.strip() for line in plain.splitlines() if line.strip()) + "\n"


def _printed(command: str, folder: str) -> str:
    _, *words = shlex.split(command)
    environment = {**os.environ, **SETTINGS, "HOME": folder, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "lessonbank.cli", *words], cwd=folder, env=environment, capture_output=True, check=True
    )
    lines = (line.rstrip() for line in done.stdout.decode().strip().splitlines())
    return "\n".join(lines)
