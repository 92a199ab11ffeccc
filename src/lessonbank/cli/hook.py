"""`hook`: what the hooks of coding agents noted, and the resident process that answers them."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from . import _options as options
from ._output import say, show_json, show_table

Folder = Annotated[Path, typer.Argument(help="A folder of the repository. Default: this one.", show_default=False)]
app = typer.Typer(help="The hooks of coding agents: learn from noted sessions, see or stop their process.")


@app.command()
def learn(as_json: options.Json = False) -> None:
    """Learn now from every session that the hooks noted. The resident process does it, too, but later."""
    from lessonbank.hosts.sessions import Report, installed, learn_now

    total = Report()
    for place in installed():
        report = learn_now(place)
        total.learned += report.learned
        total.waiting += report.waiting
        total.lost += report.lost
    if as_json:
        show_json({"learned": total.learned, "waiting": total.waiting, "lost": total.lost})
    else:
        say(f"sessions learned: {total.learned}, waiting: {total.waiting}, without a transcript: {total.lost}")


@app.command()
def status(as_json: options.Json = False) -> None:
    """List the banks that hooks use, with their resident process and the sessions that wait."""
    from lessonbank.hosts.repositories import Repositories
    from lessonbank.hosts.sessions import installed

    found = [(place.options["bank"], place.process(), place.waiting(), place.problem()) for place in installed()]
    roots = Repositories().waiting()
    if as_json:
        told = [dict(zip(("bank", "process", "waiting", "problem"), one, strict=True)) for one in found]
        show_json(told)
        return
    rows = [(bank, process or "not running", waiting) for bank, process, waiting, _ in found]
    show_table("Hooks", ("bank", "process", "waiting"), rows)
    for bank, process, _, problem in found:
        if problem and not process:
            say(f"not running for {bank}: {problem}")
    for root, scope in roots:
        say(f"{root} has a memory of its own; to share {scope}: lessonbank hook share {quote(root)}")


@app.command()
def scope(folder: Folder = Path()) -> None:
    """Print the scope that sessions in a folder use, for the `--scope` of other commands."""
    from lessonbank.hosts.repositories import Repositories

    say(Repositories().look_up(str(folder)))


@app.command()
def share(folder: Folder = Path()) -> None:
    """Let a repository share the lessons of all that have the same origin. Say so only of a folder that you trust."""
    from lessonbank.hosts.repositories import Repositories

    scope, is_new = Repositories().share(str(folder))
    say(f"{'it shares' if is_new else 'it shared already'} the lessons of {scope}")


@app.command()
def stop() -> None:
    """End the resident processes. The next session of an agent starts them again."""
    from lessonbank.hosts.sessions import installed

    for place in installed():
        if process := place.process(stop=True):
            say(f"stopped: process {process} of {place.options['bank']}")
