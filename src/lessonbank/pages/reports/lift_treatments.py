"""The part of a lift's page about groups and lessons: a forest of groups, each of which opens into its lessons."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final, TypeAlias

from lessonbank._base.plural import plural
from lessonbank.evidence.effects import (
    NOT_YET,
    GroupLift,
    LessonLift,
    fits_anything,
    points,
    said_of,
    says_nothing,
    standing_of,
)
from lessonbank.evidence.lift import Lift, distinct_groups, distinct_lessons
from lessonbank.guard.sanitise import canonical, canonical_line, one_line

from .forest import Bar, Forest
from .html import minus
from .plots import SIGN, bar, title_of

MOST: Final = 500
"""Lessons on the page: a page of more opens slowly."""
NAMES: Final = ("interval if you look once", "interval however often you look")
_TEXT, _WHEN = 2_000, 600
"""Characters of a lesson's content, and of when to use it."""
_NAMED: Final = 20
_KEY: Final = (
    "The thick line is the interval if you look once. The thin one is right however often you look; it may be cut off. "
    "Open a row to read more."
)


Address: TypeAlias = "Callable[[str, str], str]"
"""Where the page of something is: `lessons` or `runs`, and its id. Empty: there is none."""


def nowhere(_kind: str, _id: str, /) -> str:
    """A page on its own has nothing to link to."""
    return ""


def groups_and_lessons(lift: Lift, /, *, most: int = MOST, address: Address = nowhere) -> str:
    """Groups in the order of the lift, each with the lessons of which it is the innermost group; then the others."""
    if not lift.lessons:
        return "<h2>Groups and lessons</h2>\n<p>No lesson was found for any task yet.</p>"
    every = distinct_lessons(lift)
    top_lessons = every[: max(most, 0)]
    distinct = distinct_groups(lift)
    forest = Forest([*map(bar, distinct), *map(bar, top_lessons)])
    inside: dict[str, list[LessonLift]] = {group.group: [] for group in distinct}
    alone = list[LessonLift]()
    for lesson in top_lessons:
        inner = next((group for group in reversed(lesson.groups) if group in inside), "")
        inside.get(inner, alone).append(lesson)
    lessons = {
        id: "".join(_lesson(lesson, lift.scope, forest, address) for lesson in own) for id, own in inside.items()
    }
    groups = [_group(group, lessons[group.group], forest) for group in distinct]
    rest = "".join(_lesson(lesson, lift.scope, forest, address) for lesson in alone)
    if rest and groups:
        rest = f"\n<h3>Other lessons</h3>{rest}"
    left = len(every) - len(top_lessons)
    more = f"\n<p>{plural(left, 'more lesson is', 'more lessons are')} not on this page.</p>" if left > 0 else ""
    signs = ", ".join(f"{SIGN[word]} {word}" for word in SIGN)
    return (
        f'<h2>Groups and lessons</h2>\n<p class="soft">{escape(signs)}. {escape(_KEY)}</p>'
        f'\n<div class="forest">{_ruler(forest)}{"".join(groups)}{rest}</div>{more}'
    )


def _group(group: GroupLift, lessons: str, forest: Forest) -> str:
    name = canonical_line(group.name, limit=_WHEN) or canonical_line(group.group, limit=_WHEN)
    count = plural(group.lessons, "lesson")
    summary = _summary(bar(group), f"<b>{escape(name)}</b>, {count}", _write_effect(standing_of(group), group), forest)
    inside = f'<div class="inside">{_facts(_escaped(numbers(group)))}{lessons}</div>'
    return f'\n<details class="treatment group"><summary>{summary}</summary>{inside}</details>'


def _lesson(lesson: LessonLift, scope: str, forest: Forest, address: Address) -> str:
    summary = _summary(bar(lesson), escape(title_of(lesson)), _write_effect(said_of(lesson), lesson), forest)
    when = canonical(lesson.description, limit=_WHEN).strip()
    content = canonical(lesson.content, limit=_TEXT).strip()
    text = f'<p class="soft">{escape(when)}</p>' if when else ""
    text += f"<p class=content>{escape(content)}</p>" if content else ""
    known = (
        ("kind", str(lesson.kind or "")),
        *numbers(lesson),
    )
    facts = (
        *_escaped(known),
        ("its id", _ids("lessons", (lesson.lesson_id,), address)),
        ("drawn from the runs", _ids("runs", lesson.run_ids, address)),
        *_escaped([("to see the recalls that found it", _command(lesson.lesson_id, scope))]),
    )
    inside = f'<div class="inside">{text}{_facts(facts)}</div>'
    return f'\n<details class="treatment"><summary>{summary}</summary>{inside}</details>'


def _summary(drawn: Bar, name: str, sentence: str, forest: Forest) -> str:
    return f'<span><span class="{drawn.look}">{escape(sentence)}</span> {name}</span>{forest.strip(drawn)}'


def _ruler(forest: Forest) -> str:
    return f'\n<div class="treatment row ruler"><span class="soft">points of success</span>{forest.ruler()}</div>'


def _write_effect(standing: str, lift: LessonLift | GroupLift) -> str:
    effect = "" if says_nothing(lift) else f", {minus(points(lift.success))}"
    return f"{SIGN[lift.standing]} {standing}{effect}"


def numbers(lift: LessonLift | GroupLift, /) -> Iterable[tuple[str, str]]:
    """What is known of a lesson or a group, by name."""
    effect = lift.success
    yield "shown, left out", f"{plural(lift.shown, 'time')}, {plural(lift.withheld, 'time')} (with an outcome)"
    yield f"{NAMES[0]}, in points", write_interval(effect.low, effect.high)
    yield f"{NAMES[1]}, in points", write_interval(effect.always_low, effect.always_high)


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """`facts`: what each says is HTML already."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in facts if value)}</dl>"


def _escaped(facts: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((name, escape(one_line(value))) for name, value in facts)


def _ids(kind: str, ids: Sequence[str], address: Address) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return ", ".join(_id(id, address(kind, id)) for id in ids[:_NAMED]) + more


def _id(id: str, where: str) -> str:
    text = escape(one_line(id))
    return f'<a href="{escape(where)}">{text}</a>' if where else text


def _command(id: str, scope: str) -> str:
    scope, id = (shlex.quote(one_line(text, limit=_WHEN)) for text in (scope, id))
    return f"lessonbank recalls --bank BANK --scope {scope} --lesson {id}"


def write_interval(low: float | None, high: float | None, /) -> str:
    """The interval of an effect in points; in words where it says nothing."""
    if low is None or high is None:
        return ""
    return NOT_YET if fits_anything(low, high) else minus(f"{100 * low:+z.1f} to {100 * high:+z.1f}")
