"""What the words of the pages mean: in one list, and beside the words where a page uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LEFT_OUT: Final = "a word that was left out, because it belongs to one case"
MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "active": "a lesson that a person approved or the evidence confirmed",
        "e-value": "how strongly outcomes speak against “no effect”: 1 says nothing, 20 is what a test at 5 % asks for",
        "experience": "a task with the lessons that its runs taught",
        "extractive": "a lesson that was taken from the steps of a run without a model",
        "floor": "how like a task of the past must be to a new one, at least, for its lessons to be shown",
        "gate": "what decides which new lessons are kept, and which of those a person must approve first",
        "ground truth": "an outcome that was told or checked, and not judged by a model",
        "guardrail": "a lesson that says what to avoid; a strategy says what to do",
        "lift": "how much likelier success is with memory, or with one lesson, in points of a hundred",
        "probation": "a new lesson: it is shown, and the evidence about it is not yet enough",
        "quarantined": "a lesson that no agent is shown until somebody approves it",
        "recall": "one search of memory for a task, with all that was found, shown and withheld",
        "retired": "a lesson that is no longer shown; it can be restored",
        "scope": "the part of a bank that belongs together, as of one team; nothing crosses it",
        "settings": "what a program tells its bank: model, limits, how much is withheld to measure",
        "settled": "a recall that was joined with its run, and whose outcome is known",
        "slot": "a place in a lesson for a value of the task at hand, as <order> or <order from the request>; "
        f"<…> is {LEFT_OUT}",
        "strategy": "a lesson that says what to do; a guardrail says what to avoid",
        "topic": "lessons of the same kind of task; they are measured together",
        "trial": "the same tasks done with memory and without, in pairs, until it is clear what it changes",
        "withheld": "left out by chance, so that tasks with a lesson can be compared with tasks without it",
    }
)
