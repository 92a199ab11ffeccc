"""What memory changed, as records that can be printed, kept and sent: the answer of `bank.lift()`."""

from __future__ import annotations

from typing import Literal

from lessonbank.guard.sanitise import one_line
from lessonbank.types import Kind, Record
from lessonbank.types.record import Moment

Standing = Literal["helps", "harms", "likely helps", "likely harms", "no evidence yet"]
"""Two grades. "Likely" is printed of at most 1 % of lessons that change nothing; of at most 5 % of banks is any "helps"
or "harms" ever wrong, however often one looks."""


class Estimate(Record):
    """An effect with its intervals, in the unit of what is measured (a success rate: 0.05 is five points).

    All `None` where there is too little to say: fewer than five recalls on one of the two sides.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    """The interval of one look: right 95 times in 100 for whoever looks once."""
    always_low: float | None = None
    always_high: float | None = None
    """The interval that is right however often one looks and whenever one stops; wider. Verdicts go by it."""
    basis: str = ""
    """What the outcomes are: `truth`; `truth and judge`: truth drawn by an audit, with a judge's opinions to lessen the
    noise; `judge`: opinions alone, of which nothing follows."""
    note: str = ""


class Part(Record):
    """The effect on the tasks of one template."""

    name: str
    """The template as the runs name it, or its words."""
    success: Estimate
    recalls: int
    """Recalls with a known outcome that tell of it."""


class Split(Record):
    """An effect by task template, the part first that differs most from the others."""

    parts: tuple[Part, ...]
    evidence: float
    """An e-value against one effect for all tasks."""
    differs: bool
    """Whether it is shown that the effects differ. At most one bank in 200 ever says so where none does."""


class UnitLift(Record):
    """What showing a lesson, or a group of lessons, changes in the tasks it is found for."""

    shown: int = 0
    """Recalls with a known outcome in which it was shown."""
    withheld: int = 0
    """Those in which a draw left it out: its own, or one that left out nothing else."""
    success: Estimate = Estimate()
    expected: float | None = None
    """The effect to be expected of it as one of many: drawn to its group's while its own evidence is thin."""
    evidence: float = 1.0
    """An e-value against its having no such effect: 20 is what a test at 5 % asks for, however often one looks."""
    standing: Standing = "no evidence yet"
    since: Moment | None = None
    """Since when it harms, where it did not from the first. The estimate is of the time since then."""
    more: int | None = None
    """About how many more recalls bring the next verdict with a chance of 80 %, if the effect is ten points."""
    missing_shown: float | None = None
    missing_withheld: float | None = None
    """The shares without a known outcome, where they differ by more than chance: then there is no verdict."""
    split: Split | None = None
    """The effect by task template, where two templates or more can be compared."""


class LessonLift(UnitLift):
    """What one lesson changes in the tasks it is found for."""

    lesson_id: str
    title: str = ""
    kind: Kind | None = None
    groups: tuple[str, ...] = ()
    """Ids of the groups it was in when it was recalled last, the widest first."""
    cited: int = 0
    """Recalls in which the agent named it among what it used. Adherence: never counted as an effect."""
    retired: bool = False
    quarantined: bool = False
    proposed: bool = False
    """Whether a person is asked to retire it: it is approved and shown to harm."""


class GroupLift(UnitLift):
    """What the lessons of one group change together: those of a source, or of a topic."""

    group: str
    """Its id."""
    name: str = ""
    lessons: int = 0
    """How many of its lessons were found at least once."""


class JudgeReport(Record):
    """How far a judge agrees with the truth, where the truth was told as well."""

    judge: str
    """Its model, and its prompt with version."""
    asked: int
    """Outcomes it gave."""
    checked: int
    """Those of which the truth became known. They should be a random part; a chosen part tells of that part."""
    agreement: float | None = None
    success_precision: float | None = None
    """Of what it called a success, the share that was one."""
    success_recall: float | None = None
    """Of the successes, the share that it called so: sensitivity."""
    failure_precision: float | None = None
    failure_recall: float | None = None
    """Of the failures, the share that it called so: specificity."""
    calibration_error: float | None = None
    """The expected calibration error: how far its confidence is from its agreement, over ten bins (Naeini 2015)."""
    threshold: float | None = None
    """The lowest confidence from which on it agreed with the truth nine times in ten; `None` where there is none."""


