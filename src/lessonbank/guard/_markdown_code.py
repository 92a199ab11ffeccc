"""Finds what is code in a text of Markdown, and only where every reader of Markdown must agree that it is."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

Span = tuple[int, int]

_OPENING = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
_RUN = re.compile(r"`+")
_FENCE_LIKE = re.compile(r"`{3}|~{3}")
_TAG_LINE = re.compile(r"[\s>*+.)\d-]{0,40}<[A-Za-z/!?]")
_OPEN_ADDRESS = re.compile(r"<[^\s<>]*$")
_TABLE = re.compile(r"^(?=[^\n]*[|:])(?=[^\n]*-)[-|: \t>*+]++$", re.MULTILINE)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)


@dataclass(slots=True)
class Code:
    """Where code is, as places in the text: `marked` between backticks or fence lines, `exact` that and indented lines.

    Markdown has many containers that change what a backtick means. Where one might (a list before a fence, an HTML tag
    or an unpaired backtick nearby, a table), the text is not taken for code: then a link in it is made inert, too.
    """

    marked: list[Span] = field(default_factory=list[Span])
    exact: list[Span] = field(default_factory=list[Span])


def find_code(text: str, /) -> Code:
    """The code of `text`, in order of place. Linear in its length."""
    if "`" not in text and "~~~" not in text:
        return Code(exact=_indented(text, []))
    fences, inline = _Reading(text).spans()
    marked = sorted((*fences, *inline))
    return Code(marked, _indented(text, marked))


def outside(spans: list[Span], length: int, /) -> Iterator[tuple[Span, bool]]:
    """The whole of a text in order, each part with whether it lies in one of `spans`."""
    at = 0
    for start, stop in spans:
        if at < start:
            yield (at, start), False
        yield (start, stop), True
        at = stop
    if at < length:
        yield (at, length), False


def _indented(text: str, marked: list[Span]) -> list[Span]:
    """`marked`, and every line that begins with four blanks or a tab, in order and without overlap."""
    if "    " not in text and "\t" not in text:
        return marked
    found = list[Span]()
    for start, stop in sorted((*marked, *(match.span() for match in _INDENTED.finditer(text)))):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found


class _Reading:
    """One pass over the lines; what it doubts it does not call code."""

    def __init__(self, text: str, /) -> None:
        self._text = text
        self._fences: list[Span] = []
        self._inline: list[Span] = []
        self._paired = True
        self._table = "|" in text and _TABLE.search(text) is not None

    def spans(self) -> tuple[list[Span], list[Span]]:
        """Fenced code, and code inside lines (none at all where one backtick of the text has no partner)."""
        at, in_html, sure = 0, False, True
        while at < len(self._text):
            stop = self._line_end(at)
            line = self._text[at:stop]
            if not line.strip():
                in_html = False
            else:
                in_html = in_html or _TAG_LINE.match(line) is not None
                past = self._fence(at, line) if sure and not in_html else None
                if past is not None:
                    at = past
                    continue
                if "`" in line or "~~~" in line:
                    sure = self._read(at, line, in_html) and sure
            at = stop
        return self._fences, self._inline if self._paired else []

    def _line_end(self, at: int) -> int:
        stop = self._text.find("\n", at)
        return len(self._text) if stop < 0 else stop + 1

    def _fence(self, at: int, line: str) -> int | None:
        """Where the text goes on after a fenced block that begins here; `None` where none does, or none that ends."""
        opening = _OPENING.match(line)
        if not opening or (opening[2][0] == "`" and "`" in opening[3]):
            return None
        indent, mark = len(opening[1]), opening[2]
        closing = re.compile(rf"^ {{{indent},3}}{mark[0]}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        start = at + len(line)
        end = closing.search(self._text, start)
        if end is None or (indent and not _is_indented(self._text[start : end.start()], indent)):
            return None
        stop = self._line_end(end.start())
        self._fences.append((at, stop))
        return stop

    def _read(self, at: int, line: str, in_html: bool) -> bool:
        """Note the code of one line; false where a fence may have begun that this reading does not follow."""
        runs, done = list(_RUN.finditer(line)), 0
        for opening, closing in _pairs(runs):
            before = line[done : opening.start()]
            if closing is None or before.endswith("\\") or _OPEN_ADDRESS.search(before):
                self._paired = False
                return not _FENCE_LIKE.search(line)
            done = closing.end()
            if not in_html and not (self._table and "|" in line[opening.start() : done]):
                self._inline.append((at + opening.start(), at + done))
        return "~~~" not in line and not (in_html and "```" in line)


def _pairs(runs: list[re.Match[str]]) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Each run of backticks that opens code, with the next one of its length; with none where there is none."""
    lengths: dict[int, deque[int]] = {}
    for place, run in enumerate(runs):
        lengths.setdefault(len(run[0]), deque()).append(place)
    at = 0
    while at < len(runs):
        alike = lengths[len(runs[at][0])]
        while alike and alike[0] <= at:
            alike.popleft()
        closing = alike[0] if alike else None
        yield runs[at], None if closing is None else runs[closing]
        at = (at if closing is None else closing) + 1


def _is_indented(body: str, indent: int) -> bool:
    return all(line.startswith(" " * indent) or not line.strip() for line in body.split("\n"))
