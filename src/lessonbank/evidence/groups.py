"""The groups of a lesson: where it comes from, and what it is about. A group can be withheld, and judged, as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from lessonbank.contracts.records import Experience, Lesson
from lessonbank.guard import canonical_line

SOURCE: Final = "source/"
TOPIC: Final = "topic/"
AGAIN: Final = "again/"
"""How the groups of recalls in the middle of a run begin; the reason follows. A lesson belongs to none of them."""
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


def groups_of(lesson: Lesson, experience: Experience, /) -> tuple[str, ...]:
    """The ids of its groups, the widest first: its source, and its topic where it has one."""
    source = source_of(lesson, imported=experience.imported)
    return (source, *((TOPIC + lesson.topic.id,) if lesson.topic else ()))


def source_of(lesson: Lesson, /, *, imported: bool = False) -> str:
    """Where a lesson comes from, as one id of all that matters: `source/guardrail/judged/extractive`."""
    if imported:
        return f"{SOURCE}{lesson.kind}/imported"
    origin = lesson.provenance
    if origin.method == "human":
        return f"{SOURCE}{lesson.kind}/human"
    truth = "judged" if origin.verdict_source == "judge" else "told"
    return f"{SOURCE}{lesson.kind}/{truth}/{_BY.get(origin.method, 'other')}"


def group_label(group: str, /, names: Mapping[str, str] | None = None) -> str:
    """A group's name for people. `names`: those of topics (see `topic_names`)."""
    if group.startswith(AGAIN):
        return f"shown in the middle of a run: {group.removeprefix(AGAIN)}"
    if group.startswith(SOURCE):
        parts = group.removeprefix(SOURCE).split("/")
        return ", ".join(_WORDS.get(part) or canonical_line(part, limit=40) for part in parts)
    id = group.removeprefix(TOPIC)
    name = (names or {}).get(id, id)
    return canonical_line(f"a topic without a name ({id})" if name == id else name, limit=60)


def topics_named(names: Mapping[str, str], /) -> dict[str, str]:
    """By topic id: its name for people; `names` is what `topic_names` says."""
    return {id: group_label(TOPIC + id, names) for id in names}


def kind_and_label(group: str, /, *lessons: Lesson) -> str:
    """What lessons call a group, with its kind: `topic 'cancel order'`."""
    return f"{group.partition('/')[0]} {group_label(group, topic_names(lessons))!r}"


def topic_names(lessons: Iterable[Lesson], /) -> dict[str, str]:
    """By topic id: the name that most of its lessons use, the earliest among equals; the id where none has a name."""
    counts = defaultdict[str, Counter[str]](Counter)
    for lesson in sorted(lessons, key=lambda lesson: (lesson.created_at, lesson.id)):
        if lesson.topic:
            counts[lesson.topic.id].update([lesson.topic.name] if lesson.topic.name else ())
    return {id: names.most_common(1)[0][0] if names else id for id, names in counts.items()}
