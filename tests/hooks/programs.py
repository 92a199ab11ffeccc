"""The coding agents as programs: how each finds a model on loopback, is asked one thing, and runs a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Prepare = Callable[[Path, Path, str], dict[str, str]]


def _nothing(home: Path, project: Path) -> None:
    """No trust is asked for."""


@dataclass(frozen=True)
class Program:
    """One coding agent."""

    command: str
    """Where npm puts it, below the folder of all hosts."""
    prepare: Prepare
    """Writes settings for the model at a URL; the environment that the program needs."""
    words: Callable[[str], list[str]]
    """The command line for a prompt."""
    shell: Callable[[str], dict[str, Any]]
    """The model's turn that runs a shell command."""
    trust: Callable[[Path, Path], None] = _nothing
    """What a user confirms in the program, after the hooks are installed."""


def _claude(home: Path, project: Path, url: str) -> dict[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
    key = "sk-ant-" + "scripted"
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, **dict.fromkeys(quiet, "1")}


PROGRAMS = {
    "claude-code": Program(
        "claude-code/node_modules/.bin/claude",
        _claude,
        lambda prompt: ["-p", prompt, "--allowedTools", "Bash"],
        lambda command: {"tool": "Bash", "arguments": {"command": command, "description": "run"}},
    ),
}
_ = json
