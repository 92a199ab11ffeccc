"""Opens a file that somebody else may have put there: a regular file, in its folder, as long as it is now."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Final

NOT_REGULAR: Final = "is not a regular file: runs are read more than once, so save them to a file"
LEADS_OUT: Final = "is a link that leads out of the folder: name what it leads to, or follow links"
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)


def open_regular(path: Path, /, *, inside: Path | None = None) -> io.BufferedReader:
    """The bytes that the file at `path` has now. What is appended later is not read, so that reading ends.

    Links are followed first, and must not lead out of the folder `inside`. The file is checked after it is opened: a
    pipe, a device or a folder is refused, and opening it does not wait.

    Raises:
        OSError: it is no regular file, lies outside, or cannot be read.
    """
    real = Path(os.path.realpath(path, strict=True))  # `resolve` raises RuntimeError for a circle of links
    if inside is not None and not real.is_relative_to(inside.resolve()):
        raise OSError(LEADS_OUT)
    handle = os.open(real, _FLAGS)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(NOT_REGULAR)
        return io.BufferedReader(_Bounded(io.FileIO(handle), status.st_size))
    except BaseException:
        os.close(handle)
        raise


class _Bounded(io.RawIOBase):
    """The first bytes of a file, for one that grows while it is read."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_END:
            return self._file.seek(max(0, self._size + offset))
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview, /) -> int | None:  # type: ignore[override]
        return self._file.readinto(memoryview(buffer)[: max(0, self._size - self._file.tell())])

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()
