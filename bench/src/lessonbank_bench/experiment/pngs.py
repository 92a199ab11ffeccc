"""An experiment's pictures as PNG files, for papers and slides; all arms of a number in one picture."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from lessonbank.errors import StoreUnavailable
from lessonbank.guard.sanitise import canonical_line
from lessonbank_bench.extras import missing_extra

from .comparison import Compared, compare
from .curves import KINDS, Course, Kind, course, rows_of, told_of
from .lesson_effects import FEWEST, Used, used
from .page import made_of
from .records import Arm, AttemptRow, Experiment

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c564b")
"""The first six and their order: Okabe and Ito's, which can be told apart without seeing red or green."""
_MARKS: Final = "osD^vPX*"
_TOGETHER: Final = 6
"""Arms in one plot; more of them, with their bands, would cover one another, and get a plot each."""
_LESSONS: Final = 20
_DPI: Final = 144
_DARK: Final = "#222222"


def pngs(experiment: Experiment, rows: Sequence[AttemptRow], folder: Path, /) -> list[Path]:
    """Write one PNG for each picture there is something to draw of, and say which.

    `success.png`, `steps.png`, `tokens.png`, `cost.png`, `memory.png`, `lessons.png` (how many were written), all along
    the stream; `differences.png` and `single_lessons.png` with intervals. A title says where a script acted.

    Raises:
        MissingExtra: matplotlib is not installed.
        StoreUnavailable: the folder cannot be written to.
    """
    _figure()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _any_letter():
            found = [_along(experiment, rows_of(kind, rows), kind, folder) for kind in KINDS]
            found += [_differences(experiment, compare(experiment, rows), folder)]
            found += [_single_lessons(experiment, used(experiment, rows), folder)]
    except OSError as error:
        raise StoreUnavailable(f"cannot write to {str(folder)!r}: {error.strerror or error}") from error
    return [path for path in found if path is not None]


def _figure() -> Any:
    """matplotlib's figure: used without its windows, so that nothing needs a display and nothing is left open."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError as missing:
        raise missing_extra("a picture as PNG", extra="plots") from missing


@contextmanager
def _any_letter() -> Generator[None]:
    """A letter that the font lacks is a box in the picture, and no reason to fail."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        yield


def _along(experiment: Experiment, rows: Sequence[AttemptRow], kind: Kind, folder: Path) -> Path | None:
    level = experiment.question.level
    courses: list[tuple[Arm, Course]] = []
    for arm in experiment.arms:
        own = [row for row in rows if row.arm == arm.name]
        one = course(own, kind.value, level=level, summed=kind.summed, within=kind.within)
        if told_of(kind, own) and one is not None:
            courses.append((arm, one))
    if not courses:
        return None
    figure, every = (
        _together(courses, kind, experiment) if len(courses) <= _TOGETHER else _apart(courses, kind, experiment)
    )
    for axes in every:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0, top=1 if kind.share else _top([one for _, one in courses]))
        if kind.share:
            axes.yaxis.set_major_formatter(import_module("matplotlib.ticker").PercentFormatter(xmax=1.0))
    note = f"across: tasks of a seed; bands: {level:.0%} over seeds at each place"
    return _saved(experiment, figure, folder / f"{kind.name}.png", f"{kind.name.capitalize()}: {kind.told}", note)