class MeasuringCost(Record):
    """What withholding cost, and what rate would do."""

    given_up: float = 0.0
    """Successes expected to have been given up by leaving helpful lessons out (below zero: harm that was avoided)."""
    per_hundred: float = 0.0
    """The same for 100 tasks."""
    rate: float | None = None
    """The share of showings that were withheld."""
    recommended: float | None = None
    """The rate at which an overall effect of ten points would be shown within as many recalls as there have been, as
    far as one does; `None` where there were too few."""


class Point(Record):
    """One moment of a series, for plots."""

    recalls: int
    with_memory: float | None = None
    """The rate of success so far of recalls that were shown, and of those withheld whole."""
    without: float | None = None
    lift: float | None = None
    low: float | None = None
    high: float | None = None
    """The lift so far, with the interval that is right however often one looks."""
    lessons: int = 0
    """How many lessons had been found by then."""


class Lift(Record):
    """What memory changed in one scope, overall, by group and by lesson. `print(lift)` says it in words."""

    scope: str
    level: float = 0.95
    recalls: int = 0
    """Recalls that found something."""
    settled: int = 0
    """Those whose outcome is known."""
    controls: int = 0
    """Those withheld whole, of the settled."""
    writers: int = 0
    """How many told these outcomes. What the bank does automatically must hold without any tenth of them."""
    uncounted: int = 0
    """Outcomes that did not count, because their writer told more than its share."""
    missing_with: float | None = None
    missing_without: float | None = None
    """The share without a known outcome, among recalls shown and among those withheld whole."""
    split: Split | None = None
    """The effect of memory by task template."""
    labels_needed: int | None = None
    """About how many more labels of judged runs bring the next verdict on memory with a chance of 80 %."""
    unlabelled: int = 0
    """Recalls that an audit drew and that wait for a person's label (`runs.unlabelled()`)."""
    success_with: float | None = None
    success_without: float | None = None
    success: Estimate = Estimate()
    standing: Standing = "no evidence yet"
    more: int | None = None
    steps: Estimate = Estimate()
    tokens: Estimate = Estimate()
    cost: Estimate = Estimate()
    """US dollars a task."""
    seconds: Estimate = Estimate()
    since: Moment | None = None
    evidence: float = 1.0
    groups: tuple[GroupLift, ...] = ()
    lessons: tuple[LessonLift, ...] = ()
    """Those that were found at least once; harmful first, then helpful, then by how often."""
    judges: tuple[JudgeReport, ...] = ()
    measuring: MeasuringCost = MeasuringCost()
    series: tuple[Point, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return in_words(self)


def in_words(lift: Lift, /, *, most: int = 10) -> str:
    """The report as plain text, at most `most` lessons. Nothing that strangers wrote can drive a terminal."""
    lines = [headline(lift), *_sides(lift), *_running(lift)]
    if lift.groups and most > 0:
        lines += ["", _COLUMNS, *map(_group, lift.groups[:most])]
    if lift.lessons and most > 0:
        lines += ["", _COLUMNS, *map(_lesson, lift.lessons[:most])]
        if len(lift.lessons) > most:
            lines.append(f"  … and {len(lift.lessons) - most} more")
    if lift.success.value is not None or (lift.lessons and most > 0):
        lines += [
            "",
            f"In brackets: {100 * lift.level:.4g} % intervals; those of success hold however often one looks.",
        ]
    if told := (*lift.notes, *advice(lift)):
        lines += ["", *(one_line(note) for note in told)]
    return "\n".join(lines)


_READ, _TITLE = 400, 60
"""Characters of a title that are looked at, and that are printed."""
_COLUMNS = "  shown  left out  effect on success           what the evidence says"


def headline(lift: Lift, /) -> str:
    """The answer in one sentence."""
    if lift.success.value is None:
        return f"Does memory help? No evidence yet: {lift.settled} settled recalls, {lift.controls} without memory."
    more = ""
    if lift.more and lift.standing == "no evidence yet":
        more = f"; about {lift.more} more recalls, if it changes ten points"
    return f"Does memory help? {_SAYS[lift.standing]}{_by(lift.success)}: success {points(lift.success)}{more}."


_SAYS: dict[Standing, str] = {
    "helps": "Yes",
    "harms": "No, it harms",
    "likely helps": "Likely",
    "likely harms": "No, it likely harms",
    "no evidence yet": "No evidence yet",
}


def _by(estimate: Estimate) -> str:
    return ", by the judge" if estimate.basis == "judge" else ""


def advice(lift: Lift, /) -> tuple[str, ...]:
    """What to do where there is nothing to count yet."""
    if not lift.recalls:
        return ("Nothing was found for any task yet: learn(…) from finished runs, then retrieve(…) before each task.",)
    if not lift.settled:
        return ("No outcome is known yet: hand each recall to learn with its run, learn(run, recall=…, outcome=…).",)
    return ()


def _sides(lift: Lift) -> list[str]:
    if lift.success_with is None or lift.success_without is None:
        return []
    return [
        f"  with memory {lift.success_with:.0%} of {lift.settled - lift.controls} tasks, "
        f"without {lift.success_without:.0%} of {lift.controls}, chosen at random"
    ]


def _running(lift: Lift) -> list[str]:
    named = (("steps", lift.steps, ".1f"), ("tokens", lift.tokens, ".0f"), ("US dollars", lift.cost, ".4f"))
    return [
        f"  {name} a task: {e.value:+z{form}} [{e.low:+z{form}}, {e.high:+z{form}}]"
        for name, e, form in (*named, ("seconds", lift.seconds, ".1f"))
        if e.value is not None and e.low is not None and e.high is not None
    ]


def _lesson(lesson: LessonLift) -> str:
    return _row(lesson, one_line(lesson.title, limit=_READ) or lesson.lesson_id, said_of(lesson))


def _group(group: GroupLift) -> str:
    return _row(
        group, one_line(group.name, limit=_READ) or group.group, f"{standing_of(group)}, {group.lessons} lessons"
    )


def _row(unit: UnitLift, title: str, said: str) -> str:
    effect = points(unit.success) if unit.success.value is not None else "too few to say"
    title = one_line(title, limit=_READ)
    title = title if len(title) <= _TITLE else f"{title[: _TITLE - 1].rstrip()}…"
    return f"  {unit.shown:5d}  {unit.withheld:8d}  {effect:26s}  {said}: {title}"


def standing_of(unit: UnitLift, /) -> str:
    """What the evidence says of it, in a few words."""
    if unit.missing_shown is not None and unit.missing_withheld is not None:
        return f"no verdict: {unit.missing_shown:.0%} of outcomes missing, {unit.missing_withheld:.0%} without it"
    more = f" (about {unit.more} more)" if unit.more and unit.standing == "no evidence yet" else ""
    by = _by(unit.success) if unit.standing != "no evidence yet" else ""
    since = f" since {unit.since:%Y-%m-%d}" if unit.since else ""
    return f"{unit.standing}{since}{by}{more}"


def said_of(lesson: LessonLift, /) -> str:
    """What the evidence says of a lesson, and what became of it, in a few words."""
    states = {"retired": lesson.retired, "quarantined": lesson.quarantined, "retirement proposed": lesson.proposed}
    return ", ".join([standing_of(lesson), *(word for word, is_so in states.items() if is_so)])


def points(estimate: Estimate, /) -> str:
    """An effect on a rate in percentage points, with the interval that is right however often one looks."""
    if estimate.value is None:
        return "unknown"
    low, high = estimate.always_low, estimate.always_high
    span = "" if low is None or high is None else f" [{100 * low:+z.0f}, {100 * high:+z.0f}]"
    return f"{100 * estimate.value:+z.1f} points{span}"
