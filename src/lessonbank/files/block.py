"""The part of a file that is ours: lessons between two marker lines, written, found in a file, and read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from lessonbank.contracts.records import Lesson
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import FormatError

from .inert import WHEN, inert_line, inert_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

INTRODUCTION: Final = "What finished tasks taught, as advice. Use a lesson only where it fits the task at hand."
NONE_YET: Final = "There is no lesson yet."
_BEGIN: Final = (
    "<!-- lessonbank:begin{topic} What you change below becomes a proposal: `lessonbank import` reads it. -->"
)
_MARK: Final = re.compile(rb"^[ \t]*<!--[ \t]*lessonbank:(begin|end)\b([^\r\n]*?)-->[ \t]*(?=\r?$)", re.MULTILINE)
_LIKE_MARK: Final = re.compile(rb"<!--\s*lessonbank:(begin|end)")
_TOPIC: Final = re.compile(rb"topic=([0-9a-z]{1,16})\b")
_SHOWN: Final = re.compile(r"\b([0-9a-f]{8,32}):([0-9a-f]{8})\b")
_TITLE: Final = re.compile(r"\*\*(.+)\*\*")
_ID: Final = re.compile(r"\s*`([0-9a-f]{8,32})`(?: \([a-z ]+\))?")
_BULLET: Final = re.compile(r"[-*+]\s+")
_PART: Final = re.compile(r"\s*(?:[-*+>#]+|\d{1,9}[.)]|`{3}|~{3})(?:\s+|$)")
_WORD: Final = re.compile(r"\w")
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s")
_EMPTY: Final = "(empty)"
_LONGEST: Final = 80
"""Characters of a title that is taken from the beginning of a text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A lesson as a file says it."""

    title: str
    when: str
    content: str
    id: str = ""
    """The end of the lesson's id; empty for what somebody wrote into the file."""
    topic: str = ""
    """The heading it stands under."""
    topic_id: str = ""
    """That of the bank, where it is one of the bank's."""
    mark: str = ""
    """What a reader should know of it, such as `on probation`."""

    @classmethod
    def of(cls, lesson: Lesson, /, *, id: str = "", topic: str = "", mark: str = "") -> Entry:
        """A lesson in the words of a file, under the name of its topic."""
        title, when, about = inert_line(lesson.title), inert_line(lesson.description), lesson.topic
        content = inert_lines(lesson.content)
        return cls(title or _EMPTY, when, content or _EMPTY, id, topic, about.id if about else "", mark)

    @property
    def digest(self) -> str:
        """Eight hex digits that tell whether its words are still the same."""
        return digest(f"{self.title}\n{self.when}\n{self.content}")[:8]

    @property
    def text(self) -> str:
        """The block's lines in the file."""
        mark = f" ({self.mark})" if self.mark else ""
        lines = [f"{WHEN} {self.when}"] if self.when else []
        below = "".join(f"  {line}\n" for line in (*lines, *self.content.splitlines()))
        return f"- **{self.title}** `{self.id}`{mark}\n{below}"


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between the markers of a file."""

    entries: tuple[Entry, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Id to digest of the lessons that were written here: what is missing now was removed by somebody."""

    @property
    def edited(self) -> tuple[Entry, ...]:
        """The entries that somebody changed or added; of two copies of a lesson, the second one is an addition."""
        entries, seen = list[Entry](), set[str]()
        for entry in self.entries:
            again = entry.id in seen
            if again or not entry.id or self.shown[entry.id] != entry.digest:
                entries.append(replace(entry, id="") if again else entry)
            seen.update(filter(None, [entry.id]))
        return tuple(entries)

    @property
    def removed(self) -> tuple[str, ...]:
        """The ids of lessons that somebody took out."""
        return tuple(id for id in self.shown if id not in {entry.id for entry in self.entries})


@dataclass(frozen=True, slots=True)
class Parts:
    """A file, and where our part of it stands."""

    before: bytes
    block: bytes | None
    """From the first letter of the one marker to the last of the other; `None` where there is none."""
    after: bytes
    topic: str = ""
    """The topic that the marker names, for a file about one."""

    def read(self) -> Block:
        """The lessons in our part. Raises FormatError where it is no text."""
        try:
            return _read((self.block or b"").decode())
        except UnicodeDecodeError as error:
            raise FormatError("what stands between the lessonbank markers is not UTF-8: restore the file") from error

    def with_block(self, text: str, /) -> bytes:
        """The file with `text` as our part: in the place of the earlier one, or behind everything."""
        ending = b"\r\n" if b"\r\n" in (self.block or self.before) else b"\n"
        block = text.encode().replace(b"\n", ending)
        if self.block is not None:
            return self.before + block + self.after
        gap = b"" if not self.before else ending if self.before.endswith(b"\n") else ending * 2
        return self.before + gap + block + ending


