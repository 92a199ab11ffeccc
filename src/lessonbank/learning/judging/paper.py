"""The judge of the published method, kept as it was so that the default can be compared with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from anyio import to_thread

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Trajectory, Verdict
from lessonbank.guard import fence, nonce
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.rendering import estimate_tokens, excerpt, render, render_steps

from .ask import ask, is_blank, unknown
from .parsing import Reading, parse_verdict

BUDGET = 120_000
"""Tokens of a run, below the 128k window the published runs were made with."""

_PAGES = 5  # last observations shown
_PAGE = 40_000  # characters of each


@dataclass(frozen=True, slots=True)
class PaperJudge:
    """The published judge (arXiv:2509.25140, appendix A.2): temperature 0, two outcomes, no confidence.

    `web` shows the intent, the thoughts and actions, the last five observations (the first 40,000 characters of each)
    and the final response. `code` shows all messages and asks for one word. Doubt is failure, as published.

    Where it differs: a model that fails or answers nothing readable gives `unknown` (published: a failed task); the one
    word is compared, not searched for (published: "unsuccessful" counts as success); the run is fenced.
    """

    model: LanguageModel
    domain: Literal["web", "code"] = field(default="web", kw_only=True)
    budget: int = field(default=BUDGET, kw_only=True)

    @property
    def prompt(self) -> Prompt:
        """`paper/judge_web` or `paper/judge_code`."""
        return load(f"paper/judge_{self.domain}")

    async def __call__(self, trajectory: Trajectory, /) -> Verdict:
        """The model's verdict on `trajectory`, or `unknown` where there is none."""
        if is_blank(trajectory):
            return unknown("The agent did nothing in this run: there is nothing to judge.")
        answer = await ask(
            self.model,
            await to_thread.run_sync(self._question, trajectory),
            prompt=self.prompt,
            read=parse_verdict,
            decide=_decide,
            temperature=0.0,
        )
        return answer.verdict

    def _question(self, trajectory: Trajectory, /) -> Sequence[Message]:
        if self.domain == "web":
            shown = _web(trajectory, self.budget)
        else:
            shown = render(trajectory, budget=self.budget, view="messages")
        return self.prompt.render(run=fence(shown, label="run", nonce=nonce()))


def _decide(reading: Reading, /) -> Verdict:
    return Verdict(outcome="success" if reading.outcome == "success" else "failure", reason=reading.reason)


def _web(trajectory: Trajectory, budget: int, /) -> str:
    share = budget // 10
    intent, response = excerpt(trajectory.task, budget=share), excerpt(trajectory.answer or "None", budget=share)
    states = "\n\n".join(_pages(trajectory, budget // 8))
    used = estimate_tokens(f"{intent}{response}{states}") + 64
    history = render_steps(trajectory, budget=max(budget - used, share), view="thoughts")
    return "\n\n".join(
        (
            f"User intent:\n{intent}",
            f"Action history:\n{history}",
            f"Final page states:\n{states or '(none)'}",
            f"Final response to the user:\n{response}",
        )
    )


def _pages(trajectory: Trajectory, budget: int, /) -> Iterator[str]:
    seen = [o.text for step in trajectory.steps for o in step.observations if o.source != "user"][-_PAGES:]
    for number, text in enumerate(seen, 1):
        yield f"Page state {number}/{len(seen)}:\n{excerpt(text[:_PAGE], budget=budget)}"
