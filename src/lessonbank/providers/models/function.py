"""Any plain function, async or not, as a language model: no SDK, no key, no base class."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, get_origin

import anyio
from pydantic import BaseModel

from lessonbank._base.aio import PerLoop
from lessonbank._base.checks import display_name, is_async, is_instance, kind, safe_getattr, signature
from lessonbank._base.surrogates import encodable
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Usage
from lessonbank.contracts.records.usage import NO_USAGE
from lessonbank.errors import (
    LessonbankError,
    ModelError,
    ModelUnavailable,
    ModelUnreachable,
    TransientModelError,
    UsageError,
)
from lessonbank.guard.quote import quoted

_OFFERED = ("system", "temperature", "schema")
_SEQUENCE_NAMES = frozenset({"list", "List", "tuple", "Tuple", "Sequence", "Iterable", "Collection", "MutableSequence"})
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BY_POSITION = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
_AGAIN = frozenset({408, 409, 425, 429})
_REFUSED = frozenset({401, 402, 403})


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a function wants to be called."""

    messages: bool
    keywords: frozenset[str]
    is_async: bool


class FunctionModel:
    """A function that answers a prompt.

    Its signature decides, once, what it is given. A first parameter called `messages` (or annotated as a sequence)
    gets a list of `{"role", "content"}` dicts; any other first parameter gets one string, the system text and the
    user text with a blank line between. The keywords `system` (the system text, then left out of the first
    argument), `temperature` and `schema` (a pydantic class or None) are passed to a function that names them.

    It returns the reply as a string, a `Completion`, or an object or dict with `text` (or `content`) and, if it likes,
    `usage`. A synchronous function runs in a daemon thread, so one that never returns can be left behind; an
    asynchronous one that blocks the event loop cannot.

    Args:
        function: what to call.
        name: kept in provenance; the function's own name by default.
        threads: how many calls of a synchronous function run at once.

    Raises:
        UsageError: it is not callable, or its signature fits none of the forms above.
    """

    def __init__(self, function: Callable[..., Any], /, *, name: str | None = None, threads: int = 8) -> None:
        self._shape = _shape(function)
        self._function = function
        self._name = name or f"function:{display_name(function)}"
        self._slots = PerLoop(partial(anyio.CapacityLimiter, threads))

    @property
    def name(self) -> str:
        """What the caller chose, or `function:` and the function's own name."""
        return self._name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """Call the function once.

        Raises:
            ModelError: it raised (the cause is kept), or returned something that is not a reply.
            ModelUnavailable: it raised a connection error, or the HTTP status of a refused key or account.
            TransientModelError: it raised a timeout, a connection error or an HTTP status worth trying again.
        """
        subject = _subject(messages, self._shape)
        offered = {"system": _text_of(messages, "system"), "temperature": temperature, "schema": schema}
        keywords = {key: value for key, value in offered.items() if key in self._shape.keywords}
        try:
            return _completion(await self._call(subject, keywords), self._name)
        except LessonbankError:
            raise
        except Exception as error:  # somebody else's function may raise anything, and what it returns, when it is read
            raise _translate(error, self._name) from error

    async def _call(self, subject: object, keywords: dict[str, Any]) -> object:
        if self._shape.is_async:
            return await self._function(subject, **keywords)
        async with self._slots.here():
            result = await _in_daemon_thread(lambda: self._function(subject, **keywords))
        return await cast("Awaitable[object]", result) if inspect.isawaitable(result) else result


def own_model(model: LanguageModel, /, *, batch: bool = False) -> LanguageModel:
    """A `LanguageModel` of the caller's own whose answers and failures are those that the port promises.

    Raises:
        UsageError: it has no name.
    """
    if not is_instance(safe_getattr(model, "name"), str):
        raise UsageError(f"the model {kind(model)} has no `name`: give it one (text), because its lessons keep it")
    return model if batch else _OwnModel(model)


class _OwnModel:
    def __init__(self, model: LanguageModel, /) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        try:
            answer: object = self._model.generate(messages, temperature=temperature, schema=schema)
            if inspect.isawaitable(answer):
                reply = await cast("Awaitable[object]", answer)
                is_free = isinstance(reply, Completion) and reply.usage == NO_USAGE  # as a fake says
                return cast("Completion", reply) if is_free else _completion(reply, self.name)
        except LessonbankError:
            raise
        except Exception as error:  # somebody else's model may raise anything
            raise _translate(error, self.name) from error
        raise UsageError(f"`generate` of the model {self.name} is not async: write `async def generate`, or a function")


def _shape(function: Callable[..., Any], /) -> _Shape:
    if not callable(function):
        raise UsageError(f"a model function must be callable, got {kind(function)}")
    if (takes := signature(function)) is None:  # one string is the commonest case
        return _Shape(messages=False, keywords=frozenset(), is_async=is_async(function))
    parameters = list(takes.parameters.values())
    first = _first(parameters, function)
    keywords = frozenset(p.name for p in parameters if p is not first and p.kind in _BY_KEYWORD and p.name in _OFFERED)
    _refuse_unknown([p for p in parameters if p is not first and p.name not in keywords], function)
    return _Shape(first.name == "messages" or _is_sequence(first.annotation), keywords, is_async(function))


