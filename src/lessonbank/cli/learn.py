"""`learn`: turn recorded runs into lessons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import anyio
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lessonbank import importers
from lessonbank.types import Learned, MemoryItem, Outcome

from . import _options as options
from ._output import console, progress_console, show_json, show_table, warn

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank
    from lessonbank.importers import Imported

SHOWN = 12
"""How many new items the report prints."""


@dataclass
class Report:
    """What a run of the command did, added up as it goes."""

    started: int = 0
    runs: int = 0
    known: int = 0
    waiting: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    items: list[MemoryItem] = field(default_factory=list[MemoryItem])
    notes: Counter[str] = field(default_factory=Counter[str])
    skipped: list[str] = field(default_factory=list[str])
    tokens: int = 0
    cost: float = 0.0

    def add(self, learned: Learned) -> None:
        """Count one call of `learn`."""
        self.runs += 1
        self.known += len(learned.known)
        unsettled = bool(learned.experience and learned.experience.metadata.get("pending"))
        self.waiting += unsettled or any(v.outcome == "unknown" for v in learned.verdicts)
        self.outcomes.update(v.outcome for v in learned.verdicts)
        self.items.extend(learned.items)
        self.notes.update(learned.notes)
        self.tokens += learned.usage.input_tokens + learned.usage.output_tokens
        self.cost += learned.usage.cost or 0.0

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "runs": self.runs,
            "known": self.known,
            "waiting": self.waiting,
            "outcomes": dict(self.outcomes),
            "items": [item.model_dump(mode="json") for item in self.items],
            "notes": dict(self.notes),
            "skipped": self.skipped,
            "tokens": self.tokens,
            "cost": self.cost,
        }


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    files: list[Path]
    format: str
    outcome: Outcome | None
    judge_all: bool
    jobs: int
    most: int | None

    def runs(self, file: Path, report: Report) -> Iterator[Imported]:
        """The runs of a file, as they are read; what cannot be read is noted in `report`."""
        for entry in importers.read(file, format=self.format):
            if isinstance(entry, importers.Skipped):
                report.skipped.append(f"{entry.path}:{entry.line}: {entry.reason}")
                continue
            if self.most is not None and report.started >= self.most:
                return
            report.started += 1
            yield entry


def learn(
    files: Annotated[list[Path], typer.Argument(help="Files or folders of recorded runs; .gz is read directly.")],
    bank: options.Bank,
    scope: options.Scope,
    format: Annotated[
        str, typer.Option("--format", help="auto, or one of: neutral, messages, tau_bench, tau2, ….")
    ] = "auto",
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="success or failure, where there is no label.")
    ] = None,
    judge_all: Annotated[
        bool, typer.Option("--judge", help="Let the model judge; ignore labels in the files.")
    ] = False,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    domain: options.Domain = "general",
    profile: options.Profile = "default",
    embedder: options.Embedder = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait for one answer of the model.")] = 120.0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Runs judged and extracted at once.")] = 4,
    most: Annotated[int | None, typer.Option("--most", min=1, help="Stop after this many runs.")] = None,
    as_json: options.Json = False,
) -> None:
    """Judge recorded runs and keep what they teach.

    Labels in the files count as ground truth. Reading the same file twice adds nothing.
    """
    import lessonbank

    if outcome not in (None, "success", "failure"):
        raise typer.BadParameter("use success or failure", param_hint="--outcome")
    if missing := [f for f in files if not f.exists()]:
        raise typer.BadParameter(f"there is no file {missing[0]}", param_hint="FILES")
    settings: dict[str, Any] = {
        "scope": scope, "model": model, "base_url": base_url, "timeout": timeout,
        "domain": domain, "profile": profile, "embedder": embedder,
    }  # fmt: skip
    plan = Plan(
        files, format=format, outcome=cast("Outcome | None", outcome), judge_all=judge_all, jobs=jobs, most=most
    )
    report = anyio.run(_run, plan, lambda: lessonbank.connect_async(bank, **settings))
    _print(report, scope, as_json=as_json)
    if report.skipped or report.waiting:
        raise typer.Exit(3)


async def _run(plan: Plan, open_bank: Callable[[], Coroutine[Any, Any, AsyncReasoningBank]]) -> Report:
    report = Report()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    async with await open_bank() as bank:
        with Progress(*columns, console=progress_console, transient=True) as bar:
            for file in plan.files:
                row = bar.add_task(f"learning {file.name}", total=None)
                runs = plan.runs(file, report)
                while batch := list(islice(runs, plan.jobs)):
                    await _learn_batch(bank, batch, plan, report)
                    bar.advance(row, len(batch))
    return report


async def _learn_batch(bank: AsyncReasoningBank, batch: list[Imported], plan: Plan, report: Report) -> None:
    async with anyio.create_task_group() as tasks:
        for run in batch:
            tasks.start_soon(_learn_one, bank, run, plan, report)


async def _learn_one(bank: AsyncReasoningBank, run: Imported, plan: Plan, report: Report) -> None:
    label = None if plan.judge_all or not run.verdict or run.verdict.source == "judge" else run.verdict
    outcome = label.outcome if label else plan.outcome
    report.add(await bank.learn(run.trajectory, outcome=outcome, reward=label.reward if label else None))


def _print(report: Report, scope: str, *, as_json: bool) -> None:
    if as_json:
        show_json(report.as_dict())
        return
    if report.items:
        rows = [(i.kind, i.provenance.method, i.title) for i in report.items[:SHOWN]]
        show_table(f"New in {scope}", ("kind", "by", "title"), rows)
        if len(report.items) > SHOWN:
            console.print(f"… and {len(report.items) - SHOWN} more: lessonbank items --scope {scope} lists them")
    counted = ", ".join(f"{n} {outcome}" for outcome, n in sorted(report.outcomes.items())) or "none new"
    console.print(f"{report.runs} runs read: {counted}; {report.known} known already; {len(report.items)} new items")
    if report.waiting:
        warn(
            f"{report.waiting} runs wait for a verdict or another try: run the command again with a model or --outcome"
        )
    if report.tokens:
        console.print(f"{report.tokens:,} tokens, ${report.cost:.4f} where the price is known")
    for note, times in report.notes.most_common(5):
        warn(f"{times} × {note}")
    for line in report.skipped[:5]:
        warn(f"skipped {line}")
    if len(report.skipped) > 5:
        warn(f"… and {len(report.skipped) - 5} more lines skipped")
