"""The page's part on single lessons: what an experiment shows of them, and what it cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lessonbank.evidence import Estimate, LessonLift
from lessonbank.evidence.effects import points as points_of
from lessonbank.evidence.effects import said_of
from lessonbank.guard.sanitise import canonical_line
from lessonbank.pages.reports.forest import Bar, forest
from lessonbank.pages.reports.plots import LOOKS
from lessonbank_bench.statistics import Interval

from .comparison import many, points
from .lesson_effects import FEWEST, Randomised, Used
from .page import block, details, figure, line, minus, paragraph, table
from .records import Experiment

DRAWN: Final = 20
_PANEL = 10
LISTED: Final = 60
"""Lessons that have a row: a page of more opens slowly."""
_OBSERVED = (
    "No lesson was left out at random in these arms, so nothing here is the effect of a single lesson. What can be "
    "said: for the tasks that a lesson was shown for, how this arm did, and how the baseline did on the same tasks. "
    "How hard those tasks are is the same on both sides. What else was shown beside the lesson is not, nor is what "
    "made the search find it for them. Lessons that are shown together share their numbers."
)
_OFTEN = (
    "The line is right however often one looks at that lesson; it is not adjusted for how many lessons there are, so "
    "of many that change nothing a few may leave zero out."
)
_DRAWN = (
    "This bank left lessons out at random, with probabilities that were fixed before the draw. The difference between "
    "tasks with and without a lesson is therefore what showing it changes, chance apart. The thick line is the "
    "interval of one look, the thin one is right however often one looks."
)


def single_lessons(experiment: Experiment, found: Sequence[Used], drawn: Sequence[Randomised], /) -> str:
    """What is known of each lesson; empty where none was shown."""
    parts = [*(_left_out(one, number) for number, one in enumerate(drawn, 1)), _observed(experiment, found)]
    return "\n".join(part for part in parts if part)


def _observed(experiment: Experiment, found: Sequence[Used]) -> str:
    names = {arm.name for arm in experiment.claims}
    asked = [one for one in found if one.arm in names]
    often = [one for one in asked if one.shown >= FEWEST]
    if not asked:
        return ""
    told = (
        f"{many(len(asked), 'lesson was', 'lessons were')} shown, counted for each arm; {len(often):,} of them for "
        f"{FEWEST} tasks or more. "
        "The others are too few to say anything of."
    )
    base = experiment.against.name
    parts = ["<h2>Single lessons, as they were shown</h2>", paragraph(_OBSERVED), paragraph(told, name="soft")]
    if drawn := _pictures(often[:DRAWN], base):
        parts += [drawn, paragraph(_OFTEN, name="soft")]
    parts += [_listed(often[:LISTED], base), _more(len(often) - LISTED)] if often else []
    return "\n".join(part for part in parts if part)


def _pictures(found: Sequence[Used], base: str) -> str:
    bars = [
        Bar(f"{number}. {_title(one)}", f"{one.better} / {one.worse}", one.always.estimate, None, one.always)
        for number, one in enumerate(found, 1)
        if one.pairs >= FEWEST
    ]
    told = f"the difference between its arm and {base} on the tasks it was shown for, better / worse; observed"
    return _panels("observed", bars, "Lessons that were shown most often", told)


def _panels(name: str, bars: Sequence[Bar], title: str, told: str) -> str:
    if not bars:
        return ""
    parts = [bars[at : at + _PANEL] for at in range(0, len(bars), _PANEL)]
    figures = [
        figure(forest(f"lessons-{name}-{n}", part, title=title, description=f"Each: {told}.", like=bars), title, told)
        for n, part in enumerate(parts, 1)
    ]
    return f'<div class="grid">{"".join(figures)}</div>'


def _listed(found: Sequence[Used], base: str) -> str:
    columns = ("lesson", "shown for", "done", base, "difference", "however often", "arm", "kind", "seeds")
    rows = [_row(number, one) for number, one in enumerate(found, 1)]
    caption = f"Lessons that were shown for {FEWEST} tasks or more, those shown most often first"
    said = "".join(
        f"<h4>{number}. {line(_title(one))}</h4>{block(one.said.content, limit=2000)}"
        for number, one in enumerate(found, 1)
    )
    return f"{table(caption, columns, rows, text=(6, 7))}\n{details('What these lessons say', said)}"


def _row(number: int, one: Used) -> tuple[str, ...]:
    paired = bool(one.pairs)
    return (
        f"{number}. {_title(one)}",
        f"{one.shown:,}",
        f"{one.succeeded / one.shown:.0%}",
        f"{one.base / one.pairs:.0%} of {one.pairs}" if paired else "",
        points(one.always.estimate) if paired else "",
        f"[{100 * one.always.low:+.0f}, {100 * one.always.high:+.0f}]" if paired else "",
        one.arm,
        one.said.kind,
        str(one.seeds),
    )


def _title(one: Used) -> str:
    return canonical_line(one.said.title, limit=200) or one.code


def _more(left: int) -> str:
    return paragraph(f"{left:,} more have no row here.") if left > 0 else ""


def _left_out(one: Randomised, number: int) -> str:
    lift = one.lift
    known = [lesson for lesson in lift.lessons if lesson.success.value is not None]
    told = (
        f"{many(lift.recalls, 'recall')} found something, the outcome of {lift.settled:,} is known, "
        f"{lift.controls:,} of those went without memory. Of {len(known):,} among "
        f"{many(len(lift.lessons), 'lesson')} there is enough to say something."
    )
    parts = [
        f"<h2>Single lessons, left out at random: {line(one.arm)}, seed {one.seed}</h2>",
        paragraph(_DRAWN),
        paragraph(told, name="soft"),
    ]
    if lift.success.value is not None:
        parts.append(paragraph(f"Memory as a whole changes success by {minus(points_of(lift.success))}."))
    if known:
        bars = [_bar(lesson) for lesson in known[:DRAWN]]
        parts.append(
            _panels(f"drawn-{number}", bars, f"Lessons of {one.arm}, seed {one.seed}", "the effect of showing it")
        )
    return "\n".join(parts)


def _bar(lesson: LessonLift) -> Bar:
    effect, title = lesson.success, canonical_line(lesson.title, limit=200) or lesson.lesson_id
    thick, thin = _span(effect, effect.low, effect.high), _span(effect, effect.always_low, effect.always_high)
    said = said_of(lesson.model_copy(update={"more": None}))
    return Bar(title, said, effect.value or 0.0, thick, thin, LOOKS[lesson.standing])


def _span(effect: Estimate, low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else Interval(effect.value or 0.0, low, high)
