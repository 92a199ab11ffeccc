"""Which words a lesson may hold, as a pattern of bits: the database compares it, so that few records leave it.

An index on words would be no use: row-level security has PostgreSQL check each row before a condition that might tell
what it looked at, and of those on arrays and texts none is trusted not to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from zlib import crc32

from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import words

BITS: Final = 1024
_EACH: Final = 3
"""Bits of a word. Of 100 words, a lesson seems to hold one in seventy that it does not."""
_WIDTH: Final = BITS.bit_length() - 1


def seen(text: str, /) -> str:
    """The pattern of a lesson's text, as PostgreSQL writes it."""
    return pattern(set(words(text)))


def pattern(asked: Iterable[str], /) -> str:
    """The bits that are set in the pattern of each text with all of these words. A no is certain, a yes is not."""
    bits = 0
    for word in asked:
        mixed = crc32(encodable(word).encode())
        for part in range(_EACH):
            bits |= 1 << (mixed >> part * _WIDTH) % BITS
    return f"{bits:0{BITS}b}"
