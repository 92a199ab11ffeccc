"""Tells a lesson from an order to the agent, and finds lessons that suggest skipping a safeguard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ._caseless import Caseless
from ._phrases import any_of, phrases

_READ = 20_000
"""Characters of a lesson that are read."""
_FORCED = "forces its way"
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_CLAUSE = re.compile(r"[,:;—–]\s")
_OPENED = re.compile(r"(?:^|(?<=[\s(:]))[\"'“‘«](?=\S)")
_CLOSED = re.compile(r"(?<=\S)[\"'”’»](?=[\s.,;:!?)]|$)")


@cache
def risks() -> Mapping[str, Caseless]:
    """How each way of skipping a safeguard is worded, by its name."""
    return {name: Caseless(source) for name, source in phrases("risks").items()}


def is_order(text: str, /, *, quoting: bool = True) -> bool:
    """Whether `text` gives the agent orders: new instructions, another role, secrecy, a call to make now.

    A text that warns of such an order or quotes it gives none. With `quoting=False` quotes and warnings count, too.
    """
    return any(not (quoting and _is_quoted(text, start)) for start, _ in any_of("orders").spans(text[:_READ]))


def _is_quoted(text: str, start: int) -> bool:
    """Whether the words before `start` warn of what follows or open a quote around it."""
    sentence = _sentence_before(text, start, within=200)
    quoted = len(_OPENED.findall(sentence)) > len(_CLOSED.findall(sentence)) or sentence.count("`") % 2 == 1
    warned = _warning("before an order", r"\b(?:{})\b[^.\n]{{0,110}}$").search(_CLAUSE.split(sentence)[-1])
    return bool(warned) or (quoted and text[start : start + 1] not in "{[")


def _sentence_before(text: str, end: int, /, *, within: int) -> str:
    return _SENTENCE.split(text[max(0, end - within) : end])[-1]


def risk_of(title: str, description: str, content: str, /) -> str | None:
    """The name of the risk in what a lesson recommends. `None` if it recommends nothing risky, or warns of it.

    Commands count only in the content: a title and a condition often just name what the lesson is about.
    """
    content = content[:_READ]
    for name, risk in risks().items():
        whole = content if name == _FORCED else f"{title}.\n{description}\n{content}"
        if any(not _is_refused(whole, *span) for span in risk.spans(whole)):
            return name
    return None


def _is_refused(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a risk advises against it, or tells what it led to."""
    refusal = _warning("before a risk", r"\bwithout\s+$|\b(?:{})\b[^.!?\n]{{0,110}}$")
    clause = _CLAUSE.split(_sentence_before(text, start, within=240))[-1]
    if refusal.search(clause) or refusal.search(text[start:end]):
        return True
    after = text[end : end + 120]
    soon = _warning("soon after a risk", r"[^.!?\n:;,]{{0,90}}\b(?:{})").match(after)
    return bool(soon or _warning("in the sentence after a risk", r"[^.!?\n]{{0,110}}\b(?:{})\b").match(after))


@cache
def _warning(name: str, form: str) -> re.Pattern[str]:
    """The words of an entry of `[warnings]` in their surroundings."""
    return re.compile(form.format(phrases("warnings")[name]), re.IGNORECASE)
