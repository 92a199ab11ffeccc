"""Looks back over the runs of a topic, and draws the few lessons that single ones have in common."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from statistics import mode
from typing import Final

from lessonbank._base.aio import get_or_none, read_reply
from lessonbank._version import VERSION
from lessonbank.contracts.ports import LanguageModel, Store
from lessonbank.contracts.records import (
    Duplicate,
    Experience,
    Extraction,
    Lesson,
    Provenance,
    Reflected,
    Relation,
    Replace,
    Run,
)
from lessonbank.contracts.store_calls import get_trajectory
from lessonbank.errors import ExtractionError
from lessonbank.evidence.groups import topic_names
from lessonbank.guard import canonical_line, fence, nonce
from lessonbank.guard.intake import IntakeFilter
from lessonbank.text.prompts import load
from lessonbank.text.rendering import estimate_tokens, render

from .extraction._forms import GeneralLessons
from .extraction.parsing import Draft, parse_lessons
from .topics import topics_called

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
    """What there is of one topic: its usual name, its experiences with a run each, and the lessons it may cover."""

    name: str
    taught: tuple[tuple[Experience, Run], ...]
    lessons: tuple[Lesson, ...]


async def materials(store: Store, /, *, scope: str, runs: int, asked: str | None = None) -> list[Material]:
    """The topics that there is something to compare in, with their latest `runs`; those with the most runs first.

    `asked`: the id or name of the only topic to look at. Raises NotFound: no lesson has it.
    """
    every = [experience async for experience in store.scan(scope=scope)]
    names = topic_names(lesson for experience in every for lesson in experience.lessons)
    wanted = names if asked is None else topics_called(asked, names)
    single, about = _by_topic(every)
    topics: list[Material] = []
    for id in (id for id, lessons in single.items() if id in wanted and len(lessons) >= LEAST_SHOWN):
        taught = [(experience, run) for experience in about[id][-runs:] if (run := await _run_of(store, experience))]
        if len(taught) >= LEAST_RUNS and {run.verdict.outcome for _, run in taught} >= {"success", "failure"}:
            topics.append(Material(names[id], tuple(taught), tuple(single[id])))
    return sorted(topics, key=lambda topic: -len(topic.taught))


def _by_topic(every: Sequence[Experience]) -> tuple[dict[str, list[Lesson]], dict[str, list[Experience]]]:
    """By topic: the lessons that a general one may cover, and the experiences that hold one or taught one again."""
    single, about = defaultdict[str, list[Lesson]](list), defaultdict[str, list[Experience]](list)
    for lesson in (lesson for experience in every for lesson in experience.active_lessons):
        if lesson.topic and not (lesson.relation and lesson.relation.kind == "general"):
            single[lesson.topic.id].append(lesson)
    topics = {lesson.id: id for id, lessons in single.items() for lesson in lessons}
    for experience in every:
        again = {topics[id] for id in experience.repeats if id in topics}
        for id in again | {lesson.topic.id for lesson in experience.lessons if lesson.topic}:
            about[id].append(experience)
    return single, about


async def _run_of(store: Store, experience: Experience) -> Run | None:
    """The last run of an experience whose end is known; `None` where it was erased."""
    ref = next((attempt for attempt in reversed(experience.attempts) if attempt.verdict.outcome != "unknown"), None)
    run = await get_or_none(get_trajectory(store, ref.trajectory_id, scope=experience.scope)) if ref else None
    return Run(trajectory=run, verdict=ref.verdict) if run and ref else None


async def reflected(about: Material, /, *, model: LanguageModel, intake: IntakeFilter, budget: int) -> Reflected:
    """General lessons of one topic; `general_changes` keep them. Raises ModelError."""
    prompt, mark = load("general/reflect"), nonce()
    lines, runs = _write_material(about, budget, mark)
    about = replace(about, taught=about.taught[: len(runs)], lessons=about.lessons[: len(lines)])
    slots = {"nonce": mark, "lessons": _fenced(lines, mark), "runs": "\n\n".join(runs), "limit": str(LIMIT)}
    reply = await model.generate(prompt.render(**slots), temperature=0.0, schema=GeneralLessons)
    try:
        drafts = (await read_reply(partial(parse_lessons, limit=LIMIT), reply.text)).lessons
    except ExtractionError as error:
        return Reflected(usage=reply.usage, notes=(f"nothing general was drawn: {error}",))
    origin = Provenance(method=METHOD, package_version=VERSION, prompts=(prompt.ref,), model=model.name)
    results = [_general(draft, about, origin) for draft in drafts]
    notes = [note for note in results if isinstance(note, str)]
    drawn = Extraction(lessons=tuple(lesson for lesson in results if not isinstance(lesson, str)))
    clean = await intake.lessons(drawn, [run for _, run in about.taught], shown=())
    return Reflected(lessons=clean.lessons, usage=reply.usage + clean.usage, notes=(*notes, *clean.notes))


def _fenced(lines: Sequence[str], mark: str) -> str:
    return fence("\n".join(lines), label="lessons", nonce=mark)


def _write_material(about: Material, budget: int, mark: str) -> tuple[list[str], list[str]]:
    """The lessons and the runs that the model sees, within `budget` tokens: the first ones of both."""
    texts = (f"L{n}. {lesson.title}: {lesson.content}" for n, lesson in enumerate(about.lessons, 1))
    every = [canonical_line(line, limit=3 * _EACH) for line in texts]
    sizes = accumulate(map(estimate_tokens, every))
    lines = [line for line, size in zip(every, sizes, strict=True) if size <= int(budget * _SHARE)]
    numbers = {lesson.id: number for number, lesson in enumerate(about.lessons[: len(lines)], 1)}
    room = budget - estimate_tokens(_fenced(lines, mark))
    count = max(LEAST_SHOWN, min(len(about.taught), room // (_LEAST + _EACH // 5)))
    share = max(_LEAST, room // count - _EACH // 5)
    runs: list[str] = []
    for number, (experience, run) in enumerate(about.taught[:count], 1):
        taught = {lesson.id for lesson in experience.lessons} | experience.repeats.keys()
        named = ", ".join(f"L{numbers[id]}" for id in taught if id in numbers) or "none"
        bare = run.trajectory.model_copy(update={"instructions": ""})
        label = f"R{number} ({run.verdict.outcome}; it taught {named})"
        runs.append(fence(render(bare, budget=share), label=label, nonce=mark))
    return lines, runs


def _general(draft: Draft, about: Material, origin: Provenance) -> Lesson | str:
    """The lesson of a draft, or why it is none; `about` is what was shown."""
    named = {(kind.upper(), int(number)) for text in draft.evidence for kind, number in _LABEL.findall(text.upper())}
    runs = [about.taught[n - 1] for kind, n in sorted(named) if kind == "R" and 1 <= n <= len(about.taught)]
    covered = [about.lessons[n - 1] for kind, n in sorted(named) if kind == "L" and 1 <= n <= len(about.lessons)]
    tasks = {experience.task for experience, _ in runs}
    if min(len(tasks), len(covered)) < LEAST_SHOWN:
        few = f"it names {len(tasks)} of the {LEAST_SHOWN} tasks and covers {len(covered)} of the lessons that it must"
        return f"{canonical_line(draft.title, limit=60)!r} was dropped: {few}"
    outcomes, sources = ({getattr(run.verdict, name) for _, run in runs} for name in ("outcome", "source"))
    descent = {
        "trajectory_ids": tuple(run.trajectory.id for _, run in runs),
        "verdict": outcomes.pop() if len(outcomes) == 1 else "unknown",
        "verdict_source": sources.pop() if len(sources) == 1 else "judge",
        "evidence": tuple(f"lesson {lesson.id}" for lesson in covered),
    }
    return Lesson(
        title=draft.title,
        description=draft.description,
        content=draft.content,
        kind=draft.kind or mode(lesson.kind for lesson in covered),
        topic=covered[0].topic,
        applies_to=draft.applies_to,
        relation=Relation(lesson_ids=tuple(lesson.id for lesson in covered), kind="general"),
        provenance=origin.model_copy(update=descent),
    )


def general_changes(lessons: Sequence[Lesson], taught: Sequence[Experience], /) -> tuple[Replace, ...]:
    """The latest experience that shows a lesson holds it. The others, and those that it covers, find it as well."""
    now = {experience.id: experience for experience in taught}
    for lesson in lessons:
        runs = set(lesson.provenance.trajectory_ids)
        covered = set(lesson.relation.lesson_ids if lesson.relation else ())
        shows = [owner.id for owner in taught if runs.intersection(ref.trajectory_id for ref in owner.attempts)]
        holder = max(shows, key=lambda id: now[id].created_at)
        about = {owner.id for owner in taught if covered & {*owner.repeats, *(i.id for i in owner.lessons)}}
        duplicates = (Duplicate(title=lesson.title, why="it is what this run and others show", is_general=True),)
        now[holder] = now[holder].model_copy(update={"lessons": (*now[holder].lessons, lesson)})
        for id in {*shows, *about} - {holder}:
            now[id] = now[id].model_copy(update={"repeats": {**now[id].repeats, lesson.id: duplicates}})
    why = "reflection over a topic"
    return tuple(Replace(experience=now[old.id], reason=why) for old in taught if now[old.id] is not old)
