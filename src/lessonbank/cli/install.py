"""`install`: put lessonbank into a coding agent, and take it out again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import path_of
from ._output import say, show_text

_COMMON_AGAIN = "`lessonbank hook scope --move` moves them, `--scope coding` goes on with them"
_NAMES = ("claude-code", "codex", "gemini-cli", "opencode", "qwen-code", "cline")


@options.takes_retrieve_options
def install(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(help=f"The coding agent: {', '.join(_NAMES)}.", metavar="AGENT")],
    project: Annotated[bool, typer.Option("--project", help="For the project in this folder only.")] = False,
    bank: Annotated[
        str | None,
        typer.Option("--bank", envvar="LESSONBANK_BANK", help="The bank's file. Default: one in your home folder."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", envvar="LESSONBANK_SCOPE", help="One memory for all. Default: one for each repository."
        ),
    ] = None,
    model: options.Model = None,
    holdout: options.Holdout = None,
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="Also show lessons of others that nobody approved yet.")
    ] = False,
    within: Annotated[
        float, typer.Option("--within", min=0.01, max=2.0, help="Seconds that a prompt waits for its lessons at most.")
    ] = 0.14,
    mcp: Annotated[
        bool,
        typer.Option(
            "--mcp", help="Also the MCP server and /lessons. A session without a terminal waits seconds for it."
        ),
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="A tool that the MCP server does not offer: recall_again or remember."),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print what would be written, and write nothing.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take out what this command wrote, and nothing else. The bank stays.")
    ] = False,
    **asked: Any,
) -> None:
    """Give a coding agent the lessons of its earlier sessions.

    Writes hooks. What the agent asks you to trust you confirm yourself.
    """
    from lessonbank import Evidence
    from lessonbank.guard import check_scope
    from lessonbank.hosts import hosts
    from lessonbank.hosts import pieces as written
    from lessonbank.hosts.headless import MOST_A_DAY, model_of

    folder = Path.cwd() if project else None
    if remove:
        _check_removal(options.on_the_line(context))
        _remove(agent, folder)
        return
    Evidence(holdout=holdout or None)
    retrieve = _retrieve_options(asked, untrusted=untrusted)
    place = str(_file(bank) if bank else Path.home() / ".local/share/lessonbank/bank.db")
    host = _host(agent)
    if without:
        _check_left_out(without, is_served=mcp or host.name == "cline")
    is_own = model == "host"
    if is_own and mcp:
        raise UsageError("--model host is for the hooks alone: leave --mcp out, or name another model")
    named = model_of(host.name) if is_own else model
    wanted = hosts.Wanted(
        place, scope and check_scope(scope), named, holdout, retrieve, within, mcp, tuple(without or ())
    )
    pieces = hosts.pieces_of(host, wanted, folder)
    if show:
        show_text(written.preview(pieces) or "it is installed like this already")
        return
    for file in dict.fromkeys((*written.remove(hosts.leftovers(host, wanted, folder)), *written.add(pieces))):
        say(f"{'wrote' if file.exists() else 'removed'} {file}")
    say(f"bank: {place}, scope: {scope or 'one for each repository'}")
    if not scope and _has_common(place):
        say(f"lessons of earlier versions stay in one scope for all: {_COMMON_AGAIN}")
    if is_own:
        say(f"{host.title} itself judges sessions and writes lessons: about 3 requests of your account a session, ")
        say(f"at most {MOST_A_DAY} a day, in the background; what the session said and did is in them")
    say(f"now: {host.next_step}")
    say(_approving(place, retrieve, when="when it calls the tool `recall`" if host.name == "cline" else "at once"))


def _file(bank: str) -> Path:
    """The whole path of a bank's file. Raises UsageError: it is none."""
    if "://" in bank or bank == ":memory:":
        raise UsageError("hooks keep their bank in a file: give --bank PATH, whatever LESSONBANK_BANK says")
    return path_of(bank).resolve()


def _check_left_out(without: list[str], *, is_served: bool) -> None:
    """Raises BadParameter where no server is installed; UsageError for a tool that every server has."""
    from lessonbank.mcp.offer import offered_tools

    if not is_served:
        raise typer.BadParameter("there is no MCP server to leave a tool out of: add --mcp", param_hint="--without")
    offered_tools(without)


def _retrieve_options(asked: Mapping[str, Any], *, untrusted: bool) -> RetrieveKeywords:
    """What every recall of the sessions is asked with. Raises UsageError."""
    given = options.given(asked)
    if untrusted:
        if stricter := next((name for name in ("trusted", "own") if name in given), ""):
            raise typer.BadParameter(f"give --{stricter} or --untrusted, not both", param_hint="--untrusted")
        given["trusted"] = given["own"] = False
    if given.get("fit", "none") != "none":
        raise typer.BadParameter("hooks never ask a model while a prompt waits: leave it out", param_hint="--fit")
    given.setdefault("own", True)
    RetrieveOptions(**given)
    return given


def _has_common(bank: str) -> bool:
    """Whether the bank has lessons from before each repository had a scope of its own."""
    from lessonbank import File, connect
    from lessonbank.errors import LessonbankError
    from lessonbank.hosts.repositories import COMMON

    try:
        with connect(File(bank, read_only=True), scope=COMMON) as memory:
            return memory.admin.counts().lessons > 0
    except LessonbankError:  # it is not there yet, or the next session says what is wrong with it
        return False


def _approving(bank: str, asked: RetrieveKeywords, *, when: str) -> str:
    look = f"lessonbank review {quote(bank)}"
    if asked.get("trusted"):
        return f"new lessons wait until you approve them: {look}"
    if asked.get("own"):
        return f"lessons of your own sessions are shown {when}, those of others wait until you approve them: {look}"
    return f"new lessons are shown {when}; to look through them: {look}"


def _check_removal(given: Mapping[str, str]) -> None:
    """Refuse what a removal would ignore. Raises BadParameter."""
    if "show" in given:
        raise typer.BadParameter("--show writes nothing: give one of them", param_hint="--remove")
    ignored = [written for name, written in given.items() if name not in ("agent", "project", "remove")]
    if ignored:
        raise typer.BadParameter("it says how to install: leave it out with --remove", param_hint=ignored[0])


def _remove(agent: str, folder: Path | None) -> None:
    from lessonbank.hosts import hosts
    from lessonbank.hosts.pieces import remove

    changed = remove(hosts.pieces_of(_host(agent), hosts.Wanted(""), folder))
    for file in changed:
        say(f"{'changed' if file.exists() else 'removed'} {file}")
    if not changed:
        say(f"nothing of lessonbank was installed for {agent}")


def _host(name: str) -> Any:
    from lessonbank.hosts.hosts import HOSTS

    if sys.platform == "win32":
        raise UsageError("hooks for coding agents are not supported on Windows yet")
    if name not in HOSTS:
        raise typer.BadParameter(f"use one of {', '.join(HOSTS)}", param_hint="AGENT")
    return HOSTS[name]
