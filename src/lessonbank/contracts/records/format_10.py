"""Reads records of format 10 and earlier as the records of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def upgrade_run(fields: Mapping[str, Any], /) -> dict[str, Any]:
    """A run of format 10, as `Trajectory` takes it."""
    return {**fields}


def upgrade_experience(fields: Mapping[str, Any], /) -> dict[str, Any]:
    """An experience of format 10, as `Experience` takes it."""
    return {**fields}


def upgrade_change(fields: Mapping[str, Any], /) -> dict[str, Any]:
    """A change of format 10, or another entry of a journal."""
    return {**fields}


def upgrade_recall(fields: Mapping[str, Any], /) -> dict[str, Any]:
    """A recall of format 10."""
    return {**fields}
