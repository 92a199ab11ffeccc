"""Finds everything in a text that must go, also if it is hidden, escaped, encoded or broken across lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain

from ._keys import PRIVATE_KEYS, cut_off
from ._named import NAMED
from ._personal import PERSONAL
from ._portions import portions
from ._rules import ruled
from ._spans import PLACEHOLDER, Detector, Page, Span, found_on, merged
from ._views import BREAK, JOINT, VIEWS, View, decoded, joined, unbroken
from ._words import random_looking

_OF_A_WORD = (Detector(ruled), NAMED)
DETECTORS: tuple[Detector, ...] = (PRIVATE_KEYS, *_OF_A_WORD, *PERSONAL)
_DEEP = 2
"""How many times a secret may be encoded, one inside the other."""
_COMMON = frozenset(
    re.findall(r"\w+", "com org net edu gov io dev de uk fr eu ch at nl it es jp cn us ca au in br pl se no example")
)
"""Ends of an address that is broken across lines. With any other end it may be a host and the word below it."""
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf])")
_BEFORE = 40
"""Characters before a secret that give it away and may be broken themselves."""
_ONE_WORD = re.compile(r"[\w+/~.-]+={0,2}")
_SHORT = 6
"""Shorter texts hold no secret."""
_LONG = 16_384
_TOGETHER = 45_000
"""Characters of the texts that are read as one."""
_APART = "\n" * 10 + "\0" + "\n" * 10
"""More lines than any pattern takes for a gap within a secret, and what is neither a blank nor a value."""


def found_in(text: str, /, *, detectors: Sequence[Detector] = DETECTORS, again: bool = False) -> list[Span]:
    """Find what must go, in order and without overlap.

    `again`: the text was read before, and of a long one nothing is new but what stands near a placeholder.
    """
    if len(text) < _SHORT:
        return []
    near = _near_placeholders(text).near() if again and len(text) > _LONG else ((0, len(text)),)
    spans = list(chain.from_iterable(_in_portions(text, *part, detectors) for part in near))
    placeholders = [match.span() for match in PLACEHOLDER.finditer(text)] if "[" in text else []
    whole = merged(span for span in spans if span.typed or not _touches(span, placeholders))
    return [_behind_an_escape(text, span) for span in whole] if "\\" in text else whole


def found_together(texts: Iterable[str], /) -> dict[str, list[Span]]:
    """What `found_in` finds in `texts`, without those that must be read alone because something may be in them.

    Many texts are read as one: most hold nothing. Only a long one is read alone.
    """
    spans = {text: found_in(text) if len(text) > _TOGETHER else [] for text in texts}
    brief = [text for text in spans if _SHORT <= len(text) <= _TOGETHER]
    for batch in _batches(sorted(brief, key=str.isascii)):
        secrets = list(_find_spans(_APART.join(batch), DETECTORS, _DEEP))
        begins = list(_begins(map(len, batch))) if secrets else []
        for span in secrets:
            for text in batch[bisect_right(begins, span.start) - 1 : bisect_left(begins, span.end)]:
                spans.pop(text, None)
    return spans


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch, size = list[str](), 0
    for text in texts:
        if batch and (size + len(text) > _TOGETHER or text.isascii() != batch[0].isascii()):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text) + len(_APART)
    if batch:
        yield batch


def _near_placeholders(text: str) -> View:
    return View(text, [(0, 0, 0), *((match.start(), match.start(), 0) for match in PLACEHOLDER.finditer(text))])


def _in_portions(text: str, first: int, last: int, detectors: Sequence[Detector], deep: int = _DEEP) -> Iterator[Span]:
    for start, end in portions(text, first, last):
        for span in _find_spans(text[start:end], detectors, deep):
            yield span._replace(start=span.start + start, end=span.end + start)


def _behind_an_escape(text: str, span: Span) -> Span:
    """Start behind an escape such as `\\n` instead of inside it, so that the text around the span stays JSON."""
    escape = _ESCAPE.match(text, span.start - 1) if span.start else None
    return span._replace(start=escape.end()) if escape and escape.end() < span.end else span


def _touches(span: Span, placeholders: Sequence[tuple[int, int]]) -> bool:
    """Whether part of `span` is a placeholder, so that the secret is gone already."""
    at = bisect_left(placeholders, (span.end, 0)) - 1
    return at >= 0 and placeholders[at][1] > span.start


def _find_spans(text: str, detectors: Sequence[Detector], deep: int) -> Iterator[Span]:
    page = Page(text)
    plain = found_on(page, detectors)
    yield from plain
    looks = [look for sign, look in VIEWS if sign.search(text)]
    for view in [view for look in looks if (view := look(text))]:
        for span in _seen(view, detectors):
            start, end = view.back(span.start, span.end)
            yield span._replace(start=start, end=end)
    if BREAK.search(text):
        yield from _across_seams(unbroken(text), text, plain, detectors)
    if JOINT.search(text):  # a number that several cells make is nobody's; a key has a form or a name
        yield from _across_seams(joined(text), text, plain, _OF_A_WORD)
    for start, end, reading in decoded(page) if deep else ():
        if inside := merged(chain(_in_portions(reading, 0, len(reading), detectors, deep - 1), cut_off(reading))):
            yield _encoded(start, end, reading, inside)


def found_near(view: View, /, *, detectors: Sequence[Detector] = DETECTORS) -> Iterator[Span]:
    """What `found_in` finds in a view near its changes, with the places of the text itself."""
    for span in _near_changes(view, lambda text: found_in(text, detectors=detectors)):
        start, end = view.back(span.start, span.end)
        yield span._replace(start=start, end=end)


def _seen(view: View, detectors: Sequence[Detector]) -> Iterator[Span]:
    return _near_changes(view, lambda text: found_on(Page(text), detectors))


def _near_changes(view: View, read: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """What stands in a view near its changes. All these parts are read as one text: there can be very many."""
    near = list(view.near())
    begins = list(_begins(last - first for first, last in near))
    for span in read(_APART.join(view.text[first:last] for first, last in near)):
        number = bisect_right(begins, span.start) - 1
        first, last = near[number][0] - begins[number], near[number][1]
        yield span._replace(start=span.start + first, end=min(span.end + first, last))


def _begins(lengths: Iterable[int]) -> Iterator[int]:
    """Where texts of these lengths begin that are read as one."""
    return accumulate(map(len(_APART).__add__, lengths), initial=0)


def _encoded(start: int, end: int, reading: str, inside: Sequence[Span]) -> Span:
    """Name the secret if the encoded text is nothing else. All of a longer text goes as `encoded text`."""
    whole = len(inside) == 1 and inside[0].end - inside[0].start >= len(reading.strip()) * 0.8
    return Span(start, end, inside[0].kind if whole else "encoded text", inside[0].value if whole else reading)


def _across_seams(view: View | None, text: str, plain: Sequence[Span], detectors: Sequence[Detector]) -> Iterator[Span]:
    """Secrets that go on behind a seam. One that is whole before it ends there, unless the rest looks random."""
    if view is None:
        return
    whole = merged(plain)
    ends, alone = [span.end for span in whole], {(span.start, span.end) for span in whole}
    for span in _seen(view, detectors):
        start, end = view.back(span.start, span.end)
        before = _BEFORE if span.typed else 0
        if view.seams(max(0, span.start - before), span.end):
            rest = view.last_piece(span.start, span.end)
            if (end - len(rest), end) not in alone and _goes_on(text, span, start, end, ends, rest):
                yield span._replace(start=start, end=end)


def _goes_on(text: str, span: Span, start: int, end: int, ends: Sequence[int], rest: str) -> bool:
    if span.kind == "e-mail":
        return span.value.rpartition(".")[2] in _COMMON and text[start - 1 : start] != "@"
    if span.kind in ("phone", "cookie"):
        return False
    stop = bisect_right(ends, start)
    if stop < len(ends) and ends[stop] < end:
        return random_looking(rest) and bool(_ONE_WORD.fullmatch(rest))
    return span.typed or (random_looking(span.value) and (any(map(str.isdigit, rest)) or text[end : end + 1] == "@"))
