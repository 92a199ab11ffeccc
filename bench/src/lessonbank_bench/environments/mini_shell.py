"""Where an agent's commands run on this machine: a folder of its own, and nothing of this process's environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .mini_loading import Mini

_ALONE = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Linux's own way: no network but an empty one, and no sight of other processes, whose environments hold secrets."""
_PRINTED = 5_000_000
_BOUNDED = f'bash -c "$0" 2>&1 | head -c {_PRINTED}; exit ${{PIPESTATUS[0]}}'
"""What a command prints is kept in memory, and `yes` prints gigabytes until it is stopped."""
_PATIENCE = 30.0
_FIXED = "2026-01-01T00:00:00Z"
GIT: Mapping[str, str] = MappingProxyType(
    {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Desk",
        "GIT_AUTHOR_EMAIL": "desk@repositories.invalid",
        "GIT_COMMITTER_NAME": "Desk",
        "GIT_COMMITTER_EMAIL": "desk@repositories.invalid",
        "GIT_AUTHOR_DATE": _FIXED,
        "GIT_COMMITTER_DATE": _FIXED,
    }
)
"""One author at one moment, whoever's machine it is: equal work gives equal commits."""


def scrubbed(home: Path, /) -> dict[str, str]:
    """The whole environment of a command: where programs are, a home of its own, and how git behaves."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LANG": "C.UTF-8", "PAGER": "cat", **GIT}


@cache
def can_be_alone() -> bool:
    """Whether commands can be cut off from the network and from other processes here."""
    if shutil.which(_ALONE[0]) is None:
        return False
    done = subprocess.run([*_ALONE, "true"], capture_output=True, timeout=_PATIENCE, check=False)
    return done.returncode == 0


class ScrubbedShell:
    """mini-swe-agent's local environment; every command is a new `bash` in `folder`.

    It keeps secrets and the network away, no more: a command may read and write what the user may.

    Args:
        mini: mini-swe-agent.
        folder: where commands run.
        home: the home folder they are told.
        alone: cut them off from the network and from other processes.
        seconds: what a command may take.
    """

    def __init__(self, mini: Mini, folder: Path, /, *, home: Path, alone: bool = False, seconds: int = 30) -> None:
        self._inner: Any = mini.local(cwd=str(folder), timeout=seconds)
        self.config: Any = self._inner.config
        told = [f"{name}={value}" for name, value in scrubbed(home).items()]
        self._before = shlex.join(["exec", "env", "-i", *told, *(_ALONE if alone else ()), "bash", "-c", _BOUNDED])

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """What a command printed; mini-swe-agent's `Submitted` where it hands in."""
        command = str(action.get("command", ""))
        return self._inner.execute({**action, "command": f"{self._before} {shlex.quote(command)}"}, cwd)

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """Nothing: mini-swe-agent's own would give templates the environment of this process."""
        return {}

    def serialize(self) -> dict[str, Any]:
        """What the record of a run says of it."""
        return self._inner.serialize()
