"""Lets a language model play the closed world of the demo: it is asked for every press."""

from __future__ import annotations

import re

from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Usage
from lessonbank.demo.desk import View
from lessonbank.guard import clean

_RULES = (
    "You operate a web form by pressing one control at a time. You may press {budget} controls at most. "
    "Open the record first. Two of the form's controls must then be pressed in the right order; the others do nothing. "
    "When the form is ready it offers a choice; choose, then press Submit. "
    "End your reply with the exact label of one control, alone on the last line."
)


class LLMAgent:
    """Asks `model` for every press, showing exactly what the scripted agent sees: memory, goal, message, controls.

    A reply that names no control is pressed as it is, and the page ignores it: a wasted press, as with any agent.
    """

    def __init__(self, model: LanguageModel, /, *, budget: int = 8) -> None:
        self._model = model
        self.instructions = _RULES.format(budget=budget)
        self.start("")

    def start(self, memory: str, /) -> None:
        self._memory = memory
        self._pressed: str | None = None
        self._log: list[str] = []
        self.thought = ""
        self.usage = Usage()

    def act(self, view: View, /) -> str:
        if self._pressed is not None:
            self._log.append(f"{self._pressed} -> {view.message}")
        completion = run_sync(self._model.generate(self._prompt(view), temperature=0.0))
        self.usage += completion.usage
        self.thought = clean(completion.text, limit=4000).strip()
        self._pressed = chosen(completion.text, view.controls)
        self.thought = self.thought.removesuffix(self._pressed).rstrip()
        return self._pressed

    def _prompt(self, view: View) -> list[Message]:
        parts = [self._memory] if self._memory else []
        parts.append(f"Goal: {view.goal}")
        if self._log:
            parts.append("Pressed so far:\n" + "\n".join(self._log))
        parts += [f"Message: {view.message}", "Controls: " + ", ".join(view.controls)]
        return [
            Message(role="system", content=self.instructions),
            Message(role="user", content="\n\n".join(parts)),
        ]


def chosen(reply: str, controls: tuple[str, ...], /) -> str:
    """The control a reply names: the one named last, since reasoning comes before the answer.

    Falls back to the end of the reply itself, which no page has as a control.
    """
    text = clean(reply[-4000:]).strip()
    named = [(m.start(), len(c), c) for c in controls for m in re.finditer(rf"\b{re.escape(c)}\b", text, re.IGNORECASE)]
    return max(named)[2] if named else (text[-40:] or "(no reply)")
