"""What the keys and the words of the pages mean, on a page of its own that each page links to."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from .visit import Visit

KEYS: Final = (
    ("a", "approve; of a proposal by the evidence: keep the lesson"),
    ("r", "reject: the lesson is retired, and can be restored"),
    ("e", "edit the words"),
    ("n", "narrow the lesson to some tasks"),
    ("m", "merge it with the nearest lesson"),
    ("x", "choose it, to approve or reject several at once"),
    ("j", "the next one"),
    ("k", "the one before"),
    ("u", "undo, where a decision was just made"),
    ("/", "in lists: go to the search"),
    ("?", "this page"),
)
WORDS: Final = (
    ("experience", "a task with the lessons that its runs taught"),
    ("extractive", "a lesson that was taken from the steps of a run without a model"),
    ("ground truth", "an outcome that was told or checked, and not judged by a model"),
    ("guardrail", "a lesson that says what to avoid; a strategy says what to do"),
    ("probation", "a new lesson: it is shown, and the evidence about it is not yet enough"),
    ("quarantined", "a lesson that no agent is shown until somebody approves it"),
    ("recall", "one search of memory for a task, with all that was found, shown and withheld"),
    ("retired", "a lesson that is no longer shown; it can be restored"),
    ("scope", "the part of a bank that belongs together, as of one team; nothing crosses it"),
    ("settled", "a recall whose outcome is known"),
    ("withheld", "left out by chance, so that tasks with a lesson can be compared with tasks without it"),
)


async def page(visit: Visit) -> Response:
    """Both lists."""
    return visit.page("words.html", {"keys": KEYS, "words": WORDS})
