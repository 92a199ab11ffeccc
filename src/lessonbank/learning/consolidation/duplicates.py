"""Tells whether two lessons are one, near one another, or two, without a model and without merging opposites."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from lessonbank.contracts.records import Lesson

from ._contradiction import contradiction
from ._sentences import Reading, Sentence, Word, bases, read
from ._words import CONFUSABLE, CONNECTORS, INTERCHANGEABLE, NEGATIONS, ORDERING, PROTECTED

NEAR: Final = 0.2
"""The share of words in common from which two lessons may be one in other words."""
CLOSE: Final = 0.6
"""The cosine of two embeddings that makes up for words that differ; `SOME` words must be common all the same."""
SOME: Final = 0.05

REARRANGED: Final = 2 / 3
"""With more than this share of words in common, what differs is a few words or their order: that is no paraphrase, and
often the opposite. No model is asked."""

_WORDS_PER_SLIP: Final = 6
_SHORTEST_SLIP: Final = 6
_LONG: Final = 8
_MOST_WORDS: Final = 600
_LONGEST_SENTENCE: Final = 80


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two lessons are, and why. `same` may be left out; `near` is a proposal, never a decision."""

    level: Literal["same", "near", "different"]
    reason: str


def compare(a: Lesson, b: Lesson, /, *, similarity: float | None = None) -> Likeness:
    """Whether two lessons are one. Pure, symmetric, without a model; a millisecond or less.

    `same` is decided by words alone: the same sentences but for case, punctuation, markup, articles and the like,
    spelling, inflection, contractions, number words, one slip of the keyboard in a few words, the order of sentences
    (where it does not matter) and of the clauses in one. Everything else that one of them says and the other does not
    makes them two. `similarity` (the cosine of their embeddings) can only lift two lessons that share some words and do
    not contradict one another to `near`.
    """
    if a.kind != b.kind:
        return Likeness("different", "a strategy against a guardrail")
    if why := same_words(a, b):
        return Likeness("same", why)
    one, two = read(a), read(b)
    if not _comparable(one, two):
        return Likeness("different", "not the same words, and too long or too short for more")
    return _near(one, two, similarity)


def same_words(a: Lesson, b: Lesson, /) -> str:
    """Why `compare` calls the two `same`; empty where it does not. Faster, because nothing else is told apart."""
    if a.kind != b.kind:
        return ""
    one, two = read(a), read(b)
    if one.wording == two.wording:
        return "the same words"
    is_same = _comparable(one, two) and _same_title(one, two) and _same_body(one, two)
    return "the same but for form, spelling or the order of its parts" if is_same else ""


def overlap(a: Reading, b: Reading, /) -> float:
    """The share of words in common (Jaccard over stems, negations and prepositions left out), from 0 to 1."""
    common = len(a.telling & b.telling)
    return common / (len(a.telling) + len(b.telling) - common) if a.telling or b.telling else 0.0


def _comparable(a: Reading, b: Reading) -> bool:
    return 0 < len(a.flat) <= _MOST_WORDS and 0 < len(b.flat) <= _MOST_WORDS


def _near(a: Reading, b: Reading, similarity: float | None) -> Likeness:
    common = overlap(a, b)
    if common < SOME or (common < NEAR and (similarity or 0.0) < CLOSE):
        return Likeness("different", f"{common:.0%} of the words in common")
    if not (a.latin and b.latin):
        return Likeness("different", "not the same words, in a script whose denials cannot be read")
    if why := contradiction(a, b):
        return Likeness("different", why)
    return Likeness("near", f"{common:.0%} of the words in common, and no contradiction was found")


def _same_title(a: Reading, b: Reading) -> bool:
    """The same, or told in words that the other lesson has anyway: a title is a label."""
    if _aligned(a.title, b.title) or _turned(a.title, b.title):
        return True
    if _decisive(a.title) != _decisive(b.title):
        return False
    return _said(a.title, b) and _said(b.title, a)


def _said(sentence: Sentence, reading: Reading) -> bool:
    """Whether it has every word of `sentence` in some form."""
    return all(bases(word.text) & reading.forms for word in sentence)


def _decisive(sentence: Sentence) -> Counter[str]:
    return Counter(word.text for word in sentence if word.hard or word.text in PROTECTED)


