"""How a scope came to be what it is: the time line, what differs between two moments, and the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank.contracts.records import Lesson
from lessonbank.contracts.records.timeline import Diff
from lessonbank.errors import Conflict, UsageError

from .absence import title_in
from .decisions import remember
from .journal import Line, Looked, line_of
from .tables import MOST, csv_of
from .visit import PAGE, Visit, number_of

_LISTED: Final = 200
"""Lessons of each sort that a comparison lists."""
_COLUMNS: Final = ("change", "time", "writer", "what", "lessons", "run", "reason")
_WORDED: Final = 50
"""Lessons whose changed words it shows."""
_NAMED: Final = 20
"""Lessons whose changes are looked for at once."""
_KINDS: Final[Mapping[str, Collection[str]]] = {
    "tasks kept": ("add", "replace"),
    "outcomes and verdicts": ("settle", "verdict", "audit"),
    "edited": ("edit",),
    "approved or quarantined": ("trust",),
    "retired": ("retire",),
    "restored": ("restore",),
    "merged": ("merge",),
    "rolled back": ("rollback",),
    "erased": ("purge", "erased", "forgotten", "missing"),
    "administration": ("admin",),
}
"""What the list can be filtered by, in words, and the kinds of changes that it is."""


async def timeline(visit: Visit) -> Response:
    """Changes of a kind, by somebody, or to lessons that contain words; the newest first."""
    asked = {name: visit.query(name) for name in ("kind", "by", "lesson")}
    looked = Looked(visit.bank, _KINDS.get(asked["kind"] or "", ()), by=asked["by"] or "")
    ids = await _lessons(visit, asked["lesson"]) if asked["lesson"] else None
    if visit.query("format") == "csv":
        return csv_of("history", _COLUMNS, [_row(line_of(entry)) for entry in (await looked.back(MOST, of=ids))[0]])
    entries, more = await looked.back(PAGE, before=number_of(visit.query("before")), of=ids)
    lines = [line_of(entry) for entry in entries]
    context = {
        "lines": [(line, *await title_in(visit, line)) for line in lines],
        "more": more,
        "asked": asked,
        "kinds": [*_KINDS],
    }
    context |= {
        "last": (await visit.bank.admin.counts()).changes,
        "writers": sorted({entry.writer for entry in entries}),
    }
    return visit.page("_history.html" if visit.is_part else "history.html", context)


async def _lessons(visit: Visit, query: str) -> Sequence[str]:
    """The lesson of this id, or else the latest that contain these words."""
    if await get_or_none(visit.bank.lessons.get(query)):
        return (query,)
    return [lesson.id for lesson in await visit.bank.lessons.list(text=query, retired=True, limit=_NAMED)]


def _row(line: Line) -> Sequence[object]:
    entry = line.entry
    who = (entry.sequence, entry.at.isoformat(), entry.writer)
    return (*who, line.sentence, " ".join(line.lessons), line.run, line.reason)


async def comparison(visit: Visit) -> Response:
    """What one moment has that another had not; and, on the way back to it, what a rollback would change."""
    last = visit.counts.changes
    before, after = number_of(visit.query("a")), number_of(visit.query("b"))
    before, after = 0 if before is None else before, last if after is None else after
    difference = await visit.bank.history.diff(before, after)
    back = visit.query("back") == "yes"
    context: dict[str, object] = {"a": before, "b": after, "last": last, "difference": difference, "most": _LISTED}
    entries = await visit.bank.history.list(after=before, limit=1) if after == before + 1 else ()
    context["line"] = line_of(entries[0]) if entries else None
    tasks = Diff(added=difference.added, removed=difference.removed, replaced=difference.replaced)
    context["no_lesson"] = tasks == difference
    return visit.page("diff.html", {**context, "back": back, "edited": _edited(difference, back=back)})


async def rollback(visit: Visit) -> Response:
    """Make the scope what it was, if it still is what the person saw."""
    fields = await visit.form()
    visit.check_admin()
    to, seen = (number_of(next(iter(fields.get(name, ())), "")) for name in ("to", "last"))
    reason = next(iter(fields.get("reason", ())), "").strip()
    if to is None:
        raise UsageError("say to which change: open the page History and choose one")
    if (await visit.bank.admin.counts()).changes != seen:
        raise Conflict("something changed since this was shown: look at the difference again, then decide")
    entry = await visit.bank.history.rollback(to=to, reason=reason or "rolled back on the page", by=visit.session.name)
    again = f"the scope is what it was before the rollback to change {to}"
    remember(visit, f"Rolled back to change {to}", (entry,), None, again=again)
    visit.session.message = visit.session.done[0].message
    return visit.go(visit.link("history"))


def _edited(difference: Diff, *, back: bool) -> Sequence[tuple[Lesson, str, str]]:
    """Lessons in other words, with the words before and after; on the way `back`, those it has now come first."""
    texts = {lesson.id: lesson.text for replacement in difference.replaced for lesson in replacement.before.lessons}
    rows = [(lesson, texts.get(lesson.id, lesson.text), lesson.text) for lesson in difference.edited[:_WORDED]]
    return [(lesson, new, old) for lesson, old, new in rows] if back else rows
