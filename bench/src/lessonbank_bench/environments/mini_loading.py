"""Loads mini-swe-agent where it is asked for: quietly, without the settings of the user's home, without litellm."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

from lessonbank.errors import UsageError
from lessonbank_bench.extras import missing_extra

_OLDEST = 2
"""Version 1 has another protocol between agent and model."""


class Mini(NamedTuple):
    """What is used of mini-swe-agent, which has no types."""

    version: str
    agent: Any
    """`DefaultAgent`."""
    local: Any
    """`LocalEnvironment`."""
    parse: Any
    """Takes the commands out of a reply with text blocks."""
    observed: Any
    """Makes messages of what commands printed."""

    def config(self, path: Path | None = None, /) -> dict[str, Any]:
        """A configuration file; its own for SWE-bench with text blocks where none is named.

        Raises:
            UsageError: it cannot be read.
        """
        folder = Path(import_module("minisweagent").__file__ or "").parent
        chosen = path or folder / "config" / "benchmarks" / "swebench_backticks.yaml"
        try:
            read = import_module("yaml").safe_load(chosen.read_text(encoding="utf-8"))
        except Exception as error:
            raise UsageError(f"cannot read the configuration {str(chosen)!r}: {type(error).__name__}") from error
        if not isinstance(read, dict):
            raise UsageError(f"the configuration {str(chosen)!r} is no mapping")
        return cast("dict[str, Any]", read)


@cache
def mini() -> Mini:
    """mini-swe-agent.

    Raises:
        MissingExtra: it is not installed.
        UsageError: it is version 1.
    """
    with alone():
        try:
            version = str(import_module("minisweagent").__version__)
            if int(version.split(".")[0]) < _OLDEST:
                raise UsageError(f"mini-swe-agent {version} is too old: pip install 'mini-swe-agent>=2.4'")
            text = import_module("minisweagent.models.utils.actions_text")
            return Mini(
                version,
                import_module("minisweagent.agents.default").DefaultAgent,
                import_module("minisweagent.environments.local").LocalEnvironment,
                text.parse_regex_actions,
                text.format_observation_messages,
            )
        except ImportError as missing:
            raise missing_extra("mini-swe-agent", extra="mini") from missing


@contextmanager
def alone() -> Generator[None]:
    """Importing it prints a banner, makes a folder in the user's home, takes keys from there and logs to the screen."""
    before = dict(os.environ)
    log = logging.getLogger("minisweagent")
    handlers, level = list(log.handlers), log.level
    with TemporaryDirectory() as empty:
        os.environ["MSWEA_SILENT_STARTUP"] = "1"
        os.environ["MSWEA_GLOBAL_CONFIG_DIR"] = empty
        try:
            yield
        finally:
            log.handlers[:] = handlers
            log.setLevel(level)
            for name in ("MSWEA_SILENT_STARTUP", "MSWEA_GLOBAL_CONFIG_DIR"):
                os.environ.pop(name)
                if name in before:
                    os.environ[name] = before[name]
