"""The scripted agent's eyes: what a page of memory text says about the controls in front of it.

It knows no format. A block is what stands between blank lines or under a heading; a block counts by the words it
shares with the goal; a statement is for or against the controls it names, by its wording; "step 3" and "after X" say
where in the procedure it applies. Any memory layer that prints plain words can be read, and wrong words mislead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lessonbank.contracts.lesson_block import plain_text

RELEVANCE_POWER = 3
"""How much more a close block counts than a distant one. Tuned on worlds 0-19, then frozen."""
UNPLACED = 0.3
"""What a statement counts that does not say where in the procedure it applies."""

_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset({"the", "for", "and", "with", "from", "that", "this", "when", "record", "site", "task", "like"})
_HEADING = re.compile(r"\s*(?:#{1,6} |\[?\d{1,2}[.)\]] |[-*•] |title:|<\w)", re.IGNORECASE)
_QUOTED = re.compile(r"^(?:[\w-]{0,12}[|>] ?)+", re.MULTILINE)
"""Marks before each line, as mail and fences put them before what they quote."""
_STATEMENT = re.compile(r"(?<=[.!?;])[\"'`)\]]*\s+")
_AGAINST = re.compile(
    r"\b(?:do not|don't|never|avoid|no effect|nothing|useless|rejected|failed|fails|wrong|error|instead of|not)\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"\bstep (\d{1,2})\b", re.IGNORECASE)
_AFTER = re.compile(r"\bafter (?:pressing |choosing )?[`'\"]?([A-Z]\w+)[`'\"]?")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing the memory says, and how much it matters for this goal."""

    text: str
    weight: float
    step: int | None
    after: str | None

    def bearing(self, *, step: int, after: str | None) -> float:
        """How far it applies at `step`, when `after` was the last control that did something."""
        if self.step is not None:
            return float(self.step == step)
        if self.after is not None:
            return float(self.after == after)
        return UNPLACED


def read(memory: str, /, *, goal: str) -> tuple[Statement, ...]:
    """The statements of `memory`, signed (against: negative) and weighted by what their block shares with `goal`."""
    wanted = _words(goal)
    statements: list[Statement] = []
    for block in _blocks(memory):
        shared = len(_words(block) & wanted) / max(1, len(wanted))
        if shared:
            statements += [_statement(part, shared**RELEVANCE_POWER) for part in _STATEMENT.split(block)]
    return tuple(statements)


def opinion(statements: Sequence[Statement], control: str, /, *, step: int, after: str | None) -> float:
    """For (positive) or against (negative) pressing `control` now."""
    name = _whole_word(control)
    named = (s for s in statements if control in s.text and name.search(s.text))
    return sum(s.weight * s.bearing(step=step, after=after) for s in named)


def _statement(text: str, weight: float) -> Statement:
    rest, sign, step, after = _parsed(text)
    return Statement(rest, sign * weight, step, after)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[str, float, int | None, str | None]:
    sign = -1.0 if _AGAINST.search(text) else 1.0
    step, after = _STEP.search(text), _AFTER.search(text)
    return _AFTER.sub("", text), sign, int(step[1]) if step else None, after[1] if after else None


def _blocks(memory: str) -> list[str]:
    blocks: list[list[str]] = [[]]
    for line in _QUOTED.sub("", plain_text(memory)).split("\n"):
        if not line.strip() or _HEADING.match(line):
            blocks.append([])
        blocks[-1].append(line)
    return ["\n".join(lines) for lines in blocks if any(lines)]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _COMMON


@lru_cache(maxsize=256)
def _whole_word(control: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(control)}\b")
