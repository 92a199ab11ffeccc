"""`review`: pages in the browser on which a person reads what was learned, and decides."""

from __future__ import annotations

import getpass
from functools import partial
from typing import Annotated, Any

import anyio
import typer

from lessonbank.errors import importing

from . import _options as options
from ._bank import needs_bank
from ._output import progress_console, say


def review(
    place: options.Place = None,
    bank: options.MaybeBank = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", envvar="LESSONBANK_SCOPE", help="The scope that is shown first.", show_default=False),
    ] = None,
    by: options.MaybeBy = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    embedder: options.Embedder = None,
) -> None:
    """Open the browser on pages that show what was learned, beside its evidence, and let you decide.

    Only this machine can reach them, and only with the link that is printed. It works once. End with Ctrl-C.
    """
    bank = options.one_bank(place, bank)
    needs_bank(bank)
    opening = "the bank" if "://" in bank else bank  # an address can hold a password
    say(f"opening {opening}, which can take some seconds", to=progress_console)
    with importing("lessonbank review", extra="pages"):
        from lessonbank.pages.serving import serve

    settings: dict[str, Any] = {"embedder": embedder}

    def ready(address: str) -> None:
        say(f"the pages are at {address} (the link works once; end with Ctrl-C)", to=progress_console)
        if browser:
            import webbrowser

            webbrowser.open(address)

    name = by or getpass.getuser()
    anyio.run(partial(serve, bank, scope=scope, name=name, port=port, ready=ready, settings=settings))
