"""Matrices that are kept between queries, one for each scope and space, and who may use them when."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from lessonbank.stores._matrix import Matrix

_BUDGET: Final = 1 << 30
"""Bytes of matrices kept between queries; the one in use may be larger."""


@dataclass(slots=True)
class Slot:
    """The matrix of one scope and space, and the state of the file it shows."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    matrix: Matrix = field(default_factory=lambda: Matrix(1))
    epoch: int = -1
    sequence: int = 0
    """Of the last journal entry it has seen."""
    revision: int = 0
    """Of the last vector it has seen."""
    block: int = 0
    """The last block it has seen."""
    checked: int = -1
    """Nothing but `lacking` that the journal wrote up to this entry lacks a vector; -1 where that is not known."""
    lacking: Sequence[int] = ()
    """Keys that did lack one then."""
    of_lessons: bool = False
    """Whether `checked` and `lacking` speak of lessons, and not of tasks."""
    bytes: int = 0
    """Of the matrix, when it was last looked at."""

    def start_afresh(self) -> None:
        """Forget everything: the space is empty, or its past has changed."""
        self.matrix, self.epoch, self.checked, self.lacking = Matrix(1), -1, -1, ()

    def look_for(self, *, lessons: bool) -> None:
        """Forget what is known to lack a vector where it is of the other kind."""
        if self.of_lessons != lessons:
            self.of_lessons, self.checked, self.lacking = lessons, -1, ()


class Matrices:
    """Matrices by scope and space, brought up to the present by what the file says has changed.

    A forked process goes on with those of its parent: the memory stays shared until one of them writes to it.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._turns: dict[int, threading.Lock] = {}
        """By process: a child must not wait for a lock that a thread it does not have may have held."""
        self._slots: OrderedDict[tuple[str, str], Slot] = OrderedDict()
        self._bytes = 0

    @contextmanager
    def slot(self, scope: str, space: str, /) -> Generator[Slot]:
        """The slot, for one thread at a time. The snapshot must be taken inside, so that slots never go back."""
        turn = self._turns.setdefault(os.getpid(), threading.Lock())
        with turn:
            if self._process != os.getpid():
                self._renew_locks()
            slot = self._slots.get((scope, space))
            if slot is None:
                slot = self._slots[scope, space] = Slot()
            self._slots.move_to_end((scope, space))
        with slot.turn:
            yield slot
        with turn:
            self._trim(scope, space)

    def _renew_locks(self) -> None:
        # A thread that the child does not have may have held one, and may have left its slot half changed.
        sound = {key: slot for key, slot in self._slots.items() if not slot.turn.locked()}
        for slot in sound.values():
            slot.turn = threading.Lock()
        self._slots = OrderedDict(sound)
        self._bytes = sum(slot.bytes for slot in sound.values())
        self._process = os.getpid()

    def _trim(self, scope: str, space: str) -> None:
        """Weigh the slot that was used, and let the oldest go if all of them weigh too much."""
        if (slot := self._slots.get((scope, space))) is not None:
            before, slot.bytes = slot.bytes, slot.matrix.bytes
            self._bytes += slot.bytes - before
        while self._bytes > _BUDGET and len(self._slots) > 1:
            _, oldest = self._slots.popitem(last=False)
            self._bytes -= oldest.bytes
