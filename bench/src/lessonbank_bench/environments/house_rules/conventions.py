"""The twelve kinds of convention a house may have: what can be wanted, what a reviewer says, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Sort = Literal["files", "order", "names", "limits", "flags", "silent"]
Owner = Literal["organisation", "repository", "kind"]
SCRIPTS = ("freeze", "index", "stamp", "bundle", "render", "sync", "pin", "census")
"""Below `dev/`, in every repository."""
FOLDERS = ("news", "changes", "history", "record", "ledger", "updates", "summary", "digest")
"""Below `docs/`, in every repository."""
LISTS = ("names", "symbols", "public", "catalogue", "terms")
"""Below `index/`, as text files, in every repository."""
PREFIXES = ("ENH", "MNT", "REL")


@dataclass(frozen=True, slots=True)
class Ask:
    """What a change is about."""

    id: str
    """Of the task, such as `MA-123`."""
    name: str
    """What is added, set or removed."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a change."""

    subject: str
    trailers: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What was handed in, as git has it."""

    branch: str
    tags: tuple[str, ...]
    """At the last commit."""
    commits: tuple[Commit, ...]
    """Since the branch left `main`, the oldest first."""
    texts: dict[str, str]
    """The files of the last commit that a reviewer reads: notes, lists, what scripts wrote."""
    core: str
    """The hash of `core.py`."""

    @property
    def scripts(self) -> tuple[str, ...]:
        """Scripts that ran on the final `core.py`, with their options, in order."""
        lines = self.texts.get("generated/log.txt", "").splitlines()
        return tuple(" ".join(words[:-1]) for words in map(str.split, lines) if words and words[-1] == self.core)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of convention."""

    sort: Sort
    owner: Owner
    values: tuple[str, ...]
    """What a house may want."""
    sentence: str
    """With `{owner}` and `{value}`: what is told to whoever may know."""
    holds: Callable[[Change, Ask, str], bool]
    silent: bool = False
    """The reviewer does not say what was wrong."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One convention of one owner."""

    rule: str
    owner: str
    value: str

    @property
    def sentence(self) -> str:
        """What somebody who knows it says."""
        return RULES[self.rule].sentence.format(owner=self.owner, value=self.value)

    @property
    def silent(self) -> bool:
        """Whether a reviewer keeps it to himself."""
        return RULES[self.rule].silent

    def kept(self, change: Change, ask: Ask, /) -> bool:
        """Whether the change keeps it."""
        return RULES[self.rule].holds(change, ask, self.value)


def _note(change: Change, ask: Ask) -> str:
    return next((path for path in change.texts if path.startswith("docs/") and path.endswith(f"/{ask.id}.md")), "")


def _filled(text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.strip()]


def _note_in(change: Change, ask: Ask, value: str) -> bool:
    return f"docs/{value}/{ask.id}.md" in change.texts


def _note_long(change: Change, ask: Ask, value: str) -> bool:
    return len(_filled(change.texts.get(_note(change, ask), ""))) == int(value)


def _branch(change: Change, ask: Ask, value: str) -> bool:
    return change.branch == value.replace("TASK", ask.id).replace("task", ask.id.lower())


def _apart(change: Change, ask: Ask, value: str) -> bool:
    note = [at for at, commit in enumerate(change.commits) if _note(change, ask) in commit.paths]
    code = [at for at, commit in enumerate(change.commits) if "core.py" in commit.paths]
    if not note or not code:
        return False
    return max(note) < min(code) if value == "note" else max(code) < min(note)


def _prefix(change: Change, ask: Ask, value: str) -> bool:
    return bool(change.commits) and change.commits[-1].subject.startswith(f"{value}: {ask.id}")


def _subject(change: Change, _: Ask, value: str) -> bool:
    return bool(change.commits) and all(len(commit.subject) <= int(value) for commit in change.commits)


def _listed(change: Change, ask: Ask, value: str) -> bool:
    return ask.name in change.texts.get(f"index/{value}.txt", "").split()


def _tag(change: Change, ask: Ask, value: str) -> bool:
    return value.replace("TASK", ask.id) in change.tags


def _ran(change: Change, _: Ask, value: str) -> bool:
    return value.removeprefix("dev/") in change.scripts


def _both(change: Change, _: Ask, value: str) -> bool:
    first, second = (name.removeprefix("dev/") for name in value.split(" and then "))
    ran = [script.split()[0] for script in change.scripts]
    return first in ran and second in ran[ran.index(first) + 1 :]


def _trailer(change: Change, _: Ask, value: str) -> bool:
    return bool(change.commits) and value in change.commits[-1].trailers


_PAIRS = tuple(f"dev/{a} and then dev/{b}" for a in SCRIPTS for b in SCRIPTS if a != b)
_FLAGGED = tuple(f"dev/{script} --{flag}" for script in SCRIPTS for flag in ("strict", "plain", "all", "quiet"))
_WORDS = ("minor", "routine", "planned", "visible", "internal", "urgent")
RULES: dict[str, Rule] = {
    "folder": Rule("files", "organisation", FOLDERS, "{owner} keeps change notes in docs/{value}/.", _note_in),
    "branch": Rule(
        "names",
        "organisation",
        ("work/TASK", "task", "TASK-change", "wip-task", "for/task"),
        "{owner} names branches {value}, with the number of the task for TASK (task: in small letters).",
        _branch,
    ),
    "length": Rule(
        "limits",
        "organisation",
        ("2", "4", "5", "6"),
        "A change note of {owner} has exactly {value} lines.",
        _note_long,
    ),
    "apart": Rule(
        "order",
        "organisation",
        ("note", "code"),
        "{owner} wants two commits, one for the note and one for core.py; the {value} comes first.",
        _apart,
    ),
    "prefix": Rule("silent", "repository", PREFIXES, "{owner} uses the prefix {value}.", _prefix, silent=True),
    "subject": Rule(
        "limits",
        "repository",
        ("12", "16", "20", "24"),
        "A commit's subject in {owner} has at most {value} characters.",
        _subject,
    ),
    "listed": Rule(
        "files", "repository", LISTS, "{owner} lists the name that a change touches in index/{value}.txt.", _listed
    ),
    "tag": Rule(
        "names",
        "repository",
        tuple(f"TASK-{word}" for word in ("ready", "done", "final", "seen", "one")),
        "{owner} wants the last commit tagged {value}, with the number of the task for TASK.",
        _tag,
    ),
    "script": Rule(
        "files",
        "kind",
        tuple(f"dev/{script}" for script in SCRIPTS),
        "Whoever is to {owner} runs {value}, without options, after the change of core.py.",
        _ran,
    ),
    "scripts": Rule("order", "kind", _PAIRS, "Whoever is to {owner} runs {value} after the change of core.py.", _both),
    "trailer": Rule(
        "flags",
        "kind",
        tuple(f"Change-Kind: {word}" for word in _WORDS),
        "The message of the last commit ends with the trailer '{value}' where the task is to {owner}.",
        _trailer,
    ),
    "flagged": Rule("flags", "kind", _FLAGGED, "Whoever is to {owner} runs {value} after the change of core.py.", _ran),
}
"""By name."""