def _together(courses: Sequence[tuple[Arm, Course]], kind: Kind, experiment: Experiment) -> tuple[Any, list[Any]]:
    figure, axes = _blank(9.0, 5.2)
    for arm, one in courses:
        place = experiment.arms.index(arm)
        base = arm == experiment.against
        every = max(1, len(one.places) // 8)  # marks at places of its own: curves that fall together can still be told
        marks = {"marker": _MARKS[place % len(_MARKS)], "markevery": (place % every, every)}
        label = f"{arm.name}{' (baseline)' if base else ''}: {_last(one, kind)}"
        _curve(axes, one, _DARK if base else _COLOURS[place % len(_COLOURS)], label=_plain(label), dashed=base, **marks)
    axes.set_ylabel(kind.told)
    _legend(axes)
    return figure, [axes]


def _apart(courses: Sequence[tuple[Arm, Course]], kind: Kind, experiment: Experiment) -> tuple[Any, list[Any]]:
    under = next((one for arm, one in courses if arm == experiment.against), None)
    others = [(arm, one) for arm, one in courses if arm != experiment.against]
    wide = min(4, len(others))
    high = -(-len(others) // wide)
    figure: Any = _figure()(figsize=(3.3 * wide + 0.6, 2.5 * high + 1.4), layout="constrained")
    every: list[Any] = []
    for number, (arm, one) in enumerate(others, 1):
        axes = figure.add_subplot(high, wide, number)
        _bare(axes)
        if under is not None:
            axes.plot(under.places, under.mean, "--", color=_DARK, linewidth=1.2)
        _curve(axes, one, _COLOURS[0], dashed=False)
        beside = f", {experiment.against.name} {_last(under, kind)} (dashed)" if under is not None else ""
        axes.set_title(fill(_plain(f"{arm.name} {_last(one, kind)}{beside}"), 44), fontsize=8.5)
        axes.tick_params(labelsize=8)
        every.append(axes)
    return figure, every


def _curve(axes: Any, one: Course, colour: str, /, *, dashed: bool, **more: Any) -> None:
    axes.plot(one.places, one.mean, "--" if dashed else "-", color=colour, linewidth=2, **more)
    axes.fill_between(one.places, one.low, one.high, color=colour, alpha=0.13, linewidth=0)


def _last(one: Course, kind: Kind) -> str:
    return f"{one.mean[-1]:.0%}" if kind.share else f"{one.mean[-1]:,.4g}"


def _top(courses: Sequence[Course]) -> float:
    """Room for the later three quarters of every curve: the first few tasks of a mean would blow the scale up."""
    return 1.1 * max(max(float(one.high[len(one.high) // 4 :].max()), float(one.mean.max()), 1e-9) for one in courses)


def _differences(experiment: Experiment, found: Sequence[Compared], folder: Path) -> Path | None:
    shown = [one for one in found if one.pairs]
    if not shown:
        return None
    figure, axes = _blank(9.0, 1.9 + 0.5 * len(shown))
    floor = next((one.floor for one in shown if one.floor is not None), None)
    if floor is not None:
        axes.axvspan(-100 * floor, 100 * floor, color="#000000", alpha=0.08, linewidth=0, label="noise floor (A/A)")
    colours = {"more successes": "#009e73", "fewer successes": "#d55e00"}
    for place, one in enumerate(shown):
        colour = "#555555" if one.again else colours.get(one.shown, "#555555")
        axes.hlines(place, 100 * one.always.low, 100 * one.always.high, color=colour, linewidth=1.2)
        if one.by_seed is not None:
            axes.hlines(place, 100 * one.by_seed.low, 100 * one.by_seed.high, color=colour, linewidth=5)
        axes.plot(100 * one.difference, place, "o", color=colour, markeredgecolor="white", markersize=9)
    _rows(axes, [f"{one.arm}: {'noise' if one.again else one.shown}" for one in shown])
    axes.set_xlabel(_plain(f"points of success against {shown[0].baseline}"))
    if floor is not None:
        _legend(axes)
    note = "thick: over seeds; thin: right however often one looks"
    return _saved(experiment, figure, folder / "differences.png", f"Arms against {shown[0].baseline}", note)


def _single_lessons(experiment: Experiment, found: Sequence[Used], folder: Path) -> Path | None:
    names = {arm.name for arm in experiment.claims}
    shown = [one for one in found if one.arm in names and one.pairs >= FEWEST][:_LESSONS]
    if not shown:
        return None
    figure, axes = _blank(11.0, 2.1 + 0.36 * len(shown))
    for place, one in enumerate(shown):
        axes.hlines(place, 100 * one.always.low, 100 * one.always.high, color="#0072b2", linewidth=1.6)
        axes.plot(100 * one.always.estimate, place, "o", color="#0072b2", markeredgecolor="white", markersize=7)
    _rows(axes, [f"{_short(one)} ({one.arm}, {one.better} better, {one.worse} worse)" for one in shown])
    axes.set_xlabel("points of success")
    note = (
        f"the arm against {experiment.against.name} on the tasks that a lesson was shown for; observed, since none was "
        "left out at random: no effect of a single lesson; each line is right however often one looks at it"
    )
    return _saved(experiment, figure, folder / "single_lessons.png", "Lessons that were shown most often", note)


def _short(one: Used) -> str:
    title = canonical_line(one.said.title, limit=200) or one.code
    return title if len(title) <= 60 else f"{title[:59].rstrip()}…"


def _blank(width: float, height: float) -> tuple[Any, Any]:
    figure: Any = _figure()(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    _bare(axes)
    return figure, axes


def _bare(axes: Any) -> None:
    axes.grid(visible=True, color="#000000", alpha=0.12, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    """Names from the top down beside a line of no difference."""
    axes.axvline(0, color="#222222", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(labels)), [_plain(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _legend(axes: Any) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)


def _saved(experiment: Experiment, figure: Any, path: Path, title: str, note: str) -> Path:
    made = made_of(experiment)
    head = f"{title} ({made})" if made else title
    said = f"{len(experiment.seeds)} seeds of {experiment.tasks} tasks, environment {experiment.environment}; {note}"
    figure.suptitle(f"{_plain(experiment.name, limit=90)}\n{_plain(head)}", fontsize=12, fontweight="bold")
    figure.supxlabel(fill(_plain(said), 118), x=0.01, ha="left", fontsize=9, color="#444444")
    figure.savefig(path, dpi=_DPI, format="png", metadata={"Software": None})
    return path


def _plain(text: str, *, limit: int = 400) -> str:
    """`text` as it stands: a dollar sign would begin a formula."""
    return canonical_line(text, limit=limit).replace("$", r"\$")
