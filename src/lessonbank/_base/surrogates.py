"""Lone surrogates have no form in UTF-8: text that is kept has none, and ids are compared as they are kept."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str, /) -> str:
    """`text` with every lone surrogate replaced by U+FFFD; text without one is returned as it is."""
    if str.isascii(text):
        return text
    return _SURROGATE.sub("\ufffd", text)
