"""The form in which lessons stand in a prompt. It is written and read in this file and nowhere else.

    <<<lessons 0a1b2c3d>>>
    ~~~
    0a1b2c3d| [1] strategy: Sort by date
    0a1b2c3d|   when: the newest entry is wanted
    0a1b2c3d|   Sort the list before you read it.
    ~~~
    <<<end lessons 0a1b2c3d>>>

The writers take canonical text (`lessonbank.guard.canonical`): it has no `\\r` and nothing that looks like a marker.
The readers take any text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

_OPENING: Final = "<<<{label} {nonce}{remark}>>>"
_CLOSING: Final = "<<<end {label} {nonce}>>>"
_CODE_BLOCK: Final = "~~~"
_MARK: Final = "| "
"""What stands before every line, behind the code. The last sign is a blank: where lines are cut off, it may be lost."""
_NUMBER: Final = "[{}]"
"""How a lesson begins, and how an agent cites it."""
_INDENT: Final = "  "
"""Before every line of a lesson but its first, so that no text of a lesson can begin another."""
_WHEN: Final = "when: "
_KINDS: Final = "strategy|guardrail"

LIKE_MARKER: Final = r"<<<\s*/?\w[\w ()-]{0,60}+>>>"
"""The pattern of what could be taken for a marker line: canonical text has nothing like it."""

_READ: Final = 400_000
"""Characters of a text in which blocks are looked for."""
_CODE = "[0-9a-f]{8}"
_JSON_MARK = json.dumps(_MARK)[1:-1]
_NUMBERED = re.escape(_NUMBER).replace(r"\{\}", r"(\d{1,3})")
_CITED = re.compile(_NUMBERED)
_BEGINS = re.compile(rf"^{_NUMBERED} (?:({_KINDS}): )?", re.MULTILINE)
_FRONT = re.compile(rf"\n[ \t>|]{{0,8}}({_CODE}){re.escape(_MARK.rstrip())} ?")
"""How a line begins that stands in a block, also in a mail or a table. Other lines may look so, too.

A pattern that begins with a line break passes over a text several times as fast as one that begins with `^`.
"""
_LINE = re.compile(rf"{_FRONT.pattern}([^\n]*)")
_LABELS = re.compile(rf"{_CODE}{re.escape(_MARK)}(?:{_NUMBERED} )? *(?:(?:{_KINDS}): |{re.escape(_WHEN)})?")
_JSON_LINE = re.compile(rf'({_CODE}){re.escape(_JSON_MARK.rstrip())} ?(?:[^"\\]|\\[^n])*+')
"""A line of a block in JSON. In JSON that stands in a text of a run it reaches to the end of that text."""
_MARKERS = [
    re.escape(line).replace(r"\{label\}", r"[^\n<>]{1,80}").replace(r"\{remark\}", r"[^\n<>]{0,200}")
    for line in (_CLOSING, _OPENING)
]
_MARKER = re.compile("|".join(line.replace(r"\{nonce\}", f"({_CODE})") for line in _MARKERS))


def between_markers(text: str, /, *, label: str, nonce: str, remark: str = "") -> str:
    """`text` between an opening and a closing line that carry `nonce`."""
    opening = _OPENING.format(label=label, nonce=nonce, remark=f" {remark}" if remark else "")
    closing = _CLOSING.format(label=label, nonce=nonce)
    return f"{opening}\n{text}\n{closing}"


def write_block(text: str, /, *, label: str, nonce: str, remark: str = "") -> str:
    """`text` with the nonce before every line, between markers: a line without it is not from inside.

    The lines stand in a code block of Markdown that none of them can end: where the text is shown, nothing is active.
    `remark` stands on the opening marker.
    """
    lines = f"{_CODE_BLOCK}\n{with_nonce(text, nonce=nonce)}\n{_CODE_BLOCK}"
    return between_markers(lines, label=label, nonce=nonce, remark=remark)


def with_nonce(text: str, /, *, nonce: str) -> str:
    """`text` with the nonce before every line; a copy of it in the text is blotted out."""
    front = f"{nonce}{_MARK}"
    return front + text.replace(nonce, "-" * len(nonce)).replace("\n", f"\n{front}")


def write_lesson(title: str, content: str, /, *, kind: str, when: str = "", warning: str = "") -> str:
    """The lines of one lesson without its number. Without a `kind` or `when` there is no label for it."""
    lines = [f"{kind}: {title}" if kind else title]
    if when:
        lines.append(f"{_WHEN}{when}")
    lines += content.split("\n") if content else ()
    if warning:
        lines.append(f"({warning})")
    return f"\n{_INDENT}".join(lines)


def citation(place: int, /) -> str:
    """The number of the lesson in that place, from 1, as the block shows it and as an agent cites it."""
    return _NUMBER.format(place)


def with_numbers(lessons: Iterable[str], /) -> str:
    """Lessons, each in the lines of `write_lesson`, one below the other with their numbers."""
    return "\n".join([f"{citation(place)} {lines}" for place, lines in enumerate(lessons, 1)])


class BlockLesson(NamedTuple):
    """A lesson as it was read in a block."""

    number: int
    """0 for what stands in a block before the first number."""
    kind: str
    """Empty where the block shows none."""
    text: str
    """All that the block says of it: the rest of its first line, and its other lines as they are indented."""

    @property
    def title(self) -> str:
        """The lesson's first line."""
        return self.text.partition("\n")[0]

    @property
    def when(self) -> str:
        """When it is of use; empty where the block does not say it."""
        return self._below[0].removeprefix(_WHEN) if self._has_when else ""

    @property
    def content(self) -> str:
        """The lesson's words, and the warning behind them where it has one."""
        return "\n".join(self._below[self._has_when :])

    @property
    def _below(self) -> list[str]:
        return [line.removeprefix(_INDENT) for line in self.text.split("\n")[1:]]

    @property
    def _has_when(self) -> bool:
        return any(line.startswith(_WHEN) for line in self._below[:1])


