"""A judge that is not sure says nothing: a wrong verdict teaches a wrong lesson, a missing one teaches none."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank._base.checks import safe_getattr
from lessonbank.contracts.ports import Judge
from lessonbank.contracts.records import Trajectory, Verdict


@dataclass(frozen=True, slots=True)
class Abstaining:
    """Around a judge: a verdict with a confidence below a threshold counts as unknown, and its run stays pending.

    Choose the threshold where the truth is known of some runs: that from which on a judge agrees with it nine times in
    ten (selective prediction, El-Yaniv and Wiener 2010).
    """

    inner: Judge
    below: float

    @property
    def asks_model(self) -> bool:
        """Whether the judge inside does."""
        return safe_getattr(self.inner, "asks_model") is not False

    async def __call__(self, trajectory: Trajectory, /) -> Verdict:
        """The inner verdict, or `unknown` with what the judge would have said as the reason."""
        verdict = await self.inner(trajectory)
        if verdict.outcome == "unknown" or verdict.confidence >= self.below:
            return verdict
        unsure = f"not sure enough ({verdict.confidence:.2f} below {self.below:g}) to say {verdict.outcome}"
        reason = f"{unsure}: {verdict.reason}" if verdict.reason else unsure
        return verdict.model_copy(update={"outcome": "unknown", "reason": reason})
