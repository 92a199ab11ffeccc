"""The arms as memories of an environment: every named arm, each in a bank of its own, rebuilt without asking again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel

from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.settings import Domain
from lessonbank.errors import ModelError
from lessonbank_bench.arms import ARMS, BankMemory, Memory, Setting
from lessonbank_bench.cassette import Recorded


class ArmMemories:
    """Memories by the names of arms.

    Args:
        place: the environment's name; it names the scopes.
        model: who judges and distils; without one, lessons are drawn by rule.
        truth: for a seed, what a perfect memory would say for a goal; `None` where nobody knows.
        domain: what runs are about.
    """

    def __init__(
        self,
        place: str,
        model: LanguageModel | None = None,
        /,
        *,
        truth: Callable[[int, str], str] | None = None,
        domain: Domain = "general",
    ) -> None:
        self.live = True
        self.failure: ModelError | None = None
        self._place, self._model, self._truth = place, model, truth
        self._beside: dict[int, Callable[[str], str]] = {}
        self._domain: Domain = domain

    def make(self, name: str, seed: int, /, *, limit: int, answers: Path | None = None) -> Memory:
        """See `Memories.make`."""
        truth = self._truth
        known: Callable[[str], str] | None = None if truth is None else lambda goal: truth(seed, goal)
        scope = f"{self._place}/{seed}"
        beside = self._beside.get(seed)
        made = ARMS[name](Setting(scope, limit, seed, self._asked(answers), known, self._domain, beside))
        if name == "lessonbank" and isinstance(made, BankMemory):
            self._beside[seed] = made.text_for
        return made

    def _asked(self, answers: Path | None) -> LanguageModel | None:
        if self._model is None:
            return None
        model = _WhileLive(self._model, self)
        return _Noting(model if answers is None else Recorded(model, cassette=answers, failures=True), self)


class _WhileLive:
    """The model, as long as its environment is live."""

    def __init__(self, model: LanguageModel, memories: ArmMemories, /) -> None:
        self._model, self._memories = model, memories

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        if not self._memories.live:
            raise ModelError("no answer to this request is on file")
        return await self._model.generate(messages, temperature=temperature, schema=schema)


class _Noting:
    """The model, whose failures are noted: those that are on file, too, when an attempt is made again after a kill."""

    def __init__(self, model: LanguageModel, memories: ArmMemories, /) -> None:
        self._model, self._memories = model, memories

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        try:
            return await self._model.generate(messages, temperature=temperature, schema=schema)
        except ModelError as error:
            self._memories.failure = error
            # The model was asked as often as it is worth: a bank must not begin anew.
            raise ModelError(str(error)) from error
