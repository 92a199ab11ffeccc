"""Finds the scope of a working folder: one for each repository, which its clones and worktrees share.

A folder says itself which repository it is, and an archive can say anything. So an address that is met at a second
root shares no lessons until a person says so. Git is not called: its files are read, a bounded part of each.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError, printable
from lessonbank.guard.scope import scope_of

from . import client

COMMON: Final = "coding"
"""The scope of sessions whose folder is not known, and of all sessions of earlier versions. The others lie below it."""
_FOLDER: Final = "@folder"
"""Stands before the path of a folder. The name of a host never begins so."""
_MOST: Final = 2**18
"""Bytes that are read of a file of git."""
_DEEPEST: Final = 64
"""Folders above the working folder that are looked at."""
_MOST_WAITING: Final = 100
_LISTS: Final = ("roots", "waiting", "asked")
"""Of an address: the roots that share its lessons, those that do not, and those of which a person was asked."""
_ORIGIN: Final = re.compile(r'\[\s*remote\s+"origin"\s*\]\s*(?:[#;].*)?$', re.IGNORECASE)
_URL: Final = re.compile(r'url\s*=\s*"?([^"\s#;\\]{1,500})"?\s*(?:[#;].*)?$', re.IGNORECASE)
_WITH_SCHEME: Final = re.compile(r"(ssh|git|https?|git\+ssh)://(?:[^/?#]*@)?([^/?#@:]+)(?::(\d{1,5}))?/([^?#]*)(.*)$")
_LIKE_SCP: Final = re.compile(r"(?:[^/:@]+@)?([^/:@]{2,}):(?!//|:)([^?#]+)(.*)$")
_HOST: Final = re.compile(r"[a-z0-9][a-z0-9.-]*(?::\d+)?")
_USUAL_PORTS: Final = {("ssh", "22"), ("git+ssh", "22"), ("git", "9418"), ("http", "80"), ("https", "443")}


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a working folder belongs."""

    root: str
    """The real path of the repository's first folder, also for its worktrees; of the folder itself where git is not."""
    address: str = ""
    """Host and path of `origin`, without a user, a scheme and `.git`; empty where there is none."""

    @property
    def own_scope(self) -> str:
        """The scope of this root alone."""
        return _spelled(_FOLDER, *self.root.split("/"))

    @property
    def shared_scope(self) -> str:
        """The scope of all its clones."""
        return _spelled(*self.address.split("/")) if self.address else self.own_scope


def repository_of(folder: str, /) -> Repository:
    """The repository that a folder lies in, by what the files of git say. Raises ValueError: it is no path."""
    place = Path(folder).resolve()
    root = next((above for above in [place, *place.parents][:_DEEPEST] if os.path.lexists(above / ".git")), None)
    if root is None:
        return Repository(str(place))
    named = re.match(r"gitdir:\s*(.+)", beginning_of(root / ".git"))
    if named is None:
        return Repository(str(root), address_in(beginning_of(root / ".git/config")))
    inner = (root / named.group(1).strip()).resolve()
    shared = inner.parent.parent
    path = os.path.normpath(inner / beginning_of(inner / "gitdir").strip())  # perhaps a relative path
    if inner.parent.name == "worktrees" and path == str(root / ".git"):
        # The repository names this folder as its worktree: else any folder could name any repository.
        main = shared.parent if shared.name == ".git" else shared
        return Repository(str(main), address_in(beginning_of(shared / "config")))
    return Repository(str(root), address_in(beginning_of(inner / "config")))


def address_in(config: str, /) -> str:
    """The address of `origin` in a `.git/config`; empty where there is none, or none of another machine."""
    is_origin = False
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            is_origin = bool(_ORIGIN.match(line))
        elif is_origin and (match := _URL.match(line)):
            return address_of(match.group(1))
    return ""


def address_of(url: str, /) -> str:
    """`host/path` of an address of git; empty where that cannot be told for sure from what may be a password."""
    if match := _WITH_SCHEME.match(url):
        scheme, host, port, path, rest = match.groups()
        host += f":{port}" if port and (scheme, port) not in _USUAL_PORTS else ""
    elif "://" not in url and (match := _LIKE_SCP.match(url)):
        host, path, rest = match.groups()
    else:
        return ""
    parts = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part]
    is_sure = "@" not in path + rest and not {".", ".."} & {*parts} and bool(_HOST.fullmatch(host.lower()))
    return "/".join((host.lower(), *parts)) if parts and is_sure else ""


