"""Tells a lesson from an order to the agent, and finds lessons that suggest skipping a safeguard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from ._phrases import any_of, phrases
from ._skeleton import views

_READ = 20_000
"""Characters of a lesson that are read."""
_FORCED = "forces its way"
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_CLAUSE = re.compile(r"[,:;—–]\s")
_OPENED = re.compile(r"(?:^|(?<=[\s(:]))[\"'“‘«](?=\S)")
_CLOSED = re.compile(r"(?<=\S)[\"'”’»](?=[\s.,;:!?)]|$)")

_BEFORE: Final = (
    r"\bwithout\s+$",
    r"^(?:{when}[^\n])*\b(?:{})\b(?:{when}[^.!?\n]){{0,110}}$",
    r"\b(?:{})\s+(?:(?:ever|just|simply|blindly|silently|to)\s+)?$",
)
"""Where a refusal stands before the act that it refuses; the last, right before it, also behind a condition."""
_RESTRICTED = re.compile(r"\bonly (?:after|when|if|with)\b|\b(?:do|does|must|should|can) ?n(?:o|['’])t\b")
_AFTER: Final = {
    "soon after a risk": r"(?:{when}{which}[^.!?\n:;,]){{0,90}}\b(?:{})",
    "in the sentence after a risk": r"(?:{when}{which}[^.!?\n]){{0,110}}\b(?:{})\b",
}


@cache
def risks() -> Mapping[str, re.Pattern[str]]:
    """How each way of skipping a safeguard is worded, by its name."""
    return {name: re.compile(source) for name, source in phrases("risks").items()}


def is_order(text: str, /, *, quoting: bool = True) -> bool:
    """Whether `text` gives the agent orders: new instructions, another role, secrecy, a call to make now.

    A text that warns of such an order or quotes it gives none. With `quoting=False` quotes and warnings count, too.
    """
    return any(
        not (quoting and _is_quoted(view, found.start()))
        for view in views(text[:_READ])
        for found in any_of("orders").finditer(view)
    )


def _is_quoted(text: str, start: int) -> bool:
    """Whether the words before `start` warn of what follows or open a quote around it."""
    sentence = _sentence_before(text, start, within=200)
    quoted = len(_OPENED.findall(sentence)) > len(_CLOSED.findall(sentence)) or sentence.count("`") % 2 == 1
    clause = _CLAUSE.split(sentence)[-1]
    told = _warning("tells of an order", r"\b(?:{})\b[^.\n]{{0,110}}$").search(clause)
    return bool(told) or _refuses("before an order", clause) or (quoted and text[start : start + 1] not in "{[")


def _sentence_before(text: str, end: int, /, *, within: int) -> str:
    return _SENTENCE.split(text[max(0, end - within) : end])[-1]


def risk_of(title: str, description: str, content: str, /) -> str | None:
    """The name of the risk in what a lesson recommends. `None` if it recommends nothing risky, or warns of it.

    Commands count only in the content: a title and a condition often just name what the lesson is about.
    """
    commands = views(content[:_READ])
    whole = views(f"{title}.\n{description}.\n{content[:_READ]}")
    for name, risk in risks().items():
        for view in commands if name == _FORCED else whole:
            if any(not _is_refused(view, *found.span()) for found in risk.finditer(view)):
                return name
    return None


def _is_refused(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a risk advises against the act, or tells what it led to.

    A refusal of something else is none: what stands in a condition or a reason does not refuse the act.
    """
    clause = _CLAUSE.split(_sentence_before(text, start, within=240))[-1]
    if _RESTRICTED.search(text, start, end) or _refuses("before a risk", clause):
        return True
    after = text[end : end + 120]
    return any(_warning(name, form).match(after) for name, form in _AFTER.items())


def _refuses(name: str, clause: str) -> bool:
    """Whether a word of an entry of `[warnings]` refuses the act that `clause` leads to."""
    return any(_warning(name, form).search(clause) for form in _BEFORE)


@cache
def _warning(name: str, form: str) -> re.Pattern[str]:
    """The words of an entry of `[warnings]` in their surroundings."""
    begins = {key: rf"(?!\b(?:{words})\b)" for key, words in phrases("conditions").items()}
    return re.compile(form.format(phrases("warnings")[name], **begins))
