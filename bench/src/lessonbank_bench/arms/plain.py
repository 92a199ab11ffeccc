"""The two ends of the scale: nothing said at all, and the truth."""

from __future__ import annotations

from collections.abc import Callable

from lessonbank.demo import NoMemory as NoMemory
from lessonbank.errors import UsageError

from ._interface import Setting


class OracleMemory(NoMemory):
    """Says what a perfect memory would say.

    Raises:
        UsageError: the environment does not know the truth about its tasks.
    """

    def __init__(self, setting: Setting, /) -> None:
        if setting.truth is None:
            raise UsageError("there is no oracle here: this environment does not know what a perfect memory would say")
        self._truth: Callable[[str], str] = setting.truth

    def recall(self, goal: str, /) -> str:
        return self._truth(goal)
