"""Asks a coding agent's own model, through its program in the headless form, where that can be done cleanly.

Cleanly: the request holds no tool and no text of memory files, and no hook starts. Claude Code can; of Codex and Gemini
CLI no switches are known that keep their tools and memory files out, so they are not offered.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lessonbank.errors import ModelTimeout, ModelUnavailable, UsageError
from lessonbank.guard.quote import quoted

PREFIX: Final = "host:"
"""How the name of such a model begins."""
MOST_A_DAY: Final = 20
_PATIENCE: Final = 180.0
_WORDS: Final = {
    "claude-code": (
        "claude",
        *("-p", "--tools", "", "--setting-sources", "", "--settings", '{"disableAllHooks":true}'),
        *("--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"),
        *("--system-prompt", "Answer exactly as you are asked.", "--output-format", "text"),
    )
}
_OF_A_SESSION: Final = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_ENV_FILE")
_CALL: Final = "call-"


def model_of(host: str, /) -> str:
    """The name of a host's own model, as an option of its hooks. Raises UsageError: it cannot be asked cleanly."""
    if host not in _WORDS:
        raise UsageError(
            f"the model of {host} cannot be asked without its tools and memory files: name another --model"
        )
    return f"{PREFIX}{host}"


def host_model(name: str, folder: Path, /) -> Callable[[str], str]:
    """The model of this name, as a function of a prompt. In `folder` it keeps how often it was asked today.

    Raises UsageError, as `model_of`.
    """
    host = name.removeprefix(PREFIX)
    model_of(host)

    def ask(prompt: str) -> str:
        return _answer(host, prompt, folder)

    ask.__name__ = ask.__qualname__ = f"{host.replace('-', '_')}_itself"
    return ask


def _answer(host: str, prompt: str, folder: Path) -> str:
    program, *words = _WORDS[host]
    executable = shutil.which(program)
    if executable is None:
        raise ModelUnavailable(f"{program} is not on the PATH: install {host}, or name another --model")
    take_call(folder)
    # The hooks of every memory obey LESSONBANK_OFF, should the program start one all the same.
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_SESSION}
    environment |= {"LESSONBANK_OFF": "1", "DISABLE_AUTOUPDATER": "1"}
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [executable, *words],
                input=prompt,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                cwd=empty,
                env=environment,
                timeout=_PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise ModelTimeout(f"{program} gave no answer within {_PATIENCE:g} seconds") from None
    if done.returncode or not done.stdout.strip():
        raise ModelUnavailable(f"{program} ended with {done.returncode}: {quoted(done.stdout or done.stderr)}")
    return done.stdout


def take_call(folder: Path, /) -> None:
    """Take one of today's calls. Each is a file that only one process can make, also on Windows.

    Raises ModelUnavailable: there is none left.
    """
    today = datetime.now(UTC).date().isoformat()
    for number in range(MOST_A_DAY):
        try:
            os.close(os.open(folder / f"{_CALL}{today}-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        for old in folder.glob(f"{_CALL}*") if number == 0 else ():
            if not old.name.startswith(f"{_CALL}{today}"):
                old.unlink(missing_ok=True)
        return
    raise ModelUnavailable(f"the agent's own model was asked {MOST_A_DAY} times today: it goes on tomorrow")
