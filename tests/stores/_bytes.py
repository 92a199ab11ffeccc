"""What can be read out of the bytes of a bank, wherever they lie."""

from __future__ import annotations

from pathlib import Path

from _trouble import files


def said(path: Path) -> str:
    """Everything that can be read out of the files of a bank."""
    return "\n".join(said_by(file.read_bytes()) for file in files(path)).lower()


def said_by(data: bytes) -> str:
    """Everything that can be read out of some bytes."""
    return data.decode("latin-1")
