"""What commands that play experiments share: from options to an experiment, and its attempts with their progress."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank.cli._output import console, progress_console, warn
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

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
Out = Annotated[Path, typer.Option("--out", help="The folder for attempts and banks.", show_default=False)]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help="Banks search by its vectors, in the place of what each arm says.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Run even an experiment that cannot answer its question.")]


def play(experiment: Experiment, out: Path, /, *, resume: bool, anyway: bool) -> Ran:
    """Make the attempts that are missing, with a line about how far they are.

    Raises:
        UsageError: the experiment cannot be played, or cannot answer its question.
        Exit: the user stopped it.
    """
    from lessonbank_bench.environments import environment
    from lessonbank_bench.experiment.runner import run

    check_names(experiment)
    _refuse_in_vain(experiment, anyway=anyway or resume)
    place = environment(experiment.environment, _model(experiment), experiment.settings)
    try:
        with closing(place):
            return run(experiment, place, out, resume=resume, tell=_Screen(_unit(experiment)).tell)
    except KeyboardInterrupt:
        warn("interrupted: every attempt that ended is kept; go on with --resume")
        raise typer.Exit(130) from None


def say(experiment: Experiment, ran: Ran, out: Path, /) -> None:
    """How it ended, on the terminal."""
    console.print(_ran(ran, out, _unit(experiment)), markup=False, soft_wrap=True)


def _unit(experiment: Experiment) -> str:
    """What is counted: a row may hold several attempts."""
    return "rows" if any(arm.runs for arm in experiment.arms) else "attempts"


def end(ran: Ran, /) -> None:
    """Warn of an early end.

    Raises:
        Exit: it stopped before the end (3).
    """
    if ran.enough:
        warn(f"stopped early: {ran.stopped}")
        return
    if ran.stopped:
        warn(f"stopped: {ran.stopped}; go on with --resume once that is raised or mended")
    if not ran.complete:
        raise typer.Exit(3)


def check_names(experiment: Experiment) -> None:
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


def _ran(ran: Ran, out: Path, unit: str) -> str:
    parts = [f"{ran.made:,} {unit} made, {ran.rows:,} of {ran.of:,} are in {one_line(str(out))}"]
    parts += [f"{ran.errors:,} met an error of infrastructure"] if ran.errors else []
    parts += [f"{ran.tokens:,} tokens"] if ran.tokens else []
    parts += [f"{ran.cost:,.2f} US dollars"] if ran.cost else []
    return "; ".join(parts)


class _Screen:
    """Progress on stderr: one line that is rewritten on a terminal, else a line every few seconds."""

    def __init__(self, unit: str, /) -> None:
        self._unit = unit
        self._last = time.monotonic()

    def tell(self, progress: Progress, /) -> None:
        done = progress.done == progress.of
        now = time.monotonic()
        if not done and now - self._last < (0.2 if progress_console.is_terminal else EVERY):
            return
        self._last = now
        end = "\r" if progress_console.is_terminal and not done else "\n"
        progress_console.print(_line(progress, self._unit), end=end, markup=False, soft_wrap=True)


def _line(progress: Progress, unit: str) -> str:
    parts = [f"{progress.done:,} of {progress.of:,} {unit} ({100 * progress.done // progress.of}%)"]
    parts += [f"{_clock(progress.left)} left"] if progress.left else []
    parts += [f"{progress.tokens:,} tokens"] if progress.tokens else []
    parts += [f"{progress.cost:,.2f} US dollars"] if progress.cost else []
    parts += [f"{progress.errors:,} errors"] if progress.errors else []
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
