"""`hook`: what the hooks of coding agents noted, and the resident process that answers them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import plural

from . import _options as options
from ._output import say, show_json, show_table, warn

if TYPE_CHECKING:
    from lessonbank.hosts.repositories import Repositories
    from lessonbank.hosts.sessions import Installed

app = typer.Typer(help="The hooks of coding agents: their sessions, process and scopes.", no_args_is_help=True)


@app.command()
def status(
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn now from every session that waits. The process does it later.")
    ] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="End the resident processes. The next session of an agent starts them again.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List the banks that hooks use, with their resident process and the sessions that wait."""
    from lessonbank.hosts.sessions import installed

    if learn and stop:
        raise typer.BadParameter("learn first, and stop with a second command", param_hint="--stop")
    (_learn if learn else _stop if stop else _show)(list(installed()), as_json=as_json)


def _learn(places: Sequence[Installed], *, as_json: bool) -> None:
    from lessonbank.errors import LessonbankError
    from lessonbank.hosts.sessions import Report, learn_now

    reports = list[Report]()
    for place in places:
        try:
            reports.append(learn_now(place))
        except LessonbankError as error:  # such as of a bank that is not there any more
            warn(f"nothing was learned for {place.options['bank']}: {error}")
    counts = {name: sum(getattr(report, name) for report in reports) for name in ("learned", "waiting", "lost")}
    sentence = "sessions learned: {learned}, waiting: {waiting}, without a transcript: {lost}".format(**counts)
    (show_json(counts) if as_json else say(sentence))
    if len(reports) < len(places):
        raise typer.Exit(3)


def _stop(places: Sequence[Installed], *, as_json: bool) -> None:
    ended = [(place.options["bank"], process) for place in places if (process := place.process(stop=True))]
    if as_json:
        show_json([{"bank": bank, "process": process} for bank, process in ended])
        return
    for bank, process in ended:
        say(f"stopped: process {process} of {bank}")


def _show(places: Sequence[Installed], *, as_json: bool) -> None:
    from lessonbank.hosts.repositories import Repositories
    from lessonbank.hosts.sessions import problem_in

    hooks = [(place.options["bank"], place.process(), place.waiting(), problem_in(place.folder)) for place in places]
    if as_json:
        show_json([dict(zip(("bank", "process", "waiting", "problem"), hook, strict=True)) for hook in hooks])
        return
    rows = [(bank, process or "not running", waiting) for bank, process, waiting, _ in hooks]
    show_table("Hooks", ("bank", "process", "waiting"), rows)
    for bank, process, _, problem in hooks:
        if problem and not process:
            say(f"not running for {bank}: {problem}")
    for root, scope in Repositories().waiting():
        say(f"{root} has a memory of its own; to share {scope}: lessonbank hook scope --share {quote(root)}")


@app.command()
def scope(
    folder: Annotated[
        Path, typer.Argument(help="A folder of the repository. Default: this one.", show_default=False)
    ] = Path(),
    share: Annotated[
        bool, typer.Option("--share", help="Let it share the lessons of all with its origin: only if you trust it.")
    ] = False,
    move: Annotated[
        bool, typer.Option("--move", help="Move what is in the scope `coding` to the scopes of its repositories.")
    ] = False,
    by: options.MaybeBy = None,
) -> None:
    """Print the scope that sessions in a folder use, for the `--scope` of other commands.

    With --move, sessions of earlier versions are learned again in the scopes of their repositories, as far as their
    transcripts are there to say which. Lessons that a person approved are written there in the name of --by.
    """
    from lessonbank.hosts.repositories import Repositories

    if move and share:
        raise typer.BadParameter("share first, and move with a second command", param_hint="--move")
    if move:
        _move(Repositories(), by)
    elif share:
        scope, is_new = Repositories().share(str(folder))
        say(f"{'it shares' if is_new else 'it shared already'} the lessons of {scope}")
    else:
        say(Repositories().look_up(str(folder)))


def _move(repositories: Repositories, by: str | None) -> None:
    from lessonbank.hosts.moving import move
    from lessonbank.hosts.sessions import installed, open_bank

    if not by:
        raise typer.BadParameter("say who moves them: approved lessons are written in your name", param_hint="--by")
    for place in installed():
        with open_bank(place.options) as bank:
            report = move(bank, repositories, by=by)
        for scope, runs in report.runs.items():
            say(f"{plural(runs, 'run')} of {place.options['bank']} moved to {scope}")
        stay = f"{plural(report.stay, 'run')} without a transcript that says the folder"
        say(f"{plural(report.lessons, 'lesson')} moved; what stays: {stay}")
