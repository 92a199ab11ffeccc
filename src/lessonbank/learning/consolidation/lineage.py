"""Which lessons a merged lesson was made from, and how to have them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lessonbank.contracts.records import Change, Experience, Lesson, Merge, Provenance, Restore, Retire, VerdictSource
from lessonbank.errors import UsageError
from lessonbank.guard.trust import MERGE

LONGEST_TASK = 2_000
_LEAST_SURE_FIRST: tuple[VerdictSource, ...] = ("judge", "framework_error", "human", "ground_truth")


def merging(
    merged: Lesson, sources: Sequence[tuple[Lesson, Experience]], /, *, reason: str, again: Sequence[Experience] = ()
) -> Merge:
    """The change that keeps `merged` for `sources`, in an experience of its own about the tasks of them all.

    `again`: experiences that taught a source again. Their tasks find it, too.
    """
    ids = tuple(lesson.id for lesson, _ in sources)
    found_by = [*(experience for _, experience in sources), *again]
    tasks = list(dict.fromkeys(line for e in found_by for line in e.task.splitlines() if line.strip()))
    share = max(80, LONGEST_TASK // max(1, len(tasks)))
    experience = Experience(
        scope=sources[0][1].scope,
        task="\n".join(task[:share] for task in tasks)[:LONGEST_TASK],
        lessons=(merged,),
        merged={merged.id: ids},
    )
    return Merge(
        experience=experience, source_lesson_ids=ids, reason=f"{reason}; {merged.id} stands for {', '.join(ids)}"
    )


def descent(sources: Sequence[Lesson], /) -> Provenance:
    """Where a merged lesson comes from: everything its sources come from, and the sources themselves as evidence."""
    origins = [lesson.provenance for lesson in sources]
    writers = {origin.writer for origin in origins}
    verdicts = {origin.verdict for origin in origins}
    return Provenance(
        writer=writers.pop() if len(writers) == 1 else "several",
        method=MERGE,
        trajectory_ids=tuple(dict.fromkeys(id for origin in origins for id in origin.trajectory_ids)),
        verdict=origins[0].verdict if len(verdicts) == 1 else "unknown",
        verdict_source=next(s for s in _LEAST_SURE_FIRST if any(o.verdict_source == s for o in origins)),
        evidence=tuple(f"lesson {lesson.id}" for lesson in sources),
    )


def in_common(sources: Sequence[Lesson], /) -> dict[str, Any]:
    """What a lesson in other words takes from its sources: their kind, the topic of the first, and their narrowing.

    Raises:
        UsageError: a strategy and a guardrail, which no lesson can stand for at once.
    """
    if len({lesson.kind for lesson in sources}) > 1:
        raise UsageError("a strategy and a guardrail are not merged: edit one of them, or retire it")
    narrow = all(lesson.only_for_tasks for lesson in sources)
    only = tuple(dict.fromkeys(task for lesson in sources for task in lesson.only_for_tasks)) if narrow else ()
    return {"kind": sources[0].kind, "topic": sources[0].topic, "only_for_tasks": only}


def unmerge(merged: Experience, /, *, reason: str = "unmerged") -> tuple[Change, ...]:
    """The changes that undo a merge: its lesson is retired, its sources are shown again, byte for byte as they were.

    Pure; hand the changes to `store.apply`. A merge of a merge is undone first, being the later one.

    Raises:
        UsageError: no merge made this experience, or its lesson is retired already (merged further, or undone).
    """
    made = merged.merged
    if not made:
        raise UsageError(f"the experience {merged.id!r} was not made by a merge: there is nothing to undo")
    active = [lesson.id for lesson in merged.active_lessons if lesson.id in made]
    if not active:
        raise UsageError(f"the merged lesson of {merged.id!r} is retired: undo what retired it first")
    back = tuple(dict.fromkeys(source for id in active for source in made[id]))
    return Retire(lesson_ids=tuple(active), reason=reason), Restore(lesson_ids=back, reason=reason)
