"""Finds keys and tokens by their form. Providers give them prefixes and lengths so that leaks can be found.

No pattern can fail after a long match, so that hostile text costs no more than a few passes over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._rules import cut_off_secret, rules
from ._spans import Page, Span, compiled

_SHORTEST = 15
"""Characters of the shortest key, or of its longest part if blanks stand in it."""
_WINDOW = 400
"""Characters at the end of a text that are looked at, so that hostile text costs no more."""
_LINES = (
    r"(?:(?:\s|\\+[nrt]|[\"'>|#+*]){0,40}+(?:[A-Za-z][A-Za-z-]{2,20}: [^\n\\\"']{1,80}|[A-Za-z0-9+/]{16,}+={0,2}))*+"
)


def keys(page: Page, /) -> Iterator[Span]:
    """Find private keys, and what the rules for keys find."""
    if page.long is None or any(len(word) >= _SHORTEST for word in page.long):
        for rule in rules("key"):
            yield from rule(page)
    if "PRIVATE KEY" in page.text or "Private-Lines" in page.text:
        yield from private_keys(page)


def private_keys(page: Page, /) -> Iterator[Span]:
    """Private keys in PEM and of PuTTY. Without an end, a key goes as far as its lines do."""
    text = page.text
    opened = list(compiled(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+").finditer(text))
    for number, opening in enumerate(opened):
        limit = opened[number + 1].start() if number + 1 < len(opened) else len(text)
        end = _end_of_key(text, opening.end(), limit)
        if end > opening.end():
            body = text[opening.end() : end]
            yield Span(opening.start(), end, "private key", re.sub(r"\\[nr]|[^A-Za-z0-9+/]", "", body))


def _end_of_key(text: str, start: int, limit: int) -> int:
    closing = text.find("-----END", start, limit)
    if closing >= 0 and (closed := compiled(r"-----END[A-Z0-9 ]{0,60}-----").match(text, closing)):
        return closed.end()
    lines = compiled(_LINES).match(text, start, limit)
    return lines.end() if lines else start


def cut_off(page: Page, /) -> Iterator[Span]:
    """The beginning of a secret at the end of a text, however much of the secret is missing.

    Use it only on text that was encoded: in plain text it may be a word.
    """
    end = len(page.text.rstrip())
    if found := cut_off_secret().search(page.text[max(0, end - _WINDOW) : end]):
        yield Span(end - len(found[0]), end, "cut-off secret", found[0])
