"""Reads a text as others do: in plain letters, unescaped, with broken lines joined, decoded.

Each view knows where its characters come from, so that what is found in it can be removed from the text itself.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from operator import itemgetter
from typing import TypeAlias, cast

from lessonbank.guard._characters import folded, odd_in, plain, shadow

from ._spans import Page

_HYPHENS = re.compile("[\u2010-\u2012\u2212]")
_CODED = re.compile(
    r"\\(?<!\\\\)\\{0,7}(?:([nrt\"'/_-])|(?:(?:u00|x)(?:1[bB]\[|9[bB])|(?:033|e)\[)[0-?]{0,40}+[ -/]{0,8}+[@-~]"
    r"|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))"
    r"|&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,20});|%([0-9A-Fa-f]{2})"
)
_BREAKS = {"n": "\n", "r": "\r", "t": "\t"}
BREAK = re.compile(r"\n(?<=[\w+/=.@: \t\r\\\"'-]\n)[ \t>|#*+│]{0,24}[\"']?(?=([\w+/=.@-]{2,32}))")
_BACKWARDS = re.compile(r"[ \t\r\\+\"']*+([\w+/=.@:-]{3,})")
_LEAST = 14
"""Characters that both halves of a broken secret have together."""
_NO_WORD = re.compile(r"[0-9@:=]|[a-z][A-Z]")
"""What a secret has and words of prose have not."""

JOINT = re.compile(
    r"[\"'`\\|\t<*~\]$\n](?:"  # one class first: the text is passed over several times as fast
    r"(?<=[\w+/=.-][\"'`\\])(?<!\\\\)(?:(?<=\\)\\{0,2}[\"'`])?"  # strings side by side, in a sum or a list
    r"(?:\s{0,8}(?:,|\+|\.|&|\|\|)\s{0,24}|[ ]?)[rbfu]?\\{0,3}[\"'`]"
    r"|(?<=\|)[ \t]{0,2}|(?<=\t)|(?<=<)/?[A-Za-z][^<>\n]{0,80}>\s{0,8}(?:</?[A-Za-z][^<>\n]{0,80}>\s{0,8}){0,3}"
    r"|(?<=\n)[ ]{0,8}(?:[-*+]|\d{1,2}[.)])[ ]|(?<=\*)\*?|(?<=~)~|(?<=\])\(|(?<=\$)\{[\"']{2}\})"
    r"(?=(?=[\w+/=-]{0,16}?(?:\d|[a-z][A-Z]))([\w+/=.-]{2,64}))"
)
"""What stands between two pieces of a word, where the second is no word of its own: of code, tables, Markdown."""
_PIECE_BEFORE = re.compile(r"[ \t]{0,2}([\w+/=.-]{3,})")

_LETTERS = "A-Za-z0-9+/_-"
RUN = re.compile(rf"[{_LETTERS}](?<![{_LETTERS}][{_LETTERS}])[{_LETTERS}]{{11,}}+={{0,2}}")
_MORE = re.compile(rf"(?:(?:\r?\n|\\{{1,4}}n)[ \t]{{0,16}}[{_LETTERS}]{{1,80}}+)++={{0,2}}")
"""How a run goes on that was broken into lines of equal length."""
_DIGIT = re.compile("[0-9]")
_HEX = re.compile("[0-9a-f]{16,}|[0-9A-F]{16,}")
"""One digit more than the letters need is left where the text was cut off."""
_HEX_TEXT = re.compile(r"(?:[2-7][0-9a-fA-F]|0[9AaDd]){8}")
_NEAR = 400
"""Characters on both sides of a change in which a secret may stand that shows only after it."""
_BLANK = re.compile(r"\s")
_SEQUENCE = re.compile(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")
_READABLE = re.compile(rb"[\x20-\x7e\s]{8,}")


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text that knows where its characters come from."""

    text: str
    pieces: Sequence[tuple[int, int, int]] = ((0, 0, 0),)
    """Where each piece begins here and in the text itself, and its length there, which is 0 for unchanged pieces."""

    def back(self, start: int, end: int, /) -> tuple[int, int]:
        """Where in the text itself the characters from `start` to `end` come from."""
        (first, begin, changed), (last, stop, width) = self._piece(start), self._piece(end - 1)
        return begin + (0 if changed else start - first), stop + (width or end - last)

    def near(self) -> Iterator[tuple[int, int]]:
        """The parts of this text in which something may be read that the text itself does not show, in order."""
        start, end, last = 0, 0, -1
        for piece in self.pieces[1:]:
            at = piece[0]
            if at > end and last >= 0:
                end = self._behind(last)
            if at > end and (before := self._before(at)) > end:
                if last >= 0:
                    yield start, end
                start = before
            last = at
        yield start, self._behind(last) if last >= 0 else len(self.text)

    def _before(self, at: int) -> int:
        """Where the line before that of `at` begins, or where in a long one no word is cut in two."""
        least = max(0, at - _NEAR)
        line = self.text.rfind("\n", least, at)
        line = self.text.rfind("\n", least, max(line, least))
        if line >= 0 or not least:
            return line + 1
        blank = _BLANK.search(self.text, least - 1, at)
        return blank.start() if blank else least

    def _behind(self, at: int) -> int:
        """Where the line after that of `at` ends, in the same way."""
        most = at + _NEAR
        line = self.text.find("\n", at, most)
        line = self.text.find("\n", line + 1, most) if line >= 0 else line
        if line >= 0:
            return line
        blank = _BLANK.search(self.text, most, most + _NEAR)
        return blank.start() if blank else most if most + _NEAR <= len(self.text) else len(self.text)

    def seams(self, start: int, end: int, /) -> bool:
        """Whether something between `start` and `end` was taken out or put in another form."""
        return self._piece(start) != self._piece(end - 1)

    def last_piece(self, start: int, end: int, /) -> str:
        """What of the characters from `start` to `end` stands behind the last seam."""
        return self.text[max(start, self._piece(end - 1)[0]) : end]

    def _piece(self, at: int) -> tuple[int, int, int]:
        return self.pieces[bisect_right(self.pieces, at, key=itemgetter(0)) - 1]


