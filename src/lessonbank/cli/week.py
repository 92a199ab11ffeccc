"""`week`: what memory did for coding agents in the last days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened
from ._output import say, show_json


def week(
    bank: Annotated[
        str | None,
        typer.Option("--bank", envvar="LESSONBANK_BANK", help="The bank's file. Default: the one of `install`."),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How many days back.")] = 7,
    as_json: options.Json = False,
) -> None:
    """Say what memory did for your coding agents: saw, learned, showed, what helped, what waits, what it cost."""
    from lessonbank.hosts.repositories import COMMON
    from lessonbank.hosts.week import week_of

    place = bank or str(Path.home() / ".local/share/lessonbank/bank.db")
    if bank is None and not Path(place).exists():
        raise UsageError(f"there is no bank at {place} yet: the first session of an agent after `install` makes it")
    since = datetime.now(UTC) - timedelta(days=days)
    with opened(place, COMMON) as memory:
        summary = week_of(memory, since)
    if as_json:
        show_json({"since": since.isoformat(), "bank": place, **summary.as_json()})
        return
    say(f"the last {days} days of {place}")
    for line in summary.lines(quote(place)):
        say(line)
