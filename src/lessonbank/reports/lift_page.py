"""What memory changed, as one page that opens anywhere, offline, and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from lessonbank.evidence.lift import (
    Estimate,
    JudgeReport,
    LessonLift,
    Lift,
    MeasuringCost,
    Point,
)
from lessonbank.evidence.lift_words import advice, headline, said_of
from lessonbank.guard.sanitise import canonical_line

from .html import document, table
from .plots import SIGN, effects, gain, growth, named, success
from .style import STYLE

MOST: Final = 500
"""Lessons the table holds: a page of more opens slowly."""
_NEGATIVE = re.compile(r"(?<!\w)-(?=\d)")
_BASES = {"truth": "what was told", "judge": "a judge's opinion", "truth and judge": "what was told, and a judge"}
_CLASSES = {"helps": "helps", "likely helps": "helps", "harms": "harms", "likely harms": "harms"}
_HOW = (
    "A change is what happened with memory less what happened without it. Which tasks and lessons went without was "
    "drawn at random beforehand, so nothing else than memory explains the difference, chance apart.",
    "An interval says how far chance could have moved the number. The one for one look is right for whoever looks "
    "once; the wider one stays right however often one looks and whenever one stops. What is said of a lesson goes by "
    "the wider one: it helps or harms once that interval leaves zero out.",
    "“No evidence yet” is not “no effect”: the intervals still hold zero. The expected effect is the best single guess "
    "for a lesson as one of many; while its own evidence is thin, it is close to the average of all.",
    "The evidence is an e-value against there being no such effect: 20 is what a test at 5 % asks for, and looking "
    "often does not wear it out. Cited counts how often the agent named a lesson, which is not an effect.",
)


def page(lift: Lift, /, *, most: int = 50) -> str:
    """One HTML document, complete in itself: no script, no request, readable without colour; equal lifts, equal pages.

    `most`: lessons in the picture; the table holds up to `MOST`. Titles and names are made inert.
    """
    scope = escape(canonical_line(lift.scope))
    body = "\n".join(
        (
            f'<h1>What memory changed</h1>\n<p class="soft">scope {scope}: {_counted(lift)}</p>',
            _answer(lift),
            _so_far(lift.series),
            _overall(lift),
            _lessons_section(lift, most),
            _judges(lift.judges),
            _measuring(lift.measuring) if lift.recalls else "",
            _notes(lift),
            f"<h2>How to read this</h2>\n{_listed(_HOW)}",
        )
    )
    return document(f"What memory changed: {scope}", body, style=STYLE)


def _counted(lift: Lift) -> str:
    return (
        f"{lift.recalls:,} recalls found something, the outcome of {lift.settled:,} is known, "
        f"{lift.controls:,} of those went without memory"
    )


def _answer(lift: Lift) -> str:
    rest = "".join(f"\n<p>{escape(sentence)}</p>" for sentence in advice(lift))
    standing = f"answer {_CLASSES.get(lift.standing, 'open')}"
    return f'<p class="{standing}">{SIGN[lift.standing]} {escape(_minus(headline(lift)))}</p>{rest}'


def _so_far(series: Sequence[Point]) -> str:
    if not series:
        return "<h2>So far</h2>\n<p>There is nothing to draw before the first outcome is known.</p>"
    lift = (
        "percentage points that memory adds. The band is right however often one looks: once it leaves the line of no "
        "change, that is evidence. It is cut off where it leaves the picture."
    )
    told = (
        (success(series), "Success", "the share of tasks that succeeded, with memory and without"),
        (gain(series), "Lift", lift),
        (growth(series), "Growth", "how many lessons had been found for a task"),
    )
    columns = ("outcomes", "with memory", "without", "lift", "band", "lessons")
    rows = [
        (
            "",
            (
                f"{p.recalls:,}",
                _share(p.with_memory),
                _share(p.without),
                _points(p.lift),
                _between(p.low, p.high),
                str(p.lessons),
            ),
        )
        for p in series
    ]
    numbers = _table("The same in numbers", columns, rows, text=())
    return (
        f'<h2>So far</h2>\n<div class="grid">{"".join(_figure(*one) for one in told)}</div>\n'
        f"<details><summary>The same in numbers</summary>{numbers}</details>"
    )


def _figure(drawn: str, name: str, told: str) -> str:
    return f"\n<figure><figcaption>{escape(name)} <span>{escape(told)}</span></figcaption>{drawn}</figure>"


def _overall(lift: Lift) -> str:
    columns = ("of a task", "with", "without", "change", "one look", "however often", "outcomes are")
    effect = lift.success
    rows = [
        (
            _CLASSES.get(lift.standing, ""),
            (
                "success",
                _share(lift.success_with),
                _share(lift.success_without),
                _points(effect.value),
                _between(effect.low, effect.high),
                _between(effect.always_low, effect.always_high),
                _BASES.get(effect.basis, canonical_line(effect.basis)),
            ),
        ),
        *(("", _running(*told)) for told in _spent(lift)),
    ]
    note = f"\n<p>{escape(canonical_line(effect.note))}</p>" if effect.note else ""
    missing = ""
    if lift.missing_with is not None or lift.missing_without is not None:
        missing = (
            f"\n<p>Missing outcomes: {_share(lift.missing_with)} of the recalls with memory, "
            f"{_share(lift.missing_without)} of those without.</p>"
        )
    table = _table(f"With memory against without, intervals at {100 * lift.level:.4g} %", columns, rows, text=(6,))
    return f"<h2>Overall</h2>\n{table}{missing}{note}"


def _spent(lift: Lift) -> tuple[tuple[str, Estimate, str], ...]:
    return (
        ("steps", lift.steps, ",.1f"),
        ("tokens", lift.tokens, ",.0f"),
        ("US dollars", lift.cost, ",.4f"),
        ("seconds", lift.seconds, ",.1f"),
    )


def _running(name: str, effect: Estimate, form: str) -> tuple[str, ...]:
    def told(value: float | None) -> str:
        return "" if value is None else _minus(f"{value:+z{form}}")

    span = "" if effect.low is None or effect.high is None else f"{told(effect.low)} to {told(effect.high)}"
    return (name, "", "", told(effect.value) or "not known", span, "", "")


def _lessons_section(lift: Lift, most: int) -> str:
    if not lift.lessons:
        return "<h2>Lessons</h2>\n<p>No lesson was found for any task yet.</p>"
    drawn = effects(lift, most=most)
    left = len(lift.lessons) - most if drawn else 0
    more = f"\n<p>{left:,} more lessons are in the table below.</p>" if left > 0 else ""
    figures = "".join(f"\n<figure>{one}</figure>" for one in drawn)
    sign = ", ".join(f"{SIGN[word]} {word}" for word in SIGN)
    legend = f"{sign}. The thick line is the interval of one look, the thin one is right however often one looks."
    plot = f'\n<p class="soft">{escape(legend)}</p>\n<div class="grid">{figures}</div>{more}' if drawn else ""
    return f"<h2>Lessons</h2>{plot}\n{_lessons(lift.lessons)}"


def _lessons(lessons: Sequence[LessonLift]) -> str:
    columns = (
        "lesson",
        "kind",
        "shown",
        "left out",
        "cited",
        "effect",
        "one look",
        "however often",
        "expected",
        "evidence",
        "so far",
    )
    rows = [(_CLASSES.get(lesson.standing, ""), _lesson(lesson, n)) for n, lesson in enumerate(lessons[:MOST], 1)]
    left = len(lessons) - MOST
    more = f"\n<p>{left:,} more lessons have no row here.</p>" if left > 0 else ""
    return _table("Each lesson, in the tasks it was found for", columns, rows, text=(1, 10)) + more


def _lesson(lesson: LessonLift, number: int) -> tuple[str, ...]:
    effect = lesson.success
    return (
        f"{number}. {named(lesson)}",
        str(lesson.kind or ""),
        f"{lesson.shown:,}",
        f"{lesson.withheld:,}",
        f"{lesson.cited:,}",
        "too few" if effect.value is None else _points(effect.value),
        _between(effect.low, effect.high),
        _between(effect.always_low, effect.always_high),
        _points(lesson.expected) if lesson.expected is not None else "",
        _evidence(lesson.evidence),
        f"{SIGN[lesson.standing]} {said_of(lesson)}",
    )


def _judges(judges: Sequence[JudgeReport]) -> str:
    if not judges:
        return ""
    columns = (
        "judge",
        "asked",
        "checked",
        "agreement",
        "said success: right",
        "successes it saw",
        "said failure: right",
        "failures it saw",
        "calibration error",
        "sure enough from",
    )
    rows = [("", _judge(judge)) for judge in judges[:MOST]]
    told = (
        "Checked are those of whose run the truth was told as well. The last column is the confidence from which on a "
        "judge agrees with the truth nine times in ten."
    )
    table = _table("How far each judge agrees with the truth", columns, rows, text=())
    return f"<h2>Judges</h2>\n{table}\n<p>{escape(told)}</p>"


def _judge(judge: JudgeReport) -> tuple[str, ...]:
    return (
        canonical_line(judge.judge, limit=200),
        f"{judge.asked:,}",
        f"{judge.checked:,}",
        _share(judge.agreement),
        _share(judge.success_precision),
        _share(judge.success_recall),
        _share(judge.failure_precision),
        _share(judge.failure_recall),
        "not known" if judge.calibration_error is None else f"{judge.calibration_error:.3f}",
        "not known" if judge.threshold is None else f"{judge.threshold:.2f}",
    )


def _measuring(cost: MeasuringCost) -> str:
    lost = cost.given_up >= 0
    rows = [
        (
            "successes expected to be given up" if lost else "failures expected to be avoided",
            f"{abs(cost.given_up):,.1f}",
        ),
        ("the same for 100 tasks", f"{abs(cost.per_hundred):,.2f}"),
        ("share of showings left out", _share(cost.rate)),
        ("share that would show an overall effect of ten points in as many recalls", _share(cost.recommended)),
    ]
    table = _table(
        "The price of leaving lessons out to compare with", ("what", "how much"), [("", row) for row in rows], text=()
    )
    return f"<h2>The cost of measuring</h2>\n{table}"


def _notes(lift: Lift) -> str:
    return f"<h2>Notes</h2>\n{_listed(map(canonical_line, lift.notes))}" if lift.notes else ""


def _listed(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _table(
    caption: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], /, *, text: Sequence[int]
) -> str:
    """`table`, of plain text."""
    told = ((name, [escape(cell) for cell in cells]) for name, cells in rows)
    return table(caption, columns, told, text=text)


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1%}"


def _points(value: float | None) -> str:
    return "not known" if value is None else f"{_minus(f'{100 * value:+z.1f}')} points"


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else _minus(f"{100 * low:+z.1f} to {100 * high:+z.1f}")


def _evidence(value: float) -> str:
    return f"{value:,.1f}" if value < 10_000 else f"{value:.0e}"


def _minus(text: str) -> str:
    """`text` with the sign that is as wide as a plus; hyphens between letters stay."""
    return _NEGATIVE.sub("\u2212", text)
