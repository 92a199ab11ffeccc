"""Makes one lesson of two: a person sees how they differ and words the one that stands for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from lessonbank.errors import UsageError
from lessonbank.learning.consolidation.additions import adds_to, joined

from .decisions import UNDO, as_seen, back_to, first, remember
from .visit import Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank


async def page(visit: Visit) -> Response:
    """Both lessons, what is different, and a form for the words of the merged one."""
    keep, other = visit.query("keep"), visit.query("other")
    if not keep or not other or keep == other:
        raise UsageError("say which two lessons: the inbox names those near a lesson")
    lessons = visit.bank.lessons
    context: dict[str, Any] = {"keep": await lessons.get(keep), "other": await lessons.get(other)}
    adds = adds_to(context["other"], context["keep"])
    context["words"] = joined(context["keep"], context["other"]) if adds else context["keep"]
    return visit.page("merge.html", {**context, "back": visit.query("back") or visit.link("inbox")})


async def merge(visit: Visit) -> Response:
    """Keep one lesson for two, in the words of the form."""
    fields = await visit.form()
    pair = [
        await as_seen(visit, first(fields, name), version=first(fields, f"{name}_version"))
        for name in ("keep", "other")
    ]
    words = {name: first(fields, name) for name in ("title", "when", "content", "reason")}
    merged = await visit.bank.lessons.merge(*(lesson.id for lesson in pair), by=visit.session.name, **words)

    async def back(bank: AsyncReasoningBank) -> object:
        return await bank.lessons.unmerge(merged.id, reason=UNDO, by=visit.session.name)

    named = f"“{pair[1].title}” and “{pair[0].title}”"
    remember(visit, f"Merged: {named}", (), back, again=f"{named} are two lessons", lesson=pair[1].id)
    return back_to(visit, fields)


async def unmerge(visit: Visit) -> Response:
    """Show again what a lesson stands for, and retire it."""
    fields = await visit.form()
    by = visit.session.name
    lesson = await visit.bank.lessons.get(visit.id)
    if not lesson.retired:
        why = first(fields, "reason") or f"unmerged by {by}"
        ids = [source.id for source in await visit.bank.lessons.unmerge(lesson.id, reason=why, by=by)]

        async def back(bank: AsyncReasoningBank) -> object:
            await bank.lessons.retire(*ids, reason=UNDO, by=by)
            return await bank.lessons.restore(lesson.id, reason=UNDO, by=by)

        again = f"“{lesson.title}” stands for the others again"
        remember(visit, f"Unmerged: “{lesson.title}”", (), back, again=again, lesson=lesson.id)
    return back_to(visit, fields)
