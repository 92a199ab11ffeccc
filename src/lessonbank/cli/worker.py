"""`worker`: learns from the runs that other processes submitted, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessonbank._base.plural import plural

from . import _options as options
from ._bank import check_on, needs_bank
from ._output import say, show_json, warn

if TYPE_CHECKING:
    from lessonbank.http.workers import Worked, Worker


def worker(
    place: options.Place = None,
    bank: options.MaybeBank = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", min=1, help="Learn from so many runs at once.", show_default="4, or 500 by batch"
        ),
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask by the provider's batch API: about half the price, within a day.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, help="Calls of the model a minute, at most.", show_default=False),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option("--tokens-per-day", min=1, help="Tokens that a scope may use on a day.", show_default=False),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            "--cost-per-day", min=0.001, help="US dollars that a scope may spend on a day.", show_default=False
        ),
    ] = None,
    tries: Annotated[int, typer.Option("--tries", min=1, help="Give a run up after so many tries.")] = 8,
    drain: Annotated[bool, typer.Option("--drain", help="End when no run can be taken.")] = False,
    domain: options.Domain = "general",
    profile: options.Profile = "default",
    embedder: options.Embedder = None,
    timeout: options.Timeout = 120.0,
    as_json: options.Json = False,
) -> None:
    """Learn from runs that were left to workers, in every scope of the bank. Start as many workers as you like.

    SIGTERM or Ctrl+C ends it: runs under way have 25 seconds, then they are given back. Exit code 3: a run failed.
    """
    from lessonbank import Model
    from lessonbank.errors import UsageError
    from lessonbank.http.workers import Budget

    bank = options.one_bank(place, bank)
    needs_bank(bank)
    if batch and model is None:
        raise UsageError("--batch needs a provider's model: give --model, such as openai:gpt-5-mini")
    options.model_of(model, base_url)
    logging.basicConfig(format="lessonbank: %(message)s")
    at_once = concurrency or (500 if batch else 4)
    how: dict[str, Any] = {"timeout": timeout, "concurrency": 2 * at_once, "rate": rate, "batch": batch}
    named = Model(model, base_url=base_url, **how) if model else None
    settings = options.settings_of(named, domain=domain, profile=profile, embedder=embedder, submit="worker")
    budget = Budget(tokens=tokens, cost=cost) if tokens or cost else None
    about = {"concurrency": at_once, "tries": tries, "budget": budget}
    worked = asyncio.run(_work(bank, settings, about, drain=drain))
    if as_json:
        show_json(worked)
    else:
        say(
            f"{plural(worked.learned, 'run')} learned, {plural(worked.failed, 'try', 'tries')} failed, "
            f"{plural(worked.given_up, 'run')} given up, {worked.put_off} put off"
        )
    if worked.failed or worked.given_up:
        raise typer.Exit(3)


async def _work(bank: str, settings: dict[str, Any], about: dict[str, Any], *, drain: bool) -> Worked:
    import lessonbank
    from lessonbank.http.workers import Worker

    async with await lessonbank.connect_async(bank, scope="default", **settings) as memory:
        check_on(memory.settings)
        worker = Worker(memory, **about)
        _stop_on_signals(worker)
        if not drain:
            warn("waiting for runs; SIGTERM or Ctrl+C ends this worker")
        return await worker.run(drain=drain)


def _stop_on_signals(worker: Worker) -> None:
    """Also where the event loop has no signal handlers of its own."""
    loop = asyncio.get_running_loop()

    def stop(_: int, __: object) -> None:
        loop.call_soon_threadsafe(worker.stop)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
