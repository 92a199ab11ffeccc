"""Makes one lesson of two: a person sees how they differ, words the one that stays, and the other is retired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from lessonbank.errors import UsageError
from lessonbank.types import Lesson

from .decisions import as_seen, back_to, first, remember
from .visit import Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank


async def page(visit: Visit) -> Response:
    """Both lessons, what is different, and a form for the words that stay."""
    keep, other = visit.query("keep"), visit.query("other")
    if not keep or not other or keep == other:
        raise UsageError("say which two lessons: the inbox names those near a lesson")
    lessons = visit.bank.lessons
    told: dict[str, Any] = {"keep": await lessons.get(keep), "other": await lessons.get(other)}
    return visit.page("join.html", {**told, "back": visit.query("back") or visit.link("inbox")})


async def join(visit: Visit) -> Response:
    """Word the lesson that stays, and retire the other. One undo takes both back."""
    fields = await visit.form()
    keep = await as_seen(visit, first(fields, "keep"), version=first(fields, "keep_version"))
    other = await as_seen(visit, first(fields, "other"), version=first(fields, "other_version"))
    if keep.id == other.id:
        raise UsageError("two lessons are joined: name another one")
    by, before = visit.session.name, _words(keep)
    after, why = _worded(fields), first(fields, "reason") or f"joined by {by}"
    if after != before:
        await visit.bank.lessons.edit(keep.id, by=by, reason=f"{why}; joined with {other.id}", **after)
    await visit.bank.lessons.retire(other.id, by=by, reason=f"{why}; joined into {keep.id}")

    async def back(bank: AsyncReasoningBank) -> object:
        if after != before:
            await bank.lessons.edit(keep.id, by=by, reason="undone on the page", **before)
        return await bank.lessons.restore(other.id, by=by, reason="undone on the page")

    remember(visit, f"Joined: “{other.title}” into “{after['title']}”", (), back)
    return back_to(visit, fields)


def _worded(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: first(fields, name) for name in ("title", "when", "content")}


def _words(lesson: Lesson) -> dict[str, str]:
    return {"title": lesson.title, "when": lesson.description, "content": lesson.content}