def lessons_in(text: str, /) -> Sequence[BlockLesson]:
    """The lessons in the coded lines of `text`, whichever code they have; none where it has no such line."""
    lines = [line for _, line in _LINE.findall(f"\n{text[:_READ]}")]
    first, *rest = _BEGINS.split("\n".join(lines))
    lessons = [BlockLesson(0, "", first.removesuffix("\n"))] if first.strip() else []
    for place, kind, content in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        lessons.append(BlockLesson(int(place), kind or "", content.removesuffix("\n")))
    return lessons


def words_at(line: str, /) -> int | None:
    """Where the words of a block's line begin, behind code, number and label; `None` for any other line."""
    front = _LABELS.match(line)
    return front.end() if front else None


def codes_in(texts: Iterable[str], /) -> Counter[str]:
    """What may be the code of a block in `texts`, and how many lines begin with it."""
    return Counter([code for text in texts if _MARK in text for code in _FRONT.findall(f"\n{text[:_READ]}")])


def has_code(text: str, code: str, /) -> bool:
    """Whether `text` has a line of the block with this code."""
    return f"\n{code}{_MARK}" in f"\n{text}"


def marker_codes(text: str, /) -> list[str]:
    """The codes of all marker lines in `text`, in order."""
    return [closing or opening for closing, opening in _MARKER.findall(text)]


def numbers_cited(text: str, /) -> frozenset[int]:
    """The numbers in `text` that are written like those of lessons: how an agent names what it was shown."""
    return frozenset(map(int, _CITED.findall(text)))


def without_citations(text: str, /) -> str:
    """`text` without the numbers with which it cites lessons."""
    return _CITED.sub("", text)


def plain_text(text: str, /) -> str:
    """`text` with each lesson below an empty line, and without what stands before the lines of a block."""
    lines = _FRONT.sub("\n", f"\n{text}")[1:]
    return _BEGINS.sub(lambda match: f"\n{match[0]}", lines)


def erase_lines(text: str, codes: Collection[str], /, *, instead: str) -> str:
    """The JSON of a run with `instead` for what the lines of the blocks with these codes say."""
    return _JSON_LINE.sub(lambda line: f"{line[1]}{_JSON_MARK}{instead}" if line[1] in codes else line[0], text)
