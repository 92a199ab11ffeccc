"""The answer of `bank.lift()`: what memory changed in a scope, and what to do next, as a record and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lessonbank._base.ids import nameless
from lessonbank._base.plural import plural
from lessonbank.guard.sanitise import one_line

from .effects import (
    OPEN,
    Effect,
    Estimate,
    GroupLift,
    LessonLift,
    MeasuringCost,
    Point,
    Standing,
    digits,
    does_nothing,
    given_up,
    percent,
    points,
    qualifiers,
    said_of,
    says_nothing,
    standing_of,
)
from .groups import AGAIN


class Lift(Effect):
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
    """Of the settled, those that went without memory."""
    truths: int = 0
    """Outcomes that count and were told, without those of runs that broke; and those that only a judge gave."""
    opinions: int = 0
    missing_with: float | None = None
    missing_without: float | None = None
    """The share without a known outcome, among recalls shown and among those withheld whole."""
    missing_differs: bool = False
    """Whether these differ by more than chance: then there is no verdict."""
    unlabelled: int = 0
    """Recalls that an audit drew and that wait for a person's label (`runs.unlabelled()`)."""
    success_with: float | None = None
    """The share of success with memory, and without. An outcome counts in the inverse proportion of its odds, so that
    their difference is the effect; where there is no effect yet, these are plain shares."""
    success_without: float | None = None
    steps: Estimate = Estimate()
    tokens: Estimate = Estimate()
    cost: Estimate = Estimate()
    """US dollars a task."""
    seconds: Estimate = Estimate()
    groups: tuple[GroupLift, ...] = ()
    lessons: tuple[LessonLift, ...] = ()
    """Those that were found at least once; harmful first, then helpful, then by how often."""
    measuring: MeasuringCost = MeasuringCost()
    series: tuple[Point, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return in_words(self)


MOST: Final = 6
"""Lessons that are printed unless more are asked for, and twice as many as groups."""
PROMISE: Final = (
    "At most one in twenty scopes ever prints a false 'helps' or 'harms', however often you look. Memory without "
    "effect is called 'likely' in at most one scope in twenty, a lesson without effect in about one case of a hundred. "
    "The errors of trials come on top."
)
NOTHING: Final = "Nothing. Keep going."
"""The advice where none is needed."""
NOT_COUNTED: Final = "not count yet: an earlier recall has none"
"""How the note on outcomes that wait for an earlier one ends."""
OPINIONS: Final = (
    "Only a judge graded these tasks: the numbers say what it thinks, and promise nothing about the truth. Nothing is "
    "retired or trusted because of them."
)
TRUTHS: Final = 20
"""Outcomes that were told below which, beside a judge, what the judge said is looked at too."""
_MIXED: Final = (
    f"the numbers mix both, and promise nothing about the truth. From {TRUTHS} on only those that were told count; "
    "until then nothing is retired or trusted."
)
_READ, _TITLE = 400, 60
"""Characters of a title that are looked at, and that are printed."""
_MANY: Final = 0.8  # with outcomes of fewer recalls, more of these tell more than more tasks
_BESIDE: Final = (
    "A lesson's effect is what it adds to the others: two that say the same look small, two that need each other large."
)
_EARLY: Final = 20
"""Recalls below which a missing outcome may just be late."""
_SAYS: Final[dict[Standing, str]] = {
    "helps": "Yes, keep it",
    "harms": "No, take it out",
    "likely helps": "Likely yes, keep it",
    "likely harms": "Likely no, take it out",
    "no evidence yet": "Undecided",
}


def in_words(lift: Lift, /, *, most: int = MOST) -> str:
    """The report as plain text. Nothing that strangers wrote can drive a terminal.

    `most`: lessons that are listed.
    """
    groups, lessons = distinct_groups(lift), distinct_lessons(lift)
    lines = [
        headline(lift),
        *([f"  {cost}"] if (cost := measuring_cost(lift)) else []),
        *_sides(lift),
        *([f"  a task: {text}"] if (text := spent(lift)) else []),
        *_next(advice(lift)),
    ]
    if lessons and most > 0:
        lines.append("")
        lines += _table("group", groups, (most + 1) // 2) if groups else []
        lines += _table("lesson", lessons, most)
        lines += [f"  {_BESIDE}"] if len(lessons) > 1 and lift.success.value is not None else []
    if lift.success.value is not None or (lift.lessons and most > 0):
        lines += [f"{brackets(lift)} {promise(lift)}"]
    return "\n".join((*lines, *(f"Note: {one_line(note)}" for note in lift.notes)))


def headline(lift: Lift, /) -> str:
    """The answer in one sentence."""
    if lift.missing_differs:
        with_it, without = (f"{share or 0.0:.0%}" for share in (lift.missing_with, lift.missing_without))
        missing = f"outcomes are missing for {with_it} of recalls with memory and {without} without"
        return f"Does memory help? No verdict: {missing}."
    if says_nothing(lift):
        settled = plural(lift.settled, "known outcome")
        return f"Does memory help? Undecided, too few tasks: {settled}, {lift.controls} without memory."
    answer = "No, it does nothing" if does_nothing(lift) else _SAYS[lift.standing]
    if lift.success.basis == "judge":  # nothing follows from opinions alone, so they bring no decision
        answer = answer.partition(",")[0]
    return f"Does memory help? {answer}{qualifiers(lift)}: success {points(lift.success)}."


def distinct_groups(lift: Lift, /) -> tuple[GroupLift, ...]:
    """One group for each set of lessons: not one of all lessons, which is memory itself, nor one of a single lesson.

    Groups of the same lessons are left out together, so their draws say the same: the narrowest stands for all of them.
    """
    members: dict[str, set[str]] = {group.group: set() for group in lift.groups}
    depth = dict.fromkeys(members, 0)
    for lesson in lift.lessons:
        for at, group in enumerate(lesson.groups):
            members.setdefault(group, set()).add(lesson.lesson_id)
            depth[group] = max(depth.get(group, 0), at)
    narrowest: dict[frozenset[str], str] = {}
    for group in sorted(members, key=lambda group: -depth[group]):
        narrowest.setdefault(frozenset(members[group]), group)
    ids = {group for lessons, group in narrowest.items() if len(lessons) < len(lift.lessons)}
    return tuple(row for row in lift.groups if row.lessons != 1 and (row.group in ids or not members[row.group]))


def distinct_lessons(lift: Lift, /) -> tuple[LessonLift, ...]:
    """The lessons without those that are part of another one here: a lesson and what was joined to it are one row."""
    ids = {lesson.lesson_id for lesson in lift.lessons}
    return tuple([lesson for lesson in lift.lessons if lesson.part_of not in ids])


def brackets(lift: Lift, /) -> str:
    """What the numbers in brackets are."""
    look = ", but where 'one look' stands beside them" if spent(lift) else ""
    return f"In brackets: {100 * lift.level:.4g} % intervals, right however often you look{look}."


def promise(lift: Lift, /) -> str:
    """How often what is printed may be wrong."""
    if lift.success.basis != "judge":
        return PROMISE
    if not lift.truths:
        return OPINIONS
    few = f"Only {plural(lift.truths, 'outcome was', 'outcomes were')} told"
    return f"{few}, and {plural(lift.opinions, 'is', 'are')} a judge's opinion: {_MIXED}"


def advice(lift: Lift, /) -> tuple[str, ...]:
    """What to do next, the most important first, in words for programs, terminals and pages alike."""
    if not lift.recalls:
        return (*_finish(lift), _nothing_found(lift))
    if not lift.settled:
        return (*_finish(lift), "No outcome is known yet: hand in each run with its recall, and say how it ended.")
    sentences = *_finish(lift), *_decide(lift), *_tell(lift), *_wait(lift)
    return sentences or (NOTHING,)


def _nothing_found(lift: Lift) -> str:
    if not lift.empty:
        return "No task asked memory yet: once runs have taught lessons, let your program ask before each task."
    whom = "it" if lift.empty == 1 else "any of them"
    asked = f"{plural(lift.empty, 'task')} asked memory, and nothing was found for {whom} yet"
    return f"{asked}: say how tasks ended, and look at your lessons and at the notes of a recall."


def _finish(lift: Lift) -> Iterator[str]:
    """Attempts whose outcome was refused, or never told: nothing is learned from them."""
    if lift.unfinished:
        yield (
            f"{plural(lift.unfinished, 'run')} ended without an outcome: finish each attempt with success, failure or "
            "a reward. The list of runs has them, with the status unfinished."
        )


def _decide(lift: Lift) -> Iterator[str]:
    """What waits for a person, and what nobody but a person may do."""
    waits = [lesson.standing for lesson in lift.lessons if lesson.proposed]
    if count := waits.count("helps"):
        yield f"Approve what helps: {plural(count, 'lesson waits', 'lessons wait')} for you among the proposals."
    if count := len(waits) - count:
        yield f"Decide on {plural(count, 'lesson')} shown to harm, among the proposals."
    if lift.success.basis == "judge":
        return
    helping = sum(lesson.standing == "helps" and not lesson.retired for lesson in lift.lessons)
    if helping and lift.standing == "no evidence yet":  # hardly a task goes without
        few = f"its effect is known later, from {plural(lift.withheld, 'task')} without it so far"
        yield f"Keep memory: {plural(helping, 'lesson is', 'lessons are')} shown to help. As a whole {few}."
    if lift.standing == "harms":
        yield "Show no memory until you know why: Evidence(observe=True) learns and shows nothing."
    elif lift.standing == "likely harms":
        yield "Read the groups and lessons that harm, and retire what is wrong."


def _tell(lift: Lift) -> Iterator[str]:
    """Outcomes and labels that are missing."""
    if lift.missing_differs:
        yield "Find out why outcomes are missing, and tell those of failures and crashes too: an attempt does."
    elif lift.recalls >= _EARLY and lift.settled < _MANY * lift.recalls:
        have = f"{lift.settled} of {lift.recalls} recalls {'has' if lift.settled == 1 else 'have'} one"
        yield f"Tell more outcomes: {have}, and effects are those in these. Give each run its recall."
    if lift.unlabelled:
        runs = plural(lift.unlabelled, "run")
        yield f"Label {runs} that an audit drew, for what comes after the first does not count yet."
    elif lift.success.basis == "judge":
        yield "Let a person label some runs: an audit draws them at random."


def _wait(lift: Lift) -> Iterator[str]:
    """Lessons that only take room, whether to go on, and what the bank did itself, so that nobody does it twice."""
    if count := sum(does_nothing(lesson) and not (lesson.retired or lesson.quarantined) for lesson in lift.lessons):
        they = plural(count, "lesson does", "lessons do")
        yield f"Make room, or let the setting keep_lessons do it: {they} nothing, and can be retired."
    is_open = lift.standing not in ("helps", "harms") and not (lift.missing_differs or does_nothing(lift))
    if is_open and lift.success.basis != "judge":  # opinions alone never lead to a verdict that counts
        yield "Go on: more outcomes decide it. Where tasks can be done again, a trial is quicker."
    lessons = distinct_lessons(lift)
    if out := sum(lesson.retired and lesson.standing in ("harms", "likely harms") for lesson in lessons):
        others = ", and no other is left" if all(lesson.retired for lesson in lessons) else "; keep the others"
        yield f"{plural(out, 'lesson that harms is', 'lessons that harm are')} taken out already{others}."


def _sides(lift: Lift) -> list[str]:
    with_it, without = sides(lift)
    both = f"  with memory {with_it}, without {without}, chosen at random"
    return [] if lift.success_with is None or lift.success_without is None else [both]


def sides(lift: Lift, /) -> tuple[str, str]:
    """The shares of success with memory and without, as `84.0 % of 50 tasks`; before there is an effect, `84.0 %`."""
    on, off, value = lift.success_with, lift.success_without, lift.success.value
    if value is None or on is None or off is None:
        return percent(on), percent(off)
    if abs(on - off - value) < 0.0011:  # rounded to a tenth of a point, the three must add up
        on = round(off, 3) + round(value, 3)
    return f"{percent(on)} of {plural(lift.shown, 'task')}", f"{percent(off)} of {plural(lift.withheld, 'task')}"


def measuring_cost(lift: Lift, /) -> str:
    """What measuring has cost so far, in tasks and successes, as a sentence; empty where nothing was left out."""
    cost = lift.measuring
    if not lift.recalls or not (cost.tasks_without or cost.tasks_with_less):
        return ""
    ended = "" if lift.settled >= lift.recalls else ", with a known outcome or without"
    tasks = f"{cost.tasks_without:,} of {plural(lift.recalls, 'task')} without memory"
    less = f", {cost.tasks_with_less:,} with only a part of it" if cost.tasks_with_less else ""
    text = OPEN if says_nothing(lift) else given_up(cost)
    together = "together " if less and not says_nothing(lift) else ""
    return f"Measuring has cost so far: {tasks}{less}{ended}; {together}{text}."


def changes(lift: Lift, /) -> tuple[tuple[str, Estimate, str], ...]:
    """What memory changes in what a task takes: the name of each, the change, and its digits."""
    return (
        ("steps", lift.steps, ".1f"),
        ("tokens", lift.tokens, ".0f"),
        ("US dollars", lift.cost, digits(lift.cost.low, lift.cost.high)),
        ("seconds", lift.seconds, ".1f"),
    )


def spent(lift: Lift, /) -> str:
    """What memory changes in what a task takes, in words, with intervals that are right for one look; else nothing."""
    return ", ".join(
        f"{name} {e.value:+z{form}} [{e.low:+z{form}}, {e.high:+z{form}}; one look]"
        for name, e, form in changes(lift)
        if e.value is not None and e.low is not None and e.high is not None
    )


def _next(sentences: Sequence[str]) -> list[str]:
    if len(sentences) == 1:
        return [f"What to do next: {sentences[0]}"]
    return ["What to do next:", *(f"  {n}. {sentence}" for n, sentence in enumerate(sentences, 1))]


def _table(what: str, lifts: Sequence[LessonLift | GroupLift], most: int) -> list[str]:
    lines = [f"  shown  left out  {'effect on success':26s}  the decision on each {what}", *map(_row, lifts[:most])]
    return [*lines, f"  … and {len(lifts) - most} more"] if len(lifts) > most else lines


def _row(lift: LessonLift | GroupLift) -> str:
    if isinstance(lift, LessonLift):
        title = one_line(lift.title, limit=_READ) or one_line(nameless(lift.title, lift.lesson_id))
        standing = said_of(lift)
    else:
        count = "" if lift.group.startswith(AGAIN) else f"{plural(lift.lessons, 'lesson')}, "
        title, standing = one_line(lift.name, limit=_READ) or one_line(lift.group), f"{count}{standing_of(lift)}"
    effect = "too few to say" if says_nothing(lift) else points(lift.success)
    title = title if len(title) <= _TITLE else f"{title[: _TITLE - 1].rstrip()}…"
    return f"  {lift.shown:5d}  {lift.withheld:8d}  {effect:26s}  {standing}: {title}"
