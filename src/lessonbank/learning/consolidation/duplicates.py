"""Tells whether two lessons are one, near one another, or two, by their words alone and without a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from lessonbank.contracts.records import Lesson
from lessonbank.guard.gate import EXTRACTIVE, is_ordinary
from lessonbank.guard.wording import fact_of, moves_of

from ._normal_form import TURNING, Reading, Sentence, read, read_text, without_links

NEAR: Final = 0.25
"""The share of words in common from which two lessons may be one in other words."""
CLOSE: Final = 0.6
"""The cosine of two embeddings that makes up for words that differ; `SOME` words must be common all the same."""
SOME: Final = 0.05
ALIKE: Final = 0.6
NEIGHBOURS: Final = 0.15
"""With more words in common, or more pairs of neighbours, two lessons are one text in which something was changed: that
is no paraphrase, and often the opposite. Of the 204 labelled opposites and other targets none is below both."""
_WORDS_PER_SLIP: Final = 6
_SHORTEST_SLIP: Final = 5
_LONG: Final = 7
_CONFUSABLE: Final = frozenset(
    """automation/automaton barely/barley bellow/below casual/causal compiled/complied diner/dinner discreet/discret
    filed/filled hoisted/hosted marital/martial multipl/multiply perfect/prefect polic/policy retired/retried
    sacred/scared silver/sliver striped/stripped super/supper tilted/titled
    united/untied""".split()  # noqa: SIM905 - as text they are read more easily
)
"""Words one slip apart, both of them right, that are not in the dictionary."""
_MOST_WORDS: Final = 600
_MOST_SENTENCES: Final = 40
_ORDERING: Final = frozenset(
    ("first", "second", "third", "then", "next", "finally", "afterward", "later", "last", "step")
)
_OPENING: Final = frozenset(("before", "after", "if", "when", "while", "unless", "until", "without", "only"))
"""Words that begin a part of a sentence, which may stand in front or behind."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two lessons are, and why. `same` may be left out; `near` is a proposal, never a decision."""

    level: Literal["same", "near", "different"]
    reason: str


def compare(a: Lesson, b: Lesson, /, *, similarity: float | None = None) -> Likeness:
    """Whether two lessons are one. Pure, symmetric, without a model; a millisecond or less.

    `same`: one normal form, but for the order of sentences (where no word says that it counts), the place of a clause,
    and one slip of the keyboard in six words. `near`: words in common, in sentences of their own. One text in which
    something was changed is neither. `similarity` (the cosine of their embeddings) can only lift two lessons that share
    some words to `near`.
    """
    if a.kind != b.kind:
        return Likeness("different", "a strategy against a guardrail")
    if why := same_words(a, b):
        return Likeness("same", why)
    first, second = read(a), read(b)
    if not _comparable(first, second):
        return Likeness("different", "not the same words, and too long or too short for more")
    return _near(first, second, similarity)


def same_words(a: Lesson, b: Lesson, /) -> str:
    """Why `compare` calls the second `same`; empty where it does not."""
    if a.kind != b.kind:
        return ""
    first, second = read(a), read(b)
    if first.wording == second.wording:
        return "the same words"
    is_same = _comparable(first, second) and _same_title(first, second) and _same_sentences(first.body, second.body)
    return "the same but for form, spelling or the order of its parts" if is_same else ""


def overlap(a: Reading, b: Reading, /) -> float:
    """The share of words in common (Jaccard), from 0 to 1."""
    return _share(a.telling, b.telling)


def _share(ours: frozenset[object], theirs: frozenset[object]) -> float:
    return len(ours & theirs) / len(ours | theirs) if ours or theirs else 0.0


def _comparable(a: Reading, b: Reading) -> bool:
    return 0 < len(a.words) <= _MOST_WORDS and 0 < len(b.words) <= _MOST_WORDS


def _near(a: Reading, b: Reading, similarity: float | None) -> Likeness:
    common = overlap(a, b)
    if common < SOME or (common < NEAR and (similarity or 0.0) < CLOSE):
        return Likeness("different", f"{common:.0%} of the words in common")
    ours, theirs = a.facts - set(b.words), b.facts - set(a.words)
    if ours and theirs:
        return Likeness("different", f"other numbers or names: {_listed(ours)} against {_listed(theirs)}")
    neighbours = _share(frozenset(pairwise(_flat(a.body))), frozenset(pairwise(_flat(b.body))))
    if common > ALIKE or neighbours > NEIGHBOURS:
        return Likeness("different", f"one text with a difference: {common:.0%} of the words in common")
    return Likeness("near", f"{common:.0%} of the words in common, in sentences of their own")


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words)[:3])[:80]


