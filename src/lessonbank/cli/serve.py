"""`serve`: the bank as an HTTP API for agents on many machines."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from lessonbank.errors import UsageError, importing

from . import _options as options
from ._bank import needs_bank
from ._output import progress_console, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from starlette.types import ASGIApp


def serve(
    context: typer.Context,
    bank: Annotated[
        str | None,
        typer.Option("--bank", envvar="LESSONBANK_BANK", help="The bank's file or URL.", show_default=False),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where it listens. TLS is a proxy's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 8787,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = 120.0,
    embedder: options.Embedder = None,
    domain: options.Domain = "general",
    profile: options.Profile = "default",
    trust: options.Trust = "open",
    holdout: options.Holdout = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Leave submitted runs to `lessonbank worker`, and learn none here.")
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Make the bank if it is not there yet.")] = False,
    largest: Annotated[int, typer.Option("--largest", min=1000, help="Bytes of the largest request.")] = 8_000_000,
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Show the review pages at /review, to holders of a reviewer's or admin's key."),
    ] = False,
    public_url: Annotated[
        list[str] | None,
        typer.Option("--public-url", help="Where people open the pages, such as https://bank.example.com."),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option("--user-header", help="The header in which a proxy names the people that it signed in."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option("--trusted-proxy", help="The address of that proxy: nobody else may set the header."),
    ] = None,
    user_scope: Annotated[
        str | None, typer.Option("--user-scope", help="The tenant of these people: this scope and all below it.")
    ] = None,
    user_role: Annotated[str, typer.Option("--user-role", help="What they may do: reader or reviewer.")] = "reader",
    try_out: Annotated[
        bool, typer.Option("--try", help="Start a PostgreSQL, a bank, a key and a worker of its own, in --folder.")
    ] = False,
    folder: Annotated[Path, typer.Option("--folder", help="Where --try keeps its data.")] = Path("lessonbank-try"),
) -> None:
    """Serve a bank to agents on many machines. `lessonbank keys add` makes their keys.

    They connect with lessonbank.connect("https://…"). Ctrl-C or a SIGTERM ends it after the requests under way.
    With --try, one command starts all that a try-out needs, and prints what to paste into an agent.
    """
    if bank is None and not try_out:
        raise UsageError("say which bank with --bank, or try it out with --try")
    if try_out and "bank" in options.on_the_line(context):
        raise UsageError("--try makes a bank of its own: give --bank or --try, not both")
    if bank is not None and not new and not try_out:
        needs_bank(bank)
    with importing("lessonbank serve --try" if try_out else "a server", extra="try" if try_out else "server"):
        from lessonbank.http.service.application import Limits
    logging.basicConfig(format="%(message)s")
    logging.getLogger("lessonbank.server").setLevel(logging.INFO)
    settings = options.settings_of(
        options.model_of(model, base_url, timeout),
        domain=domain,
        profile=profile,
        embedder=embedder,
        trust=trust,
        holdout=holdout,
        submit="worker" if workers or try_out else "here",
    )
    if bank is None or try_out:
        _try(folder, settings, port, Limits(body=largest))
    else:
        origins = (public_url or []) if pages or public_url else None
        users = _users(user_header, trusted_proxy, user_scope, user_role)
        anyio.run(partial(_serve, bank, settings, host, port, Limits(body=largest), origins, users))


def _users(header: str | None, proxies: list[str] | None, scope: str | None, role: str) -> Any:
    """People whom a proxy signs in; `None` where no option speaks of them. Raises UsageError."""
    if header is None and not proxies and scope is None:
        return None
    if header is None or not proxies or scope is None:
        raise UsageError("--user-header, --trusted-proxy and --user-scope go together: give all of them")
    from lessonbank.http.service.proxy_users import ProxyUsers

    return ProxyUsers(header, proxies, scope, role)  # type: ignore[arg-type]


def _review() -> Callable[..., ASGIApp]:
    with importing("lessonbank serve --pages", extra="pages"):
        from lessonbank.http.service.review import review
    return review


def _try(folder: Path, settings: dict[str, Any], port: int, limits: Any) -> None:
    with importing("lessonbank serve --try", extra="try"):
        from lessonbank.http.service import tryout

    def ready(started: tryout.TryOut) -> None:
        say(f"lessonbank serves {started.url}/v1 to this machine. Ctrl-C ends it.")
        say(f"Its data: {started.folder} (start it again with this folder, and it goes on with them)")
        say(f"Its database: {started.database}")
        say(f"See what it learns: {started.pages} (the link works once)")
        say(f"A key for agents: {started.key}")
        say("Paste into Python (pip install 'lessonbank[client]'):")
        for line in ("", *started.lines.splitlines(), ""):
            say(line)

    tryout.try_out(folder, port=port, settings=settings, limits=limits, ready=ready)


async def _serve(
    bank: str,
    settings: dict[str, Any],
    host: str,
    port: int,
    limits: Any,
    origins: list[str] | None,
    users: Any,
) -> None:
    from lessonbank import connect_async
    from lessonbank.http.service.application import application
    from lessonbank.http.service.serving import serve as run

    add_pages = None if origins is None else _review()
    memory = await connect_async(bank, scope="default", **settings)

    def made(url: str) -> FastAPI:
        at = {url, f"http://localhost:{url.rpartition(':')[2]}", *(origins or ())}
        pages = add_pages(memory, origins=at, users=users) if add_pages else None
        return application(memory, limits=limits, close=True, review=pages, users=users)

    await run(made, host=host, port=port, ready=lambda url: say(f"lessonbank serves {url}/v1", to=progress_console))
