"""What showing a lesson, a group or all of memory changes, as records, and how each is said in a few words."""

from __future__ import annotations

import math
from typing import Final, Literal

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Kind, Record
from lessonbank.contracts.records.record import Moment

Standing = Literal["helps", "harms", "likely helps", "likely harms", "no evidence yet"]
"""Two grades. "Likely" is printed of about 1 % of lessons that change nothing, and of memory as a whole in at most 5 %
of scopes where it does. In at most 5 % any "helps" or "harms" is ever wrong, however often one looks."""
LITTLE: Final = 0.05
"""An effect that is shown to be no larger, up or down, is called nothing: five points."""
NOT_YET: Final = "not known yet"
OPEN: Final = "how many successes is not known yet"
_LESS_SURE: Final = ": single lessons are less certain than memory as a whole"
_TOO_FEW: Final = ", too few tasks"
_ANYTHING: Final = 0.5  # from here on a bound says nothing that a reader did not know


class Estimate(Record):
    """An effect with its intervals, in the unit of what is measured (a success rate: 0.05 is five points).

    All `None` with fewer than five recalls on one of the two sides.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    """The interval of one look."""
    always_low: float | None = None
    always_high: float | None = None
    """The interval that is right however often one looks. Verdicts go by it."""
    basis: str = ""
    """What the outcomes are: `truth`; `truth and judge`: truth that an audit drew, with a judge's opinions besides;
    `judge`: opinions alone, of which nothing follows."""

    @property
    def most(self) -> float | None:
        """How large the effect is at most, up or down, however often one looks; `None` where nothing is known."""
        ends = (self.always_low, self.always_high)
        return None if self.value is None or None in ends else max(abs(end or 0.0) for end in ends)


class Effect(Record):
    """What showing something changes, and what may be said of it."""

    shown: int = 0
    """Recalls with a known outcome in which it was shown."""
    withheld: int = 0
    """Those in which a draw left it out: its own, or one that left out nothing else."""
    success: Estimate = Estimate()
    standing: Standing = "no evidence yet"
    since: Moment | None = None
    """Since when it harms, where it did not from the first. The estimate is of the time since then."""


class LessonLift(Effect):
    """The effect of one lesson, in the tasks it is found for."""

    lesson_id: str
    title: str = ""
    description: str = ""
    content: str = ""
    kind: Kind | None = None
    groups: tuple[str, ...] = ()
    """Ids of its groups when it was recalled last, the widest first."""
    retired: bool = False
    asleep: bool = False
    """Whether it is retired only until a run meets it again."""
    part_of: str | None = None
    """The id of the lesson that has its words since a merge; then it is retired."""
    quarantined: bool = False
    proposed: bool = False
    """Whether a person is asked to retire it, because it is shown to harm, or to approve it, because it helps."""
    run_ids: tuple[str, ...] = ()
    """The runs it was drawn from."""


class GroupLift(Effect):
    """The effect of the lessons of one group together: those of a source, or of a topic."""

    group: str
    """Its id."""
    name: str = ""
    lessons: int = 0
    """How many of its lessons were found at least once."""


class Point(Record):
    """One moment of a series, for plots."""

    recalls: int
    with_memory: float | None = None
    """The share of success so far with memory, and without, weighted as the effect is."""
    without: float | None = None


class MeasuringCost(Record):
    """What withholding cost."""

    given_up: float = 0.0
    """Successes expected to have been given up by leaving helpful lessons out (below zero: harm that was avoided)."""
    given_up_low: float = 0.0
    """The least that this can be, by the intervals that hold however often one looks, and the most."""
    given_up_high: float = 0.0
    tasks_without: int = 0
    """Tasks that found lessons of which a draw left out all, whether or not their outcome is known."""
    tasks_with_less: int = 0
    """Tasks that found lessons of which a draw left out some."""


def does_nothing(effect: Effect, /) -> bool:
    """Whether it is shown that an effect is at most `LITTLE`, up or down; opinions alone show nothing."""
    most = None if effect.success.basis == "judge" else effect.success.most
    return effect.standing == "no evidence yet" and most is not None and most <= LITTLE


def says_nothing(effect: Effect, /) -> bool:
    """Whether so few tasks are known that any effect fits: a number would look like knowledge."""
    known = effect.success.value is not None
    return not known or (effect.standing == "no evidence yet" and _at_most(effect.success) == _TOO_FEW)


def standing_of(lift: Effect, /) -> str:
    """The decision in one sentence: keep, take out, or undecided, and then how large the effect is at most."""
    decision = f"{'keep' if 'helps' in lift.standing else 'take out'}: {lift.standing}"
    if lift.standing == "no evidence yet":
        decision = "does nothing" if does_nothing(lift) else "undecided"
    elif lift.success.basis == "judge":
        decision = f"undecided: {lift.standing}"  # nothing follows from opinions alone
    return f"{decision}{qualifiers(lift)}"


def qualifiers(effect: Effect, /) -> str:
    """Since when that is so, who says it, and how large the effect is at most where nothing is shown."""
    since = f" since {effect.since:%Y-%m-%d}" if effect.since else ""
    by_judge = ", by the judge" if effect.success.basis == "judge" and effect.success.value is not None else ""
    return f"{since}{by_judge}{_at_most(effect.success) if effect.standing == 'no evidence yet' else ''}"


def _at_most(effect: Estimate) -> str:
    """What is known of an effect of which nothing is shown, as the end of a sentence; empty where that is nothing."""
    most, low, high = effect.most, effect.always_low, effect.always_high
    if most is None or low is None or high is None or fits_anything(low, high):
        return _TOO_FEW
    return "" if most >= _ANYTHING else f", at most {100 * most:.0f} points either way"


def fits_anything(low: float, high: float, /) -> bool:
    """Whether an interval of an effect is so wide that it says nothing."""
    return high - low >= 2 * _ANYTHING


def said_of(lesson: LessonLift, /) -> str:
    """What the evidence says of a lesson, and what became of it, in a few words."""
    proposed = "approval proposed" if lesson.standing == "helps" else "retirement proposed"
    states = {
        "asleep": lesson.asleep,
        "part of another lesson now": bool(lesson.part_of),
        "retired": lesson.retired and not (lesson.asleep or lesson.part_of),
        "quarantined": lesson.quarantined,
        proposed: lesson.proposed,
    }
    return ", ".join([standing_of(lesson), *(word for word, is_so in states.items() if is_so)])


def points(estimate: Estimate, /) -> str:
    """An effect on a rate in percentage points, with the interval that is right however often one looks."""
    if estimate.value is None:
        return NOT_YET
    low, high = estimate.always_low, estimate.always_high
    span = "" if low is None or high is None else f" [{100 * low:+z.0f}, {100 * high:+z.0f}]"
    span = " so far" if low is not None and high is not None and fits_anything(low, high) else span
    return f"{100 * estimate.value:+z.1f} points{span}"


def percent(share: float | None, /) -> str:
    """A share in hundredths with one digit behind the point, as precise as effects are printed."""
    return "not known" if share is None else f"{100 * share:.1f} %"


def digits(low: float | None, high: float | None, /) -> str:
    """How an amount of dollars is printed: four digits behind the point, and more where its interval needs them."""
    most = max(abs(low or 0.0), abs(high or 0.0))
    return f".{max(4, min(1 - math.floor(math.log10(most)), 9)) if most else 4}f"


def is_open(cost: MeasuringCost, /) -> bool:
    """Whether each task that went without may have cost a success or avoided a failure: no number says a thing then."""
    low, high = cost.given_up_low, cost.given_up_high
    return low < 0 < high and high - low >= cost.tasks_without + cost.tasks_with_less


def given_up(cost: MeasuringCost, /) -> str:
    """`about 118 failures avoided (between 20 and 215)`; nothing where each task may have gone either way."""
    if is_open(cost):
        return OPEN
    value, ends = round(cost.given_up), sorted((round(cost.given_up_low), round(cost.given_up_high)), key=abs)
    text = f"about {_successes(value)}" if value else "hardly any success"
    if ends[0] * ends[1] >= 0 and value:
        return f"{text} (between {abs(ends[0]):,} and {abs(ends[1]):,})"
    why = _LESS_SURE if cost.tasks_with_less else ""
    return f"{text} (between {_successes(min(ends))} and {_successes(max(ends))}{why})"


def _successes(count: int) -> str:
    return f"{plural(-count, 'failure')} avoided" if count < 0 else plural(count, "success", "successes")
