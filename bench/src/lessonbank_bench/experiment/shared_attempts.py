"""One attempt for all arms that are shown the same for a task: what they then differ in is memory, and nothing else.

Before anything is learned every memory is silent, so that the first attempts of a stream are the same question to the
agent. Asking it once and giving the answer to each arm leaves every arm's own distribution as it is, takes the agent's
chance out of the difference, and is paid for once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lessonbank_bench.environments import Finished

from .records import AttemptRow
from .schedule import Slot


@dataclass(frozen=True, slots=True)
class Made:
    """An attempt that was made for another arm."""

    arm: str
    finished: Finished
    seconds: float
    memory: str
    memory_digest: str

    @property
    def shown(self) -> dict[str, Any]:
        """What the row of an arm that shares it says of the attempt, with the very text that the agent was given."""
        return {
            "shared": self.arm,
            "seconds": self.seconds,
            "memory": self.memory,
            "memory_digest": self.memory_digest,
        }


class Sharing:
    """The attempts of the task that is being done.

    Args:
        on: whether anything is shared at all.
        judged: whether no memory is told how an attempt went.
    """

    def __init__(self, *, on: bool, judged: bool = False) -> None:
        self._on, self._judged = on, judged
        self._task: tuple[int, int] | None = None
        self._made: dict[str, Made] = {}

    def find(self, slot: Slot, same_digest: str, /) -> Made | None:
        """An attempt of this task with that text; none for a repetition, whose chance is its own."""
        if slot.arm.again or self._task != (slot.seed, slot.place):
            return None
        return self._made.get(same_digest)

    def keep(self, row: AttemptRow, /, *, again: bool) -> None:
        """One more attempt that later arms may share."""
        if self._task != (row.seed, row.place):
            self._task, self._made = (row.seed, row.place), {}
        if self._on and row.run is not None and not (row.shared or again):
            # Where nothing was told, nothing was known: what was graded since must not reach a memory.
            success = row.success if self._judged or row.told is not None else None
            finished = Finished(row.run, success, row.scores)
            self._made[row.same_digest] = Made(row.arm, finished, row.seconds, row.memory, row.memory_digest)
