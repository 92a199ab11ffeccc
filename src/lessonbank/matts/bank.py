"""What scaling asks of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from lessonbank.contracts.records import Learned, Outcome, Recall, Trajectory, Verdict
from lessonbank.guard.intake import IntakeFilter

from .scaler import Scaler


class Memory(Protocol):
    """The methods of a bank that scaling calls."""

    scope: str

    async def retrieve(self, *args: Any, **options: Any) -> Recall: ...

    async def learn(
        self,
        source: object,
        /,
        *,
        recall: Recall | None = None,
        outcome: Sequence[Outcome] | None = None,
        reward: Sequence[float] | None = None,
    ) -> Learned: ...

    async def judge(
        self, source: object, /, *, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict: ...

    async def _hand_in(
        self,
        runs: Sequence[Trajectory],
        /,
        *,
        recall: Recall | None,
        outcome: Sequence[Outcome],
        reward: Sequence[float],
    ) -> None:
        """Put runs without secrets on disk with what is known of them, to be learned later."""


class Parts(Protocol):
    """The parts of a bank that scaling uses."""

    @property
    def intake(self) -> IntakeFilter: ...
    @property
    def scaler(self) -> Scaler: ...
    def labelled(self, labels: bool, /) -> Self | None: ...


class Options(Protocol):
    """What a bank is set to."""

    @property
    def off(self) -> bool: ...


class Bank(Memory, Protocol):
    """A bank, as scaling sees it."""

    @property
    def parts(self) -> Parts: ...
    @property
    def options(self) -> Options: ...
