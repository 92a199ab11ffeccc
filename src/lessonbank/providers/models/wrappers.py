"""What every model needs and no model should contain: retries, limits on time and calls, a cap on replies."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
from pydantic import BaseModel

from lessonbank._base.aio import PerLoop
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.errors import ModelTimeout, TransientModelError, UsageError
from lessonbank.text.bounded_json import shallow


def standard(
    model: LanguageModel,
    /,
    *,
    seconds: float = 120.0,
    attempts: int = 4,
    concurrency: int = 8,
    rate: float | None = None,
) -> LanguageModel:
    """`model` as the bank uses it: replies capped, each try limited in time, tried again, few at once.

    `rate`: tries a minute, at most.
    """
    one_try = TimeLimited(Clipped(model), seconds=seconds)
    paced = one_try if rate is None else Paced(one_try, rate=rate)
    return Limited(Retrying(paced, attempts=attempts), concurrency=concurrency)


class _Around:
    """A model around another, under whose name it answers."""

    def __init__(self, model: LanguageModel, /) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name


class Clipped(_Around):
    """A model whose replies end after `characters`, or where brackets are nested like nothing that was asked for.

    So nothing that follows reads megabytes of rubbish, or takes seconds to repair it.
    """

    def __init__(self, model: LanguageModel, /, *, characters: int = 200_000) -> None:
        super().__init__(model)
        self._characters = characters

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer, cut."""
        completion = await self._model.generate(messages, temperature=temperature, schema=schema)
        text = shallow(completion.text[: self._characters])
        return completion if text == completion.text else completion.model_copy(update={"text": text})


class TimeLimited(_Around):
    """A model that answers within `seconds` or not at all."""

    def __init__(self, model: LanguageModel, /, *, seconds: float) -> None:
        super().__init__(model)
        self._seconds = seconds

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer.

        Raises:
            ModelTimeout: there was none in time; the call was abandoned.
        """
        with anyio.move_on_after(self._seconds):
            return await self._model.generate(messages, temperature=temperature, schema=schema)
        raise ModelTimeout(f"{self.name} gave no answer within {self._seconds:g} s")


class Limited(_Around):
    """A model that works on at most `concurrency` requests at once; the others wait their turn."""

    def __init__(self, model: LanguageModel, /, *, concurrency: int) -> None:
        if concurrency < 1:
            raise UsageError(f"a model needs a concurrency of at least 1, got {concurrency}")
        super().__init__(model)
        self._slots = PerLoop(partial(anyio.Semaphore, concurrency))

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer, when a slot is free."""
        async with self._slots.here():
            return await self._model.generate(messages, temperature=temperature, schema=schema)


class Paced(_Around):
    """A model that is asked at most `rate` times a minute: requests begin evenly spaced."""

    def __init__(
        self, model: LanguageModel, /, *, rate: float, sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        super().__init__(model)
        self._space, self._sleep = 60.0 / rate, sleep
        self._free = 0.0
        """When the next request may begin, on the clock of `time.monotonic`."""

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer, when its turn has come."""
        now = time.monotonic()
        begin, self._free = max(now, self._free), max(now, self._free) + self._space
        await self._sleep(begin - now)
        return await self._model.generate(messages, temperature=temperature, schema=schema)


class Retrying(_Around):
    """A model that is asked again after a failure that may pass.

    Only `TransientModelError` is tried again: after `first_wait` seconds, doubling, with jitter, at most
    `longest_wait`; never sooner than the service asked for. A service that asks for more than `longest_wait` is not
    waited for. A request that ran out of time is tried `timeouts` times in all: by default it is not sent again, since
    it has cost its whole limit already, and a model that did not stop will not stop the next time.

    Args:
        model: the model to ask.
        attempts: how often a request is sent at most.
        timeouts: how often a request may run out of time.
        first_wait: seconds before the second attempt.
        longest_wait: seconds no wait exceeds.
        sleep: how to wait.
        chance: uniform numbers in [0, 1) for the jitter.
    """

    def __init__(
        self,
        model: LanguageModel,
        /,
        *,
        attempts: int = 4,
        timeouts: int = 1,
        first_wait: float = 0.5,
        longest_wait: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if attempts < 1:
            raise UsageError(f"a request needs at least 1 attempt, got {attempts}")
        super().__init__(model)
        self._attempts = attempts
        self._timeouts = timeouts
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._chance = chance

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer.

        Raises:
            ModelError: at once if trying again cannot help; else the last failure.
        """
        attempt = timeouts = 0
        while True:
            try:
                return await self._model.generate(messages, temperature=temperature, schema=schema)
            except TransientModelError as error:
                attempt += 1
                timeouts += isinstance(error, ModelTimeout)
                wait = max(self._backoff(attempt), error.retry_after or 0.0)
                if attempt >= self._attempts or timeouts >= self._timeouts or wait > self._longest_wait:
                    raise
            await self._sleep(wait)

    def _backoff(self, attempt: int) -> float:
        longest = min(self._longest_wait, self._first_wait * 2.0 ** (attempt - 1))
        return longest * (0.5 + 0.5 * self._chance())
