"""`learn`: turn recorded runs into lessons."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import anyio
import typer

from lessonbank import importers
from lessonbank._base.aio import gather
from lessonbank._base.checks import short_path
from lessonbank._base.extensions import extension_names
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Json, Learned, Outcome
from lessonbank.errors import FormatError, ModelUnavailable, printable

from . import _options as options
from ._accounts import Accounts
from ._bank import check_on, is_there, opened
from ._ids import run_id
from ._output import progress_bar, progress_console, say, show_json, show_table, warn
from ._report import Report, show

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank
    from lessonbank.contracts.records import Trajectory, Verdict
    from lessonbank.importers import Imported

INTERRUPTED = 130
_OF_LEARNING = {"outcome", "judge_all", "model", "base_url", "metadata", "jobs", "most", "waiting", "runs"}
"""Options that mean nothing where runs are only read."""


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    files: list[Path]
    format: str
    outcome: Outcome | None
    judge_all: bool
    jobs: int
    most: int | None
    metadata: Mapping[str, Json] | None
    success_at: float
    follow_links: bool

    def runs(self, file: Path, report: Report) -> Iterator[Imported]:
        """The runs of a file, as they are read; what cannot be read is noted in `report`."""
        for entry in self._entries(file, report):
            if isinstance(entry, importers.Skipped):
                report.note(entry)
                continue
            report.started += 1
            report.notes.update(entry.account.left)
            yield entry

    def room(self, report: Report) -> int:
        """How many runs may be learned next, at once."""
        return self.jobs if self.most is None else min(self.jobs, self.most - report.started)

    def _entries(self, file: Path, report: Report) -> Iterator[importers.Entry]:
        """One file among several that holds no run costs the others nothing."""
        try:
            yield from importers.read(
                file, format=self.format, success_at=self.success_at, follow_links=self.follow_links
            )
        except FormatError as error:
            if len(self.files) == 1:
                raise
            report.skip(file, str(error))


def learn(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders of recorded runs; .gz is read directly.", show_default=False),
    ] = None,
    bank: options.Bank = "",
    scope: options.Scope = "",
    waiting: Annotated[
        bool, typer.Option("--waiting", help="In place of FILES: learn from runs in the bank that wait.")
    ] = False,
    runs: Annotated[
        list[str] | None, typer.Option("--run", help="With --waiting: only the run of this id.", show_default=False)
    ] = None,
    formats: Annotated[bool, typer.Option("--formats", help="Only list the formats that can be read.")] = False,
    format: Annotated[str, typer.Option("--format", help="auto, or a name that --formats lists.")] = "auto",
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="success or failure, where there is no label.")
    ] = None,
    success_at: Annotated[float, typer.Option("--success-at", help="The reward from which a run is a success.")] = 1.0,
    judge_all: Annotated[
        bool, typer.Option("--judge", help="Let the model judge; ignore labels in the files.")
    ] = False,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    domain: options.Domain = "general",
    profile: options.Profile = "default",
    embedder: options.Embedder = None,
    timeout: options.Timeout = 120.0,
    metadata: options.Metadata = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Runs judged and extracted at once.")] = 4,
    most: Annotated[
        int | None, typer.Option("--most", min=1, help="Stop after this many new runs; with --waiting 50 by default.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Also read what links in a folder lead to elsewhere.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what each file holds, and what reading it leaves out.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Judge recorded runs and keep what they teach.

    Labels in the files count as ground truth. Reading the same file twice adds nothing. With --waiting: learn from the
    oldest runs that wait for a verdict or for their lessons, and from those that workers gave up. Exit code 3: some
    still wait, or lines were skipped.
    """
    if formats:
        _show_formats(as_json=as_json)
        return
    if dry_run:
        reading = {"format": format, "success_at": success_at, "follow_links": follow_links}
        _show_accounts(context, files or [], reading, as_json=as_json)
        return
    options.needs(
        {"--bank": bank, "--scope": scope, "FILES": files or waiting}, "learn needs it; --formats and --dry-run do not"
    )
    asked = options.model_of(model, base_url, timeout)
    settings = options.settings_of(asked, domain=domain, profile=profile, embedder=embedder, success_at=success_at)
    if waiting:
        of_files = {"jobs", "format", "follow_links"} & options.on_the_line(context).keys()
        if files or outcome or judge_all or metadata or of_files:
            raise typer.BadParameter(
                "the runs are taken as the bank has them: leave out the rest", param_hint="--waiting"
            )
        _learn_waiting(bank, scope, runs or [], settings, limit=most or 50, as_json=as_json)
        return
    if runs:
        raise typer.BadParameter("it names runs of the bank: give --waiting, too", param_hint="--run")
    files = files or []
    _check(files, format=format, outcome=outcome, judge_all=judge_all, model=model)
    plan = Plan(
        files,
        format=format,
        outcome=cast("Outcome | None", outcome),
        judge_all=judge_all,
        jobs=jobs,
        most=most,
        metadata=options.pairs(metadata),
        success_at=success_at,
        follow_links=follow_links,
    )
    _learn_files(plan, bank, scope, settings, as_json=as_json)


def _show_formats(*, as_json: bool) -> None:
    if as_json:
        show_json([{"name": name, "what": what} for name, what in importers.FORMATS])
    else:
        show_table("Formats", ("name", "what"), [(name, what.replace("`", "")) for name, what in importers.FORMATS])


