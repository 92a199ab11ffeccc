"""What can be read out of the bytes of a bank, packed records too."""

from __future__ import annotations

import zlib
from pathlib import Path

from _trouble import files

from lessonbank.stores._packing import _MARK, _TEXT, _WORDS


def inflated(data: bytes) -> str:
    """What these bytes begin to say, if they are the beginning of a packed record."""
    inflate, text = zlib.decompressobj(-15, _WORDS), b""
    try:
        for at in range(0, 4096, 32):
            text += inflate.decompress(data[at : at + 32])
    except zlib.error:
        pass
    return text.decode("utf-8", "replace")


def said(path: Path) -> str:
    """Everything that can be read out of the files of a bank, from whatever byte on."""
    return "\n".join(said_by(file.read_bytes()) for file in files(path)).lower()


def said_by(data: bytes) -> str:
    """Everything that can be read out of some bytes."""
    found, at = [data.decode("latin-1")], data.find(_MARK)
    while at >= 0:
        found.append(inflated(data[at + _TEXT : at + 4097]))
        at = data.find(_MARK, at + 1)
    return "\n".join(found)
