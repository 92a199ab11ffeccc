"""`bench`: plan an experiment, run it, compare its arms, and write what came of it as a page."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lessonbank._base.atomic_write import put, spare
from lessonbank.cli import _options as options
from lessonbank.cli._output import console, show_json, show_text
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

from .judging import judge, lessons
from .running import (
    Anyway,
    ArmOption,
    BaseUrl,
    Embedder,
    File,
    Folder,
    Model,
    Out,
    Preset,
    Resume,
    SeedOption,
    Settings,
    Tasks,
    check_names,
    end,
    play,
    say,
)
from .scaling import scale, table
from .shown import shown

bench = typer.Typer(
    name="bench",
    help="Experiments about memory that can be believed: plan, run, compare, report.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench.command()(scale)
bench.command()(table)
bench.command()(judge)
bench.command()(lessons)
bench.command()(shown)


@bench.command()
def plan(
    file: File = None,
    preset: Preset = None,
    model: Model = None,
    base_url: BaseUrl = None,
    tasks: Tasks = None,
    settings: Settings = None,
    embedder: Embedder = None,
    as_json: options.Json = False,
) -> None:
    """Say whether an experiment can answer its question, how many seeds that takes, and what it costs.

    Exit code 3: it cannot.
    """
    from lessonbank_bench.experiment.plan import in_words
    from lessonbank_bench.experiment.plan import plan as planned
    from lessonbank_bench.experiment.request import asked

    experiment = asked(
        file, preset=preset, model=model, base_url=base_url, tasks=tasks, settings=settings or (), embedder=embedder
    )
    check_names(experiment)
    told = planned(experiment)
    if as_json:
        show_json({**asdict(told), "can_answer": told.can_answer})
    else:
        show_text(in_words(told, experiment.question))
    if not told.can_answer:
        raise typer.Exit(3)


@bench.command()
def run(
    out: Out,
    file: File = None,
    preset: Preset = None,
    model: Model = None,
    base_url: BaseUrl = None,
    tasks: Tasks = None,
    settings: Settings = None,
    embedder: Embedder = None,
    resume: Resume = False,
    anyway: Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Make the attempts of an experiment, each kept before the next begins; it may be killed and resumed at any time.

    Exit code 3: it stopped before the end, as at a budget.
    """
    from lessonbank_bench.experiment.request import asked

    experiment = asked(
        file, preset=preset, model=model, base_url=base_url, tasks=tasks, settings=settings or (), embedder=embedder
    )
    ran = play(experiment, out, resume=resume, anyway=anyway)
    if as_json:
        show_json({**asdict(ran), "complete": ran.complete})
    else:
        say(experiment, ran, out)
    end(ran)


@bench.command()
def compare(
    folder: Folder,
    other: Annotated[
        Path | None, typer.Argument(metavar="[DIR2]", help="Compare its arms with those of the same name in DIR.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Which arm others are compared with; else the experiment's.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say what differs between arms, with intervals, exact tests, and the noise of the baseline's own repetition."""
    from lessonbank_bench.experiment import comparison as comparing
    from lessonbank_bench.experiment.journal import read_rows

    experiment, rows = read_rows(folder, runs=False)
    if other is None:
        found = comparing.compare(experiment, rows, baseline=baseline)
    elif baseline is not None:
        raise UsageError("--baseline is for one experiment; two are compared arm by arm")
    else:
        found = comparing.compare_two((folder.name, experiment, rows), (other.name, *read_rows(other, runs=False)))
    if as_json:
        show_json([{**asdict(one), "difference": one.difference, "shown": one.shown} for one in found])
    else:
        show_text(comparing.in_words(found))


@bench.command()
def report(
    folder: Folder,
    html: Annotated[Path | None, typer.Option("--html", help="The page to write; it opens offline.")] = None,
    attempts: Annotated[int, typer.Option("--attempts", min=0, help="How many attempts can be read in it.")] = 60,
    png: Annotated[Path | None, typer.Option("--png", metavar="DIR", help="A folder for each plot as a PNG.")] = None,
) -> None:
    """Write one page about an experiment, curves, tables, comparisons, attempts to read; or its plots as pictures."""
    from lessonbank_bench.experiment.journal import read_rows

    if html is None and png is None:
        raise UsageError("say what to write: --html FILE for the page, --png DIR for the pictures, or both")
    if html is not None:
        spare(html, what="page")
    experiment, rows = read_rows(folder)
    if png is not None:  # first, because it may lack its package
        from lessonbank_bench.experiment.pngs import pngs

        made = pngs(experiment, rows, png)
        console.print(f"{len(made)} pictures are in {one_line(str(png))}", markup=False, soft_wrap=True)
    if html is not None:
        from lessonbank_bench.experiment.report import page

        put(html, page(experiment, rows, attempts=attempts, folder=folder), what="page")
        console.print(f"the page is in {one_line(str(html))}", markup=False, soft_wrap=True)


@bench.command()
def predictions(
    folder: Folder,
    arm: ArmOption,
    seed: SeedOption,
    out: Annotated[Path | None, typer.Option("--out", help="The file; else preds-ARM-SEED.json.")] = None,
) -> None:
    """Write what an arm of a SWE-bench experiment handed in, as the official harness takes it."""
    from lessonbank_bench.environments.swebench_grading import predictions as made
    from lessonbank_bench.experiment.journal import read_rows
    from lessonbank_bench.experiment.records import file_name

    experiment, rows = read_rows(folder)
    told = made(rows, arm=arm, seed=seed, model=f"{experiment.model or 'lessonbank'}, {arm}")
    if not told:
        raise UsageError(f"there is no attempt of arm {one_line(arm, limit=60)!r}, seed {seed}")
    path = out or Path(f"preds-{Path(file_name(arm, seed)).stem}.json")
    spare(path, what="file")
    put(path, json.dumps(told, indent=2) + "\n", what="file")
    console.print(f"{len(told)} predictions are in {one_line(str(path))}", markup=False, soft_wrap=True)


@bench.command()
def grade(
    folder: Folder,
    report: Annotated[Path, typer.Argument(metavar="REPORT.json", help="What the official harness wrote.")],
    arm: ArmOption,
    seed: SeedOption,
) -> None:
    """Put what an official SWE-bench report says into the attempts of an arm."""
    from lessonbank_bench.environments.swebench_grading import graded, read_report
    from lessonbank_bench.experiment.journal import change_rows

    told = read_report(report)
    rows = change_rows(folder, lambda rows: graded(rows, told, arm=arm, seed=seed))
    known = [row.success for row in rows if (row.arm, row.seed) == (arm, seed) and row.success is not None]
    console.print(f"{sum(known)} of {len(known)} are resolved", markup=False)