def _same_body(a: Reading, b: Reading) -> bool:
    """In the same order; or sentence by sentence, where no word says that their order counts."""
    ours, theirs = (tuple(word for sentence in r.body for word in sentence) for r in (a, b))
    if _aligned(ours, theirs):
        return True
    if len(a.body) != len(b.body) or len(a.body) > 40:
        return False
    in_order = all(_aligned(x, y) or _turned(x, y) for x, y in zip(a.body, b.body, strict=True))
    return in_order or (not (a.ordered or b.ordered) and _matched(a.body, b.body))


def _matched(ours: tuple[Sentence, ...], theirs: tuple[Sentence, ...]) -> bool:
    left = list(theirs)
    for sentence in ours:
        found = next((i for i, other in enumerate(left) if _aligned(sentence, other) or _turned(sentence, other)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _turned(a: Sentence, b: Sentence) -> bool:
    """`b` is `a` with one subordinate part moved from the end to the front, or back."""
    if (
        len(a) != len(b)
        or len(a) > _LONGEST_SENTENCE
        or Counter(w.text for w in a if w.hard) != Counter(w.text for w in b if w.hard)
    ):
        return False
    for cut in range(1, len(a)):
        if (a[0].text in CONNECTORS) != (a[cut].text in CONNECTORS) and _aligned(a[cut:] + a[:cut], b):
            return True
    return False


def _aligned(a: Sentence, b: Sentence) -> bool:
    """Word for word the same, but for inflection, compounds written apart, and a slip in a few words."""
    if len(a) != len(b):
        a, b = _joined(a, b), _joined(b, a)
    if len(a) != len(b):
        return False
    slips = max(1, len(a) // _WORDS_PER_SLIP)
    for x, y in zip(a, b, strict=True):
        if x.text == y.text or frozenset((x.text, y.text)) in INTERCHANGEABLE:
            continue
        if x.hard or y.hard or x.text in PROTECTED or y.text in PROTECTED:
            return False
        if not bases(x.text) & bases(y.text):
            slips -= 1
            if slips < 0 or not _slipped(x.text, y.text):
                return False
    return True


def _joined(a: Sentence, b: Sentence) -> Sentence:
    """`a` with two words written as one where `b` has that one: drop down, dropdown."""
    whole = {word.text for word in b} - {word.text for word in a}
    joined: list[Word] = []
    for word in a:
        last = joined[-1] if joined else None
        if last and last.text + word.text in whole and not {last.text, word.text} & (NEGATIONS | ORDERING):
            joined[-1] = Word(last.text + word.text, hard=last.hard or word.hard)
        else:
            joined.append(word)
    return tuple(joined)


def _slipped(x: str, y: str) -> bool:
    """One letter doubled, missing, wrong inside, or two neighbours exchanged; not where both are words we know."""
    if min(len(x), len(y)) < _SHORTEST_SLIP - 1 or max(len(x), len(y)) < _SHORTEST_SLIP:
        return False
    if x[0] != y[0] or x[-1] != y[-1] or not (x.isalpha() and y.isalpha()):
        return False
    if frozenset((x, y)) in CONFUSABLE or any(frozenset(p) in CONFUSABLE for p in _stripped(x, y)):
        return False
    return _exchanged(x, y) if len(x) == len(y) else _missing(*sorted((x, y), key=len))


def _stripped(x: str, y: str) -> list[tuple[str, str]]:
    return [(p, q) for p in bases(x) for q in bases(y)]


def _exchanged(x: str, y: str) -> bool:
    at = [i for i, (p, q) in enumerate(zip(x, y, strict=True)) if p != q]
    return len(at) == 2 and at[1] == at[0] + 1 and x[at[0]] == y[at[1]] and x[at[1]] == y[at[0]]


def _missing(short: str, long: str) -> bool:
    """A letter was left out: one of a doubled pair, or a vowel of a long word. Of others, too many make a new word."""
    if len(long) != len(short) + 1:
        return False
    at = next(i for i in range(len(long)) if long[:i] + long[i + 1 :] == short or i == len(long) - 1)
    if long[:at] + long[at + 1 :] != short:
        return False
    doubled = long[at] in (long[at - 1 : at], long[at + 1 : at + 2])
    return doubled or (long[at] in "aeiou" and len(long) >= _LONG)
