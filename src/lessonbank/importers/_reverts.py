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
_SAYS: Final = re.compile(
    r"\bcommit\s[^;&|\n]{0,200}?(?:-\w*m|--message)[\s=]*"
    r"(?:\"\$\(cat <<-?\s*['\"]?\w+['\"]?\n\s*([^\n]{1,200})|\"([^\"\n]{1,200})|'([^'\n]{1,200}))"
)
"""The subject that a command gives its commit: git may be quiet about it."""
_MADE_NONE: Final = re.compile(r"nothing to commit|no changes added|^fatal: ", re.MULTILINE)
_REVERTED: Final = re.compile(r'Revert "(.{1,200})"')
_COMMITS: Final = re.compile(r"^\s*git\s+(?:-\S+\s+\S+\s+)*commit(?=\s|$)")
_REVERTS: Final = re.compile(r"^\s*git\s+(?:-\S+\s+\S+\s+)*revert\s(?!.*--(?:abort|quit))(.*)")
_RESETS: Final = re.compile(
    r"^\s*git\s+(?:-\S+\s+\S+\s+)*reset\s.*--hard\s+(?:(?:HEAD|@)(\^+|~\d*)|([0-9a-f]{7,40}))\s*$"
)
_HASH: Final = re.compile(r"\b[0-9a-f]{7,40}\b")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that a run made, as git printed it."""

    hash: str
    """Empty where git did not print it."""
    subject: str


@dataclass(frozen=True, slots=True)
class Reverts:
    """What a run took back of what stood there before it."""

    hashes: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    last: int = 0
    """How many of the last commits a reset left out, besides those of the run itself."""
    to: str = ""
    """The hash of the commit that a reset went back to."""

    def __bool__(self) -> bool:
        return bool(self.hashes or self.subjects or self.last or self.to)

    def hit(self, commit: Commit, /) -> bool:
        """Whether a commit is named: by its hash, or where git printed no hash by its subject."""
        hashes = self.hashes if commit.hash else ()
        return commit.subject in self.subjects or any(
            commit.hash.startswith(name) or name.startswith(commit.hash) for name in hashes
        )


def commits_in(run: Trajectory, /) -> list[Commit]:
    """The commits that a run made, in their order."""
    lines = dict.fromkeys((line, printed) for command, printed, line in went_through(run) if _COMMITS.match(command))
    return [Commit(hash, subject.strip()) for line, printed in lines for hash, subject in _made_by(line, printed)]


def _made_by(line: str, printed: str) -> list[tuple[str, str]]:
    printed = printed[:_MOST_OUTPUT]
    quiet = [] if _MADE_NONE.search(printed) else [("", "".join(subject)) for subject in _SAYS.findall(line)]
    return _MADE.findall(printed) or quiet


def reverts_in(run: Trajectory, /) -> Reverts:
    """What a run took back; commits of its own are left out."""
    own = commits_in(run)
    hashes, subjects, last, to = set[str](), set[str](), 0, ""
    for command, printed, _ in went_through(run):
        if match := _REVERTS.match(command):
            hashes |= {*_HASH.findall(match.group(1))}
            made = (subject for _, subject in _MADE.findall(printed[:_MOST_OUTPUT]))
            subjects |= {revert[1] for revert in map(_REVERTED.match, made) if revert}
        elif match := _RESETS.match(command):
            back, to = match.group(1) or "~0", match.group(2) or to
            last += len(back) if "^" in back else int(back[1:] or 1)
    of_own = {commit.subject for commit in own}
    return Reverts(frozenset(hashes), frozenset(subjects - of_own), max(last - len(own), 0), to)


def reverted(reverts: Reverts, former: Iterable[Trajectory], /) -> Iterator[Trajectory]:
    """The former runs, newest first, of which something was taken back."""
    last, subjects = reverts.last, set(reverts.subjects)
    commits = [(run, made) for run in former if (made := commits_in(run))]
    back = Reverts(frozenset({reverts.to} - {""}))
    since = next((place for place, (_, made) in enumerate(commits) if any(map(back.hit, made))), 0)
    for place, (run, made) in enumerate(commits):
        named = Reverts(reverts.hashes, frozenset(subjects))
        if place < since or last > 0 or any(map(named.hit, made)):
            yield run
        last -= len(made)
        subjects -= {commit.subject for commit in made}  # the newest commit of a subject is meant
