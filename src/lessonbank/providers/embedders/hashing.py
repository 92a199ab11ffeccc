"""Vectors without a model: the words and letters of a text, hashed. The same on every machine, for ever."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lessonbank._base.checks import a_count
from lessonbank.contracts.ports import Vectors

from ._rows import off_loop, unit_rows

# Scripts written without blanks: each character is a word, and pairs of them are the bigrams.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_LONGEST_WORD = 64
_GRAM_SIZES = (3, 4, 5)
_BIGRAM_WEIGHT = 0.7
_GRAMS_WEIGHT = 0.7  # of all character n-grams of a word together, beside the word's own 1.0
_COMMON_WEIGHT = 0.15
_COMMON = frozenset(
    """a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it
    its me my of on or our out she should so than that the their them then there these they this to up us was we were
    what when which who will with would you your please""".split()  # noqa: SIM905 - seventy strings read worse
)


class HashingEmbedder:
    """Lexical vectors by signed feature hashing.

    Features: words, pairs of neighbouring words, and character 3- to 5-grams inside words (so that inflections and
    identifiers share something). Their counts are damped (1 + log), common English function words weigh little.
    Linear in the length of a text. A text without a word gets one fixed unit vector of its own characters.

    Args:
        dimensions: length of a vector, at least 16.
    """

    def __init__(self, *, dimensions: int = 512) -> None:
        self._dimensions = a_count(dimensions, "HashingEmbedder(dimensions=)", least=16)

    @property
    def space(self) -> str:
        """`hashing-v1-` and the dimensions."""
        return f"hashing-v1-{self._dimensions}"

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions). Queries and documents are treated alike."""
        return await off_loop(lambda: self.rows(texts))

    def rows(self, texts: Sequence[str], /) -> Vectors:
        """Embed texts without leaving the thread."""
        rows = np.zeros((len(texts), self._dimensions), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            self._fill(row, text)
        return unit_rows(rows, count=len(texts), name=self.space)

    def _fill(self, row: NDArray[np.float64], text: str) -> None:
        words = _words(text)
        if words:
            features = list(_features(words))
            hashes = np.fromiter((h for h, _ in features), dtype=np.uint64, count=len(features))
            weights = np.fromiter((w for _, w in features), dtype=np.float64, count=len(features))
            signs = np.where(hashes >> np.uint64(63), 1.0, -1.0)
            buckets = (hashes % np.uint64(self._dimensions)).astype(np.intp)
            row += np.bincount(buckets, weights=signs * weights, minlength=self._dimensions)
        if not row.any():
            row[_hash("t", text.strip()) % self._dimensions] = 1.0


def _words(text: str, /) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [piece for word in _WORD.findall(plain) for piece in _pieces(word)]


def _pieces(word: str, /) -> list[str]:
    """A word, or a base64 blob in parts: no part costs more than its length."""
    return [word[at : at + _LONGEST_WORD] for at in range(0, len(word), _LONGEST_WORD)]


def _features(words: Sequence[str], /) -> Iterator[tuple[int, float]]:
    for word, count in Counter(words).items():
        weight = _weight(word) * _damp(count)
        yield _hash("w", word), weight
        grams = _gram_hashes(word)
        share = weight * _GRAMS_WEIGHT / math.sqrt(len(grams) or 1)
        for gram in grams:
            yield gram, share
    for (first, second), count in Counter(pairwise(words)).items():
        yield (
            _hash("b", f"{first} {second}"),
            _BIGRAM_WEIGHT * math.sqrt(_weight(first) * _weight(second)) * _damp(count),
        )


def _weight(word: str, /) -> float:
    return _COMMON_WEIGHT if word in _COMMON else 1.0


def _damp(count: int, /) -> float:
    return 1.0 + math.log(count)


def _gram_hashes(word: str, /) -> tuple[int, ...]:
    if len(word) > _LONGEST_WORD // 2 and word.isascii():
        return ()  # a piece of a blob, not of a script written without blanks
    return _remembered_grams(word) if len(word) <= 16 else _hash_grams(word)


def _hash_grams(word: str, /) -> tuple[int, ...]:
    bounded = f"<{word}>"
    return tuple(
        _hash("c", bounded[at : at + size]) for size in _GRAM_SIZES for at in range(max(0, len(bounded) - size + 1))
    )


_remembered_grams = lru_cache(maxsize=8192)(_hash_grams)


def _hash(kind: str, text: str, /) -> int:
    data = f"{kind}:{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
