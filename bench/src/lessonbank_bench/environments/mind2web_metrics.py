"""Mind2Web's figures: two lines of papers mean different things by the same names, so each figure names its line."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Variant: TypeAlias = Literal["mind2web", "awm"]
VARIANTS: Final = ("awm", "mind2web")
"""`mind2web`: the benchmark's own evaluation (Deng et al. 2023). `awm`: that of Synapse and Agent Workflow Memory
(Wang et al. 2024), which ReasoningBank says it follows."""
_TAIL: Final = 4000
_ACTION = re.compile(r"\b(CLICK|TYPE|SELECT) ?\[([^\[\]\n]{1,80})\](?: ?\[([^\n]*)\])?")


class Said(NamedTuple):
    """What a reply says to do; all empty where it says nothing that can be read."""

    operation: str = ""
    element: str = ""
    value: str | None = None

    @property
    def text(self) -> str:
        """As it is to be written: `TYPE [12] [Paris]`."""
        value = "" if self.value is None else f" [{self.value}]"
        return f"{self.operation} [{self.element}]{value}" if self.operation else ""


@dataclass(frozen=True, slots=True)
class Gold:
    """What the person did whose run was recorded."""

    operation: str
    value: str
    first: str
    """The first of the elements that are right; empty where the page as it is kept has none."""
    right: Collection[str]
    """All of them that are among the candidates; none: the step cannot be got right, and counts as wrong."""

    @property
    def said(self) -> Said:
        """The same as somebody would say it."""
        return Said(self.operation, self.first, None if self.operation == "CLICK" else self.value)


class StepScore(NamedTuple):
    """How one step went."""

    element: bool
    action_f1: float
    right: bool


MISSED: Final = StepScore(element=False, action_f1=0.0, right=False)
"""A step whose right element is not among the candidates: wrong in every figure, in both lines."""


def read_action(reply: str, /) -> Said:
    """The last action a reply names, since reasoning comes before the answer."""
    named = list(_ACTION.finditer(reply[-_TAIL:]))
    if not named:
        return Said()
    operation, element, value = named[-1].groups()
    return Said(operation, element.strip(), value)


def action_f1(said: str, wanted: str, /) -> float:
    """F1 of two *sets* of words: order and repetition do not count, case does; words of punctuation alone are left out.

    1 where both are empty, 0 where one is. Twice the shared words over the sum of both is the same as the harmonic mean
    of precision and recall.
    """
    first, second = _words(said), _words(wanted)
    if not first or not second:
        return float(first == second)
    return 2 * len(first & second) / (len(first) + len(second))


def score(said: Said, gold: Gold, variant: Variant, /) -> StepScore:
    """How one answer went.

    `mind2web`: any of the right elements will do, and a step is right with the element and an action F1 of 1.
    `awm`: only the first of the right elements will do, and a step is right where the whole action is the same string.
    """
    if not gold.right:
        return MISSED
    if variant == "awm":
        found = action_f1(_plain(said), _plain(gold.said))
        return StepScore(said.element == gold.first, found, said.text == gold.said.text)
    element = said.element in gold.right
    found = action_f1(f"{said.operation} {said.value or ''}", _plain(gold.said))
    return StepScore(element, found, element and found == 1.0)


def task_scores(steps: Sequence[StepScore], missed: int, /) -> dict[str, float]:
    """What a row keeps of a task: its three rates, and the sums that micro averages are made of.

    Args:
        steps: one for each step, those that could not be asked included.
        missed: how many of them could not be asked.
    """
    sums = {
        "element_right": float(sum(step.element for step in steps)),
        "action_f1_sum": float(sum(step.action_f1 for step in steps)),
        "steps_right": float(sum(step.right for step in steps)),
    }
    n = max(1, len(steps))
    rates = dict(zip(_RATES, (value / n for value in sums.values()), strict=True))
    return {**rates, **sums, "steps": float(len(steps)), "steps_not_asked": float(missed)}


_RATES: Final = ("element_accuracy", "action_f1", "step_success")
_SUMS: Final = ("element_right", "action_f1_sum", "steps_right")


class Rates(NamedTuple):
    """Shares between 0 and 1."""

    element_accuracy: float
    action_f1: float
    step_success: float


@dataclass(frozen=True, slots=True)
class Averages:
    """The figures of several tasks."""

    tasks: int
    steps: int
    not_asked: int
    """Steps whose right element is not among the candidates: what no agent can get right."""
    success: float
    """The share of tasks with every step right: the same, whichever way steps are averaged."""
    macro: Rates
    """The mean over tasks of each task's mean over its steps: what papers report."""
    micro: Rates
    """The mean over all steps: long tasks count for more."""


def averages(scores: Iterable[Mapping[str, float]], /) -> Averages:
    """Macro and micro averages of the `scores` of rows.

    Raises:
        ValueError: there is none, or one is not of this environment.
    """
    rows = [row for row in scores if row]
    if not rows or any(key not in row for row in rows for key in (*_RATES, *_SUMS, "steps", "steps_not_asked")):
        raise ValueError("averages are of the scores of mind2web's rows; there is none, or one is of something else")
    steps = sum(row["steps"] for row in rows)
    return Averages(
        tasks=len(rows),
        steps=int(steps),
        not_asked=int(sum(row["steps_not_asked"] for row in rows)),
        success=sum(row["steps_right"] == row["steps"] for row in rows) / len(rows),
        macro=Rates(*(sum(row[key] for row in rows) / len(rows) for key in _RATES)),
        micro=Rates(*(sum(row[key] for row in rows) / max(1.0, steps) for key in _SUMS)),
    )


def _plain(said: Said) -> str:
    """The action without its element; a click has no value."""
    return said.operation if said.operation == "CLICK" else f"{said.operation} {said.value or ''}"


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if word not in string.punctuation)
