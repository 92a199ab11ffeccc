"""Finds what keeps two lessons apart however alike their words are: a denial, an order, a number, a name, a choice."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final

from ._sentences import Reading, bases, stem
from ._words import ANTONYMS, CONNECTORS, GLUE, NEGATIONS, PREFIXES, PROTECTED

FRAME: Final = 0.5
"""From this share of words in common and in order, a word in the place of another is another target."""

LONGEST_SWAP: Final = 3
"""So many words in the place of so many are another target; more are another way to say it."""

_RESTRICTING: Final = frozenset({"only", "except", "atleast", "atmost", "unless"})


def contradiction(a: Reading, b: Reading, /) -> str:
    """Why the two cannot be one lesson, in one sentence; empty when nothing speaks against it. Symmetric in effect.

    It reads English, and the commonest negations of other languages. That it finds nothing proves nothing.
    """
    return disagreement(a, b) or _replaced(a, b)


def disagreement(a: Reading, b: Reading, /) -> str:
    """The part of it that also holds between a text and one that was made of it: what denies, inverts or restricts."""
    return (
        _apart("other numbers", a.numbers - b.numbers, b.numbers - a.numbers)
        or _apart("other units", a.units - b.units, b.units - a.units)
        or _apart("other names", _unsaid(a, b), _unsaid(b, a))
        or _denied(a, b)
        or _opposed(a, b)
        or _restricted(a, b)
        or _turned(a, b)
    )


def _apart(what: str, ours: frozenset[str], theirs: frozenset[str]) -> str:
    return f"{what}: {_listed(ours)} against {_listed(theirs)}" if ours and theirs else ""


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words)[:3])[:80]


def _unsaid(a: Reading, b: Reading) -> frozenset[str]:
    """The names of `a` that `b` does not have in any form."""
    return frozenset(name for name in a.names if not bases(name) & b.forms)


def _denied(a: Reading, b: Reading) -> str:
    ours = (a.negated - a.plain) & (b.plain - b.negated)
    theirs = (b.negated - b.plain) & (a.plain - a.negated)
    flipped = {word for word in ours | theirs if len(word) > 2 and word not in PROTECTED}
    return f"one of them denies {_listed(frozenset(flipped))!r}" if flipped else ""


def _opposed(a: Reading, b: Reading) -> str:
    ours, theirs = a.forms - b.forms, b.forms - a.forms
    for word in sorted(ours):
        for other in sorted(theirs):
            if frozenset((word, other)) in ANTONYMS or _prefixed(word, other) or _prefixed(other, word):
                return f"opposites: {word} against {other}"
    return ""


def _prefixed(word: str, other: str) -> bool:
    return len(word) > 3 and any(other == prefix + word for prefix in PREFIXES)


def _restricted(a: Reading, b: Reading) -> str:
    """`only`, `unless` and their like on one side alone: the other lesson reaches further."""
    ours = {word.text for word in a.flat} & _RESTRICTING
    theirs = {word.text for word in b.flat} & _RESTRICTING
    return f"only one of them says {_listed(frozenset(ours ^ theirs))!r}" if ours ^ theirs else ""


def _turned(a: Reading, b: Reading) -> str:
    for kind, first, second in a.relations:
        for other, earlier, later in b.relations:
            if kind == other and _crossed(first, second, earlier, later):
                return "the order of the steps is turned around" if kind == "time" else "the choice is turned around"
    return ""


def _crossed(first: frozenset[str], second: frozenset[str], earlier: frozenset[str], later: frozenset[str]) -> bool:
    both = first & second | earlier & later
    first, second, earlier, later = (side - both for side in (first, second, earlier, later))
    across = min(len(first & later), len(second & earlier))
    return across > 0 and len(first & later) + len(second & earlier) > len(first & earlier) + len(second & later)


def _replaced(a: Reading, b: Reading) -> str:
    """Words in the place of others, in what is otherwise the same text. A clause that moved is no such thing."""
    ours, theirs = sorted([stem(word.text) for word in reading.flat] for reading in (a, b))
    match = SequenceMatcher(None, ours, theirs, autojunk=False)
    if match.quick_ratio() < FRAME or match.ratio() < FRAME:
        return ""
    edits = [(ours[i:j], theirs[k:m]) for what, i, j, k, m in match.get_opcodes() if what != "equal"]
    if not any(CONNECTORS.intersection((*out, *put)) for out, put in edits):
        edits.append(([w for out, _ in edits for w in out], [w for _, put in edits for w in put]))
    for out, put in edits:
        said, instead = [w for w in out if _says(w)], [w for w in put if _says(w)]
        if said and sorted(said) == sorted(instead):
            return f"{' '.join(said)[:60]!r} stands in another place"
        if said and instead and max(len(said), len(instead)) <= LONGEST_SWAP:
            return f"{' '.join(said)[:60]!r} in the place of {' '.join(instead)[:60]!r}"
    return ""


def _says(word: str) -> bool:
    return word not in GLUE and (word not in PROTECTED or word in NEGATIONS)
