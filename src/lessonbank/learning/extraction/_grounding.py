"""Holds a model's lessons to the run they claim to come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lessonbank.guard import one_line

from ._restating import Instructions
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
    kept: list[Draft] = []
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
            kept.append(replace(draft, evidence=named))
    return kept, notes


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
    told = [int(part["run"]) for part in parts if part["run"]]
    run = 1 if runs == 1 else told[0] if told else 0
    found: list[tuple[int, int]] = []
    for part in parts:
        if part["run"]:
            run = 1 if runs == 1 else int(part["run"])
        else:
            found += [(run, int(number)) for number in re.findall(r"\d+", part["steps"] or part["bare"])]
    return found
