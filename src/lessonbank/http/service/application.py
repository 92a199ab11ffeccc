"""The server's application: the routes, what stands before them, and what operations ask."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread
from fastapi import FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from lessonbank._version import VERSION
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.records import Record
from lessonbank.contracts.store_calls import get_setting, queue_of
from lessonbank.http.client.operations import API, OPERATIONS

from .admission import Admission
from .events import stream
from .metrics import CONTENT_TYPE, Metrics
from .problems import Problem, answer_errors, problem
from .proxy_users import ProxyUsers as ProxyUsers
from .routes import REFUSALS, Routes
from .traces import Traces
from .tracing import Spans
from .wire import Bounded
from .wire import Limits as Limits

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

_DRAINING: Final = 10.0
"""Seconds that a call of `drain` waits before it says that there is still work."""
_READY: Final = 2.0
_SMALLEST_PACKED: Final = 1024


class Greeting(Record):
    """What a key opens, and what answers."""

    lessonbank: str
    api: int
    name: str
    role: str
    scope: str


def application(
    bank: AsyncReasoningBank,
    /,
    *,
    limits: Limits | None = None,
    close: bool = False,
    review: ASGIApp | None = None,
    users: ProxyUsers | None = None,
    tracer_provider: TracerProvider | None = None,
) -> FastAPI:
    """The API over `bank`, for every scope of it: a key says which of them its holder may use.

    Each key counts as a writer of its own. With `close`, the end of the application closes the bank. `review`: pages
    for people, made by `service.review.review`. `users`: people whom a proxy signs in. `tracer_provider`: where
    the server's spans go, by default OpenTelemetry's global provider.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        if close:
            await bank.close()

    admission, metrics, limits = Admission(bank, users=users), Metrics(), limits or Limits()
    app = FastAPI(
        title="lessonbank",
        version=VERSION,
        summary="A memory from which LLM agents learn.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    answer_errors(app)
    Routes(admission, limits).add_to(app)
    _add_greeting(app, admission, bank)
    _add_streams(app, admission, metrics)
    _add_operations(app, bank, metrics)
    if review is not None:
        app.add_api_route("/review", _to_pages, methods=["GET"], include_in_schema=False)
        app.mount("/review", review)
    app.add_middleware(GZipMiddleware, minimum_size=_SMALLEST_PACKED)
    app.add_middleware(Bounded, limits=limits, metrics=metrics, spans=Spans(tracer_provider))
    app.openapi = partial(_described, app, app.openapi)  # type: ignore[method-assign]
    _add_description(app)
    return app


async def _to_pages() -> Response:
    return RedirectResponse("/review/", status_code=303)


def _add_greeting(app: FastAPI, admission: Admission, bank: AsyncReasoningBank) -> None:
    async def greeting(request: Request) -> Greeting:
        """What your key is for, and which release answers."""
        key = await admission.key_of(request)
        return Greeting(lessonbank=VERSION, api=API, name=key.name, role=key.role, scope=key.scope)

    async def drain(request: Request) -> bool:
        """Wait until this server has learned what was submitted to it: `false` where there is still work."""
        await admission.key_of(request)
        waiting = asyncio.ensure_future(bank.drain())
        done, _ = await asyncio.wait({waiting}, timeout=_DRAINING)
        waiting.cancel()
        return bool(done)

    extra: dict[str, Any] = {"security": [{"key": []}]}
    app.add_api_route("/v1", greeting, methods=["GET"], openapi_extra=extra, tags=["server"], responses=REFUSALS)
    app.add_api_route("/v1/drain", drain, methods=["POST"], openapi_extra=extra, tags=["server"], responses=REFUSALS)


def _add_streams(app: FastAPI, admission: Admission, metrics: Metrics) -> None:
    traces = Traces(metrics)

    async def events(request: Request) -> Response:
        """The changes of a scope as server-sent events, and each further one as it comes."""
        caller = await admission.admit(request, OPERATIONS["history.list"])
        return stream(request, caller.bank, partial(admission.is_open, request))

    async def take(request: Request) -> Response:
        """OpenTelemetry traces with GenAI spans (OTLP/HTTP, JSON or protobuf): each whole trace becomes runs."""
        return await traces.take(request, await admission.admit(request, OPERATIONS["submit"]))

    security: dict[str, Any] = {"security": [{"key": []}]}
    body: dict[str, Any] = {kind: {"schema": {}} for kind in ("application/json", "application/x-protobuf")}
    otlp: dict[str, Any] = {**security, "requestBody": {"required": True, "content": body}}
    sse: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}, "description": "Changes."}}
    app.add_api_route(
        "/v1/events", events, methods=["GET"], openapi_extra=security, tags=["server"], responses={**REFUSALS, **sse}
    )
    app.add_api_route("/v1/traces", take, methods=["POST"], openapi_extra=otlp, tags=["server"], responses=REFUSALS)


def _add_operations(app: FastAPI, bank: AsyncReasoningBank, metrics: Metrics) -> None:
    async def healthz() -> Response:
        """Whether the process answers."""
        return PlainTextResponse("ok")

    async def readyz() -> Response:
        """Whether the bank answers."""
        failure = await _failure(partial(get_setting, bank.store), "ready")
        return failure or PlainTextResponse("ok")

    async def numbers() -> Response:
        """Counts and times for Prometheus, without contents, scopes and names."""
        return Response(metrics.text(await queue_of(bank.store).queue()), media_type=CONTENT_TYPE)

    options: dict[str, Any] = {"methods": ["GET"], "tags": ["operations"], "response_class": PlainTextResponse}
    for path, answer in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", numbers)):
        app.add_api_route(path, answer, response_model=None, responses=REFUSALS, **options)
        app.add_api_route(path, answer, response_model=None, methods=["HEAD"], include_in_schema=False)


async def _failure(ask: Callable[[str], Awaitable[object]], name: str) -> Response | None:
    with anyio.move_on_after(_READY):
        await ask(name)
        return None
    return problem("store_unavailable", f"the bank did not answer within {_READY:g} seconds", status=503)


def _add_description(app: FastAPI) -> None:
    """The OpenAPI document: made once, beside the event loop, because it takes long and needs no key."""
    lock, made = anyio.Lock(), list[bytes]()

    async def description(request: Request) -> Response:
        async with lock:
            if not made:
                made.append(await to_thread.run_sync(lambda: _compact(app.openapi())))
                made.append(await to_thread.run_sync(gzip.compress, made[0]))
        is_packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if is_packed else {})
        return Response(made[is_packed], headers=headers, media_type="application/json")

    app.add_api_route("/v1/openapi.json", description, methods=["GET"], include_in_schema=False)


def _compact(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _described(app: FastAPI, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The OpenAPI document, with how a key is sent and how errors look."""
    document = describe()
    parts = document.setdefault("components", {})
    parts.setdefault("securitySchemes", {})["key"] = {"type": "http", "scheme": "bearer"}
    parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    return document
