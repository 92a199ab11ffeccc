"""Puts a repository on disk for one task, and reads back what was handed in."""

from __future__ import annotations

import shutil
from pathlib import Path

from lessonbank_bench.environments.repo_desk.repository import git, source

from .conventions import FOLDERS, LISTS, SCRIPTS, Change, Commit
from .world import Repository

HAND_IN = "dev/hand-in"
HANDED = ".git/handed-in"
"""Written by `dev/hand-in`; the reviewer looks once the command has ended, and sits on another machine."""
_READ = ("docs/", "index/", "generated/")
_LARGEST = 20_000
_FILES = 60
_SCRIPT = """#!/bin/sh
# Brings generated files up to date, and writes down that it ran.
mkdir -p generated
echo "$(basename "$0")${1:+ $*} $(git hash-object core.py)" >> generated/log.txt
"""
_CONFIG = "[core]\n\tfsync = none\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"


def lay_out(repository: Repository, folder: Path, /) -> None:
    """Make the repository in `folder`, with one commit."""
    _programs(folder)
    for name in FOLDERS:
        _write(folder / "docs" / name / "about.txt", "Texts about this repository.\n")
    for name in LISTS:
        _write(folder / "index" / f"{name}.txt", "")
    _write(folder / "core.py", source(repository.name, repository.code))
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    with folder.joinpath(".git", "config").open("a", encoding="utf-8") as config:
        config.write(_CONFIG)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Import")
    git(folder, "repack", "-a", "-d", "--quiet")


def take(laid_out: Path, folder: Path, /) -> None:
    """A copy of a repository for one task."""
    shutil.copytree(laid_out, folder)


def handed_in(folder: Path, /) -> bool:
    """Whether the last command handed in; it is asked once for each time."""
    mark = folder / HANDED
    if not mark.is_file():
        return False
    mark.unlink()
    return True


def change(folder: Path, /) -> Change:
    """What stands on the branch now. Nothing that an agent left is run by looking at it."""
    listed = git(folder, "ls-tree", "-r", "-z", "--full-tree", "HEAD").split("\0")
    hashes = {path: told.split(" ")[-1] for told, _, path in (entry.partition("\t") for entry in listed)}
    paths = [path for path in hashes if path.startswith(_READ) and not path.endswith("/about.txt")]
    texts = {path: git(folder, "cat-file", "blob", f"HEAD:{path}")[:_LARGEST] for path in paths[:_FILES]}
    return Change(
        branch=git(folder, "rev-parse", "--abbrev-ref", "HEAD").strip(),
        tags=tuple(git(folder, "tag", "--points-at", "HEAD").split()),
        commits=_commits(folder),
        texts=texts,
        core=hashes.get("core.py", ""),
    )


def _commits(folder: Path) -> tuple[Commit, ...]:
    hashes = git(folder, "rev-list", "--reverse", "--max-count=20", "main..HEAD").split()
    return tuple(_commit(folder, hash) for hash in hashes)


def _commit(folder: Path, hash: str) -> Commit:
    subject = git(folder, "log", "-1", "--format=%s", hash).strip()
    trailers = git(folder, "log", "-1", "--format=%(trailers:only,unfold)", hash).splitlines()
    paths = git(folder, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", hash).split("\0")
    return Commit(subject, tuple(line.strip() for line in trailers if line.strip()), tuple(filter(None, paths)))


def _programs(folder: Path) -> None:
    for name in SCRIPTS:
        _write(folder / "dev" / name, _SCRIPT, mode=0o755)
    _write(
        folder / HAND_IN, f"#!/bin/sh\n# Asks the reviewer, who sits on another machine.\n: > {HANDED}\n", mode=0o755
    )


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
