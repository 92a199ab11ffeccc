"""What a judge said of a run, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.records import Outcome, Record, Usage


class Opinion(Record):
    """A verdict beside the truth."""

    run: str
    source: str
    domain: str
    success: bool
    """The truth."""
    outcome: Outcome
    confidence: float
    reason: str = ""
    prompt: str = ""
    usage: Usage = Usage()

    @property
    def decided(self) -> bool:
        """Whether the judge said one or the other."""
        return self.outcome != "unknown"

    @property
    def right(self) -> bool:
        """Whether it said the true one."""
        return self.decided and (self.outcome == "success") == self.success


def shared(one: Sequence[Opinion], other: Sequence[Opinion], /) -> list[tuple[Opinion, Opinion]]:
    """The opinions of both on the same runs, in pairs."""
    by_run = {opinion.run: opinion for opinion in other}
    return [(opinion, by_run[opinion.run]) for opinion in one if opinion.run in by_run]
