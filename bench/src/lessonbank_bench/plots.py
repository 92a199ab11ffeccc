"""The pictures of the README: how agents learn, what a bank finds out about planted lessons, a terminal.

`python -m lessonbank_bench.plots` writes them. `docs/images` is where the documentation looks for them.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from lessonbank.demo import NoMemory, new_bank, play
from lessonbank.demo.curves import moving_rate
from lessonbank.evidence.lift import Lift
from lessonbank.pages.reports.forest import forest
from lessonbank.pages.reports.plots import bar, title_of
from lessonbank.pages.reports.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    axes,
    curve,
    line,
    picture,
    words,
)

from .recording import recording
from .standalone import standalone

WORLDS: Final = range(100, 111)
"""Those that `lessonbank demo` plays."""
TASKS: Final = 80
IMAGES: Final = Path("docs/images")


def main(folder: Path = IMAGES, /) -> None:
    """Write `learning.svg`, `lift.svg`, `first-minutes.svg` and `study.svg` into a folder, from the project's root."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in (
        ("first-minutes.svg", recording()),
        ("learning.svg", learning()),
        ("lift.svg", lift(planted())),
        ("study.svg", study()),
    ):
        (folder / name).write_text(svg, encoding="utf-8")
        print(folder / name)


def learning() -> str:
    """The share of tasks done, without memory and with it, as the mean over the demo's worlds."""
    without = _mean_rate([[episode.success for episode in play(NoMemory(), w, tasks=TASKS)] for w in WORLDS])
    remembering = _mean_rate(
        [[episode.success for episode in play(new_bank(f"desk/{w}"), w, tasks=TASKS)] for w in WORLDS]
    )
    x, y = Scale(1, TASKS, LEFT, WIDTH - RIGHT), Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    marks = [
        *axes(
            x,
            y,
            lambda value: f"{value:.0%}",
            f"tasks so far (share of the last 10; {len(WORLDS)} worlds)",
        ),
        curve("without", [(x(n), y(rate)) for n, rate in enumerate(without, 1)]),
        curve("with", [(x(n), y(rate)) for n, rate in enumerate(remembering, 1)]),
        line("with", (LEFT, 17), (LEFT + 24, 17)),
        words(f"with memory {remembering[-1]:.0%}", (LEFT + 31, 22)),
        line("without", (LEFT + 200, 17), (LEFT + 224, 17)),
        words(f"without {without[-1]:.0%}", (LEFT + 231, 22)),
    ]
    told = f"After {TASKS} tasks an agent with memory does {remembering[-1]:.0%} of them, without {without[-1]:.0%}."
    return standalone(
        picture(
            "learning", size=(WIDTH, HEIGHT), title="Share of tasks done in the demo", description=told, marks=marks
        )
    )


def planted() -> Lift:
    """What the bank of `examples/does_it_help.py` says about its six lessons; half a minute."""
    measured: Lift = runpy.run_path("examples/does_it_help.py")["main"]()
    return measured


def lift(measured: Lift, /) -> str:
    """Each lesson's effect, with its interval."""
    last = len(measured.lessons)
    bars = [
        replace(bar(lesson.model_copy(update={"more": None})), label=f"{number}. {title_of(lesson)}")
        for number, lesson in enumerate(measured.lessons, 1)
    ]
    told = f"Lessons 1 to {last} of the table, each with its effect on success and two intervals around it."
    return standalone(forest("lessons-1", bars, title=f"Lessons 1 to {last}", description=told))


def study(folder: Path = Path("docs/research/study"), /) -> str:
    """Of the conventions of a task, the share that a language model kept when it first handed in, by task."""
    rows = [json.loads(row) for row in (folder / "attempts.jsonl").read_text(encoding="utf-8").splitlines()]
    last = max(row["place"] for row in rows) + 1
    lessons, placebo = (_kept_at_first(rows, arm) for arm in ("lessonbank", "mirror"))
    x, y = Scale(1, last, LEFT, WIDTH - RIGHT), Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    marks = [
        *axes(x, y, lambda value: f"{value:.0%}", "task of a world (mean of 8 worlds; the rules change at task 9)"),
        curve("without", [(x(n), y(share)) for n, share in enumerate(placebo, 1)]),
        curve("with", [(x(n), y(share)) for n, share in enumerate(lessons, 1)]),
        line("with", (LEFT, 17), (LEFT + 24, 17)),
        words("with lessons", (LEFT + 31, 22)),
        line("without", (LEFT + 200, 17), (LEFT + 224, 17)),
        words("with a placebo", (LEFT + 231, 22)),
    ]
    told = f"At task {last} it keeps {lessons[-1]:.0%} of the rules at first with lessons, {placebo[-1]:.0%} without."
    title = "House rules kept at the first hand-in, by a language model"
    return standalone(picture("study", size=(WIDTH, HEIGHT), title=title, description=told, marks=marks))


def _kept_at_first(rows: Sequence[dict[str, Any]], arm: str) -> list[float]:
    mine = sorted((row["place"], row["scores"]["kept at first"]) for row in rows if row["arm"] == arm)
    return [sum(share for _, share in at) / 8 for _, at in groupby(mine, key=itemgetter(0)) for at in [list(at)]]


def _mean_rate(worlds: Sequence[Sequence[bool]]) -> list[float]:
    rates = [moving_rate(world) for world in worlds]
    return [sum(at) / len(at) for at in zip(*rates, strict=True)]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
