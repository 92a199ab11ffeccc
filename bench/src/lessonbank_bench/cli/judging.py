"""`bench judge` and `bench lessons`: how good a judge is, and whose lessons a blind reader prefers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessonbank._replacing import put, spare
from lessonbank.cli import _options as options
from lessonbank.cli._output import progress_console, show_json, show_text, warn
from lessonbank.errors import UsageError

if TYPE_CHECKING:
    from lessonbank_bench.measure.judging.labelled import Labelled
    from lessonbank_bench.measure.judging.opinions import OpinionFile

Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUNS…]", help="Runs with a known outcome; web=FILE or code=FILE says which prompts fit."),
]
Model = Annotated[str | None, typer.Option("--model", help="Who is asked: provider:model.")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="An OpenAI-compatible server that offers the model.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds to wait for one answer.")]
Cassette = Annotated[
    Path | None, typer.Option("--cassette", help="A file that keeps answers: the same request is not asked twice.")
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="How many runs are asked about at once.")]
Size = Annotated[int | None, typer.Option("--size", min=1, help="Runs of each file, half successes. Default: all.")]
Seed = Annotated[int, typer.Option("--seed", help="Which runs are drawn, and in which order.")]
Domain = Annotated[str, typer.Option("--domain", help="Which prompts, where a file does not say: general, web, code.")]
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page with the reliability plot.")]


def judge(
    out: Annotated[Path, typer.Option("--out", help="The file of verdicts; what is in it is not asked again.")],
    runs: Runs = None,
    model: Model = None,
    base_url: BaseUrl = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare with verdicts of another file on the same runs.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="How tables call these verdicts.")] = "",
    domain: Domain = "general",
    size: Size = None,
    seed: Seed = 0,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="Another prompt: a file, or a folder with DOMAIN/judge.md.")
    ] = None,
    judge_budget: Annotated[
        int | None, typer.Option("--judge-budget", min=500, help="Tokens of a run that are shown.")
    ] = None,
    profile: options.Profile = "default",
    timeout: Timeout = 120.0,
    concurrency: Concurrency = 8,
    cassette: Cassette = None,
    html: Html = None,
    as_json: options.Json = False,
) -> None:
    """Measure a judge: runs with a known outcome in, the outcomes hidden, a table with intervals out.

    Exit code 3: some runs were not judged, because the model failed; the same command goes on with them.
    """
    from lessonbank_bench.measure.judging.labelled import drawn, read_labelled
    from lessonbank_bench.measure.judging.opinions import OpinionFile

    if html is not None:
        spare(html, what="page")
    if runs and model is None:
        raise UsageError("give --model: who judges the runs")
    other = OpinionFile(against, None) if against else None
    file, left = OpinionFile(out, None) if model is None else None, ""
    if file is None:
        setting = {
            "name": name,
            "profile": profile,
            "prompt": prompt,
            "judge_budget": judge_budget,
            "cassette": cassette,
            "concurrency": concurrency,
        }
        chosen = drawn(read_labelled(runs or (), domain=domain), size=size, seed=seed)
        file, left = _judged(out, chosen, options.model_of(model, base_url, timeout), setting)
    _tell(file, other, html, as_json=as_json)
    if left:
        warn(left)
        raise typer.Exit(3)


def _tell(file: OpinionFile, other: OpinionFile | None, html: Path | None, *, as_json: bool) -> None:
    from lessonbank_bench.measure.judging.figures import calibration, figures, paired
    from lessonbank_bench.measure.judging.picture import page
    from lessonbank_bench.measure.judging.words import compared, reliability, table

    mine, name = file.opinions, file.setting.name
    against = (other.setting.name, paired(mine, other.opinions)) if other else None
    if as_json:
        rows, bins = [asdict(row) for row in figures(mine)], [asdict(one) for one in calibration(mine)]
        found = asdict(against[1]) if against else None
        show_json({"setting": file.setting.model_dump(), "rows": rows, "calibration": bins, "against": found})
    else:
        parts = [name, table(mine), reliability(mine), *([compared(name, *against)] if against else ())]
        show_text("\n\n".join(parts))
    if html is not None:
        put(html, page(name, mine, against=against), what="page")


def _judged(out: Path, chosen: list[Labelled], model: Any, setting: dict[str, Any]) -> tuple[OpinionFile, str]:
    from functools import partial

    import anyio

    from lessonbank_bench.measure.judging.asking import Asked, ask, check
    from lessonbank_bench.measure.judging.opinions import OpinionFile

    asked = Asked(model, **setting)
    check(asked)
    file = OpinionFile(out, asked.setting([one.domain for one in chosen]))

    def tell(done: int) -> None:
        progress_console.print(f"{done} of {len(chosen)} runs judged", markup=False, soft_wrap=True)

    return file, anyio.run(partial(ask, chosen, file, asked, tell=tell))
