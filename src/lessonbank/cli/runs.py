"""`runs`: what the agent did, how it was judged, and what still waits to be learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Outcome, Run, RunStatus

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import run_id, short
from ._output import say, show_json, show_table, warn_of_more

app = typer.Typer(help="Find runs, label a sample.", no_args_is_help=True)

_COLUMNS = ("id", "status", "outcome", "by", "task")


@app.command("list")
def list_(
    bank: options.Bank,
    scope: options.Scope,
    outcome: Annotated[Outcome | None, typer.Option("--outcome", help="Only runs that ended like this.")] = None,
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs of this status.")] = None,
    text: options.Text = None,
    metadata: options.Metadata = None,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the runs of a scope, newest first. `explain` shows one of them.

    With --status pending: those that wait for a verdict or for their lessons; `learn --waiting` learns from them.
    """
    with opened(bank, scope) as memory:
        runs = memory.runs.list(
            outcome=outcome,
            status=status,
            text=text,
            metadata=options.pairs(metadata),
            limit=limit,
            after=run_id(memory, after) if after else None,
        )
        if not runs:
            warn_where_empty(memory)
    _show_runs(f"{plural(len(runs), 'run')} in {scope}", runs, as_json=as_json)
    if not as_json:
        warn_of_more([run.trajectory.id for run in runs], limit)


@app.command()
def audit(
    bank: options.Bank,
    scope: options.Scope,
    count: Annotated[int, typer.Argument(min=1, help="About how many runs to draw.")] = 20,
    by: options.MaybeBy = None,
    as_json: options.Json = False,
) -> None:
    """Draw judged runs for you to label, or list the drawn runs that wait. Answer with `lessonbank tell`."""
    with opened(bank, scope) as memory:
        waiting = memory.runs.unlabelled()
        runs = waiting or memory.runs.audit(count, by=by)
    wait = ("run of the last audit waits for a label", "runs of the last audit wait for a label")
    title = plural(len(runs), *wait) if waiting else plural(len(runs), "run to label", "runs to label")
    _show_runs(title, runs, as_json=as_json)
    if not as_json and runs:
        say("label each of them, from the top: lessonbank tell ID success|failure --by NAME")


def _show_runs(title: str, runs: Sequence[Run], *, as_json: bool) -> None:
    if as_json:
        show_json(runs)
        return
    rows = [(short(r.trajectory.id), r.status, r.verdict.outcome, _source(r), r.trajectory.task) for r in runs]
    show_table(title, _COLUMNS, rows)


def _source(run: Run) -> str:
    return "-" if run.verdict.outcome == "unknown" else run.verdict.source