def _show_accounts(context: typer.Context, files: list[Path], reading: dict[str, Any], *, as_json: bool) -> None:
    """The account of files that are only read: no bank is opened, and no model asked."""
    options.needs({"FILES": files}, "--dry-run reads them")
    if unmeant := options.on_the_line(context).keys() & _OF_LEARNING:
        raise typer.BadParameter(f"nothing is learned: leave out {', '.join(sorted(unmeant))}", param_hint="--dry-run")
    _check(files, format=reading["format"], outcome=None, judge_all=False, model=None)
    accounts = Accounts()
    for file in files:
        accounts.read(file, alone=len(files) == 1, **reading)
    accounts.show(as_json=as_json)
    if accounts.skipped:
        raise typer.Exit(3)


def _learn_waiting(
    bank: str, scope: str, ids: list[str], settings: dict[str, Any], /, *, limit: int, as_json: bool
) -> None:
    with opened(bank, scope, **settings) as memory, progress_console.status("learning from runs that wait"):
        learned = memory.runs.retry(*[run_id(memory, id) for id in ids], limit=limit)
        waiting = memory.admin.counts().pending + memory.runs.queue().failed
    if as_json:
        show_json({"learned": learned, "waiting": waiting})
    else:
        lessons = plural(sum(len(result.lessons) for result in learned), "new lesson")
        say(f"{len(learned)} tried, {lessons}, {plural(waiting, 'run still waits', 'runs still wait')}")
        for note in dict.fromkeys(note for result in learned for note in result.notes):
            warn(note)
    if waiting:
        raise typer.Exit(3)


def _learn_files(plan: Plan, bank: str, scope: str, settings: dict[str, Any], /, *, as_json: bool) -> None:
    import lessonbank

    report = Report()
    try:
        anyio.run(_run, plan, report, lambda: lessonbank.connect_async(bank, scope=scope, **settings))
    except KeyboardInterrupt:
        report.stopped = True
    if report.skipped and not report.total["runs"] and not report.stopped:
        raise FormatError(f"none of the files holds a run that can be read: {report.skipped[0]}")
    show(report, bank=bank, scope=scope, as_json=as_json)
    if report.gave_up:
        raise ModelUnavailable(_given_up(report))
    if report.stopped:
        raise typer.Exit(INTERRUPTED)
    if report.skipped or report.waiting:
        raise typer.Exit(3)


def _given_up(report: Report) -> str:
    phrase = plural(report.waiting, "run is kept and waits", "runs are kept and wait")
    why = f"stopped, because the model cannot be used ({report.unavailable})"
    return f"{why}. {phrase}: the same command goes on from there"


def _check(files: list[Path], *, format: str, outcome: str | None, judge_all: bool, model: str | None) -> None:
    """Refuse what cannot be meant before a bank is made."""
    if outcome not in (None, "success", "failure"):
        raise typer.BadParameter("use success or failure", param_hint="--outcome")
    if judge_all and outcome:
        raise typer.BadParameter("the model judges, or --outcome says it: not both", param_hint="--judge")
    if judge_all and not model:
        raise typer.BadParameter("it needs a model: name one with --model", param_hint="--judge")
    known = ("auto", *(name for name, _ in importers.FORMATS), *extension_names(importers.EXTENSIONS))
    if format not in known:
        raise typer.BadParameter(f"use one of {', '.join(known)}", param_hint="--format")
    if missing := [file for file in files if not is_there(file)]:
        raise typer.BadParameter(f"there is no file {short_path(missing[0])}", param_hint="FILES")


async def _run(plan: Plan, report: Report, open_bank: Callable[[], Coroutine[Any, Any, AsyncReasoningBank]]) -> None:
    async with await open_bank() as bank:
        check_on(bank.settings)
        with progress_bar() as bar:
            row = bar.add_task("", total=None)
            for file in plan.files:
                bar.update(row, description=f"learning {printable(file.name, most=60)}")
                runs = plan.runs(file, report)
                while not report.gave_up and (room := plan.room(report)) and (batch := list(islice(runs, room))):
                    await _learn_batch(bank, batch, plan, report)
                    bar.advance(row, len(batch))


async def _learn_batch(bank: AsyncReasoningBank, batch: list[Imported], plan: Plan, report: Report) -> None:
    await gather([partial(_learn_one, bank, run, plan, report) for run in batch], limit=len(batch))


async def _learn_one(bank: AsyncReasoningBank, run: Imported, plan: Plan, report: Report) -> None:
    label = None if plan.judge_all or not run.verdict or run.verdict.source == "judge" else run.verdict
    outcome: Any = plan.outcome if label is None else label if label.source == "human" else label.outcome
    reward = label.reward if label else None
    replaced = await _replaced(bank, run.trajectory)
    if replaced is None:
        report.add(Learned(known=(run.trajectory.id,)), file=run.path)
        return
    learned = await bank.learn(run.trajectory, outcome=outcome, reward=reward, metadata=plan.metadata)
    report.add(learned, file=run.path, reward=reward)
    for former, verdict in replaced:
        await bank.learn(former, outcome=cast("Any", verdict))


async def _replaced(bank: AsyncReasoningBank, run: Trajectory) -> list[tuple[Trajectory, Verdict]] | None:
    """What was learned of the same prompt before its session went on; `None` where that has all of it."""
    prompt = run.metadata.get("prompt")
    return importers.replaced_by(run, await bank.runs.list(metadata={"prompt": prompt})) if prompt else []
