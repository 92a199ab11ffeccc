"""`bench scale`, which does each task several times, and `bench table`, the figures of each arm over all tasks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lessonbank.cli import _options as options
from lessonbank.cli._output import show_json, show_text
from lessonbank.errors import UsageError

from .running import Anyway, BaseUrl, Embedder, File, Model, Out, Preset, Resume, Settings, Tasks, end, play, say

Ks = Annotated[list[int] | None, typer.Option("-k", min=1, max=100, help="Runs of a task; may be repeated. [5]")]
Modes = Annotated[
    list[str] | None,
    typer.Option("--mode", help="parallel, sequential, vanilla, retry or reflect; may be repeated. [parallel]"),
]
Banks = Annotated[
    list[str] | None,
    typer.Option("--bank", help="shared by all tasks, or an empty one for each instance; may be repeated. [shared]"),
]


def scale(
    out: Out,
    file: File = None,
    preset: Preset = None,
    arm: Annotated[
        list[str] | None, typer.Option("--arm", help="Only this arm, or this memory besides; may be repeated.")
    ] = None,
    k: Ks = None,
    mode: Modes = None,
    bank: Banks = None,
    labels: Annotated[
        bool | None, typer.Option("--labels/--no-labels", help="Whether a contrast is told how the runs ended.")
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    tasks: Tasks = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="Streams, such as 1-4.")] = None,
    settings: Settings = None,
    embedder: Embedder = None,
    money: Annotated[float | None, typer.Option("--money", help="Stop after so many US dollars.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="Stop after so many tokens.")] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", min=1, help="Stop after so many attempts.")] = None,
    resume: Resume = False,
    anyway: Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Do each task of an experiment several times with every arm, and print Pass@1, best of n, Pass@k and steps.

    All runs of a task are kept before the next task begins; it may be killed and resumed at any time. Exit code 3: it
    stopped before the end, as at a budget.
    """
    from lessonbank_bench.experiment.journal import read_rows
    from lessonbank_bench.experiment.request import asked
    from lessonbank_bench.experiment.spreading import Spread
    from lessonbank_bench.experiment.table import figures, in_words

    experiment = asked(
        file,
        preset=preset,
        model=model,
        base_url=base_url,
        tasks=tasks,
        settings=settings or (),
        embedder=embedder,
        seeds=seeds,
        budget={"money": money, "tokens": tokens, "attempts": attempts},
        spread=Spread(k or (5,), mode or ("parallel",), bank or ("shared",), arm or (), labels),
    )
    ran = play(experiment, out, resume=resume, anyway=anyway)
    found = figures([(out.name, *read_rows(out))])
    if as_json:
        show_json({**asdict(ran), "complete": ran.complete, "arms": [asdict(one) for one in found]})
    else:
        say(experiment, ran, out)
        show_text(in_words(found))
    end(ran)


def table(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Where experiments were run.")],
    as_json: options.Json = False,
) -> None:
    """Print the success, steps, tokens and judge's accuracy of each arm; of several experiments also over all tasks."""
    from lessonbank_bench.experiment.journal import read_rows
    from lessonbank_bench.experiment.table import figures, in_words

    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise UsageError("two folders have one name, which names their rows: rename one, and name no folder twice")
    found = figures([(name, *read_rows(folder)) for name, folder in zip(names, folders, strict=True)])
    if as_json:
        show_json([asdict(one) for one in found])
    else:
        show_text(in_words(found))
