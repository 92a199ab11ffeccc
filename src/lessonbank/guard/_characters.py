"""Makes the one text that is searched for secrets, kept, shown and sent: what a reader sees, and nothing beside it.

Whatever else could be removed from a text is removed here first. So no later step joins what stood apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

BACKSPACE = "\b"
BREAKS = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
# Letters and signs that take room and show nothing, or choose a glyph: they can carry a hidden text.
_FILLERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc\ufffd\U00016fe4\U0001d159"
)
_USUAL = bytes((*b"\n\t", *range(0x20, 0x7F)))
# Control sequences whole, so that nothing of a colour, a cursor movement or a hidden link (OSC 8) is left behind.
_INTRODUCERS = frozenset("\x1b\x90\x98\x9b\x9d\x9e\x9f")
_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n\r]{0,4096}+(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*+[0-Z\\\\^-~]"
)
_EMOJI = "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff"
_JOINERS = frozenset("\u200d\ufe0f")
_LOOSE = re.compile(
    f"\u200d(?:(?<![{_EMOJI}]\u200d)(?<![{_EMOJI}]\ufe0f\u200d)|(?![{_EMOJI}]))"
    f"|\ufe0f(?<![{_EMOJI}]\ufe0f)(?<![0-9#*]\ufe0f(?=\u20e3))"
)
"""A joiner that joins no two emoji, and a sign for the look of an emoji that follows none."""
_PILE = 4
"""Marks on one letter: more than any language needs climb over the lines around them."""
_MEANING = ("<super>", "<sub>", "<fraction>", "<circle>")
"""Forms that are more than a look: 10² is not 102."""


def plain(text: str, /) -> str:
    """`text` as a reader sees it: with every line break as `\\n`, what a backspace takes back taken back, and no
    terminal sequence and no control, format, private-use, surrogate, unassigned or invisible code point but those that
    make one emoji of several; at most four marks on a letter. Linear in the length of `text`."""
    if text.isascii() and text.isprintable():
        return text
    text = before_backspaces(text)
    if BACKSPACE not in text:
        return text
    places = struck(text)
    return before_backspaces("".join(c for at, c in enumerate(text) if at not in places))


def before_backspaces(text: str, /) -> str:
    """Return a text as `plain` does, with its backspaces. Only text of terminals has any."""
    if (text.isascii() and text.isprintable()) or not (odd := odd_in(text)):
        return text
    text = text.replace("\0", "")  # first, as it may stand in the middle of a sequence: UTF-16 that was read as UTF-8
    if not odd.isdisjoint(_INTRODUCERS):
        text = _ESCAPE.sub("", text)
    text = _mapped(text.replace("\r\n", "\n"), _allowed)
    return _thinned(text if odd.isdisjoint(_JOINERS) else _LOOSE.sub("", text), odd)


def odd_in(text: str, /) -> set[str]:
    """The different characters of `text` but line feeds, tabs and what ASCII prints."""
    return set(text.encode("utf-8", "surrogatepass").translate(None, _USUAL).decode("utf-8", "surrogatepass"))


def struck(text: str, /) -> set[int]:
    """Where the backspaces of `text` stand, and what they take back: each the one before it in its line."""
    places, line = set[int](), list[int]()
    for at, character in enumerate(text):
        if character == "\n":
            line.clear()
        elif character != BACKSPACE:
            line.append(at)
        else:
            places.update((at, line.pop()) if line else (at,))
    return places


def _mapped(text: str, to: Callable[[str], str]) -> str:
    """`text` with `to` applied to each odd character. Each different one is looked at once."""
    table = {ord(c): new for c in odd_in(text) if (new := to(c)) != c}
    return text.translate(table) if table else text


@lru_cache(maxsize=4096)
def _allowed(character: str) -> str:
    if character in BREAKS:
        return "\n"
    if character == BACKSPACE or character in _JOINERS:
        return character
    hidden = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"} or character in _FILLERS
    return "" if hidden or _chooses_a_glyph(character) else character


def _chooses_a_glyph(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _thinned(text: str, odd: set[str]) -> str:
    marks = "".join(sorted(c for c in odd if c > "\u02ff" and unicodedata.category(c) in {"Mn", "Me"}))
    if not marks:
        return text
    return re.sub(f"([{re.escape(marks)}]{{{_PILE}}})[{re.escape(marks)}]++", r"\1", text)


def folded(text: str, /) -> str:
    """`text` in normal form C, and other forms of ASCII letters, digits and blanks (wide, mathematical, ligatures) as
    those.

    NFKC, except where it would change what is said (10², ½) or make syntax of what is none (full-width punctuation).
    At most four times as long.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", _mapped(text, _folding))


@lru_cache(maxsize=4096)
def _folding(character: str) -> str:
    form = unicodedata.normalize("NFKC", character)
    if form == " ":
        return form
    if not (form.isascii() and form.isalnum()) or unicodedata.decomposition(character).startswith(_MEANING):
        return character
    return form


def shadow(text: str, /) -> str:
    """`text` with every character that is another form of one ASCII character as that one: same length, same places.

    What is looked for in it is found however it was spelled.
    """
    return text if text.isascii() else _mapped(text, _looks_like)


@lru_cache(maxsize=4096)
def _looks_like(character: str) -> str:
    form = unicodedata.normalize("NFKC", character) if character >= "\u00a0" else character
    return form if len(form) == 1 and form.isascii() else character


def with_blanks(text: str, places: list[int], /) -> str:
    """`text` with one blank put in at each of `places`."""
    order = sorted(set(places))
    return " ".join(text[start:stop] for start, stop in zip([0, *order], [*order, len(text)], strict=True))
