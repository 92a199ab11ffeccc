"""Puts the proxy together and serves it: its own few addresses under `/lessonbank`, and the upstream's for the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

from lessonbank.errors import MissingExtra, UsageError

from .entrance import Entrance, Refused, Whose
from .forwarding import Forwarder
from .process import MemoryProcess
from .remembering import Remembering, read_outcome

try:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route

    from lessonbank._base.serve import address, listening, server_of
except ImportError as missing:
    raise MissingExtra("the proxy (starlette, uvicorn)", extra="proxy") from missing

log = logging.getLogger("lessonbank")
_WAIT = 60.0
"""Seconds for which `"wait": true` waits."""
_LARGEST = 65_536
_SLOWEST = 10.0
"""Seconds for the body of a request to the proxy itself."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a proxy is made of. `memory` names the bank, as `lessonbank.proxy.memory.open_bank` reads it."""

    upstream: str
    memory: Mapping[str, Any]
    scope: str | None = None
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8788
    idle: float = 60.0
    most: int = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A proxy that answers requests at `url`. `stop` ends it, `memory_pid` is the process of its memory."""

    url: str
    stop: Callable[[], None]
    memory_pid: Callable[[], int | None]


def serve(settings: Settings, /, *, ready: Callable[[Serving], None] = lambda serving: None) -> None:
    """Serve until the process is told to end. `ready` is called once requests are answered.

    Raises:
        LessonbankError: the bank cannot be opened, or the address is taken.
        UsageError: a setting that cannot be.
    """
    asyncio.run(_serve(settings, ready))


async def _serve(settings: Settings, ready: Callable[[Serving], None]) -> None:
    entrance = Entrance(settings.scope, keys=settings.keys, is_local=_is_loopback(settings.host))
    memory = MemoryProcess({**settings.memory, "scope": entrance.scopes[0]})
    app = create_app(settings, entrance=entrance, memory=memory)
    with closing(listening(settings.host, settings.port)) as listener:
        await memory.start()
        server = server_of(
            app,
            log_level="critical",  # what goes wrong is said by ours, without the text of requests
            date_header=False,  # the headers are the upstream's
            timeout_graceful_shutdown=5,
        )
        stop = partial(setattr, server, "should_exit", True)
        ready(Serving(url=address(listener), stop=stop, memory_pid=lambda: memory.pid))
        await server.serve(sockets=[listener])


def create_app(settings: Settings, /, *, entrance: Entrance, memory: MemoryProcess) -> Starlette:
    """The proxy as an ASGI application. `memory` is started; the application closes it."""
    remembering = Remembering(memory, idle=settings.idle)
    forwarder = Forwarder(settings.upstream, entrance=entrance, remembering=remembering, most=settings.most)

    async def outcome(request: Request) -> JSONResponse:
        try:
            whose = entrance.whose(request.headers)
            return await _outcome(remembering, whose, await _json(request))
        except Refused as refusal:
            return _problem(refusal.status, str(refusal))
        except UsageError as error:
            return _problem(400, str(error))

    async def status(request: Request) -> JSONResponse:
        return JSONResponse({"memory": "up" if memory.pid else "down"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        watching = asyncio.create_task(remembering.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await remembering.close()
        await forwarder.close()

    own = [Route("/outcome", outcome, methods=["POST"]), Route("/status", status, methods=["GET"])]
    routes = [Mount("/lessonbank", routes=own), Mount("/", app=forwarder)]
    return Starlette(routes=routes, lifespan=lifespan)


async def _json(request: Request) -> dict[str, Any]:
    """The body of a request to the proxy itself.

    Raises:
        UsageError: no JSON object, or not sent as one (a web page cannot send that type without being asked first).
    """
    size = request.headers.get("content-length", "")
    if not size.isascii() or not size.isdigit() or int(size) > _LARGEST:
        raise UsageError(f"send at most {_LARGEST} bytes, and say how many")
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise UsageError("send a JSON object with content-type: application/json")
    try:
        async with asyncio.timeout(_SLOWEST):
            body: object = await request.json()
    except TimeoutError:
        raise UsageError(f"the body took more than {_SLOWEST:g} seconds: send it again") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise UsageError('send a JSON object such as {"response": "chatcmpl-…", "outcome": "success"}')
    return cast("dict[str, Any]", body)


async def _outcome(remembering: Remembering, whose: Whose, body: dict[str, Any]) -> JSONResponse:
    outcome, reward = read_outcome(body.get("outcome"), body.get("reward"))
    conversation, response = body.get("conversation"), body.get("response")
    if not isinstance(conversation if conversation is not None else response, str):
        raise UsageError("name the conversation, or the id of one of its responses")
    run = remembering.settle(whose, conversation=conversation, response=response, outcome=outcome, reward=reward)
    if run is None:
        return _problem(404, "this proxy knows no such run")
    learned = await remembering.memory.drain(_WAIT) if body.get("wait") is True else None
    return JSONResponse({"run": run} | ({} if learned is None else {"learned": learned}))


def _problem(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": {"type": "lessonbank_proxy", "message": sentence}}, status)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
