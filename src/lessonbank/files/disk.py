"""Reads and replaces files that people and agents also write: whole or not at all, and only what was read before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lessonbank._base.atomic_write import abandon, begin, finish, refuse_odd, spare
from lessonbank._base.checks import short_path
from lessonbank._base.safe_read import open_regular
from lessonbank.errors import FormatError, StoreUnavailable, UsageError

from .formats import SKILL

MOST: Final = 1_000_000
"""Bytes of a file that is read."""
MOST_FILES: Final = 500
"""Files of a folder that are read."""


def read(path: Path, /) -> bytes | None:
    """What a text file holds; `None` where there is no file.

    Raises:
        UsageError: it is a folder, a pipe, a device, a bank, or a link that leads out of its folder.
        FormatError: it is too large, or no text.
        StoreUnavailable: it cannot be read.
    """
    try:
        spare(path, what="lessons")
        if not os.path.lexists(path):
            return None
        _place(path)
        with open_regular(path) as file:
            data = file.read(MOST + 1)
    except OSError as error:
        raise StoreUnavailable(f"cannot read {short_path(path)}: {error.strerror or error}") from error
    if len(data) > MOST:
        raise FormatError(f"{short_path(path)} has more than {MOST:,} bytes: name a file of instructions or lessons")
    if b"\0" in data:
        raise FormatError(f"{short_path(path)} is no text: name a file of instructions or lessons")
    return data


def replace(path: Path, data: bytes, /, *, earlier: bytes | None) -> None:
    """Put `data` in the place of what was read before, `earlier`; the mode of the file stays.

    Raises:
        UsageError: somebody changed the file meanwhile.
        StoreUnavailable: it cannot be written.
    """
    part: Path | None = None
    try:
        real = _place(path)
        real.parent.mkdir(parents=True, exist_ok=True)
        part = begin(real)
        part.write_bytes(data)
        if read(path) != earlier:
            raise UsageError(f"{short_path(path)} was changed meanwhile, and is left as it is: try again")
        finish(part, real)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write {short_path(path)}: {error.strerror or error}; it is as it was"
        ) from error
    finally:
        if part is not None:
            abandon(part)


def _place(path: Path) -> Path:
    """The file itself, where `path` is a link to it. Raises UsageError for a link that leads out of its folder.

    A skill is its whole folder: that may be a link no more than the file.
    """
    refuse_odd(path)
    home = Path(os.path.abspath(path)).parent  # noqa: PTH100 - `resolve` would follow the link
    home = home.parent if path.name == SKILL else home
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(home)):
        raise UsageError(f"{short_path(path)} is a link that leads out of its folder: name the file that it leads to")
    return real


def below(folder: Path, names: tuple[str, ...], /) -> Iterator[Path]:
    """The files of a folder and its folders with one of these endings, in order; links to folders are not followed.

    Raises:
        FormatError: there are too many.
        StoreUnavailable: a folder cannot be read.
    """
    count = 0

    def failed(error: OSError) -> None:
        raise StoreUnavailable(f"cannot read the folder {short_path(folder)}: {error.strerror or error}") from error

    for place, folders, files in os.walk(folder, onerror=failed):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(names):
                continue
            count += 1
            if count > MOST_FILES:
                raise FormatError(f"{short_path(folder)} has more than {MOST_FILES} such files: name a folder of fewer")
            yield Path(place, name)
