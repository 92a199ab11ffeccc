"""Asks a model whether a run did its task, so that strangers' text in the run cannot answer for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from anyio import to_thread
from pydantic import BaseModel

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Trajectory, Verdict
from lessonbank.errors import PromptError, UsageError
from lessonbank.guard import fence, nonce
from lessonbank.learning.agent_prefix import agent_prefix
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.rendering import View, estimate_tokens, incomplete_steps, render

from .ask import Answer, ask, is_blank, unknown
from .parsing import Reading, parse_verdict

BUDGET = 6_000
"""Tokens of a run that the judge reads first, the agent's instructions among them."""
SECOND_LOOK = 8_000
"""Tokens of the steps that it asks to see whole, where something that decides was cut."""
MIN_CONFIDENCE = 0.6
"""Below it a verdict is a guess; the prompts name the same figure."""


class JudgeReply(BaseModel):
    """The form a judge is asked to answer in. The reason comes first: it is thought before the outcome is chosen."""

    check: str
    reason: str
    outcome: Literal["success", "failure", "unknown"]
    confidence: float
    steps: list[int]


@dataclass(frozen=True, slots=True)
class _Look:
    """What is sent, and the run as it is shown there."""

    messages: tuple[Message, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class LLMJudge:
    """A judge that shows a model the run, the agent's instructions included, and asks for one of three outcomes.

    The first look is short. Where the model names steps that were cut, it is shown these in a second request, and what
    it says then is the verdict; the usage is that of both.

    Every call draws a code (nonce) that fences the run and must come back with the verdict: a reply without it, and so
    any verdict written inside the run, is `unknown`. So is a verdict below `min_confidence` (its reason and confidence
    are kept), and any failure of the model or its reply (confidence 0). Only `UsageError` is raised.

    Attributes:
        prompt: a prompt with the slots `run` and `check`; `general/judge` if not given. With a slot `agent` the agent's
            instructions stand there and not in the run.
        budget: tokens of the run that are shown first.
        second_look: tokens of the second look; 0 for none.
        again: the prompt of the second look, with the slots `run` and `check`.
    """

    model: LanguageModel
    prompt: Prompt = field(default_factory=lambda: load("general/judge"), kw_only=True)
    budget: int = field(default=BUDGET, kw_only=True)
    second_look: int = field(default=SECOND_LOOK, kw_only=True)
    again: Prompt = field(default_factory=lambda: load("general/judge_again"), kw_only=True)
    min_confidence: float = field(default=MIN_CONFIDENCE, kw_only=True)
    view: View = field(default="full", kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        for prompt, more in ((self.prompt, {"agent"}), (self.again, set[str]())):
            if {*prompt.slots} - more != {"run", "check"}:
                raise PromptError(f"A judge's prompt has the slots run and check; {prompt.id} has {prompt.slots}.")
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"min_confidence goes from 0 to 1; got {self.min_confidence}")

    async def __call__(self, trajectory: Trajectory, /) -> Verdict:
        """The model's verdict on `trajectory`, or `unknown` and why."""
        if is_blank(trajectory):
            return unknown("The agent did nothing in this run: there is nothing to judge.")
        code = nonce()
        look = await to_thread.run_sync(self._first_look, trajectory, code)
        first = await self._ask(look.messages, code)
        wanted = _cut(first.steps, look.shown, len(trajectory.steps))
        if not (wanted and self.second_look):
            return first.verdict
        more = await to_thread.run_sync(self._second_look, trajectory, wanted, code)
        reply = Message(role="assistant", content=first.text)
        return _settle(first.verdict, (await self._ask((*look.messages, reply, *more), code)).verdict)

    async def _ask(self, messages: Sequence[Message], code: str, /) -> Answer:
        return await ask(
            self.model,
            messages,
            prompt=self.prompt,
            read=lambda text: parse_verdict(text, nonce=code),
            decide=self._decide,
            temperature=self.temperature,
            schema=JudgeReply,
        )

    def _first_look(self, trajectory: Trajectory, code: str, /) -> _Look:
        slots = {"check": code}
        budget, apart = self.budget, "agent" in self.prompt.slots
        if apart:
            slots["agent"] = agent_prefix(trajectory, budget=budget, code=code)
            budget -= estimate_tokens(slots["agent"])
        shown = render(trajectory, budget=budget, view=self.view, instructions=not apart)
        messages = self.prompt.render(run=fence(shown, label="run", nonce=code), **slots)
        return _Look(messages, shown)

    def _second_look(self, trajectory: Trajectory, wanted: Sequence[int], code: str, /) -> Sequence[Message]:
        shown = render(trajectory, budget=self.second_look, view=self.view, steps=wanted)
        return self.again.render(run=fence(shown, label="steps", nonce=code), check=code)

    def _decide(self, reading: Reading, /) -> Verdict:
        """What becomes of a reading: too unsure is `unknown`; a verdict without a figure counts as just sure enough."""
        confidence = self.min_confidence if reading.confidence is None else reading.confidence
        if reading.outcome == "unknown" or confidence >= self.min_confidence:
            return Verdict(outcome=reading.outcome, confidence=confidence, reason=reading.reason)
        reason = f"Leaning to {reading.outcome}, not sure enough: {reading.reason}"
        return Verdict(outcome="unknown", confidence=confidence, reason=reason)


def _cut(named: Sequence[int], shown: str, steps: int, /) -> list[int]:
    """Return those of the named steps that the run has and the rendering leaves out, tells in brief or cuts."""
    lines, incomplete = set(shown.splitlines()), incomplete_steps(shown)
    return [n for n in dict.fromkeys(named) if 0 < n <= steps and (n in incomplete or f"[step {n}]" not in lines)]


def _settle(first: Verdict, second: Verdict, /) -> Verdict:
    """What was said last, by who has seen more; where that failed, what was said first. The usage is that of both."""
    return (first if second.error else second).model_copy(update={"usage": first.usage + second.usage})
