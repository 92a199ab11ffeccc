"""A language model as the agent of one task, that knows what it cost even where the task breaks off."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Usage


class Speaker:
    """A language model as somebody who answers, and who knows what that cost, whatever becomes of the task."""

    def __init__(self, model: LanguageModel, /, *, temperature: float) -> None:
        self._model, self._temperature = model, temperature
        self.usage = Usage()

    def __call__(self, messages: Sequence[Message], /) -> Completion:
        """The next reply."""
        completion = run_sync(self._model.generate(messages, temperature=self._temperature))
        self.usage += completion.usage
        return completion
