"""What the keys and the words of the pages mean, on a page of its own that each page links to."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from .meanings import MEANINGS
from .visit import Visit

KEYS: Final = (
    ("a", "approve; of a proposal by the evidence: keep the lesson"),
    ("r", "retire: the lesson is no longer shown, and can be restored"),
    ("e", "edit the words"),
    ("n", "narrow the lesson to some tasks"),
    ("m", "merge it with the nearest lesson"),
    ("x", "choose it, to approve or retire several at once"),
    ("s", "of a run whose outcome is open: mark it as a success"),
    ("f", "of such a run: mark it as a failure"),
    ("j", "the next one"),
    ("k", "the one before"),
    ("u", "undo, where a decision was just made"),
    ("/", "in lists: go to the search"),
    ("?", "this page"),
)


async def page(visit: Visit) -> Response:
    """Both lists."""
    return visit.page("words.html", {"keys": KEYS, "words": MEANINGS.items()})
