"""What the words of the pages mean: in one list, and beside the words where a page uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LEFT_OUT: Final = "a word that was left out, because it belongs to one case"
MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "active": "a lesson that a person approved or the evidence confirmed",
        "experience": "a task with the lessons that its runs taught",
        "extractive": "a lesson that was taken from the steps of a run without a model",
        "ground truth": "an outcome that was told or checked, and not judged by a model",
        "guardrail": "a lesson that says what to avoid; a strategy says what to do",
        "probation": "a new lesson: it is shown, and the evidence about it is not yet enough",
        "quarantined": "a lesson that no agent is shown until somebody approves it",
        "recall": "one search of memory for a task, with all that was found, shown and withheld",
        "retired": "a lesson that is no longer shown; it can be restored",
        "scope": "the part of a bank that belongs together, as of one team; nothing crosses it",
        "slot": "a place in a lesson for a value of the task at hand, as <order> or <order from the request>; "
        f"<…> is {LEFT_OUT}",
        "settled": "a recall whose outcome is known",
        "strategy": "a lesson that says what to do; a guardrail says what to avoid",
        "withheld": "left out by chance, so that tasks with a lesson can be compared with tasks without it",
    }
)
