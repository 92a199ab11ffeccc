"""`mcp`: the bank as tools of any agent that speaks the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from lessonbank._base.aio import first_error
from lessonbank.contracts.retrieve_options import RetrieveOptions

from . import _options as options
from ._output import progress_console, say

KEY = "LESSONBANK_MCP_KEY"
_Hosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="With --http: a name the server is called by, as NAME:PORT or NAME:*."),
]
_Origins = Annotated[
    list[str] | None, typer.Option("--allow-origin", help="With --http: a web page's origin that may call.")
]


@options.takes_retrieve_options
def mcp(
    context: typer.Context,
    bank: options.Bank,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", envvar="LESSONBANK_SCOPE", help="Whose memory: a path such as acme/support.", show_default=False
        ),
    ] = None,
    repository: Annotated[
        bool, typer.Option("--repository", help="The scope of the repository in this folder, as coding agents use it.")
    ] = False,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = 120.0,
    embedder: options.Embedder = None,
    domain: options.Domain = "general",
    trust: options.Trust = "open",
    holdout: options.Holdout = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, and not over stdin and stdout.")] = False,
    host: Annotated[str, typer.Option("--host", help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With --http; 0: any free one.")] = 8765,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            envvar="LESSONBANK_MCP_KEY_FILE",
            help=f"With --http: a file with `KEY SCOPE` on each line. Without: the key in {KEY}, for --scope.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="A tool that is not offered: recall_again or remember.")
    ] = None,
    tell: Annotated[
        bool, typer.Option("--tell", help="Offer the tool tell too: for your own program or a person, never an agent.")
    ] = False,
    allow_host: _Hosts = None,
    allow_origin: _Origins = None,
    **asked: Any,
) -> None:
    """Serve the bank to an agent as tools: recall, recall_again, record, remember, why. It approves and erases nothing.

    An MCP client starts this command and speaks with it over stdin and stdout. --model decides how runs ended and
    draws lessons; without, runs wait until somebody tells (`lessonbank tell`). What an agent asks of recall
    never widens what --trusted and the like say here.
    """
    from lessonbank.mcp import serve_stdio

    if not scope and not repository:
        raise typer.BadParameter("say whose memory it is, or --repository", param_hint="--scope")
    if repository and "scope" in options.on_the_line(context):
        raise typer.BadParameter("give --scope or --repository, not both", param_hint="--repository")
    scope = _of_repository(bank) if repository or not scope else scope
    judge = options.model_of(model, base_url, timeout)
    settings = options.settings_of(judge, domain=domain, embedder=embedder, trust=trust, holdout=holdout)
    settings |= {"retrieve": RetrieveOptions(**options.given(asked)), "without": without, "tells": tell}
    if not http:
        _run(partial(serve_stdio, bank, scope=scope, **settings))
        return
    from lessonbank.mcp import Keys, serve_http

    keys = Keys.read(key_file, scope=scope) if key_file else Keys(_from_environment(scope))
    _run(
        partial(
            serve_http,
            bank,
            keys=keys,
            host=host,
            port=port,
            allowed_hosts=allow_host or (),
            allowed_origins=allow_origin or (),
            ready=_say_where,
            scope=scope,
            **settings,
        )
    )


def _of_repository(bank: str) -> str:
    from lessonbank import connect
    from lessonbank.hosts.repositories import COMMON, Repositories
    from lessonbank.hosts.sessions import is_used

    def holds(scope: str) -> bool:
        with connect(bank, scope=COMMON) as memory:
            return is_used(memory.scoped(scope))

    return Repositories().scope_of(str(Path.cwd()), is_used=holds).scope


def _from_environment(scope: str) -> dict[str, str]:
    key = os.environ.get(KEY, "").strip()
    return {key: scope} if key else {}


def _run(serve: Callable[[], Awaitable[None]]) -> None:
    """A failure is raised as itself, not as the group of the tasks it ended."""
    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:
        raise first_error(group) from None


def _say_where(address: str) -> None:
    say(f"lessonbank serves MCP on {address}", to=progress_console)
