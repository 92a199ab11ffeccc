"""Turns templates into pages. Whatever a template prints is made inert first, so that none can forget it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lessonbank._base.plural import plural
from lessonbank.guard import clean
from lessonbank.text.authors import author, teacher
from lessonbank.text.verdicts import who_said

from .apart import apart
from .meanings import LEFT_OUT, MEANINGS

_COMPARED: Final = 3_000
"""Words of each of two texts that are compared; more would take long."""
_PAIRS: Final = 20_000
"""Pairs of a word of one text with the same word of the other, from which on the texts are shown whole."""

_WORD: Final = re.compile(r"\S+\s*")
_SLOT: Final = re.compile(r"<(…|[^\W\d][^<>\n]{0,80})>")


def make_inert(value: object, /) -> object:
    """Text without anything that acts: no control characters, no marks of chat templates. HTML is escaped later."""
    return clean(value) if type(value) is str else value


def cut(text: str, most: int, /) -> str:
    """The first `most` characters."""
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def day(at: datetime, /) -> Markup:
    """A moment as people read it, in UTC; a page breaks no line in it."""
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M} UTC</time>').format(at.isoformat(), at.astimezone(UTC))


def as_json(value: object, /) -> str:
    """Data as text with a line for each part of it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def path(*parts: str, **query: str | None) -> str:
    """A local address. What is `None` is left out of the query."""
    parameters = {name: value for name, value in query.items() if value is not None}
    where = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{where}?{urlencode(parameters)}" if parameters else where


Side: TypeAlias = Sequence[tuple[bool, str]]
"""One of two texts in pieces, with whether the other text has no such words there."""


def differences(before: str, after: str, /) -> tuple[Side, Side]:
    """Both texts with their own line breaks, so that each can be read by itself, and what differs is marked."""
    old, new = _words(before), _words(after)
    pieces = _pieces([word.rstrip() for word in old], [word.rstrip() for word in new])
    return (
        _side(old, [(what == "equal", start, stop) for what, start, stop, _, _ in pieces]),
        _side(new, [(what == "equal", start, stop) for what, _, _, start, stop in pieces]),
    )


def _side(words: Sequence[str], pieces: Iterable[tuple[bool, int, int]]) -> Side:
    side = list[tuple[bool, str]]()
    for is_same, start, stop in pieces:
        text = "".join(words[start:stop])
        bare = "" if is_same else text.rstrip()
        side += [piece for piece in ((True, bare), (False, text[len(bare) :])) if piece[1]]
    return side


def _pieces(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """As `get_opcodes` of `SequenceMatcher`, which takes minutes for words that come again hundreds of times."""
    often, others = Counter(old), Counter(new)
    if sum(count * others[word] for word, count in often.items()) > _PAIRS:
        return [("equal" if old == new else "replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()


def _words(text: str) -> list[str]:
    return [match[0] for match in islice(_WORD.finditer(clean(text)), _COMPARED)]


def _points(value: float | None, /) -> str:
    return "not known" if value is None else f"{100 * value:+z.1f}".replace("-", "\u2212")


def _slots(text: str, /) -> Markup:
    """A lesson's text whose slots say what they are, to whoever points at one or listens."""
    pieces = _SLOT.split(clean(text))
    return Markup("").join(_slot(piece) if at % 2 else piece for at, piece in enumerate(pieces))


def _slot(name: str) -> Markup:
    means = LEFT_OUT if name == "…" else f"a place for a value of the task at hand: its {name}"
    return Markup('<abbr class="slot" title="{}">&lt;{}&gt;</abbr>').format(means, name)


def _first_line(texts: Iterable[str]) -> str:
    return next((" ".join(text.split()) for text in texts if text.strip()), "")


def environment(prefix: str = "", /) -> Environment:
    """The templates, with what they may call, for pages below `prefix`."""
    made = Environment(
        loader=PackageLoader("lessonbank.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=make_inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named: dict[str, Any] = {"cut": cut, "day": day, "as_json": as_json, "points": _points, "first_line": _first_line}
    named |= {"slots": _slots, "who_said": who_said, "author": author, "teacher": teacher}
    made.filters.update(named)

    def below(*parts: str, **query: str | None) -> str:
        return prefix + path(*parts, **query)

    called: dict[str, Any] = {
        "root": prefix,
        "path": below,
        "differences": differences,
        "plural": plural,
        "apart": apart,
    }
    called["meanings"] = MEANINGS
    made.globals.update(called)
    return made
