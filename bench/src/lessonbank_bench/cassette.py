"""Answers kept in a file, so that a run can be repeated, shipped and tested without the model that gave them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import BaseModel, ValidationError

from lessonbank._base.checks import replace_surrogates, short_path, short_repr
from lessonbank._base.safe_read import open_regular
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Json, Record
from lessonbank.errors import FormatError, ModelError, UsageError
from lessonbank.providers.models._nonces import (  # pyright: ignore[reportPrivateUsage]
    key_of,
    nonces_of,
    numbered,
    request_of,
    restored,
)


class _Exchange(Record):
    key: str
    name: str
    request: dict[str, Json]
    response: Completion


class _Broken(Record):
    key: str
    name: str
    request: dict[str, Json]
    error: str


class Recorded:
    """A model whose answers are kept in a cassette, so that a run can be repeated without the model.

    A cassette is JSON Lines, one exchange per line: `key`, `name`, `request`, `response`. The key is a hash of the
    name, the messages and the schema's name. The answers to one request are replayed in the order they were
    recorded. When they are used up, a recording (with a model) asks the model again and appends; a replay (without)
    repeats the last one. The nonces of fences, drawn anew for every prompt, are numbered before a request is compared
    or an answer kept, and put back when it is replayed.

    Args:
        model: the model to record, or `None` to replay only.
        cassette: the file; it is read here, once, and created when there is something to record.
        name: the name to replay under, where the cassette holds more than one.
        failures: keep that the model failed, too, and fail there again: who goes on without an answer is repeated as
            well. Else a failure leaves no line, and the model is asked again.

    Raises:
        UsageError: nothing to replay: no such file, or its name is not clear.
        FormatError: the file holds something else.
    """

    def __init__(
        self, model: LanguageModel | None, /, *, cassette: Path, name: str | None = None, failures: bool = False
    ) -> None:
        if model is None and not cassette.exists():
            raise UsageError(f"there is no cassette at {short_path(cassette)}: record one with a model first")
        self._model = model
        self._cassette = cassette
        exchanges = _read(cassette)
        self._name = name or (model.name if model is not None else _only_name(exchanges, cassette))
        self._failures = failures
        self._answers: dict[str, list[Completion | str]] = {}
        self._served: dict[str, int] = {}
        for exchange in exchanges:
            if isinstance(exchange, _Exchange):
                self._answers.setdefault(exchange.key, []).append(exchange.response)
            elif failures:
                self._answers.setdefault(exchange.key, []).append(exchange.error)

    @property
    def name(self) -> str:
        """The model's name, or the one in the cassette."""
        return self._name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The next recorded answer to `messages`, or the model's own, then recorded.

        Raises:
            ModelError: replaying, and this request was never recorded, or failed then.
        """
        nonces = nonces_of(messages)
        request = request_of(messages, nonces, schema)
        key = key_of(self._name, request)[:16]
        completion = self._next(key)
        if completion is None:
            completion = await self._record(key, {**request, "temperature": temperature}, messages, nonces, schema)
        if isinstance(completion, str):
            raise ModelError(completion)
        return completion.model_copy(update={"text": restored(completion.text, nonces)})

    def _next(self, key: str) -> Completion | str | None:
        answers, turn = self._answers.get(key, []), self._served.get(key, 0)
        if self._model is None and answers:
            turn = min(turn, len(answers) - 1)
        if turn >= len(answers):
            return None
        self._served[key] = turn + 1
        return answers[turn]

    async def _record(
        self,
        key: str,
        request: Mapping[str, Any],
        messages: Sequence[Message],
        nonces: Sequence[str],
        schema: type[BaseModel] | None,
    ) -> Completion:
        if self._model is None:
            raise ModelError(f"the cassette {self._cassette.name} has no answer to this request ({key})")
        asked: dict[str, Any] = replace_surrogates(dict(request))
        try:
            completion = await self._model.generate(messages, temperature=request["temperature"], schema=schema)
        except ModelError as error:
            if self._failures:
                told: str = replace_surrogates(str(error))
                await self._keep(_Broken(key=key, name=self._name, request=asked, error=told), told)
            raise
        kept = completion.model_copy(update={"text": replace_surrogates(numbered(completion.text, nonces))})
        await self._keep(_Exchange(key=key, name=self._name, request=asked, response=kept), kept)
        return kept

    async def _keep(self, exchange: _Exchange | _Broken, answer: Completion | str) -> None:
        await anyio.to_thread.run_sync(_append, self._cassette, exchange.model_dump_json())
        answers = self._answers.setdefault(exchange.key, [])
        answers.append(answer)
        self._served[exchange.key] = len(answers)


def _read(cassette: Path, /) -> list[_Exchange | _Broken]:
    """Every exchange of the file. Lines torn by a process that died while writing are passed over."""
    if not cassette.exists():
        return []
    try:
        with open_regular(cassette) as file:
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"the cassette {short_path(cassette)} cannot be read: {error.strerror or error}") from error
    lines = [line for line in text.split("\n") if line.strip()]
    exchanges = [exchange for line in lines if (exchange := _exchange(line)) is not None]
    if lines and not exchanges:
        raise FormatError(
            f"{short_path(cassette)} is no cassette: no line of it is an exchange (key, name, request, response)"
        )
    return exchanges


def _exchange(line: str, /) -> _Exchange | _Broken | None:
    for kind in (_Exchange, _Broken):
        with suppress(ValidationError):
            return kind.model_validate_json(line)
    return None


def _only_name(exchanges: Sequence[_Exchange | _Broken], cassette: Path, /) -> str:
    names = sorted({exchange.name for exchange in exchanges})
    if len(names) != 1:
        raise UsageError(
            f"say which model to replay from {short_path(cassette)} with `name=`: it holds "
            f"{short_repr(', '.join(names))}"
        )
    return names[0]


def _append(cassette: Path, line: str, /) -> None:
    """One write of one whole line: two recorders cannot mix theirs, and a torn line before it is closed first."""
    cassette.parent.mkdir(parents=True, exist_ok=True)
    torn = cassette.exists() and cassette.stat().st_size > 0 and not _ends_with_newline(cassette)
    file = os.open(cassette, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (("\n" if torn else "") + line + "\n").encode("utf-8"))
    finally:
        os.close(file)


def _ends_with_newline(cassette: Path, /) -> bool:
    with cassette.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