def _first(parameters: Sequence[inspect.Parameter], function: Callable[..., Any]) -> inspect.Parameter:
    first = next(iter(parameters), None)
    if first is None or first.kind not in _BY_POSITION or first.name in _OFFERED:
        raise UsageError(
            f"{_title(function)} must take the prompt (a string) or `messages` as its first parameter; "
            f"`{'`, `'.join(_OFFERED)}` may follow as keywords"
        )
    return first


def _refuse_unknown(others: Sequence[inspect.Parameter], function: Callable[..., Any]) -> None:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in others if p.default is inspect.Parameter.empty and p.kind not in variadic]
    if needed:
        raise UsageError(
            f"{_title(function)} needs `{'`, `'.join(needed)}`, which a model is not given: "
            f"give a default, or bind it with functools.partial (known keywords: {', '.join(_OFFERED)})"
        )


def _title(function: object) -> str:
    return f"the model function {display_name(function)!r}"


def _is_sequence(annotation: object, /) -> bool:
    if isinstance(annotation, str):
        head = re.match(r"\s*([\w.]+)", annotation)
        return head is not None and head[1].rpartition(".")[2] in _SEQUENCE_NAMES
    origin = get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, str | bytes | Mapping)


def _subject(messages: Sequence[Message], shape: _Shape) -> str | list[dict[str, str]]:
    turns = [m for m in messages if not (m.role == "system" and "system" in shape.keywords)]
    if shape.messages:
        return [{"role": m.role, "content": m.content} for m in turns]
    return "\n\n".join(m.content for m in turns if m.content)


def _text_of(messages: Sequence[Message], role: str) -> str:
    return "\n\n".join(m.content for m in messages if m.role == role)


async def _in_daemon_thread(call: Callable[[], object], /) -> object:
    """Wait for `call` without holding the loop. A cancelled wait leaves the thread behind.

    A pool's threads are joined when the interpreter exits: one hanging function would keep the process alive.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def deliver(result: object, error: BaseException | None) -> None:
        if not answer.done():
            answer.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - handed to the waiting task, SystemExit included
            error = raised
        with suppress(RuntimeError):  # the loop has been closed meanwhile: nobody waits
            loop.call_soon_threadsafe(deliver, result, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="lessonbank-model", daemon=True).start()
    result, error = await answer
    if isinstance(error, Exception):
        raise error
    if error is not None:
        raise ModelError(f"the model function tried to end the process ({type(error).__name__})") from error
    return result


def _translate(error: Exception, name: str) -> ModelError:
    message = f"{name} raised {type(error).__name__}: {quoted(error)}".rstrip(": ")
    status = getattr(error, "status_code", None)
    if isinstance(error, ConnectionError):
        return ModelUnreachable(message, retry_after=_retry_after(error))
    if status in _REFUSED:
        return ModelUnavailable(message)
    again = isinstance(status, int) and (status in _AGAIN or status >= 500)
    if not (again or isinstance(error, TimeoutError)):
        return ModelError(message)
    return TransientModelError(message, retry_after=_retry_after(error))


def _retry_after(error: Exception, /) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    try:
        given = {name.lower(): value for name, value in cast("Mapping[str, Any]", headers).items()}
        return float(given["retry-after"])
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def _completion(reply: object, name: str, /) -> Completion:
    if isinstance(reply, Completion):
        return reply.model_copy(update={"usage": _usage(reply.usage)})
    text, usage, model = reply, None, None
    if not isinstance(reply, str):
        text = _field(reply, "text", "content")
        usage, model = _field(reply, "usage"), _field(reply, "model")
    if not isinstance(text, str):
        raise ModelError(
            f"{name} returned {_kind(reply)} where a reply was expected: return the text as a string, "
            "or an object with `text` (or `content`) and `usage`"
        )
    return Completion(text=encodable(text), usage=_usage(usage), model=model if isinstance(model, str) else name)


def _kind(reply: object) -> str:
    return "None" if reply is None else f"a value of type {type(reply).__name__}"


def _field(source: object, /, *names: str) -> object:
    for name in names:
        value = (
            cast("Mapping[str, object]", source).get(name)
            if isinstance(source, Mapping)
            else getattr(source, name, None)
        )
        if value is not None:
            return value
    return None


def _usage(source: object, /) -> Usage:
    if isinstance(source, Usage):
        return source if source.requests else source.model_copy(update={"requests": 1})
    return Usage(
        requests=1,
        input_tokens=_count(_field(source, "input_tokens", "prompt_tokens")),
        cached_tokens=_count(_field(source, "cached_tokens")),
        output_tokens=_count(_field(source, "output_tokens", "completion_tokens")),
        cost=_cost(_field(source, "cost")),
    )


def _count(value: object, /) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _cost(value: object, /) -> float | None:
    """US dollars, or unknown: no sum survives NaN."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else None
