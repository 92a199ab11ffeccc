"""`runs`: what the agent did, how it was judged, and what still waits to be learned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import typer

from lessonbank._base.plural import counted
from lessonbank.contracts.records import Action, Outcome, Run, RunStatus, Trajectory

from . import _options as options
from ._bank import opened, warn_where_empty
from ._ids import run_id, short
from ._output import progress_console, say, show_json, show_table, show_text, warn, warn_of_more
from ._reviewing import KeyFile, reviewing

app = typer.Typer(help="Find runs, correct their verdicts, learn from those that wait.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="A run's id; 4 characters of its beginning or end will do.")]
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
    """List the runs of a scope, newest first."""
    with opened(bank, scope) as memory:
        found = memory.runs.list(
            outcome=outcome,
            status=status,
            text=text,
            metadata=options.pairs(metadata),
            limit=limit,
            after=run_id(memory, after) if after else None,
        )
        if not found:
            warn_where_empty(memory)
    _show_runs(f"{counted(len(found), 'run')} in {scope}", found, as_json=as_json)
    if not as_json:
        warn_of_more([run.trajectory.id for run in found], limit)


@app.command()
def show(id: Id, bank: options.Bank, scope: options.Scope, as_json: options.Json = False) -> None:
    """Show one run whole: its task, steps, answer and verdict."""
    with opened(bank, scope) as memory:
        run = memory.runs.get(run_id(memory, id))
    if as_json:
        show_json(run)
        return
    show_text("\n".join(_lines(run.trajectory)))
    verdict = run.verdict
    tried = f", tried {counted(run.tries, 'time')} by workers" if run.tries else ""
    rows = (
        ("id", run.trajectory.id),
        ("status", f"{run.status}{tried}"),
        *([("problem", run.problem)] if run.problem else []),
        ("verdict", f"{verdict.outcome} ({verdict.source}){': ' if verdict.reason else ''}{verdict.reason}"),
        ("recall", run.recall_id or "none"),
        ("metadata", json.dumps(run.metadata)),
    )
    show_table("\nWhat is known of it", ("field", "value"), rows)


@app.command()
def pending(
    bank: options.Bank,
    scope: options.Scope,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the runs that wait for a verdict or for their lessons, oldest first. `runs retry` learns from them."""
    with opened(bank, scope) as memory:
        found = memory.runs.pending(limit=limit, after=run_id(memory, after) if after else None)
    if as_json:
        show_json(found)
        return
    title = f"{counted(len(found), 'run')} of {scope} {'waits' if len(found) == 1 else 'wait'}"
    show_table(title, ("id", "task"), [(short(run.id), run.task) for run in found])
    warn_of_more([run.id for run in found], limit)


@app.command()
def retry(
    bank: options.Bank,
    scope: options.Scope,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    domain: options.Domain = "general",
    profile: options.Profile = "default",
    timeout: options.Timeout = 120.0,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Learn from at most this many.")] = 50,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these runs.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Learn from the oldest runs that wait, and from those that workers gave up. Exit code 3: some still wait."""
    settings = options.settings_of(options.model_of(model, base_url, timeout), domain=domain, profile=profile)
    with opened(bank, scope, **settings) as memory, progress_console.status("learning from runs that wait"):
        learned = memory.runs.retry(*[run_id(memory, id) for id in ids or ()], limit=limit)
        waiting = memory.admin.counts().pending + memory.runs.queue().failed
    if as_json:
        show_json({"learned": learned, "waiting": waiting})
    else:
        lessons = counted(sum(len(one.lessons) for one in learned), "new lesson")
        say(f"{len(learned)} tried, {lessons}, {counted(waiting, 'run still waits', 'runs still wait')}")
        for note in dict.fromkeys(note for one in learned for note in one.notes):
            warn(note)
    if waiting:
        raise typer.Exit(3)


@app.command()
def correct(
    id: Id,
    bank: options.Bank,
    scope: options.Scope,
    outcome: Annotated[Literal["success", "failure"], typer.Argument(help="How it ended.")],
    by: options.By,
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Put your word in the place of a run's verdict. Its lessons stay until somebody retires them."""
    with opened(bank, scope) as memory:
        whole = run_id(memory, id)
        runs = reviewing(memory, by, key_file).runs
        learned = runs.correct(whole, outcome=outcome, by=by, reason=reason)
    if as_json:
        show_json(learned)
        return
    say(f"run {short(whole)} ended in {outcome}, says {by}")
    for note in learned.notes:
        warn(note)


@app.command()
def audit(
    bank: options.Bank,
    scope: options.Scope,
    count: Annotated[int, typer.Argument(min=1, help="About how many runs to draw.")] = 20,
    by: Annotated[
        str | None, typer.Option("--by", envvar="LESSONBANK_BY", help="Who asks; the journal says it.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw judged runs for you to label, or list the drawn runs that wait. Answer with `runs correct`."""
    with opened(bank, scope) as memory:
        waiting = memory.runs.unlabelled()
        found = waiting or memory.runs.audit(count, by=by)
    wait = ("run of the last audit waits for a label", "runs of the last audit wait for a label")
    title = counted(len(found), *wait) if waiting else counted(len(found), "run to label", "runs to label")
    _show_runs(title, found, as_json=as_json)
    if not as_json and found:
        say("label each of them, from the top: lessonbank runs correct ID success|failure --by NAME")


def _show_runs(title: str, found: Sequence[Run], *, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    rows = [(short(r.trajectory.id), r.status, r.verdict.outcome, _source(r), r.trajectory.task) for r in found]
    show_table(title, _COLUMNS, rows)


def _source(run: Run) -> str:
    return "-" if run.verdict.outcome == "unknown" else run.verdict.source


def _lines(run: Trajectory) -> Iterator[str]:
    yield f"task: {run.task}"
    for number, step in enumerate(run.steps, 1):
        yield f"\nstep {number}"
        if step.thought:
            yield f"  thought: {step.thought}"
        if told := _told(step.action):
            yield f"  action: {told}"
        for seen in step.observations:
            yield f"  {seen.name or seen.source}{' (error)' if seen.is_error else ''}: {seen.text}"
    if run.answer:
        yield f"\nanswer: {run.answer}"
    if run.error:
        yield f"\nerror: {run.error}"


def _told(action: Action) -> str:
    calls = (f"{call.name}({json.dumps(call.arguments)})" for call in action.calls)
    return "; ".join(filter(None, (action.text, *calls)))
