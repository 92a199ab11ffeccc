"""`proxy`: a memory for any client of an OpenAI- or Anthropic-compatible API."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from lessonbank.contracts.retrieve_options import RetrieveOptions

from . import _options as options
from ._output import warn


@options.takes_retrieve_options
def proxy(
    context: typer.Context,
    bank: options.Bank,
    upstream: Annotated[
        str, typer.Option("--upstream", help="The model's server, such as https://api.openai.com.", show_default=False)
    ],
    scope: Annotated[
        str | None,
        typer.Option("--scope", envvar="LESSONBANK_SCOPE", help="Whose memory, for all who reach the proxy."),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Instead of --scope: a JSON file, from key of the proxy to scope.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where it listens. Another one needs --keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 8788,
    idle: Annotated[
        float, typer.Option("--idle", min=0.0, help="Seconds without a request after which an answer ends its run.")
    ] = 60.0,
    cures: Annotated[
        bool, typer.Option("--cures/--no-cures", help="Tell what got past the failure of a tool before.")
    ] = True,
    holdout: options.Holdout = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    domain: options.Domain = "general",
    embedder: options.Embedder = None,
    timeout: options.Timeout = 120.0,
    **asked: Any,
) -> None:
    """Put a memory between a client and its model: point the client's base_url at the address that is printed.

    Every conversation gets fitting lessons, and every finished run is learned from. Requests and responses are
    otherwise untouched.
    """
    from lessonbank.proxy.entrance import read_keys
    from lessonbank.proxy.server import Settings, serve

    if keys is not None:
        if "scope" in options.on_the_line(context):
            raise typer.BadParameter("the keys say whose memory it is: leave it out", param_hint="--scope")
        scope = None  # a scope of the environment is that of the commands
    options.model_of(model, base_url, timeout)
    named = {"name": model, "base_url": base_url, "timeout": timeout} if model else None
    memory: dict[str, Any] = {"bank": bank, "model": named, "domain": domain, "embedder": embedder, "holdout": holdout}
    memory["cures"] = cures
    memory["retrieve"] = RetrieveOptions(**options.given(asked)).keywords
    logging.basicConfig(format="lessonbank: %(message)s")
    settings = Settings(
        upstream=upstream,
        memory=memory,
        scope=scope,
        keys=None if keys is None else read_keys(keys),
        host=host,
        port=port,
        idle=idle,
    )
    serve(settings, ready=lambda at: warn(f"{at.url} is {upstream} with a memory; end it with Ctrl-C"))
