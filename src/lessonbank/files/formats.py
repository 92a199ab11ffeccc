"""The kinds of file that hold lessons for people and coding agents: how each is named, and how a new one begins."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, Literal, TypeAlias

FileFormat: TypeAlias = Literal["skill", "agents-md", "claude-md", "cursor-rules", "gemini-md", "markdown"]
ExportFormat: TypeAlias = Literal["jsonl", "atif", FileFormat]

BUDGET: Final = 4000
"""Tokens that the lessons of a file may take."""
SKILL: Final = "SKILL.md"
_NAMED: Final[dict[str, FileFormat]] = {
    "agents.md": "agents-md",
    "claude.md": "claude-md",
    "gemini.md": "gemini-md",
    "skills": "skill",  # a folder, which need not be there yet
}
_ENDINGS: Final[dict[str, FileFormat]] = {".mdc": "cursor-rules", ".md": "markdown", ".markdown": "markdown"}
KEPT_ELSEWHERE: Final = frozenset({"agents-md", "claude-md", "gemini-md", "cursor-rules", "skill"})
"""Formats whose files people write themselves: without markers, what such a file says comes in on probation."""
_RULE: Final = "---\ndescription: Lessons from past tasks\nalwaysApply: true\n---\n"
_SKILL: Final = "---\nname: {name}\ndescription: {description}\n---\n"
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
GENERAL: Final = "general"
"""The topic of lessons that have none."""


def format_of(path: Path, /) -> FileFormat | None:
    """The format that a file's name tells, or that of a folder; `None` for a name that tells none."""
    if path.is_dir() or path.name == SKILL:
        return "skill"
    return _NAMED.get(path.name.casefold()) or _ENDINGS.get(path.suffix.casefold())


def head(format: FileFormat, /, *, topic: str = "", name: str = "") -> str:
    """What stands before our part in a new file: the fields that its readers ask for.

    `topic` and `name` are those of a skill: its topic's name, and that of its folder.
    """
    if format == "cursor-rules":
        return _RULE
    if format != "skill":
        return ""
    about = f"about {topic}" if topic else "of every kind"
    description = f"What was learned from finished tasks {about}. Read it before such a task."
    return _SKILL.format(name=name, description=json.dumps(description, ensure_ascii=False))


def folder(topic: str, id: str, /) -> str:
    """The name of a skill's folder: small letters, digits and hyphens, as every reader of skills takes it."""
    words = _OTHERS.sub("-", topic.casefold()).strip("-")[:40].strip("-")
    return "-".join(filter(None, ("lessons", words, id)))
