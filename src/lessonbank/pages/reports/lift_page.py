"""What memory changed, as one page that opens anywhere, offline, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from lessonbank._base.plural import plural
from lessonbank.evidence.effects import (
    NOT_YET,
    Estimate,
    MeasuringCost,
    Point,
    is_open,
    percent,
)
from lessonbank.evidence.lift import (
    NOT_COUNTED,
    NOTHING,
    Lift,
    advice,
    brackets,
    changes,
    headline,
    measuring_cost,
    promise,
    sides,
)
from lessonbank.guard.sanitise import canonical_line

from .html import document, minus, table
from .lift_treatments import NAMES, Address, groups_and_lessons, nowhere, write_interval
from .plots import LOOKS, SIGN, success
from .style import STYLE

_BASES = {"truth": "what was told", "judge": "a judge's opinion", "truth and judge": "what was told, and a judge"}
_HOW = (
    "A change is what happened with memory less what happened without it. Which tasks, groups and lessons went without "
    "was drawn at random beforehand. So nothing but memory explains the difference, chance apart.",
    "An interval says how far chance could have moved the number. The first is right for whoever looks once, at a time "
    "fixed beforehand. The wider one stays right however often you look and whenever you stop.",
    "“Undecided” is not “no effect”: nothing is shown so far, and “at most 20 points either way” says what can be "
    "ruled out.",
    "The shares with memory and without count each task by its odds, exactly as the change does. So their difference "
    "is the change. Groups of the same lessons have one row; memory as a whole, and a single lesson, have their own.",
)

_COUNTS: Final = (
    "The share counts whatever a draw left out: lessons one by one, groups as one, and all lessons of a task without "
    "memory. It is lower for what clearly helps, and higher for what looks harmful."
)


def page(lift: Lift, /) -> str:
    """One HTML document, complete in itself: no script, no request, readable without colour; equal lifts, equal pages.

    Texts of lessons, titles and names are made inert.
    """
    return document(f"What memory changed: {escape(canonical_line(lift.scope))}", content(lift), style=STYLE)


def content(lift: Lift, /, *, address: Address = nowhere) -> str:
    """What stands on the page, as HTML without a frame. `address`: where pages of lessons, runs and recalls are."""
    scope = escape(canonical_line(lift.scope))
    return "\n".join(
        (
            f'<h1>What memory changed</h1>\n<p class="soft">scope {scope}: {_write_counts(lift)}</p>',
            answer(lift),
            so_far(lift),
            _overall(lift),
            groups_and_lessons(lift, address=address),
            _missing(lift),
            _measuring(lift.measuring) if lift.recalls else "",
            _notes(lift.notes),
            f"<h2>How to read this</h2>\n{_listed(_HOW)}",
        )
    )


def _write_counts(lift: Lift) -> str:
    return (
        f"{plural(lift.recalls, 'recall')} found something, the outcome of {lift.settled:,} is known, "
        f"{lift.controls:,} of those went without memory"
    )


def answer(lift: Lift, /, *, waiting: int = 0, brief: bool = False) -> str:
    """Whether memory helps, and what to do next. `waiting`: lessons that wait for a person.

    `brief`: without the sign.
    """
    answered = escape(minus(headline(lift)))
    steps = [step for step in advice(lift) if not (waiting and step == NOTHING)]
    if waiting:
        waits = plural(waiting, "lesson or proposal waits", "lessons and proposals wait")
        steps.insert(0, f"Decide in the Inbox: {waits}.")
    rest = f"\n<h2>What to do next</h2>\n{_listed(steps)}" if steps else ""
    cost = f'\n<p class="cost">{escape(sentence)}</p>' if (sentence := measuring_cost(lift)) else ""
    sentence = f"{brackets(lift)} {promise(lift)}"
    promised = "" if lift.success.value is None else f'\n<p class="soft">{escape(sentence)}</p>'
    sign = "" if brief else f"{SIGN[lift.standing]} "
    return f'<p class="answer {LOOKS[lift.standing]}">{sign}{answered}</p>{cost}{promised}{rest}'


def so_far(lift: Lift, /) -> str:
    """What changed over time, drawn and in numbers."""
    series = lift.series
    if not series:
        return "<h2>So far</h2>\n<p>There is nothing to draw before the first outcome is known.</p>"
    columns = ("outcomes", "with memory", "without memory")
    rows = [(f"{p.recalls:,}", percent(p.with_memory), percent(p.without)) for p in series]
    ends = f'<p class="soft">{escape(sentence)}</p>\n' if (sentence := where_it_ends(lift)) else ""
    numbers = table("The same in numbers", columns, rows, text=())
    return (
        f"<h2>So far</h2>\n{figure(series)}\n{ends}"
        f'<details class="numbers"><summary>The same in numbers</summary>{numbers}</details>'
    )


def where_it_ends(lift: Lift, /) -> str:
    """Why curves end before the last outcome that is known; nothing where they do not."""
    if not (waits := next((note for note in lift.notes if NOT_COUNTED in note), "")):
        return ""
    return f"The curves end at outcome {lift.series[-1].recalls:,}: {waits}." if lift.series else ""


def figure(series: Sequence[Point], /) -> str:
    """Success over time; there is at least one point."""
    caption = "Success <span>the share of tasks that succeeded, with memory and without</span>"
    return f"\n<figure><figcaption>{caption}</figcaption>{success(series)}</figure>"


def _overall(lift: Lift) -> str:
    columns = ("of a task", "with memory", "without memory", "change", *NAMES, "outcomes are")
    effect = lift.success
    rows = [
        (
            "success",
            *sides(lift),
            _points(effect.value),
            write_interval(effect.low, effect.high),
            write_interval(effect.always_low, effect.always_high),
            _BASES.get(effect.basis, canonical_line(effect.basis)),
        ),
        *(_running(*change) for change in changes(lift)),
    ]
    drawn = table(f"With memory against without, intervals at {100 * lift.level:.4g} %", columns, rows, text=(6,))
    return f"<h2>Overall</h2>\n{drawn}"


def _running(name: str, effect: Estimate, form: str) -> tuple[str, ...]:
    def write_value(value: float | None) -> str:
        return "" if value is None else minus(f"{value:+z,{form}}")

    span = (
        "" if effect.low is None or effect.high is None else f"{write_value(effect.low)} to {write_value(effect.high)}"
    )
    return (name, "", "", write_value(effect.value) or "not known", span, "", "")


def _missing(lift: Lift) -> str:
    """Where outcomes are missing: an effect is only as true as what became of the tasks is known."""
    if lift.missing_with is None and lift.missing_without is None:
        return ""
    differs = "differs: no verdict" if lift.missing_differs else "may be chance"
    rows = [("memory as a whole", percent(lift.missing_with), percent(lift.missing_without), differs)]
    columns = ("what", "with it", "without it", "difference")
    drawn = table("Recalls without a known outcome", columns, rows, text=(3,))
    return f"<h2>Missing outcomes</h2>\n{drawn}"


def _measuring(cost: MeasuringCost) -> str:
    lost = cost.given_up >= 0
    rows = [
        (
            "successes expected to be given up" if lost else "failures expected to be avoided",
            NOT_YET if is_open(cost) else f"{abs(cost.given_up):,.1f}",
        ),
        *_span(cost, lost=lost),
        ("tasks that were shown no lesson, with a known outcome or without", f"{cost.tasks_without:,}"),
        ("tasks that were shown a part of their lessons", f"{cost.tasks_with_less:,}"),
    ]
    drawn = table("The price of leaving lessons out to compare with", ("what", "how much"), rows, text=())
    return f"<h2>The cost of measuring</h2>\n{drawn}\n<p>{_COUNTS}</p>"


def _span(cost: MeasuringCost, *, lost: bool) -> list[tuple[str, str]]:
    if is_open(cost):
        return []
    low, high = (cost.given_up_low, cost.given_up_high) if lost else (-cost.given_up_high, -cost.given_up_low)
    return [(f"its {NAMES[1]}", minus(f"{low:,.1f} to {high:,.1f}"))]


def _notes(notes: Sequence[str]) -> str:
    return f"<h2>Notes</h2>\n{_listed(map(canonical_line, notes))}" if notes else ""


def _listed(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _points(value: float | None) -> str:
    return "not known" if value is None else f"{minus(f'{100 * value:+z.1f}')} points"
