"""What learning costs, and how much a bank holds: the counts that people ask for."""

from __future__ import annotations

from typing import Final

from lessonbank.errors import OutputError

from .record import Record


class Usage(Record):
    """What calls to a model cost: requests, tokens, and US dollars where the price is known."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """Those of `input_tokens` that the provider read from its cache, which most charge less for."""
    output_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage, /) -> Usage:
        """Sum of both; the cost is unknown (`None`) only while no part of it is known."""
        costs = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=sum(costs) if costs else None,
        )


NO_USAGE: Final = Usage()
"""What takes no call to a model."""


def usage_of(error: BaseException, /) -> Usage | None:
    """What the answer cost that `error` complains about; `None` where that is not known."""
    spent = error.usage if isinstance(error, OutputError) else None
    return spent if isinstance(spent, Usage) else None


class Counts(Record):
    """How much a scope (or a whole bank) holds."""

    experiences: int = 0
    lessons: int = 0
    retired: int = 0
    quarantined: int = 0
    """Of those that are not retired."""
    trajectories: int = 0
    pending: int = 0
    recalls: int = 0
    recalls_with_a_run: int = 0
    """Those with a run that was learned, also where it is unknown how it ended."""
    changes: int = 0
    """The number of the last change in the history."""
