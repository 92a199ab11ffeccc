"""Holds a model's lessons to the run they claim to come from, and to more than the agent's instructions say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lessonbank.guard import one_line

from .parsing import Draft

_PART = re.compile(
    r"\brun\s*#?\s*(?P<run>\d{1,6})|\bsteps?\s*#?\s*(?P<steps>\d{1,6}(?:\s*(?:,|;|&|/|and|to|-|–)\s*\d{1,6})*)"
    r"|^\W*(?P<bare>\d{1,6})\W*$",
    re.I,
)
_SHOWN = re.compile(r"^\[step (\d+)(?:\]|, in brief)", re.M)


def shown_steps(rendered: str, /) -> frozenset[int]:
    """The numbers of the steps that a rendered run shows; its own lines cannot be forged from inside the run."""
    return frozenset(map(int, _SHOWN.findall(rendered)))


def grounded(
    drafts: Sequence[Draft], /, *, shown: Sequence[frozenset[int]], instructions: str
) -> tuple[list[Draft], list[str]]:
    """The drafts that a shown step supports and the agent's instructions do not say already, and why others went.

    `shown` holds the step numbers of each run, in the order the model saw them. Evidence is rewritten as `step 7`, or
    `run 2, step 3` where there are several runs; references to steps that were not shown are taken out.
    """
    known = Instructions(instructions)
    valid_drafts: list[Draft] = []
    notes: list[str] = []
    for draft in drafts:
        named, missing = bind(draft.evidence, shown)
        title = one_line(draft.title, limit=60)
        if missing:
            notes.append(f"{title!r} cites what the run does not show: {', '.join(missing[:4])}")
        if not named:
            notes.append(f"{title!r} was dropped: no step of the run is evidence for it")
        elif known.say(draft.content):
            notes.append(f"{title!r} was dropped: it repeats the agent's instructions")
        else:
            valid_drafts.append(replace(draft, evidence=named))
    return valid_drafts, notes


def bind(evidence: Sequence[str], shown: Sequence[frozenset[int]], /) -> tuple[tuple[str, ...], list[str]]:
    """The references that exist, in one form and without repeats, and those that do not."""
    named: dict[str, None] = {}
    missing: list[str] = []
    for text in evidence:
        for run, step in _references(text, runs=len(shown)):
            name = f"step {step}" if len(shown) == 1 else f"run {run}, step {step}"
            if 1 <= run <= len(shown) and step in shown[run - 1]:
                named[name] = None
            else:
                missing.append(name)
    return tuple(named), missing


def _references(text: str, *, runs: int) -> list[tuple[int, int]]:
    """(run, step) pairs; run 0 where none of several is named."""
    parts = list(_PART.finditer(text))
    run_numbers = [int(part["run"]) for part in parts if part["run"]]
    run = 1 if runs == 1 else run_numbers[0] if run_numbers else 0
    references: list[tuple[int, int]] = []
    for part in parts:
        if part["run"]:
            run = 1 if runs == 1 else int(part["run"])
        else:
            references += [(run, int(number)) for number in re.findall(r"\d+", part["steps"] or part["bare"])]
    return references


_MOST = 400_000
"""Characters of the instructions that are compared."""
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?;:。！？])\s+|\n+")
_SHINGLE = 5
_COPIED = 0.5
"""The share of a lesson's runs of five words from which it is a copy."""
_TOLD = 0.8
"""The share of its telling words that must stand close together in the instructions, sentence by sentence."""
_PASSAGE = 3
"""Sentences that stand close together."""
_STEM = 6
_FEW = 3
_COMMON = frozenset(
    """the and for are was were this that with from have has had not but you your they them their its then than when
    where which who whom will would can could should must may might only also into onto over under before after any
    all each every some such same other more most very just been being does did done own here there what how why out
    off per via about""".split()  # noqa: SIM905 - a list of so many short words is read more easily as text
)


class Instructions:
    """What an agent was told before any task, to hold lessons against. Linear in its size."""

    def __init__(self, text: str, /) -> None:
        text = text[:_MOST]
        self._shingles = _shingles(text)
        sentences = [words for part in _SENTENCE.split(text) if (words := _telling(part))]
        self._passages = [frozenset[str]().union(*sentences[i : i + _PASSAGE]) for i in range(len(sentences))]

    def say(self, content: str, /) -> bool:
        """Whether they say it already: in the same words, or nearly all of each sentence in one passage."""
        own = _shingles(content)
        if own and len(own & self._shingles) >= _COPIED * len(own):
            return True
        sentences = [words for part in _SENTENCE.split(content) if len(words := _telling(part)) >= _FEW]
        overlap = sum(max((len(words & passage) for passage in self._passages), default=0) for words in sentences)
        return bool(sentences) and overlap >= _TOLD * sum(map(len, sentences))


def _telling(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _words(text) if len(word) > 2 and word not in _COMMON)


def _words(text: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(text.lower()))


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = list(_words(text))
    return frozenset(zip(*(words[i:] for i in range(_SHINGLE)), strict=False))
