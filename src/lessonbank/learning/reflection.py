"""Looks back over the runs of a topic, and draws the few lessons that single ones have in common."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from statistics import mode
from typing import Final

from lessonbank._base.aio import get_or_none, read_reply
from lessonbank._version import VERSION
from lessonbank.contracts.ports import LanguageModel, Store
from lessonbank.contracts.records import Duplicate, Experience, Extraction, Lesson, Provenance, Reflected, Relation, Run
from lessonbank.contracts.store_calls import get_trajectory
from lessonbank.errors import ExtractionError
from lessonbank.evidence.groups import topic_names
from lessonbank.guard import canonical_line, fence, nonce
from lessonbank.guard.intake import IntakeFilter
from lessonbank.text.prompts import load
from lessonbank.text.rendering import estimate_tokens, render

from .extraction._forms import GeneralLessons
from .extraction.parsing import Draft, parse_lessons
from .topics import LEAST_RUNS as LEAST_RUNS
from .topics import topics_called

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
    lessons = [lesson for experience in every for lesson in experience.lessons]
    names, topics = topic_names(lessons), {lesson.id: lesson.topic.id for lesson in lessons if lesson.topic}
    wanted = names if asked is None else topics_called(asked, names)
    single, about = defaultdict[str, list[Lesson]](list), defaultdict[str, list[Experience]](list)
    for lesson in lessons:
        if lesson.topic and not (lesson.hidden or (lesson.relation and lesson.relation.kind == "general")):
            single[lesson.topic.id].append(lesson)
    for experience in every:
        for id in {topics[lesson] for lesson in _lessons_of(experience) if lesson in topics}:
            about[id].append(experience)
    enough = list[Material]()
    for id in (id for id, covered in single.items() if id in wanted and len(covered) >= LEAST_SHOWN):
        taught = [(experience, run) for experience in about[id][-runs:] if (run := await _run_of(store, experience))]
        if len(taught) >= LEAST_RUNS and len({run.verdict.outcome for _, run in taught}) == 2:
            enough.append(Material(names[id], tuple(taught), tuple(single[id])))
    return sorted(enough, key=lambda topic: -len(topic.taught))


async def _run_of(store: Store, experience: Experience) -> Run | None:
    """The last run of an experience whose end is known; `None` where it was erased."""
    ref = next((attempt for attempt in reversed(experience.attempts) if attempt.verdict.outcome != "unknown"), None)
    run = await get_or_none(get_trajectory(store, ref.trajectory_id, scope=experience.scope)) if ref else None
    return Run(trajectory=run, verdict=ref.verdict) if run and ref else None


async def reflected(about: Material, /, *, model: LanguageModel, intake: IntakeFilter, budget: int) -> Reflected:
    """General lessons of one topic; `with_general` puts them where they belong. Raises ModelError."""
    prompt, mark = load("general/reflect"), nonce()
    shown, texts = _write_material(about, budget, mark)
    asked = prompt.render(nonce=mark, limit=str(LIMIT), **texts)
    reply = await model.generate(asked, temperature=0.0, schema=GeneralLessons)
    try:
        drafts = (await read_reply(partial(parse_lessons, limit=LIMIT), reply.text)).lessons
    except ExtractionError as error:
        return Reflected(usage=reply.usage, notes=(f"nothing general was drawn: {error}",))
    origin = Provenance(method=METHOD, package_version=VERSION, prompts=(prompt.ref,), model=model.name)
    results = [_general(draft, shown, origin) for draft in drafts]
    notes = [note for note in results if isinstance(note, str)]
    drawn = Extraction(lessons=tuple(lesson for lesson in results if not isinstance(lesson, str)))
    clean = await intake.lessons(drawn, [run for _, run in shown.taught], shown=())
    return Reflected(lessons=clean.lessons, usage=reply.usage + clean.usage, notes=(*notes, *clean.notes))


def _write_material(about: Material, budget: int, mark: str) -> tuple[Material, dict[str, str]]:
    """What of a topic the model sees within `budget` tokens, the first of its lessons and runs; and these as text."""
    texts = (f"L{n}. {lesson.title}: {lesson.content}" for n, lesson in enumerate(about.lessons, 1))
    every = [canonical_line(line, limit=3 * _EACH) for line in texts]
    sizes = accumulate(map(estimate_tokens, every))
    lines = [line for line, size in zip(every, sizes, strict=True) if size <= int(budget * _SHARE)]
    lessons = fence("\n".join(lines), label="lessons", nonce=mark)
    room = budget - estimate_tokens(lessons)
    count = max(LEAST_SHOWN, min(len(about.taught), room // (_LEAST + _EACH // 5)))
    share = max(_LEAST, room // count - _EACH // 5)
    shown = Material(about.name, about.taught[:count], about.lessons[: len(lines)])
    numbers = {lesson.id: number for number, lesson in enumerate(shown.lessons, 1)}
    runs: list[str] = []
    for number, (experience, run) in enumerate(shown.taught, 1):
        named = ", ".join(f"L{numbers[id]}" for id in _lessons_of(experience) if id in numbers) or "none"
        bare = run.trajectory.model_copy(update={"instructions": ""})
        label = f"R{number} ({run.verdict.outcome}; it taught {named})"
        runs.append(fence(render(bare, budget=share), label=label, nonce=mark))
    return shown, {"lessons": lessons, "runs": "\n\n".join(runs)}


def _lessons_of(experience: Experience) -> list[str]:
    """The ids of the lessons that it holds, or taught again."""
    return [*[lesson.id for lesson in experience.lessons], *experience.repeats]


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


def with_general(lessons: Sequence[Lesson], taught: Sequence[Experience], /) -> list[Experience]:
    """What changes. The latest experience that shows a lesson holds it; the others, and those it covers, find it."""
    now = {experience.id: experience for experience in taught}
    for lesson in lessons:
        runs, covered = lesson.provenance.trajectory_ids, lesson.relation.lesson_ids if lesson.relation else ()
        shows = [owner for owner in taught if any(ref.trajectory_id in runs for ref in owner.attempts)]
        about = [owner for owner in taught if owner in shows or not set(covered).isdisjoint(_lessons_of(owner))]
        holder = max(shows, key=attrgetter("created_at"))
        again = {
            lesson.id: (Duplicate(title=lesson.title, why="it is what this run and others show", is_general=True),)
        }
        for old in (now[owner.id] for owner in about):
            is_holder = old.id == holder.id
            update = {"lessons": (*old.lessons, lesson)} if is_holder else {"repeats": {**old.repeats, **again}}
            now[old.id] = old.model_copy(update=update)
    return [now[old.id] for old in taught if now[old.id] is not old]
