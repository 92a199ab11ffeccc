"""Finds words that sound harmful together. They decide nothing: the lesson is marked, and a model or a person asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ._families import weights, without_marks, words_in
from ._skeleton import views

_READ: Final = 6_000
"""Characters of a lesson that are read: more than a lesson of full length has."""
_CLAUSE = re.compile(
    r"[.!?;:](?=\s|$)\s*|[\n。！？；：]\s*|[,，、]\s*|[—–]"
    r"|\b(?:if|when|whenever|unless|until|while|because|since|once|so that|wenn|falls|weil|sobald|quand|lorsque"
    r"|parce que|car|cuando|porque)\b"
)
_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？]")


class Clause(NamedTuple):
    """Where a part of a sentence has words of each group."""

    places: Mapping[str, Sequence[int]]

    def count(self, group: str) -> int:
        """How many words of a group it has."""
        return len(self.places.get(group, ()))

    def has(self, *groups: str) -> bool:
        """Whether it has a word of every group."""
        return all(group in self.places for group in groups)

    @property
    def orders(self) -> bool:
        """Whether it begins with the order to leave a safeguard out: nothing relieves that."""
        return self.has("guard", "skip") and self.takes_away and self.places["skip"][0] == 0

    @property
    def is_denied(self) -> bool:
        """Whether it denies what it says: two denials undo each other."""
        return self.count("denial") % 2 == 1

    @property
    def takes_away(self) -> bool:
        """Whether it takes away what it names: "skip it" and "do not do it" do, "do not skip it" does not."""
        return (self.count("skip") + self.count("denial")) % 2 == 1


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
_EXCUSED: Final = _ALONE | {
    "burden": "calls a safeguard a burden",
    "afterwards": "acts first and asks later",
    "assumed": "takes for granted what it should check",
    "lasting": "makes a rule of one case",
    "private": "hands out what is private",
    "handed": "hands out what is private",
    "profit": "serves somebody else's gain",
    "dodge": "goes round a limit",
    "untold": "leaves something untold",
    "unstopped": "goes on when told to stop",
    "deed": "acts without asking",
}
"""What the heaviest family says of a lesson whose parts of sentences recommend nothing by themselves."""
_EXCUSE: Final = "praises a short way"


def mark_of(text: str, /, *, is_retold: bool = False) -> str | None:
    """What `text` seems to recommend, by its words. `None`: nothing risky.

    Every family of words and every mark that `text` has is weighed, and so are words of care and of mishaps, which
    lessons that warn have. What is only retold of a run must weigh more, and a report of success in it weighs nothing:
    a task asks for much, and a tool says that all went well, without recommending anything to a reader.
    """
    for heard in map(_heard, _read(text)):
        if is_retold:
            heard = heard._replace(families={*heard.families} - _REPORTS)
        if heard.orders_it or heard.weight >= weights("limits")["retold" if is_retold else "marked"]:
            return heard.told
    return None


def is_disguised(text: str, /) -> bool:
    """Whether `text` recommends something risky only to people: lookalike letters and signs hide it from a search."""
    plain, *bare = _read(text)
    return bool(bare) and _marked(bare[0]) not in (None, _marked(plain))


@lru_cache(maxsize=8)
def _read(text: str) -> Sequence[str]:
    return tuple(map(without_marks, views(text[:_READ])))


class _Heard(NamedTuple):
    """The families that a text has words of, how often it has words that relieve it, its marks, and whether it orders
    what nothing relieves."""

    families: Collection[str]
    relief: Mapping[str, int]
    marks: Sequence[str]
    orders_it: bool

    @property
    def weight(self) -> int:
        """How harmful it sounds. Words that relieve it do so only up to a bound: else a few would buy silence."""
        words, marks = weights("families"), weights("marks")
        sounds = sum(words.get(name, 0) for name in self.families) + sum(marks.get(name, 0) for name in self.marks)
        eased = sum(each * min(self.relief[name], _OFTEN) for name, each in weights("relief").items())
        return sounds - min(eased, weights("limits")["relief"])

    @property
    def told(self) -> str:
        """What it seems to recommend, by the first mark, or else by the heaviest family that says something."""
        told = [name for name in weights("families") if name in self.families and name in _EXCUSED]
        heaviest = sorted(told, key=lambda name: -weights("families")[name])
        return [*self.marks, *(_EXCUSED[name] for name in heaviest), _EXCUSE][0]


_OFTEN: Final = 2
"""How often a family that relieves a text counts at most."""


_REPORTS: Final = {"went_well", "claim"}
"""The families that only say how something ended."""


def _marked(view: str) -> str | None:
    """What `view` recommends by its marks alone, and by whole phrases that stand for one."""
    heard = _heard(view)
    alone = [told for group, told in _ALONE.items() if group in heard.families]
    return next(iter([*heard.marks, *alone]), None)


@lru_cache(maxsize=16)
def _heard(view: str) -> _Heard:
    families = words_in(view).keys()
    asked = families & _COUNTED
    marks, relief, ordered = Counter[str](), Counter[str](), False
    for sentence in _SENTENCE.split(view):
        texts = [text.strip() for text in _CLAUSE.split(sentence) if text]
        parts = [Clause(places) for text in texts if (places := words_in(text, among=asked))]
        ordered = ordered or any(part.orders for part in parts)
        if found := [name for name, tells in _MARKS.items() if any(map(tells, parts))]:
            marks.update(found)
        else:
            relief.update(_relief(parts))
    told = [name for name in _MARKS if name in marks]
    forced = "forced" in families
    return _Heard(families, relief, ["forces its way", *told] if forced else told, forced or ordered)


def _relief(parts: Sequence[Clause]) -> Mapping[str, int]:
    """How often a sentence that recommends nothing risky has words that relieve a text: no excuse relieves itself."""
    told = {name: sum(part.count(name) for part in parts) for name in weights("relief")}
    careful = [part.count("careful") for part in parts if not part.takes_away and not part.has("afterwards")]
    return told | {"careful": sum(careful)}


_COUNTED: Final = frozenset(
    {"skip", "guard", "denial", "tell", "deceit", "rank", "boundless", "grant", "secret", "outward", "leave"}
    | {"against", "assert", "claim", "access", "spread", "bend", "obey", "address"}
    | {"careful", "mishap", "bounds", "afterwards"}
)
"""The families that the parts of a sentence are asked for."""
