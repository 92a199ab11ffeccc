"""What can be read out of the bytes of a bank, wherever they lie."""

from __future__ import annotations

from pathlib import Path

from _trouble import files


def leftovers(path: Path, *texts: str) -> list[str]:
    """Which of the texts any file of the bank still holds, whatever the case of their letters."""
    held = b"".join(file.read_bytes().lower() for file in files(path))
    return [text for text in texts if text.lower().encode() in held]
