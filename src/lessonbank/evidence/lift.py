"""What memory changed, as records that can be printed, kept and sent: the answer of `bank.lift()`."""

from __future__ import annotations

from typing import Literal

from lessonbank.types import Kind, Record
from lessonbank.types.record import Moment

from .lift_words import in_words

Standing = Literal["helps", "harms", "likely helps", "likely harms", "no evidence yet"]
"""Two grades. "Likely" is printed of about 1 % of lessons that change nothing; of at most 5 % of banks is any "helps"
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
    description: str = ""
    content: str = ""
    kind: Kind | None = None
    groups: tuple[str, ...] = ()
    """Ids of the groups it was in when it was recalled last, the widest first."""
    cited: int = 0
    """Recalls in which the agent named it among what it used. Adherence: never counted as an effect."""
    retired: bool = False
    quarantined: bool = False
    proposed: bool = False
    """Whether a person is asked to retire it: it is approved and shown to harm."""
    run_ids: tuple[str, ...] = ()
    """The runs it was drawn from."""
    recall_ids: tuple[str, ...] = ()
    """The last recalls that showed it, the newest first; at most five."""


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
    empty: int = 0
    """Recalls that found nothing to show."""
    unfinished: int = 0
    """Runs of attempts that ended without an outcome, at most a thousand."""
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
    missing_differs: bool = False
    """Whether these differ by more than chance: then there is no verdict."""
    split: Split | None = None
    """The effect of memory by task template."""
    labels_needed: int | None = None
    """About how many more labels of judged runs bring the next verdict on memory with a chance of 80 %."""
    unlabelled: int = 0
    """Recalls that an audit drew and that wait for a person's label (`runs.unlabelled()`)."""
    first: Moment | None = None
    """When the first recall was made that counts for memory as a whole."""
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
