"""Packages that come from a user's own clone: imported when they are asked for, and missed in one sentence."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from lessonbank.errors import UsageError
from lessonbank.guard import one_line


def module_of(name: str, /, *, environment: str, needs: str, install: str) -> Any:
    """A module of somebody else's clone.

    Raises:
        UsageError: it, or what it needs, is not installed.
    """
    try:
        return import_module(name)
    except ImportError as missing:
        what = one_line(missing.name or name)
        raise UsageError(f"environment {environment!r} needs {needs}, and {what!r} is missing: {install}") from missing


def version_of(package: str, /) -> str:
    """Of an installed package, as far as it says."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"
