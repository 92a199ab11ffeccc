"""Says in a reader's words what to do: nobody calls Python from a terminal or a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final[Mapping[str, str]] = {}
"""A program may call what a sentence names."""
_PROGRAM: Final[Mapping[str, str]] = {
    "once learn(…) has brought lessons, call retrieve(…) before each task": (
        "once runs have taught lessons, let your program ask before each task"
    ),
    "tell how tasks ended with learn(…)": "let your program say how tasks ended",
    "hand each recall to learn with its run, learn(run, recall=…, outcome=…)": "let your program say how tasks ended",
    "Hand each recall to learn with its run, or use `with bank.attempt(task)`": (
        "Let your program hand in each run, with how it ended"
    ),
    ": `with bank.attempt(task)` does": "",
    "finish each attempt with outcome='success', outcome='failure' or a reward": (
        "let your program end each with success, failure or a reward"
    ),
}
"""What a program must do, for somebody who does not write it just now."""
SHELL: Final[Mapping[str, str]] = {
    **_PROGRAM,
    "look at bank.lessons.list()": "look at `lessonbank lessons list`",
    "bank.runs.list(status='unfinished')": "`lessonbank runs list --status unfinished`",
    "bank.lessons.proposals()": "`lessonbank lessons list --proposals`",
    "(bank.lessons.proposals)": "(`lessonbank lessons list --proposals`)",
    "bank.runs.unlabelled(), then bank.runs.correct(…)": "`lessonbank runs audit` lists, `lessonbank tell` answers",
    "bank.runs.audit(30) draws": "`lessonbank runs audit` draws",
    "bank.lessons.retire(id, reason=…), or Learning(keep_lessons=…) does it": (
        "`lessonbank lessons retire`, or the setting `keep_lessons`, does it"
    ),
    "bank.lessons.retire(id, reason=…)": "`lessonbank lessons retire`",
    "bank.trial(…)": "`lessonbank trial`",
    "Evidence(observe=True) learns": "with Evidence(observe=True) your program learns",
}
"""What a sentence names of the library, to what a terminal offers for it."""
PAGES: Final[Mapping[str, str]] = {
    **SHELL,
    "look at bank.lessons.list()": "look at Lessons",
    "bank.runs.list(status='unfinished') has": "the page Runs has",
    ": bank.lessons.proposals()": ", in the Inbox",
    "(bank.lessons.proposals)": "in the Inbox",
    ": bank.lessons.retire(id, reason=…)": " on its page",
    "nothing. bank.lessons.retire(id, reason=…), or Learning(keep_lessons=…) does it": (
        "nothing. Retire them on their pages, or the setting `keep_lessons` does it"
    ),
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


def translate_end(door: Mapping[str, str], note: str, /) -> str:
    """`note` with such words at its end. Before its end a note may quote a stranger, so nothing else is changed."""
    for call in sorted(door, key=len, reverse=True):
        for stop in ("", "."):
            if note.endswith(call + stop):
                return note.removesuffix(call + stop) + door[call] + stop
    return note
