"""A bank of a million: one scope of all of it, and one scope of 50,000 beside a bank that holds only those."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .banks import Built, Part, built, copied
from .clock import alternate
from .figures import Figure, Target
from .opening import opening
from .retrieving import AT, NAME, ONE_PASS, RECALLED, Asking, timing
from .workload import Queries, rows

_PART = 50_000
_SCOPE = "bench/part"
_SAME = "the same call on a bank that holds only those"


@dataclass(frozen=True, slots=True)
class Million:
    """The big bank (one scope of `lessons`, and 50,000 more in a scope of their own), and one of these 50,000 alone."""

    whole: Built
    alone: Built
    lessons: int


async def million(folder: Path, lessons: int, *, reuse: bool) -> Million:
    """Make both, or find them kept."""
    part = Part(_PART, start=lessons, scope=_SCOPE)
    whole = await built(folder / f"bank-{lessons}-and-part.db", [Part(lessons), part], reuse=reuse)
    return Million(whole, await built(folder / f"part-of-{lessons}.db", [part], reuse=reuse), lessons)


async def searching(banks: Million, work: Path, *, calls: int) -> list[Figure]:
    """Both scopes of the big bank."""
    with copied(banks.whole, work) as whole, copied(banks.alone, work) as alone:
        return [*await _all(whole, banks.lessons, calls), *await _some(whole, alone, banks.lessons, calls)]


async def _all(path: Path, lessons: int, calls: int) -> list[Figure]:
    vectors, asking = rows(0, lessons), await Asking.of(path, Queries())
    async with asking.bank:
        asked = {"retrieve": asking.retrieve, "nearest": asking.nearest_and_record, "raw": asking.raw(vectors)}
        timed = await alternate(asked, max(2, calls // 2), seconds=900)
        found = await asking.recall(vectors, max(2, calls // 2))
    goal = AT[1_000_000]
    return [
        timing(NAME, lessons, timed["retrieve"], timed["raw"], goal),
        timing("nearest + record, the store alone", lessons, timed["nearest"], timed["raw"], goal),
        Figure("recall@5 of retrieve", lessons, found, "", target=RECALLED, note="against the exact five"),
    ]


async def _some(path: Path, alone: Path, lessons: int, calls: int) -> list[Figure]:
    vectors = rows(lessons, _PART)
    ours, theirs = await Asking.of(path, Queries(), scope=_SCOPE), await Asking.of(alone, Queries(), scope=_SCOPE)
    async with ours.bank, theirs.bank:
        asked = {"ours": ours.retrieve, "alone": theirs.retrieve, "raw": ours.raw(vectors)}
        timed = await alternate(asked, calls, seconds=900)
        found = await ours.recall(vectors, calls, start=lessons)
    name = f"retrieve, a scope of {_PART:,} of {lessons + _PART:,}"
    return [
        timing(name, _PART, timed["ours"], timed["alone"], Target(1.2, "ratio"), under=_SAME),
        timing("retrieve, a bank of only those", _PART, timed["alone"], timed["raw"], None, under=ONE_PASS),
        Figure(f"recall@5, a scope of {_PART:,}", _PART, found, "", target=RECALLED, note="against the exact five"),
    ]


def starting(banks: Million, work: Path) -> list[Figure]:
    """A fresh process with one scope, and with the other."""
    of = f", scope of {banks.lessons + _PART:,}"
    with copied(banks.whole, work) as whole:
        part = opening(whole, _PART, work, scope=_SCOPE, of=of)
        return [*part, *opening(whole, banks.lessons, work, times=3)]
