"""Puts what a server offers behind the official SDK: for HTTP, and for programs that have a server in process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server as LowServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import AnyHttpUrl, BaseModel

from lessonbank._version import VERSION
from lessonbank.contracts.retrieve_options import RetrieveOptions

from .memory import Memory
from .offer import NAME, TITLE, Offer, ProtocolError, memory_of
from .tools import Caller

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lessonbank.wiring import Place

R = TypeVar("R", bound=BaseModel)
_METHODS: Final[dict[str, tuple[type[BaseModel], type[BaseModel]]]] = {
    "tools/list": (PaginatedRequestParams, ListToolsResult),
    "tools/call": (CallToolRequestParams, CallToolResult),
    "resources/list": (PaginatedRequestParams, ListResourcesResult),
    "resources/templates/list": (PaginatedRequestParams, ListResourceTemplatesResult),
    "resources/read": (ReadResourceRequestParams, ReadResourceResult),
    "prompts/list": (PaginatedRequestParams, ListPromptsResult),
    "prompts/get": (GetPromptRequestParams, GetPromptResult),
}
"""What the SDK makes of the data of a request, and of its answer."""
_BEARER: Final = AuthSettings(issuer_url=AnyHttpUrl("https://localhost"), resource_server_url=None)
"""The SDK asks for an issuer of tokens. There is none: keys are handed out by whoever runs the server."""


def server(
    where: Place,
    /,
    *,
    scope: str,
    retrieve: RetrieveOptions | None = None,
    without: Collection[str] | None = None,
    tells: bool = False,
    **settings: Any,
) -> Server:
    """An MCP server for the bank at `where`, to run, to mount or to call in process.

    Takes what `connect_async` takes. Tools answer for `scope` alone. `retrieve`: what holds for each recall; an agent
    can make it stricter, and never wider. `without`: names of `OPTIONAL` tools that are not offered; by default none,
    and all with the paper's profile. `tells`: whether the client is no agent, so that its word on an end counts.
    Raises UsageError for another name.
    """
    return Server(memory_of(where, scope=scope, retrieve=retrieve, without=without, tells=tells, **settings))


class Server(LowServer[Memory]):
    """The SDK's server with the tools of this package."""

    def __init__(self, memory: Memory, /) -> None:
        self.offer = Offer(memory)
        about = self.offer.instructions
        super().__init__(NAME, title=TITLE, instructions=about, version=VERSION, lifespan=_serving)
        for method, (takes, gives) in _METHODS.items():
            self.add_request_handler(method, takes, partial(self._answer, gives))

    def app(self, keys: TokenVerifier, /, *, host: str, security: TransportSecuritySettings) -> ASGIApp:
        """The server over HTTP: it answers only calls that bring a key, each in the scope of its key."""
        return self.streamable_http_app(host=host, transport_security=security, auth=_BEARER, token_verifier=keys)

    async def _answer(self, gives: type[R], ctx: _Context, params: BaseModel) -> R:
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            answer = await self.offer.answer(ctx.method, given, _caller(ctx))
        except ProtocolError as error:
            raise MCPError(code=error.code, message=str(error)) from None
        return gives.model_validate(answer)


_Context = ServerRequestContext[Memory, Any]


@asynccontextmanager
async def _serving(of: LowServer[Memory]) -> AsyncGenerator[Memory]:
    assert isinstance(of, Server)
    async with of.offer.memory.serving() as memory:
        yield memory


def _caller(ctx: _Context) -> Caller:
    token = get_access_token()
    headers: Mapping[str, str] | None = getattr(ctx.request, "headers", None)
    session = "" if headers is None else headers.get("mcp-session-id")
    return Caller(ctx.lifespan_context, session, token.claims if token else None)
