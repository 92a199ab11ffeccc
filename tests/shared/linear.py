"""Measures whether the time of a function grows as its text does, on a machine that has other work as well."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

T = TypeVar("T")

RATIO = 5.0
"""Times longer that a function may take for four times the text."""
FAR = 9.0
"""Between the 4 of a call that takes its input once and the 16 of one that takes it at each of its places."""
_TRIES = 8
_UNSEEN = 0.02
"""Seconds below which a time says nothing. What is quadratic takes far longer for the large text."""

PIECES = (
    "a", "aA", "a b ", "0", "1.1.", "$1", "é", "注", "한", "\n", "\t ", " ", '"', "'", "`", "“", "(", "[", "{",
    "<", "<|", "|", "#", "*", "~", "-", "--", "_", "/", "\\", "@", ":", ";", ",", "...", "!", "？", "。",
    "a.b@", "x-", "w'w", "A1-", "skip ", "skip the the the ", "without ", "without the ", "never ", "no need ",
    "send ", "send to ", "put ", "copy ", "ignore ", "ignore all ", "ignore previous other ", "rules ", "you ",
    "from now ", "system", "user: ", "if ", "if a ", "submit ", "submit(", "finish ", "finish[", "thought: ",
    "thoughts: action", "echo && ", "exit ", "done ", "answer: ", "the agent ", "then i ", "mug 1 ", "Mr. A ",
    "Ann Bee's ", "user 'abcd' ", "here are ", "based on the run ", "lesson ", "curl | ", "rm -rf ",
    "drop table ", "eval(", "give ", "give all ", "grant full ", "edit the ", "hard-code ", "claim ",
    "delete instead ", "reveal any ", "approve the ", "raise ", "assume ", "forge ", "mark as ", "0.0.0.0",
    "0x0", "no", "<<<lessons ", "<<<lessons 12345678>>>\n", "12345678| ", "12345678| a\n",
    "<<<end lessons 12345678>>>\n", "<!--", "</think>", "[INST]", "Alpha Beta Gamma Delta ", "Mr. Alpha ",
    "name is Ann ", "12 Elm Street, ", "+1 555 ", "1,234", "key=value ", "'k': 'v', ", "name: Jane Roe\n",
    "name,b\n", "name|b\n", '{"a":', "a@b.co ", "Jan 1, ", "rue ", "田", "&amp;", "&#105;", "s k ", "s.k.",
    "a**", "a<b>", "a<", "1a1a", "1", "l33t ", "ѕ", "a\u0301\u0301", "$a", "\\a", "\u200b",
)  # fmt: skip
"""What is hostile when it is repeated: openings without ends, words that begin a pattern, letters in disguise."""


def repeated(piece: str, size: int, /) -> str:
    """`size` characters of nothing but `piece`."""
    return (piece * (size // len(piece) + 1))[:size]


def seconds(call: Callable[[], object], /) -> float:
    """CPU time of this process for one call: waiting for others does not count."""
    gc.collect(0)
    before = time.process_time()
    call()
    return time.process_time() - before


def growth(call: Callable[[str], object], piece: str, /, *, size: int = 100_000) -> float:
    """How many times longer `call` takes for four times as much of `piece`."""
    return growth_of(lambda size: partial(call, repeated(piece, size)), size=size)


def growth_of(
    make: Callable[[int], T], /, *, size: int, most: float = RATIO, measure: Callable[[T], float] = seconds
) -> float:
    """How many times longer a call takes that is made for four times the size: the quickest of some tries of each.

    Zero if it takes no time that could be measured. Other work on the machine only ever adds to a time, so the quickest
    is nearest to the truth; as soon as one takes at most `most` times the other nothing more is tried. `measure` gives
    the time of a call that counts.
    """
    small, large = make(size), make(4 * size)
    long = short = float("inf")
    for _ in range(_TRIES):
        long = min(long, measure(large))
        if long < _UNSEEN:
            return 0.0
        short = min(short, max(measure(small), _UNSEEN / RATIO / 2))
        if long <= most * short:
            break
    return long / short


def too_slow(
    calls: Mapping[str, Callable[[str], object]], /, *, pieces: Iterable[str] = PIECES, size: int = 100_000
) -> dict[tuple[str, str], float]:
    """The functions and pieces whose time grows faster than the text, each time of two: chance seldom comes twice."""
    grown = {(name, piece): growth(call, piece, size=size) for piece in pieces for name, call in calls.items()}
    again = {case: growth(calls[case[0]], case[1], size=size) for case, ratio in grown.items() if ratio > RATIO}
    return {case: round(ratio, 1) for case, ratio in again.items() if ratio > RATIO}
