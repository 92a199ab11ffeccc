"""`bench shown`: how many lessons are worth showing, as a blind reader of failed runs sees it."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from lessonbank.cli import _options as options
from lessonbank.cli._output import show_json, show_text, warn

from .judging import BaseUrl, Concurrency, Domain, Timeout

if TYPE_CHECKING:
    from lessonbank.contracts.settings import Model
    from lessonbank_bench.measure.judging.kept import Kept
    from lessonbank_bench.measure.judging.shown import Reading


def shown(
    out: Annotated[Path, typer.Option("--out", help="The file of readings; runs in it are not asked about again.")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUNS…]", help="Runs with a known outcome. Those that failed are read."),
    ] = None,
    taught: Annotated[
        list[str] | None, typer.Option("--taught", help="The runs that the lessons come from; may be repeated.")
    ] = None,
    lessons: Annotated[
        list[Path] | None, typer.Option("--lessons", help="Their lessons, from `bench lessons`; may be repeated.")
    ] = None,
    reader: Annotated[str | None, typer.Option("--reader", help="Who reads: provider:model.")] = None,
    base_url: BaseUrl = None,
    domain: Domain = "general",
    timeout: Timeout = 120.0,
    concurrency: Concurrency = 8,
    as_json: options.Json = False,
) -> None:
    """Compare how many lessons are shown: would they have helped runs that failed?

    Lessons of `--taught` runs are put into a bank. Each setting retrieves for the task of every failed run of the same
    source. A reader sees the failed run and all lessons that any setting found, in random order, and says of each
    whether it would have helped, misled, or done nothing. Without `--reader`, the readings of `--out` are told again.
    Exit code 3: the model failed on some runs; the same command goes on with them.
    """
    from lessonbank_bench.measure.judging.kept import Kept, Setting
    from lessonbank_bench.measure.judging.shown import Reading, figures, table

    left = ""
    if reader is None:
        file = Kept(out, Reading)
    else:
        file = Kept(out, Reading, Setting(name="shown", asked={"reader": reader}))
        model = options.model_of(reader, base_url, timeout)
        left = anyio.run(_read, file, model, (runs or [], taught or [], lessons or []), domain, concurrency)
    if as_json:
        show_json({"readings": len(file.rows), "settings": [asdict(row) for row in figures(file.rows)]})
    else:
        show_text(table(file.rows))
    if left:
        warn(left)
        raise typer.Exit(3)


async def _read(
    file: Kept[Reading], model: Model, files: tuple[list[str], list[str], list[Path]], domain: str, concurrency: int
) -> str:
    from lessonbank_bench.measure.judging import shown as reading
    from lessonbank_bench.measure.judging.kept import Kept
    from lessonbank_bench.measure.judging.labelled import read_labelled
    from lessonbank_bench.measure.judging.lessons import Drawn

    runs, taught, lessons = files
    failed = [one for one in read_labelled(runs, domain=domain) if not one.success]
    drawn = [row for path in lessons for row in Kept(path, Drawn).rows]
    with tempfile.TemporaryDirectory() as folder:
        sheets = await reading.prepare(failed, read_labelled(taught, domain=domain), drawn, Path(folder))
    return await reading.read(failed, sheets, file, model, concurrency=concurrency)