def parts(data: bytes, /) -> Parts:
    """Where our part of a file stands. Raises FormatError: the markers are not one pair in order."""
    marks, kinds = list(_MARK.finditer(data)), _LIKE_MARK.findall(data)
    if not kinds:
        return Parts(data, None, b"")
    if kinds != [b"begin", b"end"] or len(marks) != len(kinds):
        names = ", ".join(kind.decode() for kind in kinds[:6])
        raise FormatError(
            f"the lessonbank markers in it are not one begin and one end, each alone in its line ({names}): "
            "restore them, or delete all of them"
        )
    start, stop = marks[0].start(), marks[1].end()
    topic = _TOPIC.search(marks[0][2])
    return Parts(data[:start], data[start:stop], data[stop:], topic[1].decode() if topic else "")


def written(entries: Sequence[Entry], /, *, topic: str = "") -> str:
    """Our part of a file, without a line break at its end. `topic`: what the whole file is about."""
    lines = [_BEGIN.format(topic=f" topic={topic}." if topic else ""), "", "## Lessons from past tasks", ""]
    lines += [INTRODUCTION if entries else NONE_YET, ""]
    for heading in dict.fromkeys(entry.topic for entry in entries):
        if heading:
            lines += [f"### {heading}", ""]
        lines += [entry.text for entry in entries if entry.topic == heading]
    shown = "".join(f" {entry.id}:{entry.digest}" for entry in entries)
    return "\n".join([*lines, f"<!-- lessonbank:end{shown} -->"])


def _read(text: str) -> Block:
    lines = text.replace("\r\n", "\n").split("\n")
    shown = dict[str, str](_SHOWN.findall(lines[-1]))
    return Block(tuple(_entries(lines[1:-1], shown)), shown)


def _entries(lines: Sequence[str], shown: Mapping[str, str]) -> Iterator[Entry]:
    """Each entry of a list, and whatever else somebody wrote, which is an entry too: nothing is passed over."""
    heading = ""
    for kind, piece in pieces("\n".join(lines)):
        if kind == "heading":
            heading = piece[0].lstrip("# ").rstrip("# ")
        elif kind == "entry":
            yield _entry(piece, shown, heading)
        elif "\n".join(piece) not in (INTRODUCTION, NONE_YET):
            yield titled("\n".join(piece), topic=heading)


def pieces(text: str, /) -> Iterator[tuple[str, list[str]]]:
    """What a Markdown text consists of at its outermost level: its kind, and its lines that are not blank.

    Kinds: `heading`, `entry` (of a list with bullets), and the names that markdown-it gives to everything else.
    """
    lines = text.split("\n")
    for token in _reader().parse(text):
        kind = _piece(token)
        if kind and token.map:
            piece = [line.strip() for line in lines[slice(*token.map)]]
            if kind == "entry":
                piece[0] = _BULLET.sub("", piece[0], count=1)
            if piece := [line for line in piece if line]:
                yield kind, piece


def _piece(token: Token) -> str:
    if token.type == "list_item_open" and token.level == 1 and token.markup in ("-", "*", "+"):
        return "entry"
    if token.level or token.type in ("bullet_list_open", "hr") or token.nesting < 0:
        return ""
    return token.type.removesuffix("_open")


@cache
def _reader() -> MarkdownIt:
    """Finds the blocks alone: what stands in a line is nobody's business here."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a parser that only files of people need

    reader = MarkdownIt("commonmark").disable("reference")
    reader.core.ruler.enableOnly(["normalize", "block"])
    return reader


def _entry(lines: Sequence[str], shown: Mapping[str, str], topic: str) -> Entry:
    first, *rest = lines
    ids = [match for match in _ID.finditer(first) if match[1] in shown]
    id = ids[-1][1] if ids else ""
    first = first[: ids[-1].start()] + first[ids[-1].end() :] if ids else first
    title = _TITLE.fullmatch(first.strip())
    if title is None:
        entry = titled("\n".join(filter(None, (first, *rest))), topic=topic)
        return Entry(entry.title, entry.when, entry.content, id, topic)
    when = rest.pop(0).removeprefix(WHEN).strip() if rest and rest[0].startswith(WHEN) else ""
    return Entry(title[1].strip(), when, "\n".join(rest) or title[1].strip(), id, topic)


def titled(text: str, /, *, topic: str = "") -> Entry:
    """An entry for a text without a title: its first sentence, shortened, is one."""
    worded = [line for line in text.splitlines() if _WORD.search(line)] or [""]
    lead = [worded[0], *takewhile(lambda line: not _PART.match(line), worded[1:])]
    first = _SENTENCE.split(_PART.sub("", " ".join(lead)), maxsplit=1)[0]
    first = inert_line(first).strip("*_#: ")
    title = first if len(first) <= _LONGEST else first[: _LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return Entry(title or "Note", "", text.strip(), topic=topic)
