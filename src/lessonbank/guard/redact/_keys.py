"""Finds private keys, with or without the line that names them, and secrets that are cut off at the end of a text."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from lessonbank._base.patterns import compiled

from ._rules import cut_off_secret
from ._spans import Detector, Page, Span

_WINDOW = 400
"""Characters at the end of a text that are looked at, so that hostile text costs no more."""
_OPENING = (
    r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+"
    r"|M(?<![A-Za-z0-9+/]M)(?P<bare>[A-Za-z0-9+/]{39,}+={0,2})"
    r"|b3BlbnNzaC1rZXktdjE(?<![A-Za-z0-9+/]b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{21,}+={0,2}"
)
_LINES = (
    r"(?:(?:\s|\\+[nrt]|[\"'>|#+*]){0,40}+(?:[A-Za-z][A-Za-z-]{2,20}: [^\n\\\"']{1,80}|[A-Za-z0-9+/]{16,}+={0,2}))*+"
)
_DER = re.compile(
    rb"\x30(?:[\x00-\x7f]|\x81.|\x82..)(?:\x02\x01[\x00\x01](?:\x30|\x02[\x20-\x7f\x81\x82]|\x04[\x1c-\x48])"
    rb"|\x30[\x18-\x7f]\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05)",
    re.DOTALL,
)
"""How a private key begins in DER (PKCS 1, PKCS 8, SEC 1, encrypted PKCS 8). Certificates and public keys begin
otherwise: they have no version of their own, or stand one level deeper."""


def private_keys(page: Page, /) -> Iterator[Span]:
    """Private keys in PEM, of PuTTY, and as bare base64. Without an end, a key goes as far as its lines do."""
    text = page.text
    opened = [match for match in compiled(_OPENING).finditer(text) if not match["bare"] or _is_der(match[0])]
    done = 0
    for number, opening in enumerate(opened):
        if opening.start() < done:
            continue
        limit = opened[number + 1].start() if number + 1 < len(opened) else len(text)
        bare = text[opening.start()] != "-" and text[opening.start()] != "P"
        done = _end_of_key(text, opening.end(), limit)
        if bare or done > opening.end():
            body = text[opening.start() if bare else opening.end() : done]
            yield Span(opening.start(), done, "private key", re.sub(r"\\[nr]|[^A-Za-z0-9+/]", "", body))


PRIVATE_KEYS = Detector(
    private_keys,
    signs=("-----BEGIN", "Private-Lines:", "b3BlbnNzaC1rZXktdjE", *(f"M{length}" for length in "ABCDEFGHI")),
)
"""In base64, what DER begins with is an `M`, and the length that follows makes the next letter."""


def _is_der(bare: str) -> bool:
    return bool(_DER.match(base64.b64decode(bare[:40])))


def _end_of_key(text: str, start: int, limit: int) -> int:
    closing = text.find("-----END", start, limit)
    if closing >= 0 and (closed := compiled(r"-----END[A-Z0-9 ]{0,60}-----").match(text, closing)):
        return closed.end()
    lines = compiled(_LINES).match(text, start, limit)
    return lines.end() if lines else start


def cut_off(text: str, /) -> Iterator[Span]:
    """The beginning of a secret at the end of a text, however much of the secret is missing.

    Use it only on text that was encoded: in plain text it may be a word.
    """
    end = len(text.rstrip())
    if match := cut_off_secret().search(text[max(0, end - _WINDOW) : end]):
        yield Span(end - len(match[0]), end, "cut-off secret", match[0])
