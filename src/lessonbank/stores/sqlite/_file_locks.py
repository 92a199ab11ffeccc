"""Asks a file system whether it gives locks, because SQLite takes a lock that is not given for one that is held."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, where every file system gives them
    fcntl = None


def gives_locks(folder: Path, /) -> bool:
    """Whether a file of its own can be locked in `folder`. Also true where no file can be made, to find that out.

    Never asked of the bank's own file: to close it again would give up the locks that this process holds on it.
    """
    if fcntl is None:
        return True
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP)
    return True
