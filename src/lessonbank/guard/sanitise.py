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
# More marks on one letter than any language needs climb over the lines around them.
_MARK = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_PILE = re.compile(f"({_MARK}{{4}}){_MARK}+")
# What open-weight models' chat templates separate turns with: some servers take it for the real thing inside a text.
_TURN = re.compile(
    r"([<＜])([|｜]/?[\w▁-]{1,40}[|｜])(?=[>＞])|(<)(/?(?:s|bos|eos|(?i:(?:start|end)_of_turn))>|(?i:</?SYS>>))"
    r"|(\[)((?i:/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\])"
)
_CARRIAGE = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean(text: str, /, *, limit: int | None = None) -> str:
    """`text` with every line break as `\\n` and no control, format, bidi, private-use or surrogate code point.

    Marks piled up on a letter are thinned out, and the tokens of chat templates get a blank, `< |im_end|>`: still
    readable, nothing any more. `limit` (characters) cuts the end off and says so. Linear in the length of `text`.
    """
    if limit is not None and len(text) > limit:
        text = text[:limit].rstrip() + " …[cut]"
    plain = _UNSAFE.sub("", _CARRIAGE.sub("\n", text))
    return _TURN.sub(_with_a_blank, _PILE.sub(r"\1", plain))


def _with_a_blank(token: re.Match[str]) -> str:
    return " ".join(part for part in token.groups() if part)


def one_line(text: str, /, *, limit: int | None = None) -> str:
    """`clean` text with all white space folded to single blanks: fit for a title, a log line, a table cell."""
    return " ".join(clean(text, limit=limit).split())


def nonce() -> str:
    """Eight random hex digits that text written earlier cannot have known."""
    return secrets.token_hex(4)


def fence(text: str, /, *, label: str, nonce: str) -> str:
    """`text` between two marker lines that carry `nonce`; a copy of the nonce inside is blotted out first.

    Whoever wrote `text` before the nonce was drawn cannot close the fence.
    """
    inert = clean(text).replace(nonce, "-" * len(nonce))
    return f"<<<{label} {nonce}>>>\n{inert}\n<<<end {label} {nonce}>>>"
