"""Waits for answers of a batch API; where this process ends, another one waits on: what is paid for is not lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import anyio
from pydantic import BaseModel, ValidationError

from lessonbank.contracts.ports import BatchModel, Completion, Message, Owed, Store
from lessonbank.contracts.records import Record
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import ModelError, TransientModelError

from ._nonces import key_of, nonces_of, numbered, request_of, restored

_OWED: Final = "batch "
"""What the settings begin with under which a request that was sent is kept: its digest, and its number among equals."""
_KEPT: Final = timedelta(days=7)
"""A run is learned in a few requests, one after the other, each answered within a day or two."""


class _Sent(Record):
    """A request that the provider has."""

    at: datetime
    nonces: tuple[str, ...]
    ticket: str


class Batched:
    """A model whose answers come from batches.

    What is sent is kept with the bank, under a digest of the request. Who makes the same request again, after a crash
    or on another machine, waits for the answer that is paid for already.

    Args:
        model: the model to ask.
        store: gives the store, once there is a request.
    """

    def __init__(self, model: BatchModel, /, *, store: Callable[[], Store]) -> None:
        self._model, self._store = model, store
        self._asked = dict[str, set[int]]()
        """The numbers of equal requests that were made here: another one is a new request."""
        self._swept: datetime | None = None

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The model's answer, which can take a day.

        Raises:
            ModelError: the request failed. If the provider could not be asked, the next call goes on waiting.
        """
        await self._sweep()
        nonces = nonces_of(messages)
        key = key_of(self.name, request_of(messages, nonces, schema))
        numbers = self._asked.setdefault(key, set())
        number = next(n for n in range(len(numbers) + 1) if n not in numbers)
        numbers.add(number)
        ask = partial(self._model.ask, messages, temperature=temperature, schema=schema)
        try:
            return await self._answer(f"{_OWED}{key} {number}", tuple(nonces), ask)
        except BaseException:
            numbers.discard(number)
            raise

    async def _answer(
        self, entry: str, nonces: tuple[str, ...], ask: Callable[..., Awaitable[Completion | Owed]]
    ) -> Completion:
        sent = _read(await get_setting(self._store(), entry))
        try:
            answer = await ask(ticket=sent.ticket if sent else None)
            if sent is None and isinstance(answer, Owed):
                sent = _Sent(at=now(), nonces=nonces, ticket=answer.ticket)
                await self._keep(entry, sent)
            while isinstance(answer, Owed):
                await anyio.sleep(answer.seconds)
                answer = await ask(ticket=answer.ticket)
        except TransientModelError:
            raise
        except ModelError:
            await self._keep(entry, None)
            raise
        theirs = numbered(answer.text, sent.nonces if sent else nonces)
        return answer.model_copy(update={"text": restored(theirs, nonces)})

    async def _keep(self, entry: str, sent: _Sent | None) -> None:
        with anyio.CancelScope(shield=True):
            await self._store().put_setting(entry, sent.model_dump_json() if sent else None)

    async def _sweep(self) -> None:
        """Forget, once a day, what was sent so long ago that nobody waits for it any more."""
        if self._swept and now() - self._swept < timedelta(days=1):
            return
        self._swept = now()
        self._asked.clear()
        for entry, text in (await self._store().settings(_OWED)).items():
            if _read(text) is None:
                await self._keep(entry, None)


def _read(text: str | None) -> _Sent | None:
    """What was kept, unless it is too old."""
    try:
        sent = _Sent.model_validate_json(text) if text else None
    except ValidationError:
        return None
    return sent if sent and now() - sent.at < _KEPT else None
