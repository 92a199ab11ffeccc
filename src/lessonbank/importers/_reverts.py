"""Finds the commits that a run made, and those that it took back: what was reverted later is no success any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Trajectory

from ._shell import went_through

_MOST_OUTPUT: Final = 20_000
_MADE: Final = re.compile(r"^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] (.{1,200})$", re.MULTILINE)
"""What git prints of a commit that it made."""
_REVERTED: Final = re.compile(r'Revert "(.{1,200})"')
_COMMITS: Final = re.compile(r"^\s*git\s+(?:-\S+\s+\S+\s+)*commit(?=\s|$)")
_REVERTS: Final = re.compile(r"^\s*git\s+(?:-\S+\s+\S+\s+)*revert\s(?!.*--(?:abort|quit))(.*)")
_RESETS: Final = re.compile(r"^\s*git\s+(?:-\S+\s+\S+\s+)*reset\s.*--hard\s+(?:HEAD|@)(\^+|~\d*)\s*$")
_HASH: Final = re.compile(r"\b[0-9a-f]{7,40}\b")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that a run made, as git printed it."""

    hash: str
    subject: str


@dataclass(frozen=True, slots=True)
class Reverts:
    """What a run took back of what stood there before it."""

    hashes: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    last: int = 0
    """How many of the last commits a reset left out, besides those of the run itself."""

    def __bool__(self) -> bool:
        return bool(self.hashes or self.subjects or self.last)

    def hit(self, commit: Commit, /) -> bool:
        """Whether a commit is named: by its hash, or where git printed no hash by its subject."""
        return commit.subject in self.subjects or any(
            commit.hash.startswith(name) or name.startswith(commit.hash) for name in self.hashes
        )


def commits_in(run: Trajectory, /) -> list[Commit]:
    """The commits that a run made, in their order."""
    return [
        Commit(hash, subject.strip())
        for command, printed in went_through(run)
        if _COMMITS.match(command)
        for hash, subject in _MADE.findall(printed[:_MOST_OUTPUT])
    ]


def reverts_in(run: Trajectory, /) -> Reverts:
    """What a run took back; commits of its own are left out."""
    own = commits_in(run)
    hashes, subjects, last = set[str](), set[str](), 0
    for command, printed in went_through(run):
        if match := _REVERTS.match(command):
            hashes |= {*_HASH.findall(match.group(1))}
            made = (subject for _, subject in _MADE.findall(printed[:_MOST_OUTPUT]))
            subjects |= {revert[1] for revert in map(_REVERTED.match, made) if revert}
        elif match := _RESETS.match(command):
            last += len(match.group(1)) if "^" in match.group(1) else int(match.group(1)[1:] or 1)
    of_own = {commit.subject for commit in own}
    return Reverts(frozenset(hashes), frozenset(subjects - of_own), max(last - len(own), 0))


def reverted(reverts: Reverts, former: Iterable[Trajectory], /) -> Iterator[Trajectory]:
    """The former runs, newest first, of which something was taken back."""
    last, subjects = reverts.last, set(reverts.subjects)
    for run in former:
        made = commits_in(run)
        if not made:
            continue
        named = Reverts(reverts.hashes, frozenset(subjects))
        if last > 0 or any(map(named.hit, made)):
            yield run
        last -= len(made)
        subjects -= {commit.subject for commit in made}  # the newest commit of a subject is meant
