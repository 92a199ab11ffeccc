"""Asks a model whether a run did its task, so that strangers' text in the run cannot answer for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from anyio import to_thread
from pydantic import BaseModel

from lessonbank.errors import PromptError, UsageError
from lessonbank.guard import fence, nonce
from lessonbank.prompts import Prompt, load
from lessonbank.protocols import LanguageModel, Message
from lessonbank.text.rendering import View, render
from lessonbank.types import Trajectory, Verdict

from .ask import ask, is_blank, unknown
from .parsing import Reading, parse_verdict

BUDGET = 40_000
"""Tokens of a run the judge reads; most recorded runs of the public benchmarks fit whole."""

MIN_CONFIDENCE = 0.6
"""Below it a verdict is a guess; the prompts name the same figure."""


class JudgeReply(BaseModel):
    """The form a judge is asked to answer in. The reason comes first: it is thought before the outcome is chosen."""

    check: str
    reason: str
    outcome: Literal["success", "failure", "unknown"]
    confidence: float


@dataclass(frozen=True, slots=True)
class LLMJudge:
    """A judge that shows a model the whole run, the agent's instructions included, and asks for one of three outcomes.

    Every call draws a code (nonce) that fences the run and must come back with the verdict: a reply without it, and so
    any verdict written inside the run, is `unknown`. So is a verdict below `min_confidence` (its reason and confidence
    are kept), and any failure of the model or its reply (confidence 0). Only `UsageError` is raised.

    Attributes:
        prompt: a prompt with the slots `run` and `check`; `general/judge` if not given.
        budget: tokens of the run that are shown.
    """

    model: LanguageModel
    prompt: Prompt = field(default_factory=lambda: load("general/judge"), kw_only=True)
    budget: int = field(default=BUDGET, kw_only=True)
    min_confidence: float = field(default=MIN_CONFIDENCE, kw_only=True)
    view: View = field(default="full", kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if set(self.prompt.slots) != {"run", "check"}:
            raise PromptError(
                f"A judge's prompt has the slots run and check; {self.prompt.id} has {self.prompt.slots}."
            )
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"min_confidence goes from 0 to 1; got {self.min_confidence}")

    async def __call__(self, trajectory: Trajectory, /) -> Verdict:
        """The model's verdict on `trajectory`, or `unknown` and why."""
        if is_blank(trajectory):
            return unknown("The agent did nothing in this run: there is nothing to judge.")
        code = nonce()
        return await ask(
            self.model,
            await to_thread.run_sync(self._question, trajectory, code),
            prompt=self.prompt,
            read=lambda text: parse_verdict(text, nonce=code),
            decide=self._decide,
            temperature=self.temperature,
            schema=JudgeReply,
        )

    def _question(self, trajectory: Trajectory, code: str, /) -> Sequence[Message]:
        run = fence(render(trajectory, budget=self.budget, view=self.view), label="run", nonce=code)
        return self.prompt.render(run=run, check=code)

    def _decide(self, reading: Reading, /) -> Verdict:
        """What becomes of a reading: too unsure is `unknown`; a verdict without a figure counts as just sure enough."""
        confidence = self.min_confidence if reading.confidence is None else reading.confidence
        if reading.outcome == "unknown" or confidence >= self.min_confidence:
            return Verdict(outcome=reading.outcome, confidence=confidence, reason=reading.reason)
        reason = f"Leaning to {reading.outcome}, not sure enough: {reading.reason}"
        return Verdict(outcome="unknown", confidence=confidence, reason=reason)