def _same_title(a: Reading, b: Reading) -> bool:
    """Whether titles are the same, or told in words that the other lesson has anyway: a title is a label."""
    if _same_sentences(a.title, b.title):
        return True
    ours, theirs = _flat(a.title), _flat(b.title)
    turned, turning = (sorted(word for word in title if word in TURNING) for title in (ours, theirs))
    return turned == turning and set(ours) <= set(b.words) and set(theirs) <= set(a.words)


def _same_sentences(ours: tuple[Sentence, ...], theirs: tuple[Sentence, ...]) -> bool:
    """In the same order; or sentence by sentence, where no word says that their order counts."""
    if _aligned(without_links(_flat(ours)), without_links(_flat(theirs))):
        return True
    if len(ours) != len(theirs) or len(ours) > _MOST_SENTENCES:
        return False
    if all(map(_one_sentence, ours, theirs)):
        return True
    return _ORDERING.isdisjoint((*_flat(ours), *_flat(theirs))) and _matched(ours, theirs)


def _flat(sentences: tuple[Sentence, ...]) -> tuple[str, ...]:
    return tuple(word for sentence in sentences for clause in sentence for word in clause)


def _matched(ours: tuple[Sentence, ...], theirs: tuple[Sentence, ...]) -> bool:
    left = list(theirs)
    for sentence in ours:
        index = next((i for i, other in enumerate(left) if _one_sentence(sentence, other)), None)
        if index is None:
            return False
        del left[index]
    return not left


def _one_sentence(a: Sentence, b: Sentence) -> bool:
    return _aligned(without_links(_flat((a,))), without_links(_flat((b,)))) or _moved(a, b) or _moved(b, a)


def _moved(a: Sentence, b: Sentence) -> bool:
    """Whether `a` is `b` with its first clause at the end of a later one, where no comma sets it off."""
    if len(a) == len(b) == 1:
        (x,), (y,) = a, b
        return any(y[at] in _OPENING and y[0] not in _OPENING and _aligned(x, y[at:] + y[:at]) for at in range(len(y)))
    if len(b) != len(a) + 1:
        return False
    ends = ((*b[1:at], (*b[at], *b[0]), *b[at + 1 :]) for at in range(1, len(b)))
    return any(all(map(_aligned, moved, a)) for moved in ends)


def _aligned(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Word for word the same, but for a slip of the keyboard in a few words."""
    if len(a) != len(b):
        return False
    slips = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    return len(slips) <= max(1, len(a) // _WORDS_PER_SLIP) and all(_slipped(x, y) for x, y in slips)


def _slipped(x: str, y: str) -> bool:
    """Two neighbours are exchanged, or a letter is missing that is doubled or a vowel; not where both are words."""
    short, long = sorted((x, y), key=len)
    if len(short) < _SHORTEST_SLIP or len(long) - len(short) > 1 or not (x.isalpha() and y.isalpha()):
        return False
    if x[0] != y[0] or (is_ordinary(x) and is_ordinary(y)) or f"{min(x, y)}/{max(x, y)}" in _CONFUSABLE:
        return False
    at = next((i for i, (p, q) in enumerate(zip(short, long, strict=False)) if p != q), len(short))
    if len(short) == len(long):
        return short[at + 2 :] == long[at + 2 :] and short[at : at + 2] == long[at : at + 2][::-1]
    if long[:at] + long[at + 1 :] != short:
        return False
    return long[at] in (long[at - 1 : at], long[at + 1 : at + 2]) or (long[at] in "aeiou" and len(long) >= _LONG)


_ASKING: Final = frozenset(["ask", "want", "need", "request", "lik", "help", "kindly", "me", "us", "task"])
"""Normal forms of words that ask for something and do not say what."""


def same_moves(new: Lesson, known: Lesson, /) -> bool:
    """Whether both tell the same moves, and the task of `known` says nothing that the task of `new` does not say.

    Only for lessons of the extractive distiller, whose content is made of moves. The title quotes the task, or names
    the deed; with one deed it does not matter how somebody asked for it. What was seen on the way may differ where the
    moves worked. Not symmetric: a lesson for a task with further words, which may be another target, never stands for
    one that lacks them.
    """
    if fact_of(new) == fact_of(known):
        return True
    if new.kind != known.kind or {new.provenance.method, known.provenance.method} != {EXTRACTIVE}:
        return False
    if moves_of(new) != moves_of(known):
        return False
    ours, theirs = (read_text(lesson.description) for lesson in (new, known))
    if ours.turning != theirs.turning or ours.facts != theirs.facts:
        return False
    asked, wanted = (reading.telling - _ASKING for reading in (ours, theirs))
    return bool(wanted) and wanted <= asked
