"""Errors as the API tells them: problem+json (RFC 9457) with the stable codes of this package."""

from __future__ import annotations

import json
import logging
import math
import traceback
from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from lessonbank.contracts.records.record import reason_of
from lessonbank.errors import LessonbankError, RateLimited, StoreReplaced, TransientModelError, UsageError, printable

log = logging.getLogger("lessonbank.server")
_STATUS: Final[Mapping[str, int]] = {
    "not_allowed": 403,
    "unauthenticated": 401,
    "too_large": 413,
    "rate_limited": 429,
    "missing_extra": 501,
    "model_timeout": 504,
    "not_found": 404,
    "conflict": 409,
    "space_mismatch": 409,
    "version_mismatch": 400,
    "changed": 412,
    "not_acceptable": 406,
    "internal": 500,
    "idempotency": 422,
}
_CODES: Final[Mapping[int, str]] = {
    404: "no_such_path",
    405: "wrong_method",
    400: "usage",
    408: "too_slow",
    413: "too_large",
    415: "unsupported_encoding",
}
_MOST_ERRORS: Final = 1000
_REPLACED: Final = (
    "the server answers nothing from a bank whose file was moved, deleted or replaced: restart the server"
)


class TooOften(RateLimited):
    """A key was used too often; `retry_after` seconds later it may be used again."""

    def __init__(self, message: str, /, *, wait: float) -> None:
        super().__init__(message)
        self.retry_after = wait


class Problem(BaseModel):
    """What went wrong. `code` never changes its meaning; `detail` says what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str


def problem(
    code: str, detail: str, /, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """A problem as a response."""
    status = status or _STATUS.get(code, 400)
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, "code": code}
    return Response(json.dumps(body), status, media_type="application/problem+json", headers=dict(headers or {}))


def of_error(error: LessonbankError, /) -> Response:
    """An error of the bank as a response."""
    headers = dict[str, str]()
    if isinstance(error, TransientModelError | TooOften) and error.retry_after:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    if error.code == "unauthenticated":
        headers["WWW-Authenticate"] = "Bearer"
    detail = str(error)
    if isinstance(error, StoreReplaced):
        _log_replaced(detail)
        detail = _REPLACED
    return problem(error.code, detail, status=status_of(error), headers=headers)


@cache
def _log_replaced(what: str, /) -> None:
    """Say it once: until the restart, every request fails in the same way."""
    log.error("%s; %s", what, _REPLACED)


def status_of(error: LessonbankError, /) -> int:
    """The status of an error of the bank."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    if isinstance(error, UsageError):
        return 422
    return 503 if error.code.startswith(("store", "read_only")) else 502


def answer_errors(app: FastAPI, /) -> None:
    """Let every error of `app` be a problem."""
    app.add_exception_handler(LessonbankError, _of_bank)
    app.add_exception_handler(RequestValidationError, _of_form)
    app.add_exception_handler(HTTPException, _of_http)


async def _of_bank(_: Request, error: Any) -> Response:
    return of_error(error)


async def _of_form(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    return problem("usage", _wrong([part for part in first["loc"] if part != "query"], first["msg"]), status=422)


def of_body(error: ValidationError, /) -> UsageError:
    """What is wrong with the body of a call: the first of it, or how much where to tell each would take long."""
    if (count := error.error_count()) > _MOST_ERRORS:
        return UsageError(f"{count:,} values of the body are wrong: compare it with /v1/openapi.json")
    first = error.errors(include_url=False, include_input=False)[0]
    return UsageError(_wrong(first["loc"], first["msg"]))


def _wrong(place: Iterable[str | int], reason: str) -> str:
    return printable(f"{'.'.join(map(str, place)) or 'the body'} is wrong: {reason_of(reason)}")


async def _of_http(request: Request, error: Any) -> Response:
    code = _CODES.get(error.status_code, "usage")
    headers = {"Allow": _methods(request)} if error.status_code == 405 else error.headers
    return problem(code, printable(error.detail), status=error.status_code, headers=headers)


def _methods(request: Request) -> str:
    """The methods of a path. Starlette names those of its first route only."""
    methods = set[str]()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match is Match.PARTIAL:
            methods |= set(route.methods or ())
    return ", ".join(sorted(methods))


def unexpected(error: Exception, /) -> Response:
    """What nobody thought of: the log says where, and not what was in it."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in reversed(frames))
    log.error("a request failed: %s at %s", type(error).__name__, where)
    return problem("internal", "the server failed: its log says where")
