"""Recognises lessons that code drew from the form of runs: the same moves, for a task that was worded otherwise."""

from __future__ import annotations

from typing import Final

from lessonbank.contracts.records import Lesson
from lessonbank.guard.gate import EXTRACTIVE
from lessonbank.guard.wording import fact_of, moves_of

from ._normal_form import read_text

_ASKING: Final = frozenset(["ask", "want", "need", "request", "lik", "help", "kindly", "me", "us", "task"])
"""Normal forms of words that ask for something and do not say what."""


def same_moves(new: Lesson, known: Lesson, /) -> bool:
    """Whether both tell the same moves, and the task of `known` says nothing that the task of `new` does not say.

    Only for lessons of the extractive distiller, whose content is made of moves. The title quotes the task, or names
    the deed; with one deed it does not matter how somebody asked for it. What was seen on the way may differ where the
    moves worked. Not symmetric: a lesson for a task with further words, which may be another target, never stands for
    one that lacks them.
    """
    if fact_of(new) == fact_of(known):
        return True
    if new.kind != known.kind or {new.provenance.method, known.provenance.method} != {EXTRACTIVE}:
        return False
    if moves_of(new) != moves_of(known):
        return False
    ours, theirs = (read_text(one.description) for one in (new, known))
    if ours.turning != theirs.turning or ours.facts != theirs.facts:
        return False
    asked, wanted = (one.telling - _ASKING for one in (ours, theirs))
    return bool(wanted) and wanted <= asked
