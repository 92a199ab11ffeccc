"""`bench`: plan an experiment, run it, compare its arms, and write what came of it as a page."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.atomic_write import put, spare
from lessonbank.cli import _options as options
from lessonbank.cli._output import console, progress_console, show_json, show_text, warn
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

from .judging import judge, lessons
from .shown import shown

if TYPE_CHECKING:
    from lessonbank.contracts.ports import LanguageModel
    from lessonbank_bench.experiment.records import Experiment
    from lessonbank_bench.experiment.runner import Progress, Ran

EVERY = 5.0
"""Seconds between two lines of progress where there is no terminal."""
File = Annotated[
    Path | None, typer.Argument(metavar="[EXPERIMENT.toml]", help="What is to be found out, and how; or --preset.")
]
ArmOption = Annotated[str, typer.Option("--arm", help="Whose.", show_default=False)]
SeedOption = Annotated[int, typer.Option("--seed", help="Of which stream.", show_default=False)]
Preset = Annotated[str | None, typer.Option("--preset", help="An experiment that comes with the package.")]
Model = Annotated[str | None, typer.Option("--model", help="Who acts, judges and distils: provider:model.")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="An OpenAI-compatible server that offers the model.")]
Tasks = Annotated[int | None, typer.Option("--tasks", min=1, help="How many for each seed.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the environment; may be repeated.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Where an experiment was run.")]

bench = typer.Typer(
    name="bench",
    help="Experiments about memory that can be believed: plan, run, compare, report.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
    as_json: options.Json = False,
) -> None:
    """Say whether an experiment can answer its question, how many seeds that takes, and what it costs.

    Exit code 3: it cannot.
    """
    from lessonbank_bench.experiment.plan import in_words
    from lessonbank_bench.experiment.plan import plan as planned

    experiment = _asked(file, preset, model, base_url, tasks, settings)
    _check_names(experiment)
    told = planned(experiment)
    if as_json:
        show_json({**asdict(told), "can_answer": told.can_answer})
    else:
        show_text(in_words(told, experiment.question))
    if not told.can_answer:
        raise typer.Exit(3)


@bench.command()
def run(
    out: Annotated[Path, typer.Option("--out", help="The folder for attempts and banks.", show_default=False)],
    file: File = None,
    preset: Preset = None,
    model: Model = None,
    base_url: BaseUrl = None,
    tasks: Tasks = None,
    settings: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run even an experiment that cannot answer its question.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Make the attempts of an experiment, each kept before the next begins; it may be killed and resumed at any time.

    Exit code 3: it stopped before the end, as at a budget.
    """
    from lessonbank_bench.environments import environment
    from lessonbank_bench.experiment.runner import run as made

    experiment = _asked(file, preset, model, base_url, tasks, settings)
    _check_names(experiment)
    _refuse_in_vain(experiment, anyway=anyway or resume)
    place = environment(experiment.environment, _model(experiment), experiment.settings)
    try:
        with closing(place):
            ran = made(experiment, place, out, resume=resume, tell=_Screen().tell)
    except KeyboardInterrupt:
        warn("interrupted: every attempt that ended is kept; go on with --resume")
        raise typer.Exit(130) from None
    if as_json:
        show_json({**asdict(ran), "complete": ran.complete})
    else:
        console.print(_ran(ran, out), markup=False, soft_wrap=True)
    if ran.enough:
        warn(f"stopped early: {ran.stopped}")
        return
    if ran.stopped:
        warn(f"stopped: {ran.stopped}; go on with --resume once that is raised or mended")
    if not ran.complete:
        raise typer.Exit(3)


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


def _asked(
    file: Path | None,
    preset: str | None,
    model: str | None,
    base_url: str | None,
    tasks: int | None,
    settings: list[str] | None,
) -> Experiment:
    from lessonbank_bench.experiment.request import asked

    return asked(file, preset=preset, model=model, base_url=base_url, tasks=tasks, settings=settings or ())


def _check_names(experiment: Experiment) -> None:
    """What a plan would not notice, and a run would."""
    from lessonbank_bench.arms import arm_from
    from lessonbank_bench.environments import check_name
    from lessonbank_bench.experiment.fairness import differences
    from lessonbank_bench.experiment.records import memory_of

    check_name(experiment.environment)
    if experiment.environment != "null":  # where nobody remembers anything, arms have any name
        for arm in map(experiment.played, experiment.arms):
            arm_from(memory_of(arm))
        for told in differences(experiment):
            warn(told)


def _model(experiment: Experiment) -> LanguageModel | None:
    from lessonbank import Model, wiring
    from lessonbank_bench.arms import PATIENCE

    if not experiment.model:
        return None
    model = Model(experiment.model, base_url=experiment.base_url or None, timeout=PATIENCE)
    return wiring.resolve_models(model).extractor


def _refuse_in_vain(experiment: Experiment, *, anyway: bool) -> None:
    from lessonbank_bench.experiment.plan import plan as planned

    if anyway:
        return
    told = planned(experiment)
    if told.can_answer:
        return
    takes = "no number of seeds would do" if told.seeds_needed is None else f"it takes {told.seeds_needed:,} seeds"
    raise UsageError(
        f"the experiment shows the effect it asks for with a chance of {told.power:.0%} only, wanted are "
        f"{told.wanted:.0%}: {takes} of {told.tasks} tasks (see `lessonbank bench plan`); --anyway runs it all the same"
    )


def _ran(ran: Ran, out: Path) -> str:
    parts = [f"{ran.made:,} attempts made, {ran.rows:,} of {ran.of:,} are in {one_line(str(out))}"]
    parts += [f"{ran.errors:,} met an error of infrastructure"] if ran.errors else []
    parts += [f"{ran.tokens:,} tokens"] if ran.tokens else []
    parts += [f"{ran.cost:,.2f} US dollars"] if ran.cost else []
    return "; ".join(parts)


class _Screen:
    """Progress on stderr: one line that is rewritten on a terminal, else a line every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def tell(self, progress: Progress, /) -> None:
        done = progress.done == progress.of
        now = time.monotonic()
        if not done and now - self._last < (0.2 if progress_console.is_terminal else EVERY):
            return
        self._last = now
        end = "\r" if progress_console.is_terminal and not done else "\n"
        progress_console.print(_line(progress), end=end, markup=False, soft_wrap=True)


def _line(progress: Progress) -> str:
    parts = [f"{progress.done:,} of {progress.of:,} attempts ({100 * progress.done // progress.of}%)"]
    parts += [f"{_clock(progress.left)} left"] if progress.left else []
    parts += [f"{progress.tokens:,} tokens"] if progress.tokens else []
    parts += [f"{progress.cost:,.2f} US dollars"] if progress.cost else []
    parts += [f"{progress.errors:,} errors"] if progress.errors else []
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
