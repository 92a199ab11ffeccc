"""The command line: thin commands over the public API.

Exit codes: 0 done; 1 it failed, one sentence on stderr says why; 2 the command was called wrongly; 3 done in part:
some lines were skipped or some runs wait for another try, and the report says which; 130 it was interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from copy import copy
from typing import Annotated, Any, cast

import typer

from lessonbank._version import VERSION
from lessonbank.errors import LessonbankError, UsageError, printable

from . import history, hook, keys, lessons, runs
from ._command import Command
from ._output import replace_unknown_letters, to_nowhere
from .demo import demo
from .doctor import doctor
from .explain import explain
from .files import backup, export, import_, restore, salvage
from .install import install
from .learn import learn
from .lift import lift
from .mcp import mcp
from .plugins import KNOWN, Commands
from .proxy import proxy
from .purge import purge
from .recalls import recalls
from .reflect import reflect
from .retrieve import retrieve
from .review import review
from .serve import serve
from .tell import tell
from .trial import trial
from .week import week
from .worker import worker

_WRONG_CALL = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""What every error about options and arguments derives from; typer has no name for it in all its releases."""

app = typer.Typer(
    name="lessonbank",
    cls=Commands,
    help="Agents that learn from their finished tasks, the failed ones included.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = {
    "Learn and look": (demo, learn, tell, retrieve, explain, lift, trial, reflect, recalls),
    "Keep a bank": (import_, export, backup, restore, salvage, purge, doctor),
    "Agents, machines and people": (install, week, mcp, proxy, serve, worker, review),
}
_GROUPS = {"Learn and look": (lessons, runs, history), "Agents, machines and people": (hook, keys)}
for panel, commands in _COMMANDS.items():
    for command in commands:
        app.command(command.__name__.removesuffix("_"), cls=Command, rich_help_panel=panel)(command)
for panel, groups in _GROUPS.items():
    for group in groups:
        app.add_typer(group.app, name=group.__name__.rpartition(".")[2], rich_help_panel=panel)
        for command_info in group.app.registered_commands:
            command_info.cls = Command


def _print_version(wanted: bool) -> None:
    if wanted:
        print(VERSION)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the release and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Agents that learn from their finished tasks, the failed ones included."""


def main() -> None:
    """Run a command. An error is one sentence on stderr and an exit code, never a traceback."""
    gc.set_threshold(20_000, 20, 20)  # what a command loads stays: looking at it again and again takes 40 ms
    # numpy's threads wait for their next product by counting, which takes a processor 60 ms; there are only small ones.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    replace_unknown_letters()
    try:
        code = _narrowed(*sys.argv[1:2])(prog_name="lessonbank", standalone_mode=False)
        sys.stdout.flush()
    except LessonbankError as error:
        sys.exit(_failed(str(error), error.code, exit_code=2 if isinstance(error, UsageError) else 1))
    except _WRONG_CALL as error:
        sys.exit(_refused(error))
    except typer.Abort:
        sys.exit(_failed("interrupted", "interrupted", exit_code=130))
    except BrokenPipeError:
        to_nowhere()
        sys.exit(0)
    except SystemExit as left:  # so does rich end where the reader of a help has left
        sys.exit(0 if isinstance(left.__context__, BrokenPipeError) else left.code)
    sys.exit(code if isinstance(code, int) else 0)


def _narrowed(word: str = "", /) -> typer.Typer:
    """The command line with the command that is called alone: to make all of them takes a twentieth of a second."""
    narrow = copy(app)
    narrow.registered_commands = [command for command in app.registered_commands if command.name == word]
    narrow.registered_groups = [group for group in app.registered_groups if group.name == word]
    return narrow if narrow.registered_commands or narrow.registered_groups or word in KNOWN else app


def _failed(sentence: str, code: str, /, *, exit_code: int) -> int:
    print(f"lessonbank: {printable(sentence, most=1000)} [{code}]", file=sys.stderr)
    return exit_code


def _refused(error: Any) -> int:
    """A call that cannot be meant; without any word it gets the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    sentence = str(error.format_message()).replace(": Value error, ", ": ").rstrip(".")
    where = f": see `{error.ctx.command_path} --help`" if getattr(error, "ctx", None) else ""
    return _failed(f"{sentence}{where}", UsageError.code, exit_code=2)
