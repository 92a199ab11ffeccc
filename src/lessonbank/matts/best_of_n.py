"""Best-of-n: which of several runs is the best, by a model that compares them or by their verdicts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anyio import to_thread
from pydantic import BaseModel

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Run, Trajectory, Usage
from lessonbank.errors import OutputError
from lessonbank.guard import fence, nonce
from lessonbank.guard.quote import in_one_line
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.rendering import View, render

from ._reading import reply_with

MOST_SHOWN = 40
"""Runs that a model compares at once."""
_LEAST = 500
_REASON = 300


@dataclass(frozen=True, slots=True)
class Choice:
    """The best of several runs."""

    index: int
    """Its place, from 0."""
    why: str
    usage: Usage = field(default_factory=Usage)


class ChoiceReply(BaseModel):
    """The form in which a choice is asked for: the reasons come before the number."""

    check: str
    analysis: str
    index: list[int]


@dataclass(frozen=True, slots=True)
class ModelChooser:
    """Shows a model all runs at once and asks for the best (paper appendix A.3). How they ended is not told.

    Attributes:
        budget: tokens of all runs together.
        view: what of a run is shown; the paper shows thoughts and actions.
    """

    model: LanguageModel
    prompt: Prompt = field(default_factory=lambda: load("general/choose"), kw_only=True)
    budget: int = field(default=40_000, kw_only=True)
    view: View = field(default="full", kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)

    async def __call__(self, runs: Sequence[Trajectory], /) -> Choice:
        """The best of `runs`.

        Raises:
            ModelError: the model failed.
            OutputError: its reply names no run.
        """
        code = nonce()
        messages = await to_thread.run_sync(self._question, runs, code)
        reply = await self.model.generate(messages, temperature=self.temperature, schema=ChoiceReply)
        return read_choice(reply.text, check=code, count=len(runs), usage=reply.usage)

    def _question(self, runs: Sequence[Trajectory], code: str, /) -> Sequence[Message]:
        share = max(_LEAST, self.budget // len(runs))
        texts = (render(run, budget=share, view=self.view) for run in runs)
        fenced = "\n\n".join(fence(text, label=f"run {n}", nonce=code) for n, text in enumerate(texts, 1))
        return self.prompt.render(runs=fenced, check=code, count=str(len(runs)))


def read_choice(text: str, /, *, check: str, count: int, usage: Usage) -> Choice:
    """The choice that a reply states: `index` is a number from 1, or a list that begins with it.

    Raises:
        OutputError: no object with the check code, or no run of that number.
    """
    fields = reply_with(check, text, usage=usage)
    number: object = fields.get("index")
    if isinstance(number, list):
        number = number[0] if number else None  # pyright: ignore[reportUnknownVariableType]
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:9])
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
        raise OutputError(f"the reply names no run from 1 to {count}", usage=usage)
    why = fields.get("analysis")
    return Choice(number - 1, in_one_line(why, limit=_REASON) if isinstance(why, str) else "", usage)


def candidates(runs: Sequence[Trajectory], /) -> list[int]:
    """The places of the runs that came to an end of their own."""
    return [place for place, run in enumerate(runs) if not (run.error and run.error.strip())]


def shortlist(attempts: Sequence[Run], places: Sequence[int], /) -> list[int]:
    """Return the `places` that are shown to a model, in their order: of very many the likeliest successes."""
    best = sorted(places, key=lambda place: _worth(attempts[place]), reverse=True)
    return sorted(best[:MOST_SHOWN])


def by_verdicts(attempts: Sequence[Run], places: Sequence[int], /) -> Choice | None:
    """The likeliest success of `places`; of equals the one of fewer steps, then the earlier. `None` of none."""
    if not places:
        return None
    best = max(places, key=lambda place: (*_worth(attempts[place]), -place))
    verdict = attempts[best].verdict
    return Choice(best, f"by verdict: {verdict.outcome}, {verdict.source.replace('_', ' ')}")


def _worth(attempt: Run) -> tuple[float, int]:
    """How likely it succeeded, then how short it is."""
    verdict = attempt.verdict
    sure = verdict.confidence / 2
    lean = {"success": 0.5 + sure, "unknown": 0.5, "failure": 0.5 - sure}[verdict.outcome]
    return (lean if verdict.reward is None else verdict.reward), -len(attempt.trajectory.steps)
