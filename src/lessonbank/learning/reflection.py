"""Looks back over the runs of a topic, and draws the few lessons that single ones have in common."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final

from lessonbank._base.aio import if_there, read_reply
from lessonbank._version import VERSION
from lessonbank.contracts.ports import LanguageModel, Store
from lessonbank.contracts.records import (
    Against,
    Change,
    Experience,
    Extraction,
    Kind,
    Lesson,
    Provenance,
    Reflected,
    Replace,
    Run,
    Topic,
)
from lessonbank.contracts.records.repeats import repeats_of
from lessonbank.contracts.store_calls import get_trajectory
from lessonbank.errors import ExtractionError
from lessonbank.evidence.groups import topic_names, topics_called
from lessonbank.guard import canonical_line, fence, nonce
from lessonbank.guard.intake import IntakeFilter
from lessonbank.text.prompts import load
from lessonbank.text.rendering import estimate_tokens, render

from .extraction._forms import GeneralLessons
from .extraction.parsing import Draft, parse_lessons

LEAST_RUNS: Final = 4
"""Runs of a topic, with both outcomes, below which there is nothing to compare."""
LEAST_SHOWN: Final = 2
"""Runs of different tasks that show a general lesson, and lessons that it covers, at least."""
LIMIT: Final = 3
METHOD: Final = "reflection"
_SHARE: Final = 0.35
"""The share of the budget that lessons take."""
_EACH: Final = 250
_LEAST: Final = 200
"""Tokens of a run with which it is worth to be shown."""
_LABEL: Final = re.compile(r"\b([RL])\s?(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Material:
    """What there is of one topic: its experiences with a run each, and the lessons that may be covered."""

    topic: Topic
    name: str
    """What its lessons mostly call it."""
    taught: tuple[tuple[Experience, Run], ...]
    lessons: tuple[Lesson, ...]

    @property
    def outcomes(self) -> set[str]:
        """How its runs ended."""
        return {run.verdict.outcome for _, run in self.taught} - {"unknown"}


async def materials(store: Store, /, *, scope: str, runs: int, asked: str | None = None) -> list[Material]:
    """The topics that there is something to compare in, with their latest `runs`; those with the most runs first.

    `asked`: the id or name of the only topic to look at. Raises NotFound: no lesson has it.
    """
    every = [experience async for experience in store.scan(scope=scope)]
    names = topic_names(lesson for one in every for lesson in one.lessons)
    wanted = names if asked is None else topics_called(asked, names)
    single = _single_lessons(every)
    about = _by_topic(every, single)
    found: list[Material] = []
    for id, lessons in single.items():
        if id in wanted and len(lessons) >= LEAST_SHOWN and lessons[0].topic:
            taught = [(one, run) for one in about[id][-runs:] if (run := await _run_of(store, one))]
            found.append(Material(lessons[0].topic, names[id], tuple(taught), tuple(lessons)))
    ready = [one for one in found if len(one.taught) >= LEAST_RUNS and {"success", "failure"} <= one.outcomes]
    return sorted(ready, key=lambda one: -len(one.taught))


def _single_lessons(every: Sequence[Experience]) -> dict[str, list[Lesson]]:
    """The active lessons of each topic that a general one may cover."""
    found = defaultdict[str, list[Lesson]](list)
    for lesson in (lesson for one in every for lesson in one.active_lessons):
        if lesson.topic and not (lesson.against and lesson.against.stand == "general"):
            found[lesson.topic.id].append(lesson)
    return found


def _by_topic(every: Sequence[Experience], single: Mapping[str, Sequence[Lesson]]) -> Mapping[str, list[Experience]]:
    """The experiences of each topic: those that hold a lesson of it, and those that taught one again."""
    topics = {lesson.id: id for id, lessons in single.items() for lesson in lessons}
    found = defaultdict[str, list[Experience]](list)
    for one in every:
        again = {topics[id] for id in repeats_of(one) if id in topics}
        for id in again | {lesson.topic.id for lesson in one.lessons if lesson.topic}:
            found[id].append(one)
    return found


async def _run_of(store: Store, experience: Experience) -> Run | None:
    """The last run of an experience whose end is known; `None` where it was erased."""
    for ref in reversed(experience.attempts):
        if ref.verdict.outcome != "unknown":
            run = await if_there(get_trajectory(store, ref.trajectory_id, scope=experience.scope))
            return run and Run(trajectory=run, verdict=ref.verdict)
    return None


async def reflected(about: Material, /, *, model: LanguageModel, intake: IntakeFilter, budget: int) -> Reflected:
    """General lessons of one topic, and the changes that keep them. Raises ModelError."""
    prompt, mark = load("general/reflect"), nonce()
    lessons, runs = _told(about, budget, mark)
    shown = about.taught[: len(runs)]
    slots = {"nonce": mark, "lessons": lessons, "runs": "\n\n".join(runs), "limit": str(LIMIT)}
    reply = await model.generate(prompt.render(**slots), temperature=0.0, schema=GeneralLessons)
    try:
        drafts = (await read_reply(partial(parse_lessons, limit=LIMIT), reply.text)).lessons
    except ExtractionError as error:
        return Reflected(usage=reply.usage, notes=(f"nothing general was drawn: {error}",))
    made, notes = list[tuple[Lesson, tuple[Experience, ...]]](), list[str]()
    for draft in drafts:
        told = _general(draft, about, shown)
        if isinstance(told, str):
            notes.append(f"{canonical_line(draft.title, limit=60)!r} was dropped: {told}")
            continue
        lesson, by = told
        origin = lesson.provenance.model_copy(update={"prompts": (prompt.ref,), "model": model.name})
        made.append((lesson.model_copy(update={"provenance": origin}), by))
    drawn = Extraction(lessons=tuple(lesson for lesson, _ in made))
    kept = await intake.lessons(drawn, [run for _, run in shown], shown=())
    by_id = {lesson.id: by for lesson, by in made}
    changes = _changes([(lesson, by_id[lesson.id]) for lesson in kept.lessons])
    usage = reply.usage + kept.usage
    return Reflected(lessons=kept.lessons, changes=changes, usage=usage, notes=(*notes, *kept.notes))


def _told(about: Material, budget: int, mark: str) -> tuple[str, list[str]]:
    """The lessons and the runs as the model sees them, within `budget` tokens."""
    every = [_line(number, lesson) for number, lesson in enumerate(about.lessons, 1)]
    sizes = accumulate(map(estimate_tokens, every))
    lines = [line for line, size in zip(every, sizes, strict=True) if size <= int(budget * _SHARE)]
    numbers = {lesson.id: number for number, lesson in enumerate(about.lessons[: len(lines)], 1)}
    lessons = fence("\n".join(lines), label="lessons", nonce=mark)
    room = budget - estimate_tokens(lessons)
    count = max(LEAST_SHOWN, min(len(about.taught), room // (_LEAST + _EACH // 5)))
    share = max(_LEAST, room // count - _EACH // 5)
    runs: list[str] = []
    for number, (experience, run) in enumerate(about.taught[:count], 1):
        taught = {lesson.id for lesson in experience.lessons} | repeats_of(experience).keys()
        named = ", ".join(f"L{numbers[id]}" for id in taught if id in numbers) or "none"
        bare = run.trajectory.model_copy(update={"instructions": ""})
        label = f"R{number} ({run.verdict.outcome}; it taught {named})"
        runs.append(fence(render(bare, budget=share), label=label, nonce=mark))
    return lessons, runs


def _line(number: int, lesson: Lesson) -> str:
    return canonical_line(f"L{number}. {lesson.title}: {lesson.content}", limit=3 * _EACH)


def _general(
    draft: Draft, about: Material, shown: Sequence[tuple[Experience, Run]]
) -> tuple[Lesson, tuple[Experience, ...]] | str:
    """The lesson of a draft and the experiences that show it, the latest last; or why it is none."""
    named = {(kind.upper(), int(number)) for text in draft.evidence for kind, number in _LABEL.findall(text.upper())}
    runs = [shown[n - 1] for kind, n in sorted(named) if kind == "R" and 1 <= n <= len(shown)]
    covered = [about.lessons[n - 1] for kind, n in sorted(named) if kind == "L" and 1 <= n <= len(about.lessons)]
    by = {experience.task: experience for experience, _ in runs}
    if len(by) < LEAST_SHOWN:
        return f"it names {len(by)} of the {LEAST_SHOWN} tasks that must show it"
    if len(covered) < LEAST_SHOWN:
        return f"it covers {len(covered)} of the lessons, and {LEAST_SHOWN} are the least"
    outcomes = {run.verdict.outcome for _, run in runs}
    kinds: list[Kind] = [lesson.kind for lesson in covered]
    origin = Provenance(
        method=METHOD,
        trajectory_ids=tuple(run.trajectory.id for _, run in runs),
        verdict=runs[0][1].verdict.outcome if len(outcomes) == 1 else "unknown",
        verdict_source=runs[0][1].verdict.source if len({run.verdict.source for _, run in runs}) == 1 else "judge",
        evidence=tuple(f"lesson {lesson.id}" for lesson in covered),
        package_version=VERSION,
    )
    lesson = Lesson(
        title=draft.title,
        description=draft.description,
        content=draft.content,
        kind=draft.kind or max(kinds, key=kinds.count),
        topic=about.topic,
        applies_to=draft.applies_to,
        against=Against(lesson_ids=tuple(one.id for one in covered), stand="general"),
        provenance=origin,
    )
    return lesson, tuple(sorted(by.values(), key=lambda one: one.created_at))


def _changes(made: Sequence[tuple[Lesson, tuple[Experience, ...]]]) -> tuple[Change, ...]:
    """The latest experience that shows a lesson holds it."""
    now: dict[str, Experience] = {}
    for lesson, by in made:
        holder = now.get(by[-1].id, by[-1])
        now[holder.id] = holder.model_copy(update={"lessons": (*holder.lessons, lesson)})
    return tuple(Replace(experience=one, reason="reflection over a topic") for one in now.values())