Look: TypeAlias = Callable[[str], View | None]


def changed(text: str, changes: Iterator[tuple[int, int, str]], /) -> View | None:
    """`text` with each (start, end, replacement) made. `None` if there are none."""
    parts, pieces, length, done = list[str](), [(0, 0, 0)], 0, 0
    for start, end, put in changes:
        parts.append(text[done:start])
        parts.append(put)
        length += start - done
        if put:
            pieces.append((length, start, end - start))
            length += len(put)
        pieces.append((length, end, 0))
        done = end
    return View("".join((*parts, text[done:])), pieces) if done else None


def without(text: str, places: Sequence[int], /) -> View:
    """`text` without the characters at `places`, which are in order."""
    return changed(text, ((at, at + 1, "") for at in places)) or View(text)


def in_ascii(text: str, /) -> View | None:
    """With letters of other widths and fonts as plain ones."""
    alphabet = "".join(_odd_in(text))
    return None if _plain(alphabet) == alphabet else View(_plain(text))


def spelled_out(text: str, /) -> View | None:
    """Return a text with the letters of signs that stand for several, such as ligatures."""
    several = [c for c in _odd_in(text) if len(form := folded(c)) > 1 and form.isascii()]
    if not several:
        return None
    signs = re.finditer(f"[{''.join(several)}]", text)
    return changed(_plain(text), ((*sign.span(), folded(sign[0])) for sign in signs))


_odd_in = lru_cache(maxsize=1)(odd_in)
"""Two views ask it of the same portion of a text."""


def _plain(text: str) -> str:
    return _HYPHENS.sub("-", shadow(text))


def decoded_signs(text: str, /) -> View | None:
    """As JSON and code, a page of HTML or an address mean it, however often it was escaped."""
    return changed(text, ((*match.span(), _meaning(match)) for match in _CODED.finditer(text)))


def _meaning(match: re.Match[str]) -> str:
    if match.lastindex is None:  # a sequence that drives a terminal
        return ""
    code = match[match.lastindex]
    if match.lastindex == 1:
        return _BREAKS.get(code, code)
    return _entity(code) if match.lastindex == 4 else _sign(code)


