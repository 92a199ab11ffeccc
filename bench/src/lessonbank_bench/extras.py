"""What to install for the part of an experiment that needs more than the package itself."""

from __future__ import annotations

from lessonbank.errors import MissingExtra


def missing_extra(feature: str, /, *, extra: str) -> MissingExtra:
    """The error that names the pip line for an extra of this distribution."""
    return MissingExtra(feature, extra=extra, package="lessonbank-bench", clone="bench")
