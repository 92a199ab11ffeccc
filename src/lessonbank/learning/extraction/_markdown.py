"""Reads memory items in the paper's Markdown form, as models really write it."""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"^(?P<mark>[\s>#*_\-]*)(?:memory[ _]item|memory|item|lesson)\b[\s#]*(?P<number>\d*)[\s.:)*_\-–—]*(?P<rest>.*)$",
    re.I,
)
_FIELD = re.compile(
    r"^(?P<mark>[\s>#*_\-+\d.)]*)(?P<name>title|description|content|kind|evidence)\b(?P<close>[\s*_]*[::]?[\s*_]*)"
    r"(?P<value>.*)$",
    re.I,
)
_LISTED = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s")
_BREAK = re.compile(r"^\s*(?:```|~~~|---+\s*$|\*\*\*+\s*$|#)")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]`*_]*$")


def markdown_lessons(text: str, /) -> list[dict[str, str]]:
    """Lessons as dicts of field name to text, in order; fields that were not written are missing.

    A heading's value stands behind it or below it, up to the first blank line that is not followed by a list. When
    the last content stops in the middle of a sentence while the others do not, the reply was cut off there and that
    lesson is left out.
    """
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    lessons = [{name: "\n".join(lines).strip() for name, lines in lesson.items()} for lesson in reader.lessons]
    return [lesson for lesson in _without_the_cut_one(lessons) if lesson]


def _without_the_cut_one(lessons: list[dict[str, str]]) -> list[dict[str, str]]:
    contents = [lesson.get("content", "") for lesson in lessons]
    if len(lessons) > 1 and not _SENTENCE_END.search(contents[-1]) and all(map(_SENTENCE_END.search, contents[:-1])):
        return lessons[:-1]
    return lessons


class _Reader:
    """Goes through the lines once; each lesson maps field names to their lines."""

    def __init__(self) -> None:
        self.lessons: list[dict[str, list[str]]] = []
        self._into: list[str] | None = None
        self._paused = False

    def take(self, line: str) -> None:
        if self._starts_lesson(line) or self._starts_field(line):
            return
        if self._into is None:
            return
        if _BREAK.match(line):
            self._into = None
        elif not line.strip():
            self._paused = bool(self._into)
        elif not self._paused or _LISTED.match(line):
            self._into.append(line.strip())
            self._paused = False

    def _starts_lesson(self, line: str) -> bool:
        match = _HEAD.match(line)
        if not match or not (match["number"] or ("#" in match["mark"] and not match["rest"])):
            return False
        if "#" not in match["mark"] and "**" not in match["mark"] and "item" not in line.lower():
            return False
        title = match["rest"].strip(" *_#")
        self.lessons.append({"title": [title]} if title else {})
        self._into = None
        return True

    def _starts_field(self, line: str) -> bool:
        match = _FIELD.match(line)
        if not match or not ("#" in match["mark"] or "**" in match["mark"] or match["close"].strip(" *_")):
            return False
        name, value = match["name"].lower(), match["value"].strip()
        if value.count("**") % 2:
            value = value.removesuffix("**")
        if not self.lessons or (name in self.lessons[-1] and (name != "title" or "content" in self.lessons[-1])):
            self.lessons.append({})
        self._into = self.lessons[-1][name] = [value] if value else []
        self._paused = False
        return True
