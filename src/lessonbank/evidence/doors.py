"""Says in a reader's words what to do: nobody calls Python from a terminal or a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final[Mapping[str, str]] = {}
"""A program may call what a sentence names."""
SHELL: Final[Mapping[str, str]] = {
    "bank.lessons.list()": "`lessonbank lessons list`",
    "bank.runs.list(status='unfinished')": "`lessonbank runs list --status unfinished`",
    "bank.lessons.proposals()": "`lessonbank lessons list --proposals`",
    "bank.tell(…)": "`lessonbank tell`",
    "bank.lessons.retire(id, reason=…)": "`lessonbank lessons retire`",
    "bank.trial(…)": "`lessonbank trial`",
}
"""What a sentence names of the library, to what a terminal offers for it."""
PAGES: Final[Mapping[str, str]] = {
    **SHELL,
    "bank.lessons.list()": "Lessons",
    "bank.runs.list(status='unfinished') has": "the page Runs has",
    ": bank.lessons.proposals()": ", in the Inbox",
    ": bank.lessons.retire(id, reason=…)": " on their pages",
    "bank.tell(…)": "on their pages",
    "bank.trial(…)": "a trial",
}
"""The same for the pages that a person reads in the browser."""


def translate_for(door: Mapping[str, str], advice: str, /) -> str:
    """`advice` with the words of a door in the place of calls of the library, the longest first.

    Advice has no words of strangers: a lesson's title may name a call, too, and stays as it is.
    """
    for call in sorted(door, key=len, reverse=True):
        advice = advice.replace(call, door[call])
    return advice
