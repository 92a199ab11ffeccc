"""What people wrote elsewhere for an agent (CLAUDE.md, AGENTS.md, rules, skills) becomes lessons, bullet by bullet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .block import Entry, pieces, titled
from .inert import inert_line

MOST: Final = 300
"""Lessons that are taken from one file."""
_LEAST_WORDS: Final = 3
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^(name|description)[ \t]*:[ \t]*(.*)$", re.MULTILINE)
_INCLUDE: Final = re.compile(r"@\S+")
_NO_WORDS: Final = {"fence": "code without words", "code_block": "code without words", "html_block": "HTML"}


@dataclass(frozen=True, slots=True)
class ForeignLessons:
    """What was found in a file."""

    entries: tuple[Entry, ...]
    skipped: tuple[str, ...]
    """One sentence for each kind of thing that was passed over."""


def lessons_of_text(text: str, /) -> ForeignLessons:
    """The lessons of a file: one for each bullet, one for each numbered list, and one for the other text of a section.

    `topic` of an entry has the headings above it. Code belongs to the text before it.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields = {name: inert_line(value.strip("\"'>|- ")) for name, value in _FIELD.findall(front[1])} if front else {}
    reading = _Reading(fields.get("name", "").replace("-", " "), fields.get("description", ""))
    for kind, lines in pieces(text[front.end() :] if front else text):
        reading.take(kind, lines)
    reading.end_section()
    entries = tuple(reading.entries)
    if len(entries) > MOST:
        reading.skip(f"what comes after the first {MOST} lessons", len(entries) - MOST)
    return ForeignLessons(entries[:MOST], tuple(reading.notes()))


class _Reading:
    """What was read of a file so far."""

    def __init__(self, name: str, when: str) -> None:
        self.entries = list[Entry]()
        self._name, self._when = name, when
        self._headings = list[tuple[int, str]]()
        self._section = list[str]()
        self._skipped = dict[str, int]()

    def take(self, kind: str, lines: Sequence[str], /) -> None:
        text = "\n".join(lines)
        if kind == "heading":
            self.end_section()
            self._enter(lines)
        elif kind in ("entry", "ordered_list"):
            if self._section and self._section[-1].endswith(":"):
                self._section.pop()  # it only leads to the list
            self._add(text, title=self._heading if kind == "ordered_list" else "")
        elif kind == "html_block" or (kind in _NO_WORDS and not self._section):
            self.skip(_NO_WORDS[kind])
        elif kind == "paragraph" and all(map(_INCLUDE.fullmatch, text.split())):
            self.skip("a name of another file (@…), which is not read: import that file, too")
        else:
            self._section.append(text)

    def end_section(self) -> None:
        """Make a lesson of the text that stood outside of lists."""
        text, self._section = "\n".join(self._section), []
        if text:
            self._add(text, title=self._heading)

    def skip(self, what: str, count: int = 1, /) -> None:
        self._skipped[what] = self._skipped.get(what, 0) + count

    def notes(self) -> Iterator[str]:
        for what, count in self._skipped.items():
            yield f"skipped: {what}" + (f" ({count} times)" if count > 1 else "")

    @property
    def _heading(self) -> str:
        return self._headings[-1][1] if self._headings else self._name

    def _enter(self, lines: Sequence[str]) -> None:
        marks = len(lines[0]) - len(lines[0].lstrip("#"))
        level = marks or (1 if lines[-1].startswith("=") else 2)
        self._headings = [(above, name) for above, name in self._headings if above < level]
        self._headings.append((level, inert_line(lines[0].strip("# "))))

    def _add(self, text: str, *, title: str) -> None:
        if len(re.findall(r"\w+", text)) < _LEAST_WORDS:
            return self.skip("text of fewer than three words")
        entry = titled(text)
        topic = " / ".join(filter(None, (self._name, *(name for _, name in self._headings))))
        self.entries.append(Entry(title or entry.title, self._when, entry.content, topic=topic))
        return None