@lru_cache(maxsize=4096)
def _sign(code: str) -> str:
    return plain(chr(int(code, 16)))


@lru_cache(maxsize=4096)
def _entity(code: str) -> str:
    return _HYPHENS.sub("-", plain(unescape(f"&{code};")))


def unbroken(text: str, /) -> View | None:
    """Lines joined where a word may go on: without the break, the margin, and the quotes of strings put together."""
    return changed(text, _breaks(text))


def _breaks(text: str) -> Iterator[tuple[int, int, str]]:
    for match in BREAK.finditer(text):
        half = _BACKWARDS.match(text[max(0, match.start() - 40) : match.start()][::-1])
        if half and len(half[1]) + len(match[1]) >= _LEAST and _NO_WORD.search(half[1][::-1] + match[1]):
            yield match.start() - half.start(1), match.end(), ""


def joined(text: str, /) -> View | None:
    """Pieces of a word put together that code, a list, a table, HTML or Markdown keeps apart."""
    return changed(text, _joints(text))


def _joints(text: str) -> Iterator[tuple[int, int, str]]:
    for match in JOINT.finditer(text):
        before = _PIECE_BEFORE.match(text[max(0, match.start() - 40) : match.start()][::-1])
        if before and len(before[1]) + len(match[1]) >= _LEAST:
            yield match.start() - before.start(1), match.end(), ""


def decoded(page: Page, /) -> Iterator[tuple[int, int, str]]:
    """What can be read in base64 and hexadecimal digits: (start, end, what it says)."""
    tokens = may_be_text(set(RUN.findall(page.keys)))
    text, likely = page.text, {token for token in tokens if is_line(token) or any(readings(token))}
    holders = {word for word in page.keys.split() if not likely.isdisjoint(RUN.findall(word))} if likely else set[str]()
    at = done = 0
    for word in [word for word in page.every if word in holders] if holders else ():
        at = text.index(word, at)
        while text[at - 1 : at].strip() or text[at + len(word) : at + len(word) + 1].strip():  # part of another word
            at = text.index(word, cast("re.Match[str]", _BLANK.search(text, at)).end())
        for run in RUN.finditer(word):
            start, end = at + run.start(), at + run.end()
            if start < done or run[0] not in likely:
                continue
            if is_line(run[0]) and (more := _MORE.match(text, end)):
                end = done = more.end()
            yield from ((start, end, reading) for reading in readings(text[start:end]))
        at += len(word)


def is_line(token: str) -> bool:
    """Whether a secret can go on in the next line."""
    return 60 <= len(token) <= 80


def may_be_text(tokens: Iterable[str], /) -> list[str]:
    """The tokens that may be encoded text, which has capitals and small letters, and hardly ever no digit.

    A path or a name has not.
    """
    return [
        token
        for token in tokens
        if _HEX.fullmatch(token) or not (token.islower() or (len(token) >= 40 and not _DIGIT.search(token)))
    ]


def readings(token: str) -> Iterator[str]:
    """What a token says, and what its end says where it is glued to a path or a name."""
    if _HEX.fullmatch(token):
        if _HEX_TEXT.search(token) and (reading := _readable(bytes.fromhex(token[: len(token) // 2 * 2]))):
            yield reading
        return
    whole = token if token.isalnum() else re.sub(r"\\+n|\s", "", token).replace("-", "+").replace("_", "/")
    for body in whole.split("="):  # lines that each end with the sign were encoded one by one
        for shift in range(4 if "/" in body or "+" in body else 1):
            rest = body[shift:]
            if reading := _readable(binascii.a2b_base64(rest[: len(rest) - (len(rest) % 4 == 1)] + "===")):
                yield reading


def _readable(data: bytes) -> str:
    if b"\0" in data or b"\x1b" in data:
        data = _SEQUENCE.sub(b"", data.replace(b"\0", b""))
    return "\n".join(part.decode("ascii") for part in _READABLE.findall(data))


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
VIEWS: tuple[tuple[re.Pattern[str], Look], ...] = (
    (_NOT_ASCII, in_ascii),
    (_NOT_ASCII, spelled_out),
    (_CODED, decoded_signs),
)
"""Other readings of a text, each with what a text must hold for it to show something else."""
