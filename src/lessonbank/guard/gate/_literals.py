"""Finds in a lesson what belongs to one task and to no other: its names, its ids, its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ._empty import STOP, stem
from ._named_entities import find_entities, people, unusual

_READ = 40_000
_LONGEST_NAME = 200
# Words with digits that are names of things everybody has: utf-8, sha256, python3.11, 24h, v2, step 3, HTTP/2.
COMMON = re.compile(
    r"[a-z]{2,12}[-.]?\d{1,3}(?:\.\d{1,3}){0,2}|v\d+(?:\.\d+){0,3}|\d{1,3}(?:st|nd|rd|th|s|m|h|d|x|k|px|ms|kb|mb|gb"
    r"|am|pm|%|-\w+)"
    r"|\d{1,3}(?:[.,/:-]\d{1,2})?|(?:19|20)\d\ds|[A-Z]{2,5}[-/ ]?\d{1,2}|[1-5]\d\d|\d+(?:\.\d+){1,3}|0x[0-9a-fA-F]{1,2}"
    r"|[A-Z]\d{3,4}"
    r"|(?:ISO|RFC|UTF|SHA|UTC|HTTP|TLS|CVE|PEP|X)[- /]?\d[\d.-]*|[A-Za-z]+_?\d",
)
_PAIR = re.compile(r"[^\W\d_a-z][^\W\d_A-Z]+\s+[^\W\d_a-z][^\W\d_A-Z]+")
_ACCOUNT = re.compile(r"\b(?:user|account|host|branch|login|username|customer|member)s? ['\"`]([\w.-]{4,40})['\"`]")
# Numbered things of one world: shelf 3, cabinet 4, mug 1.
_PLACE = re.compile(
    r"\b(?!(?:step|level|rule|option|version|python|chapter|section|part|phase|exit|code|error|status|port|line"
    r"|column|row|page|type|class|grade|top|least|most"
    r"|than|about|after|within|every|first|last|next|in|of|to|at|by|for|the|and|or|is|are|on|up|only|over|under|http"
    r"|between|from|with|least|digits?|values?)\b)"
    r"[a-z]{3,14} \d{1,2}\b(?!\s?(?:%|days?|hours?|minutes?|times?|weeks?|months?|years?|percent|lessons?|or\b|to\b"
    r"|and\b|seconds?|steps?|lines?|bits?|GB|MB))"
)
_WORD = re.compile(r"\w+")
_FEW = 120
"""Words of a task below which a lesson has no business to share many of them."""
_COPIED, _RESTATED = 0.8, 0.5
_ANSWER = 400
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


# What a run did, told in order: no lesson says "I opened" and "then I ran".
_RETOLD = re.compile(
    r"\b(?:the agent|first i|then i|i (?:first|then|opened|searched|changed|ran|clicked|looked|found|used"
    r"|started|fixed|read)|the task was (?:a success|successful|completed|done)|was what was (?:asked|answered))\b",
    re.IGNORECASE,
)


def copies(content: str, /, *, task: str, answer: str = "") -> bool:
    """Whether nearly all words of `content` are those of one task and its answer: it is that task, and no lesson."""
    return _shared(content, task, answer)[0] >= _COPIED


def restates(content: str, /, *, task: str, answer: str = "") -> bool:
    """Whether `content` sounds as if it told what one run did. A lesson about a short task can sound so, too."""
    share, count = _shared(content, task, answer)
    return len(_RETOLD.findall(content)) > 1 or (count <= _FEW and share >= _RESTATED)


def _shared(content: str, task: str, answer: str) -> tuple[float, int]:
    """The share of the words of `content` that a task and its answer have, and how many words these have."""
    task_words = _words(f"{task[:_READ]}\n{answer if len(answer) <= _ANSWER else ''}")
    own = _words(content)
    return (len(own & task_words) / len(own) if len(own) >= 2 else 0.0), len(task_words)


def _words(text: str) -> set[str]:
    return {stem(w) for w in set(_WORD.findall(text.casefold())) if w not in STOP and (len(w) > 1 or w.isdigit())}


def literal_in(text: str, /, *, task: str, answer: str = "", unnamed: str | None = None) -> str | None:
    """The first value of `task` or `answer` that `text` repeats although no other task has it.

    `unnamed` is `text` without the names that are known to be nobody's: persons are looked for in it.
    """
    task = task[:_READ]
    if answer and (literal := _answer_in(text, answer.strip())):
        return literal
    known = set(_values(task)) | set(_values(answer[:_READ]))
    value = next((value for value in _values(text) if value in known), None) or _quoted_account(text, task)
    if len(places := {place[0] for place in _PLACE.finditer(text)}) >= 3:
        return ", ".join(sorted(places)[:3])
    return value or _first_in(text if unnamed is None else unnamed, _people(task))


def _values(text: str) -> Iterator[str]:
    """What looks like an id, an amount, a date, an address of this task."""
    for entity in find_entities(text, names=False):
        value = text[entity.start : entity.end].lstrip("#")
        if entity.kind not in ("number", "id") or (len(value) > 3 and not COMMON.fullmatch(value)):
            yield value


def _quoted_account(text: str, task: str) -> str | None:
    """The account, host or branch that a task names in quotes."""
    return _first_in(text, (named[1] for named in _ACCOUNT.finditer(task)))


def _first_in(text: str, names: Iterable[str]) -> str | None:
    """The first of `names` that stands in `text` between two edges of words. Each different one is looked for once.

    What is longer than any name is none: a row of capitalised words that fills the task would be compared whole at each
    place where it begins.
    """
    candidates = dict.fromkeys(n for n in names if len(n) <= _LONGEST_NAME)
    return next((n for n in candidates if n in text and re.search(rf"\b{re.escape(n)}\b", text)), None)


def _people(task: str) -> Iterator[str]:
    """The names of persons in `task`, whole and each word that tells."""
    for entity in people(task):
        name = task[entity.start : entity.end]
        yield name
        odd = unusual(name.lower().split())
        yield from (part for part in name.split() if len(part) > 3 and part.lower() in odd)


def _answer_in(text: str, answer: str) -> str | None:
    """The run's answer, where it is short enough to be one and special enough to be told from common words."""
    bare = _THOUSANDS.sub("", answer.strip(" .\"'`*\n"))
    if not 2 <= len(bare) <= 80 or "\n" in bare:
        return None
    digits = sum(map(str.isdigit, bare))
    telling = (
        (bare.isupper() and len(bare) > 3)
        or bool(re.search(r"[{}_]", bare))
        or digits > 1
        or bool(_PAIR.fullmatch(bare))
        or (not digits and len(bare) >= 8 and " " in bare)
    )
    if telling and re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", _THOUSANDS.sub("", text), re.IGNORECASE):
        return bare
    match = re.search(
        rf"\b(?:answer|result|solution|value)\b[^.\n]{{0,30}}\b(?:is|was|=|:)\s*[\"'`*]*{re.escape(bare)}(?!\w)",
        text,
        re.IGNORECASE,
    )
    return bare if match else None
