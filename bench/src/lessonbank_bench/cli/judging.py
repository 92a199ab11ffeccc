"""`bench judge` and `bench lessons`: how good a judge is, and whose lessons a blind reader prefers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lessonbank._base.atomic_write import put, spare
from lessonbank.cli import _options as options
from lessonbank.cli._output import progress_console, show_json, show_text, warn
from lessonbank.errors import UsageError

if TYPE_CHECKING:
    from lessonbank_bench.measure.judging.asking import Asked
    from lessonbank_bench.measure.judging.kept import Kept
    from lessonbank_bench.measure.judging.labelled import Labelled
    from lessonbank_bench.measure.judging.lessons import Drawn
    from lessonbank_bench.measure.judging.opinions import Opinion

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
Name = Annotated[str, typer.Option("--name", help="How tables call what is in --out.")]
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page with the reliability plot.")]


def judge(
    out: Annotated[Path, typer.Option("--out", help="The file of verdicts; what is in it is not asked again.")],
    runs: Runs = None,
    model: Model = None,
    base_url: BaseUrl = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare with verdicts of another file on the same runs.")
    ] = None,
    name: Name = "",
    domain: Domain = "general",
    size: Size = None,
    seed: Seed = 0,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="Another prompt: a file, or a folder with DOMAIN/judge.md.")
    ] = None,
    judge_budget: Annotated[
        int | None, typer.Option("--judge-budget", min=500, help="Tokens of a run that are shown.")
    ] = None,
    second_look: Annotated[
        bool, typer.Option("--second-look/--one-look", help="Whether the judge may ask to see steps whole.")
    ] = True,
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
    from lessonbank_bench.measure.judging import asking
    from lessonbank_bench.measure.judging.kept import Kept
    from lessonbank_bench.measure.judging.labelled import drawn, read_labelled
    from lessonbank_bench.measure.judging.opinions import Opinion

    if html is not None:
        spare(html, what="page")
    if runs and model is None:
        raise UsageError("give --model: who judges the runs")
    other = Kept(against, Opinion) if against else None
    if model is None:
        file, left = Kept(out, Opinion), ""
    else:
        chosen = drawn(read_labelled(runs or (), domain=domain), size=size, seed=seed)
        asked = asking.Asked(
            options.model_of(model, base_url, timeout),
            name=name,
            profile=cast("Any", profile),
            prompt=prompt,
            judge_budget=judge_budget,
            second_look=second_look,
            cassette=cassette,
            concurrency=concurrency,
        )
        file = Kept(out, Opinion, asked.setting([one.domain for one in chosen], ("judge",)))
        left = _made(chosen, file, asked, asking.ask, "runs judged")
    _tell(file, other, html, as_json=as_json)
    _end(left)


def lessons(
    out: Annotated[Path, typer.Option("--out", help="The file of lessons; runs in it are not asked about again.")],
    runs: Runs = None,
    model: Model = None,
    base_url: BaseUrl = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Another file of lessons from the same runs, to be read blind.")
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", help="Who reads two sets and says which is better: provider:model.")
    ] = None,
    readings: Annotated[
        Path | None, typer.Option("--readings", help="The file of what the reader said; it needs --against.")
    ] = None,
    name: Name = "",
    domain: Domain = "general",
    size: Size = None,
    seed: Seed = 0,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="A folder with other prompts, such as DOMAIN/extract_success.md.")
    ] = None,
    profile: options.Profile = "default",
    timeout: Timeout = 120.0,
    concurrency: Concurrency = 8,
    cassette: Cassette = None,
    as_json: options.Json = False,
) -> None:
    """Draw lessons from runs whose outcome is told, and let a blind reader compare two sets, on random sides.

    Exit code 3: the model failed on some runs; the same command goes on with them.
    """
    from lessonbank_bench.measure.judging import asking
    from lessonbank_bench.measure.judging.kept import Kept
    from lessonbank_bench.measure.judging.labelled import drawn, read_labelled
    from lessonbank_bench.measure.judging.lessons import Drawn

    if (against is None) != (readings is None):
        raise UsageError("--against and --readings belong together: two sets, and where to keep what a reader says")
    if runs and model is None and reader is None:
        raise UsageError("give --model, who draws lessons, or --reader, who compares two sets")
    chosen = drawn(read_labelled(runs, domain=domain), size=size, seed=seed) if runs else []
    if model is None:
        file, left = Kept(out, Drawn), ""
    else:
        asked = asking.Asked(
            options.model_of(model, base_url, timeout),
            name=name,
            profile=cast("Any", profile),
            prompt=prompt,
            cassette=cassette,
            concurrency=concurrency,
        )
        roles = ("extract_success", "extract_failure", "contrast")
        file = Kept(out, Drawn, asked.setting([one.domain for one in chosen], roles))
        left = _made(chosen, file, asked, asking.draw, "runs learned from")
    told: dict[str, Any] = {"setting": file.setting.model_dump(), "runs": len(file.rows)}
    if against is not None and readings is not None:
        asks = options.model_of(reader, base_url, timeout)
        told["readings"], text, failed = _compared(chosen, file, Kept(against, Drawn), readings, asks, concurrency)
        left = "; ".join(filter(None, (left, failed)))
    else:
        text = ""
    _tell_lessons(file, told, text, as_json=as_json)
    _end(left)


def _compared(
    chosen: list[Labelled], file: Kept[Drawn], other: Kept[Drawn], readings: Path, reader: Any, concurrency: int
) -> tuple[dict[str, int], str, str]:
    """The counts, the same in words, and why some pairs were not read."""
    from lessonbank_bench.measure.judging import lessons as reading
    from lessonbank_bench.measure.judging.kept import Kept, Setting

    first, second = file.setting.name, other.setting.name
    told = Setting(name=f"{first} against {second}", asked={"reader": str(reader.name)} if reader else {})
    kept = Kept(readings, reading.Preference, told if reader else None)
    failed = ""
    if reader is not None:
        pairs = reading.pairs(chosen, file.rows, other.rows)
        if not pairs and not kept.rows:
            raise UsageError("no run has lessons in both files: give the same RUNS, --size and --seed as for them")
        failed = _run_async(partial(reading.read, pairs, kept, reader, concurrency=concurrency))
    text = f"{reading.lessons_table(second, other.rows)}\n\n{reading.preferred(first, second, kept.rows)}"
    return reading.figures_of(kept.rows), text, failed


def _tell_lessons(file: Kept[Drawn], told: dict[str, Any], text: str, *, as_json: bool) -> None:
    from lessonbank_bench.measure.judging.lessons import lessons_table

    if as_json:
        show_json(told)
    else:
        show_text("\n\n".join(filter(None, (lessons_table(file.setting.name, file.rows), text))))


def _tell(file: Kept[Opinion], other: Kept[Opinion] | None, html: Path | None, *, as_json: bool) -> None:
    from lessonbank_bench.measure.judging.figures import calibration, figures, paired
    from lessonbank_bench.measure.judging.picture import page
    from lessonbank_bench.measure.judging.words import compared, reliability, table

    mine, name = file.rows, file.setting.name
    against = (other.setting.name, paired(mine, other.rows)) if other else None
    if as_json:
        rows, bins = [asdict(row) for row in figures(mine)], [asdict(one) for one in calibration(mine)]
        found = asdict(against[1]) if against else None
        show_json({"setting": file.setting.model_dump(), "rows": rows, "calibration": bins, "against": found})
    else:
        parts = [name, table(mine), reliability(mine), *([compared(name, *against)] if against else ())]
        show_text("\n\n".join(parts))
    if html is not None:
        put(html, page(name, mine, against=against), what="page")


def _made(chosen: list[Labelled], file: Kept[Any], asked: Asked, do: Callable[..., Any], what: str) -> str:
    """Ask about every run; why some failed, or nothing."""

    def tell(done: int) -> None:
        progress_console.print(f"{done} of {len(chosen)} {what}", markup=False, soft_wrap=True)

    return _run_async(partial(do, chosen, file, asked, tell=tell))


def _run_async(call: Callable[[], Any]) -> str:
    """What an asynchronous call returns."""
    import anyio

    return anyio.run(call)


def _end(left: str) -> None:
    if left:
        warn(left)
        raise typer.Exit(3)
