"""The groups of a lesson: where it comes from, and what it is about. A group can be withheld, and judged, as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from lessonbank._base.checks import shown
from lessonbank.contracts.records import Experience, Lesson
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import NotFound
from lessonbank.guard import canonical_line

SOURCE: Final = "source/"
TOPIC: Final = "topic/"
BY: Final = "source/by/"
OTHERS: Final = f"{BY}others"
"""All writers together that have no source of their own, once no more can get one."""
MOST_WRITERS: Final = 5
"""Writers of a scope that get a source of their own, ever. Each makes the verdicts on all groups a little later."""
_KNOWN: Final = 10
"""How often lessons of a writer must have been found before they are a source of their own."""
_BY: Final = {"llm": "model", "merge": "model", "extractive": "extractive"}
_WORDS: Final = {
    "strategy": "strategies",
    "guardrail": "guardrails",
    "told": "from runs with a told outcome",
    "judged": "from runs that a judge graded",
    "model": "written by a model",
    "extractive": "in the runs' own words",
    "human": "written by people",
    "imported": "imported",
    "other": "written by another extractor",
}


def groups_of(lesson: Lesson, experience: Experience, /, *, apart: Collection[str] = ()) -> tuple[str, ...]:
    """The ids of its groups, the widest first: its source, its writer, and its topic where it has one.

    `apart`: the writers whose lessons are a source of their own, as `writers_apart` says. Without any, lessons have no
    group of their writer.
    """
    source = source_of(lesson, imported=experience.imported)
    writer = writer_of(lesson, experience) if apart else ""
    if writer and writer not in apart:
        writer = OTHERS if len(apart) >= MOST_WRITERS else ""
    return (source, *filter(None, [writer]), *((TOPIC + lesson.topic.id,) if lesson.topic else ()))


def source_of(lesson: Lesson, /, *, imported: bool = False) -> str:
    """Where a lesson comes from, as one id: `source/guardrail/judged/extractive`.

    One id that is made of all that matters, and not one group for each property: then the sources of a bank are few
    (mostly two to four), and "guardrails that a judge's verdicts taught" can turn out harmful without a cross table.
    Who wrote a lesson is no part of it, because what harms with a writer is all that writer wrote: see `writer_of`.
    """
    if imported:
        return f"{SOURCE}{lesson.kind}/imported"
    origin = lesson.provenance
    if origin.method == "human":
        return f"{SOURCE}{lesson.kind}/human"
    truth = "judged" if origin.verdict_source == "judge" else "told"
    return f"{SOURCE}{lesson.kind}/{truth}/{_BY.get(origin.method, 'other')}"


def is_origin(unit: str, /) -> bool:
    """Whether a unit is a source by where lessons come from. Every lesson has one of these; few have a writer's."""
    return unit.startswith(SOURCE) and not unit.startswith(BY)


def writer_of(lesson: Lesson, experience: Experience, /) -> str:
    """The source that is all lessons of one writer, as an id; empty where the bank does not know who wrote a lesson.

    A writer is an identity that the bank knew, never a name that somebody typed; the machine of a process does not
    matter. An imported file can name any writer, a merged lesson has several, and a person who edited a lesson wrote
    what it says now: these have none. Nobody can read the writer from the id.
    """
    origin = lesson.provenance
    is_edited = lesson.version > 1 and origin.method == "human"
    return "" if experience.imported or is_edited or not origin.identity else _writer(origin.identity)


@lru_cache(maxsize=4096)
def _writer(identity: str) -> str:
    return BY + digest(f"writer {_who(identity)}")[:16]


def _who(identity: str) -> str:
    """The same for a user's processes on all machines: a container has another name each time."""
    return identity.rpartition("@")[0] if identity.startswith("process:") and "@" in identity else identity


def writers_apart(taken: Sequence[str], found: Mapping[str, int], /) -> tuple[str, ...]:
    """The writers that are a source of their own. Who has become one stays one: what was measured stays true.

    Args:
        taken: those that are already.
        found: by writer: how often lessons were found for a task whose outcome is known.
    """
    known = sorted((id for id, times in found.items() if times >= _KNOWN), key=lambda id: (-found[id], id))
    new = [id for id in known if id not in taken]
    return (*taken, *new)[:MOST_WRITERS] if taken or len(new) > 1 else ()


def named(group: str, /, names: Mapping[str, str] | None = None) -> str:
    """A group's name for people. `names`: those of topics and writers (see `group_names`)."""
    if group == OTHERS:
        return "written by others"
    if group.startswith(BY):
        return f"written by {canonical_line((names or {}).get(group, '') or group.removeprefix(BY), limit=40)}"
    if group.startswith(SOURCE):
        kind, *rest = (_WORDS.get(part, "other") for part in group.removeprefix(SOURCE).split("/"))
        return ", ".join((kind, *rest))
    id = group.removeprefix(TOPIC)
    return canonical_line((names or {}).get(id, "") or id, limit=60)


def called(group: str, /, *lessons: Lesson) -> str:
    """What lessons call a group, with its kind: `topic 'cancel order'`."""
    return f"{group.partition('/')[0]} {named(group, group_names(lessons))!r}"


def group_names(lessons: Iterable[Lesson], /) -> dict[str, str]:
    """The names of topics, by the topic's id, and those of writers, by the group's id."""
    every = tuple(lessons)
    who = {lesson.provenance.identity for lesson in every} - {""}
    return topic_names(every) | {_writer(identity): _who(identity).partition(":")[2] for identity in sorted(who)}


def topic_names(lessons: Iterable[Lesson], /) -> dict[str, str]:
    """By topic id: the name that most of its lessons use, the earliest among equals; the id where none has a name."""
    said = defaultdict[str, Counter[str]](Counter)
    for lesson in sorted(lessons, key=lambda lesson: (lesson.created_at, lesson.id)):
        if lesson.topic:
            said[lesson.topic.id].update([lesson.topic.name] if lesson.topic.name else ())
    return {id: names.most_common(1)[0][0] if names else id for id, names in said.items()}


def topics_called(asked: str, names: Mapping[str, str], /) -> frozenset[str]:
    """The ids of the topics with this id or name; `names` is what `topic_names` says. Raises NotFound: none has it."""
    told = asked.casefold()
    found = frozenset(id for id, name in names.items() if told in (id, name.casefold()))
    if not found:
        raise NotFound(f"no topic {shown(asked)} in this scope: lessons.topics() lists them")
    return found
