"""Finds words that sound harmful together. They decide nothing: the lesson is marked, and a model or a person asked."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from unicodedata import combining, normalize

from ._skeleton import views

_READ: Final = 6_000
"""Characters of a lesson that are read: more than a lesson of full length has."""
_CLAUSE = re.compile(
    r"[.!?;:](?=\s|$)\s*|[\n。！？；：]\s*|[,，、]\s*|[—–]"
    r"|\b(?:if|when|whenever|unless|until|while|because|since|once|so that|wenn|falls|weil|sobald|quand|lorsque"
    r"|parce que|car|cuando|porque)\b"
)
_GAP = r"\W{1,3}(?:\w+\W{1,3}){0,2}?"


class Clause(NamedTuple):
    """How many words of each group a part of a sentence has."""

    counts: Mapping[str, int]

    def has(self, *groups: str) -> bool:
        """Whether it has a word of every group."""
        return all(self.counts[group] for group in groups)

    @property
    def is_denied(self) -> bool:
        """Whether it denies what it says: two denials undo each other."""
        return self.counts["denial"] % 2 == 1

    @property
    def takes_away(self) -> bool:
        """Whether it takes away what it names: "skip it" and "do not do it" do, "do not skip it" does not."""
        return (self.counts["skip"] + self.counts["denial"]) % 2 == 1


_MARKS: Final[Mapping[str, Callable[[Clause], bool]]] = {
    "claims authority": lambda part: part.has("rank") and not part.is_denied,
    "hides something": lambda part: part.has("tell" if part.is_denied else "deceit"),
    "gives secrets away": lambda part: part.has("outward", "secret") and not part.is_denied,
    "skips a check": lambda part: part.has("guard") and part.takes_away,
    "acts without bounds": lambda part: part.has("boundless", "grant") and not part.is_denied,
    "sends something elsewhere": lambda part: part.has("outward", "address") and not part.is_denied,
    "claims what may not be so": lambda part: part.has("assert", "claim") and not part.is_denied,
    "acts without asking": lambda part: part.has("against") and not part.is_denied,
    "claims an approval": lambda part: part.has("leave") and not part.is_denied,
    "takes or keeps access": lambda part: part.has("access") and not part.is_denied,
    "bends data or a test": lambda part: part.has("bend") and not part.is_denied,
    "obeys what it reads": lambda part: part.has("obey") and not part.is_denied,
    "instructs other agents": lambda part: part.has("spread") and not part.is_denied,
}
"""What a part of a sentence may recommend, and how its words tell."""
_ALONE: Final = {
    "unseen": "counts on not being seen",
    "needless": "calls a safeguard needless",
    "trait": "judges people by what they are",
    "score": "works for a grade",
    "gain": "praises a short way",
}
"""What whole phrases tell, wherever they stand: how harm is excused is said in fewer ways than harm."""


def mark_of(text: str, /) -> str | None:
    """What `text` seems to recommend, by its words. `None`: nothing risky."""
    return next(filter(None, map(_marked, _read(text))), None)


def is_disguised(text: str, /) -> bool:
    """Whether `text` recommends something risky only to people: lookalike letters and signs hide it from a search."""
    plain, *bare = _read(text)
    return bool(bare) and _marked(bare[0]) not in (None, _marked(plain))


@lru_cache(maxsize=8)
def _read(text: str) -> Sequence[str]:
    return tuple(map(_without_marks, views(text[:_READ])))


def _without_marks(text: str) -> str:
    """`text` without accents: they hide no word, and people leave them out."""
    return text if text.isascii() else "".join(c for c in normalize("NFKD", text) if not combining(c))


@lru_cache(maxsize=16)
def _marked(view: str) -> str | None:
    groups = _present(view)
    if "forced" in groups:
        return "forces its way"
    clauses = [_counted(part, groups) for part in _CLAUSE.split(view) if part]
    found = next((name for name, tells in _MARKS.items() if any(map(tells, clauses))), None)
    return found or next((told for group, told in _ALONE.items() if group in groups), None)


def _present(view: str) -> Mapping[str, re.Pattern[str]]:
    """The groups that `view` has words of. How its words begin rules out most of them without a search."""
    begun = {word[:size] for word in _LETTERS.findall(view) for size in range(1, _KEY + 1)} | {""}
    dense = _DENSE.search(view) is not None
    return {
        name: pattern
        for name, pattern in _groups().items()
        if (dense or not begun.isdisjoint(_keys()[name])) and pattern.search(view)
    }


def _counted(part: str, groups: Mapping[str, re.Pattern[str]]) -> Clause:
    return Clause(Counter({name: len(pattern.findall(part)) for name, pattern in groups.items() if name not in _ALONE}))


@cache
def _groups() -> Mapping[str, re.Pattern[str]]:
    words = {name: _any_of(stems) for name, stems in _stems().items()}
    return words | {name: re.compile("|".join(text.strip().splitlines())) for name, text in _told()["code"].items()}


@cache
def _keys() -> Mapping[str, frozenset[str]]:
    """How a word begins that has to stand in a text that a group is found in; an empty text for every text."""
    letters = {name: [_LETTERS.match(stem) for stem in stems] for name, stems in _stems().items()}
    keys = {name: frozenset(found[0][:_KEY] if found else "" for found in every) for name, every in letters.items()}
    return keys | dict.fromkeys(_told()["code"], frozenset({""}))


def _stems() -> Mapping[str, Sequence[str]]:
    lists = {name: text for name, text in _told().items() if isinstance(text, str)}
    return {name: list(dict.fromkeys(_without_marks(text).split())) for name, text in lists.items()}


@cache
def _told() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))


def _any_of(stems: Sequence[str]) -> re.Pattern[str]:
    """One pattern that looks for words only where a word begins: that takes a tenth of the time."""
    dense = [stem for stem in stems if _DENSE.match(stem)]
    initials = dict.fromkeys(stem[0] for stem in stems if not _DENSE.match(stem))
    words = "|".join(f"{first}(?:{'|'.join(_word(s[1:]) for s in stems if s[0] == first)})" for first in initials)
    return re.compile("|".join([rf"(?<![^\W_])(?=[^\W\d_])(?:{words})", *map(re.escape, dense)]))


def _word(stem: str) -> str:
    """`skip` begins a word, `test_` is one, `set-aside` may have one or two words between; `_` inside is a blank."""
    parts = [re.escape(part).replace("_", r"[\W_]{1,3}") for part in stem.strip("_").split("-")]
    return f"{_GAP.join(parts)}{_END if stem.endswith('_') else ''}"


_END: Final = r"(?!\w)"
_KEY: Final = 6
_LETTERS = re.compile(r"[^\W\d_]+")
_DENSE = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