def beginning_of(path: Path) -> str:
    """The beginning of a regular file; empty where it is none, or cannot be read."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(opened, _MOST).decode(errors="replace") if stat.S_ISREG(os.fstat(opened).st_mode) else ""
    except OSError:
        return ""
    finally:
        os.close(opened)


def _spelled(*parts: str) -> str:
    named = [part for part in parts if part]
    try:
        return scope_of(COMMON, *named)
    except UsageError:  # longer than a scope may be
        last = re.sub(r"[^\w.-]", "", named[-1][:40], flags=re.ASCII)
        return scope_of(COMMON, named[0], f"{last}-{digest('/'.join(named))[:16]}")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The scope of a folder, and what a person is asked about it, once."""

    scope: str
    question: str = ""


class Repositories:
    """Which roots share the scope of an address: in one small file of the user, for all banks."""

    def __init__(self, file: Path | None = None, /) -> None:
        folder = f"{client.state_folder()}/repositories"
        self._file = file or Path(client.private_folder(folder)) / "roots"

    def scope_of(self, folder: str, /, *, is_used: Callable[[str], bool], asks: bool = False) -> Chosen:
        """The scope of a folder. Raises ValueError: it is no path.

        `is_used`: whether the bank holds anything in a scope; `asks`: a person will see it.
        """
        repository = repository_of(folder)
        if not repository.address:
            return Chosen(repository.own_scope)
        with self._table() as table:
            known = table.get(repository.shared_scope)
            if known is None:
                known = table[repository.shared_scope] = {name: [] for name in _LISTS}
                is_guest = any(repository.root in entry["waiting"] for entry in table.values())
                if is_used(repository.own_scope) and not is_guest:  # from before it had an origin: they stay there
                    known["asked"] = [repository.root]
                elif not is_used(repository.shared_scope):
                    known["roots"] = [repository.root]
            if repository.root in known["roots"]:
                return Chosen(repository.shared_scope)
            is_asked = not asks or repository.root in known["asked"]
            for name in ("waiting", "asked") if asks else ("waiting",):
                known[name] = [*dict.fromkeys((*known[name], repository.root))][-_MOST_WAITING:]
            return Chosen(repository.own_scope, "" if is_asked else _question(repository, known["roots"]))

    def look_up(self, folder: str, /) -> str:
        """The scope of a folder as it is known, or as its first session would have it. Raises ValueError."""
        repository = repository_of(folder)
        with self._table() as table:
            known = table.get(repository.shared_scope)
        return repository.shared_scope if known is None or repository.root in known["roots"] else repository.own_scope

    def share(self, folder: str, /) -> tuple[str, bool]:
        """Let a folder share the lessons of its address. The scope, and whether that is new. Raises UsageError."""
        repository = repository_of(folder)
        if not repository.address:
            raise UsageError(f"{printable(repository.root)} has no origin: name a repository that has one")
        with self._table() as table:
            known = table.setdefault(repository.shared_scope, {name: [] for name in _LISTS})
            is_new = repository.root not in known["roots"]
            known["roots"] = [*dict.fromkeys((*known["roots"], repository.root))]
            known["waiting"] = [root for root in known["waiting"] if root != repository.root]
        return repository.shared_scope, is_new

    def waiting(self) -> list[tuple[str, str]]:
        """Each root that shares no lessons yet, with the scope that it would share."""
        with self._table() as table:
            return [(root, scope) for scope, known in table.items() for root in known["waiting"]]

    @contextlib.contextmanager
    def _table(self) -> Generator[dict[str, dict[str, list[str]]]]:
        """What the file holds; what changed of it is written, and nobody writes meanwhile."""
        with self._file.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table = _read(self._file)
            before = json.dumps(table)
            yield table
            if json.dumps(table) != before:
                client.write_private(str(self._file), cast("dict[str, object]", table))


def _read(file: Path) -> dict[str, dict[str, list[str]]]:
    """A file that is broken says nothing: then a scope with lessons is shared by nobody until a person says so."""
    try:
        table: Any = json.loads(file.read_bytes())
        return {scope: {name: [str(root) for root in known[name]] for name in _LISTS} for scope, known in table.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _question(repository: Repository, roots: list[str]) -> str:
    other = f"which {printable(roots[0], most=120)} is, too" if roots else "of which there are lessons already"
    root = printable(repository.root, most=120)
    sentence = f"{root} says that it is {printable(repository.address, most=120)}, {other}"
    return f"{sentence}. To share lessons: lessonbank hook scope --share"
