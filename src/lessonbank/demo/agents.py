"""Players of the closed world, one of them scripted, with a fixed and known skill."""

from __future__ import annotations

import hashlib
from typing import Protocol

from lessonbank.contracts.records import Usage

from .desk import SUBMIT, View
from .reading import Statement, opinion, read

READER_VERSION = "2"
"""Names the scripted agent's skill. Numbers of two versions are never compared."""


class Agent(Protocol):
    """Acts on what it is shown and nothing else."""

    @property
    def instructions(self) -> str:
        """The agent's instructions, once and for all; part of the record of its runs."""
        ...

    @property
    def thought(self) -> str:
        """The agent's words about its last press, if it says anything."""
        ...

    @property
    def usage(self) -> Usage:
        """What calls to a model cost since the task began."""
        ...

    def start(self, memory: str, /) -> None:
        """Begin a task with this memory text in mind; `""` is no memory."""
        ...

    def act(self, view: View, /) -> str:
        """The label of the control to press."""
        ...


class ScriptedAgent:
    """Follows what the memory says, else tries controls in an order drawn from `seed` and the goal.

    Its skill: it opens the record the goal names, tells a message that reports progress from one that does not, never
    presses the same thing twice in one place, takes a newly offered choice, and submits once it has chosen.
    """

    instructions = ""
    thought = ""
    usage = Usage()

    def __init__(self, seed: int, /) -> None:
        self._seed = seed
        self.start("")

    def start(self, memory: str, /) -> None:
        self._memory = memory
        self._statements: tuple[Statement, ...] | None = None
        self._first: frozenset[str] = frozenset()
        self._worked: list[str] = []
        self._tried: list[str] = []
        self._pressed: str | None = None
        self._chose = False

    def act(self, view: View, /) -> str:
        self._take_in(view)
        self._pressed = self._choose(view)
        return self._pressed

    def _take_in(self, view: View) -> None:
        if self._statements is None:
            self._statements = read(self._memory, goal=view.goal)
            self._first = frozenset(view.controls)
        if self._pressed is None:
            return
        if "nothing" in view.message.lower():
            self._tried.append(self._pressed)
            return
        self._chose = self._pressed not in self._first
        self._worked.append(self._pressed)
        self._tried = []

    def _choose(self, view: View) -> str:
        if not self._worked:
            return view.controls[0]
        if self._chose:
            return SUBMIT
        offered = [c for c in view.controls if c not in self._first] or view.controls[1:]
        open_ = [c for c in offered if c != SUBMIT and c not in self._worked and c not in self._tried]
        return max(open_, key=lambda c: self._preference(view.goal, c)) if open_ else SUBMIT

    def _preference(self, goal: str, control: str) -> tuple[float, str]:
        step = len(self._worked) + 1
        score = opinion(self._statements or (), control, step=step, after=self._worked[-1])
        return round(score, 9), hashlib.sha256(f"{self._seed}|{goal}|{control}|{step}".encode()).hexdigest()
