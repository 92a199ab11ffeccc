"""The map of what a scope knows: lessons that speak of the same lie together; tasks that it knew nothing for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast
from zlib import crc32

import numpy as np
from anyio import to_thread
from markupsafe import Markup
from starlette.responses import Response

from lessonbank.contracts.records import Lesson, Recall
from lessonbank.evidence.groups import topics_named
from lessonbank.guard import one_line
from lessonbank.text.bm25 import words

from .reports.svg import Scale
from .tables import csv_of, every
from .visit import Visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LESSONS, _TASKS = 200, 100
"""The newest of each that are on the map."""
_WIDTH, _HEIGHT = 720.0, 420.0
_SIZE: Final = 512
"""Places that words are hashed to."""
_ROUNDS: Final = 15
"""Rounds of the power iteration: enough for a picture, and much quicker than all components."""


async def page(visit: Visit) -> Response:
    """The map, and the same as lists."""
    if visit.query("format") == "csv":
        every_lesson = await every(visit.bank.lessons.list, lambda lesson: lesson.id)
        rows = [(id, name, len(own)) for id, name, own in by_topic(every_lesson, await visit.topics(every_lesson))]
        return csv_of("topics", ("id", "name", "lessons"), rows)
    lessons = await visit.bank.lessons.list(limit=_LESSONS)
    recalls = await visit.bank.recalls.list(limit=_TASKS)
    missing = list({recall.task: recall for recall in recalls if not recall.candidates}.values())
    topics = by_topic(lessons, await visit.topics(lessons))
    drawn = await to_thread.run_sync(_draw_map, lessons, missing, [id for id, _, _ in topics], visit)
    context: dict[str, Any] = {"topics": topics, "missing": missing, "drawn": drawn, "recent": len(recalls)}
    return visit.page(
        "topics.html", {**context, "count": len(lessons), "every": visit.counts.lessons - visit.counts.retired}
    )


def by_topic(lessons: Sequence[Lesson], names: Mapping[str, str], /) -> Sequence[tuple[str, str, Sequence[Lesson]]]:
    """Topics with their lessons, the largest first: id, name for people, lessons. `names`: see `topic_names`."""
    members: dict[str, list[Lesson]] = {}
    for lesson in lessons:
        members.setdefault(lesson.topic.id if lesson.topic else "", []).append(lesson)
    called = topics_named(names)
    topics = [(id, called.get(id, "no topic"), own) for id, own in members.items()]
    return sorted(topics, key=lambda topic: (topic[0] == "", -len(topic[2]), topic[1]))


def placed(texts: Sequence[str], /) -> Sequence[tuple[float, float]]:
    """Where texts lie on a plane, so that those with the same words lie together; from -1 to 1 both ways.

    The two directions in which they differ most (principal components), of words weighted by how rare they are.
    """
    if len(texts) < 3:
        return [(0.0, 0.0)] * len(texts)
    counts: NDArray[np.float64] = np.zeros((len(texts), _SIZE))
    for row, text in enumerate(texts):
        for word, count in Counter(words(text)).items():
            counts[row, crc32(word.encode("utf-8", "replace")) % _SIZE] += count
    rare = np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0)))
    weighted = np.log1p(counts) * rare
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    weighted -= weighted.mean(axis=0)
    ways: NDArray[np.float64] = np.eye(_SIZE, 2) + 1.0 / _SIZE
    for _ in range(_ROUNDS):
        ways, _ = np.linalg.qr(weighted.T @ (weighted @ ways))
    flat = weighted @ ways
    flat /= np.maximum(np.abs(flat).max(axis=0), 1e-9)
    return [(float(x), float(y)) for x, y in cast("list[list[float]]", flat.tolist())]


def _draw_map(lessons: Sequence[Lesson], missing: Sequence[Recall], topics: Sequence[str], visit: Visit) -> Markup:
    spots = placed([*(lesson.text for lesson in lessons), *(recall.task for recall in missing)])
    x, y = Scale(-1.0, 1.0, 20.0, _WIDTH - 20.0), Scale(-1.0, 1.0, _HEIGHT - 20.0, 20.0)
    colours = {id: place % 6 for place, id in enumerate(topics)}
    marks = list[str]()
    for number, (lesson, (a, b)) in enumerate(zip(lessons, spots, strict=False)):
        look = f"topic-{colours[lesson.topic.id if lesson.topic else '']}{' hidden' if lesson.hidden else ''}"
        marks.append(_spot(visit.link("lessons", lesson.id), lesson.title, look, *_apart(x(a), y(b), number)))
    for number, (recall, (a, b)) in enumerate(zip(missing, spots[len(lessons) :], strict=True)):
        marks.append(_spot(visit.link("why", recall.id), recall.task, "unknown", *_apart(x(a), y(b), number)))
    # What it shows stands below it as lists, which can be read and reached by keys.
    frame = f'<svg class="map" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" aria-hidden="true">'
    return Markup(f"{frame}{''.join(marks)}</svg>")


def _apart(x: float, y: float, number: int) -> tuple[float, float]:
    """A little to the side, always the same: equal texts would hide each other."""
    return x + (number * 37 % 13 - 6), y + (number * 61 % 11 - 5)


def _spot(where: str, title: str, look: str, x: float, y: float) -> str:
    tooltip = escape(one_line(title, limit=120))
    return (
        f'<a href="{escape(where)}" tabindex="-1"><circle class="spot {look}" cx="{x:.1f}" cy="{y:.1f}" r="7">'
        f"<title>{tooltip}</title></circle></a>"
    )
