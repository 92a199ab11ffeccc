"""The command line: thin commands over the public API.

Exit codes: 0 done; 1 it failed, one sentence on stderr says why; 2 the command was called wrongly; 3 done in part:
some lines were skipped or some runs wait for another try, and the report says which; 130 it was interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lessonbank._version import VERSION
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.guard import one_line

from ._output import replace_unknown_letters
from ._plugins import Commands
from .carry import backup, export, import_
from .curate import approve, quarantine, restore, retire
from .demo import demo
from .doctor import doctor
from .erase import purge
from .formats import formats
from .learn import learn
from .lift import explain, lift
from .look import lessons, retrieve
from .timeline import bisect, diff, history, rollback

app = typer.Typer(
    name="lessonbank",
    cls=Commands,
    help="Agents that learn from their finished tasks, the failed ones included.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(learn)
app.command()(formats)
app.command()(retrieve)
app.command()(lessons)
app.command()(lift)
app.command()(explain)
app.command()(retire)
app.command()(restore)
app.command()(approve)
app.command()(quarantine)
app.command()(history)
app.command()(diff)
app.command()(rollback)
app.command()(bisect)
app.command()(purge)
app.command()(backup)
app.command()(export)
app.command("import")(import_)
app.command()(doctor)


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
    """Run a command; an error of this package is one sentence on stderr and an exit code, never a traceback."""
    replace_unknown_letters()
    try:
        app()
    except LessonbankError as error:
        print(f"lessonbank: {one_line(str(error), limit=2000)} [{error.code}]", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
