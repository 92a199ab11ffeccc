"""Sequential scaling: how a run is put before the agent (or a model) again, and when its answer counts as confirmed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from anyio import to_thread
from pydantic import BaseModel

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import SECONDS, Step, Trajectory
from lessonbank.errors import OutputError
from lessonbank.guard import fence, nonce
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.rendering import render

from ._reading import reply_with

SHOWN = 8_000
"""Tokens of the run before that the agent is shown."""


class Rewritten(BaseModel):
    """The form in which a re-examination is asked for: what was found comes before the answer."""

    check: str
    notes: str
    confirmed: bool
    answer: str


def instruction(*, first: bool) -> str:
    """The paper's check instruction in this package's words: for the first time, or once more."""
    return load("general/check" if first else "general/check_again").render()[-1].content


def check_text(previous: Trajectory, /, *, first: bool, budget: int = SHOWN) -> str:
    """What the agent is told when it is to act again: the instruction, and the record of its run as fenced data."""
    record = fence(render(previous, budget=budget, view="recorded"), label="run before", nonce=nonce())
    return f"{instruction(first=first)}\n\n{record}"


def unchanged(before: Trajectory, after: Trajectory, /) -> bool:
    """Whether a re-examination left the answer as it was; without an answer, everything that was done.

    The last act alone would say little: in many worlds every run ends on the same one, such as `submit`.
    """
    concluded = _conclusion(before)
    return bool(concluded) and concluded == _conclusion(after)


def _conclusion(run: Trajectory) -> str:
    if run.answer and run.answer.strip():
        return " ".join(run.answer.casefold().split()).rstrip(".!")
    acts = [step.action for step in run.steps if step.action.text.strip() or step.action.calls]
    entries = [[" ".join(act.text.split()), [[call.name, call.arguments] for call in act.calls]] for act in acts]
    return json.dumps(entries, sort_keys=True) if entries else ""


class Examiner(Protocol):
    """Looks at a run again without acting: gives the run with what was found, and the answer that follows from it."""

    async def __call__(self, previous: Trajectory, /, *, first: bool) -> Trajectory: ...


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Lets a model look at a run again and rewrite its answer: nothing is done in the environment."""

    model: LanguageModel
    prompt: Prompt = field(default_factory=lambda: load("general/rewrite"), kw_only=True)
    budget: int = field(default=40_000, kw_only=True)
    temperature: float = field(default=0.7, kw_only=True)

    async def __call__(self, previous: Trajectory, /, *, first: bool, shown: Trajectory | None = None) -> Trajectory:
        """Return the run with one more step, which holds what was found, and the answer that follows from it.

        Its usage is that of this call alone. The model sees `shown` in the place of the run, such as the run without
        its secrets.

        Raises:
            ModelError: the model failed.
            OutputError: its reply cannot be read.
        """
        code = nonce()
        messages = await to_thread.run_sync(partial(self._question, shown or previous, code, first=first))
        reply = await self.model.generate(messages, temperature=self.temperature, schema=Rewritten)
        fields = reply_with(code, reply.text, usage=reply.usage)
        answer, notes = _answer(fields, previous.answer), fields.get("notes")
        if answer is None or f'"answer": "{answer}"' in self.prompt.user:  # small models copy the form as it stands
            raise OutputError("the reply neither confirms the answer nor gives another", usage=reply.usage)
        step = Step(thought=notes.strip() if isinstance(notes, str) else "", action=answer)
        return Trajectory(
            task=previous.task,
            instructions=previous.instructions,
            steps=(*previous.steps, step),
            answer=answer,
            usage=reply.usage,
            metadata={key: value for key, value in previous.metadata.items() if key != SECONDS},
        )

    def _question(self, run: Trajectory, code: str, /, *, first: bool) -> Sequence[Message]:
        fenced = fence(render(run, budget=self.budget, view="recorded"), label="run", nonce=code)
        return self.prompt.render(instruction=instruction(first=first), run=fenced, check=code)


def _answer(fields: dict[str, object], before: str | None) -> str | None:
    """The earlier answer, word for word, where it is confirmed: what a model copies it may misspell."""
    given = fields.get("answer")
    if fields.get("confirmed") is True and before:
        return before
    return given.strip() if isinstance(given, str) and given.strip() else None
