"""Ranking by words, the same in every store and for every moment: BM25 whose statistics never leave one scope."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log
from typing import Final, TypeVar

from lessonbank._base.patterns import compiled

K = TypeVar("K")

K1: Final = 1.2
B: Final = 0.75
_LONGEST: Final = 64
"""Characters of a word that count: a megabyte without a blank is one word, not one index entry of a megabyte."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = f"[{_CJK}]|[^\\W{_CJK}]+"
_PLAIN: Final = bytes(c if chr(c).isalnum() or chr(c) == "_" else 32 for c in range(128)).lower() + bytes(128)
"""What `_WORD` finds in ASCII is found with this, byte for byte, and by splitting at blanks: three times as fast."""
STOP_WORDS: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be but by for from has have i if in into is it its me my of on or our please s so t that"
        " the their them then there these they this to was we were what when which who will with you your",
    )
)
"""Words in nearly every English task. `no` and `not` are missing on purpose: they turn a task into its opposite."""


def words(text: str, /) -> list[str]:
    """The words of `text` that count, in order: NFKC, casefolded, CJK characters one by one, stop words left out.

    A text of nothing but stop words keeps them, so that it can still be found. Linear in the length of `text`.
    """
    if text.isascii():
        every = text.encode().translate(_PLAIN).decode().split()
    else:
        every = compiled(_WORD).findall(unicodedata.normalize("NFKC", text).casefold())
    return [word[:_LONGEST] for word in [word for word in every if word not in STOP_WORDS] or every]


def scores(
    query: Iterable[str],
    postings: Mapping[str, Mapping[K, int]],
    lengths: Mapping[K, int],
    /,
    *,
    documents: int,
    total: int,
    holders: Mapping[str, int] | None = None,
) -> dict[K, float]:
    """BM25 (Robertson and Zaragoza 2009) of every document in `postings`, as a share of the query's own score.

    Args:
        query: the words asked for, repeated words counting each time.
        postings: word to {document: occurrences}, for the words of the query, complete within the scope.
        lengths: words per document, at least for the documents in `postings`.
        documents: documents in the scope; `total`: the words of all of them.
        holders: documents that hold each word, where `postings` names only some of them.

    Returns:
        Document to score in (0, 1]; the query's own text scores 1. Rounded to nine digits, in a fixed order of
        summation, so that two stores agree to the last bit.
    """
    asked = Counter(query)
    mean = max(total, 1) / max(documents, 1)
    drags = {document: drag(length / mean) for document, length in lengths.items()}
    held = {word: len(places) for word, places in postings.items()} if holders is None else holders
    most = bounds(asked.elements(), held, documents=documents)
    full = full_score(asked, most, documents=documents, total=total)
    sums: dict[K, float] = {}
    for word in sorted(asked):
        for document, count in postings.get(word, {}).items():
            sums[document] = sums.get(document, 0.0) + most[word] * (count / (count + drags[document]))
    return {document: round(min(score / full, 1.0), 9) for document, score in sums.items()}


def full_score(asked: Counter[str], most: Mapping[str, float], /, *, documents: int, total: int) -> float:
    """What the query's own text would score, the share of which is a document's score; `most` are its `bounds`."""
    own_drag = drag(asked.total() * max(documents, 1) / max(total, 1))
    return sum(most[word] * (asked[word] / (asked[word] + own_drag)) for word in sorted(asked))


def bounds(query: Iterable[str], holders: Mapping[str, int], /, *, documents: int) -> dict[str, float]:
    """The most that each word of `query` can add to a document's sum, before it is set in relation to the query's."""
    asked = Counter(query)
    held = {word: holders.get(word, 0) for word in asked}
    rarity = {word: log(1.0 + (documents - count + 0.5) / (count + 0.5)) for word, count in held.items()}
    return {word: asked[word] * rarity[word] * (K1 + 1.0) for word in asked}


def drag(relative_length: float) -> float:
    """What a document's length adds to the denominator of BM25's term saturation."""
    return K1 * (1.0 - B + B * relative_length)
