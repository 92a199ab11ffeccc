"""Reads the arguments of a call from its body: within bounds, and where others need not wait for it."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeVar

from anyio import to_thread
from pydantic import ValidationError
from starlette.requests import Request

from lessonbank.contracts.records import Record
from lessonbank.errors import UsageError
from lessonbank.text.bounded_json import check_shape, parse

from .problems import of_body
from .wire import Limits

_SMALL: Final = 10_000
"""Bytes that take less time than a thread does."""
_Call = TypeVar("_Call", bound=Record)


async def call_of_body(request: Request, kind: type[_Call], limits: Limits, /) -> _Call:
    """The call that a request asks for. Raises UsageError, TooLarge."""
    body = await request.body()
    if body and not _says_json(request.headers.get("content-type", "")):
        raise UsageError("the arguments of a call are JSON: send them with Content-Type: application/json")
    read = partial(_read, body, kind, limits)
    return read() if len(body) <= _SMALL else await to_thread.run_sync(read)


def _read(body: bytes, kind: type[_Call], limits: Limits) -> _Call:
    if not body:
        raise UsageError("the body is wrong: the arguments of this call are missing")
    check_shape(body, values=limits.values, depth=limits.depth)
    try:
        return kind.__pydantic_validator__.validate_python(parse(body.decode("utf-8-sig")))
    except ValidationError as error:
        raise of_body(error) from None
    except ValueError as error:
        raise UsageError(f"the body is no JSON in UTF-8: {error}") from None


def _says_json(kind: str) -> bool:
    kind = kind.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
