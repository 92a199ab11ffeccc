"""One inert form for text that somebody else wrote: it can be read, and it cannot act."""

from __future__ import annotations

import re
import secrets

# Control, format (bidi, zero width, tags), surrogate and private-use code points, variation selectors and fillers:
# each can hide text from a person, forge a line, drive a terminal or fail to encode.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_CARRIAGE = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean(text: str, /, *, limit: int | None = None) -> str:
    """`text` with every line break as `\\n` and no control, format, bidi, private-use or surrogate code point.

    `limit` (characters) cuts the end off and says so. Linear in the length of `text`.
    """
    if limit is not None and len(text) > limit:
        text = text[:limit].rstrip() + " …[cut]"
    return _UNSAFE.sub("", _CARRIAGE.sub("\n", text))


def one_line(text: str, /, *, limit: int | None = None) -> str:
    """`clean` text with all white space folded to single blanks: fit for a title, a log line, a table cell."""
    return " ".join(clean(text, limit=limit).split())


def nonce() -> str:
    """Eight random hex digits that text written earlier cannot have known."""
    return secrets.token_hex(4)


def fence(text: str, /, *, label: str, nonce: str) -> str:
    """`text` between two marker lines that carry `nonce`; a copy of the nonce inside is broken up first.

    Whoever wrote `text` before the nonce was drawn cannot close the fence.
    """
    inert = clean(text).replace(nonce, f"{nonce[:4]}-{nonce[4:]}")
    return f"<<<{label} {nonce}>>>\n{inert}\n<<<end {label} {nonce}>>>"
