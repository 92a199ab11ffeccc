"""`hook`: what the hooks of coding agents noted, and the resident process that answers them."""

from __future__ import annotations

import typer

from . import _options as options
from ._output import say, show_json, show_table

app = typer.Typer(help="The hooks of coding agents: learn from noted sessions, see or stop their process.")


@app.command()
def learn(as_json: options.Json = False) -> None:
    """Learn now from every session that the hooks noted. The resident process does it, too, but later."""
    from lessonbank.hooks.sessions import Report, installed, learn_now

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
    from lessonbank.hooks.sessions import installed

    found = [(place.options["bank"], place.process(), place.waiting()) for place in installed()]
    if as_json:
        show_json([{"bank": bank, "process": process, "waiting": waiting} for bank, process, waiting in found])
    else:
        rows = [(bank, process or "not running", waiting) for bank, process, waiting in found]
        show_table("Hooks", ("bank", "process", "waiting"), rows)


@app.command()
def stop() -> None:
    """End the resident processes. The next session of an agent starts them again."""
    from lessonbank.hooks.sessions import installed

    for place in installed():
        if process := place.process(stop=True):
            say(f"stopped: process {process} of {place.options['bank']}")
