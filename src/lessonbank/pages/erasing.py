"""How a person erases something for good: find it by its words, see what would go with it, and only then erase it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank._base.plural import plural
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import Conflict, NotFound, UsageError

from .visit import PAGE, Visit

if TYPE_CHECKING:
    from lessonbank.bank.views import Erasing

_NAMED: Final = ("run", "lesson", "recall")
"""What is chosen by its id."""
_MOST: Final = 200
"""Records that are erased at once."""
_KEYS: Final = 200
"""The latest runs, whose metadata are named."""
_FORM: Final = "metadata are given as one key=value, as in user=u-17"

Asked = Mapping[str, Sequence[str]]


async def page(visit: Visit) -> Response:
    """What an erasure would take with it, or what has the words that were asked for."""
    visit.check_admin()
    asked = _asked({name: visit.request.query_params.getlist(name) for name in (*_NAMED, "metadata")})
    context: dict[str, Any] = {"asked": asked, "words": visit.query("q"), "found": None, "what": None, "wrong": ""}
    if any(asked.values()):
        try:
            context |= await _preview_fields(visit, asked)
        except (UsageError, NotFound) as error:
            context["wrong"] = str(error)
    elif context["words"]:
        context["found"] = await _with_words(visit, context["words"])
    vain = context["what"] is None or context["what"].empty
    context["keys"] = await _keys(visit) if asked["metadata"] and vain else ()
    return visit.page("purge.html", {**context, "most": PAGE}, status=400 if context["wrong"] else 200)


async def erase(visit: Visit) -> Response:
    """Erase what the person saw, for good."""
    fields = await visit.form()
    visit.check_admin()
    reason, seen = (next(iter(fields.get(name, ())), "").strip() for name in ("reason", "seen"))
    if not reason:
        raise UsageError("say why it is erased: the journal keeps the reason for ever, and nothing else of it")
    asked = _asked({name: fields.get(name, []) for name in (*_NAMED, "metadata")})
    if seen != _mark(await _previewed(visit, asked)):
        raise Conflict("what would be erased changed since it was shown: look again, then decide")
    erased = await visit.bank.admin.purge(**_wanted(asked), reason=reason, by=visit.session.name)
    visit.session.message = f"Erased for good: {_size(erased)}"
    visit.session.done.clear()
    return visit.go(visit.link("administration"))


def _asked(fields: Asked) -> Asked:
    return {name: [value.strip() for value in values if value.strip()][:_MOST] for name, values in fields.items()}


def _wanted(asked: Asked) -> dict[str, Any]:
    """What `purge` takes. Raises UsageError."""
    chosen: dict[str, Any] = {name: tuple(asked[name]) for name in _NAMED if asked[name]}
    for pair in asked["metadata"]:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or "metadata" in chosen:
            raise UsageError(_FORM)
        chosen["metadata"] = {key.strip(): value.strip()}
    return chosen


async def _previewed(visit: Visit, asked: Asked) -> Erasing:
    """Everything that would go."""
    return await visit.bank.admin.purge(**_wanted(asked), reason="a preview", preview=True)


async def _preview_fields(visit: Visit, asked: Asked) -> dict[str, Any]:
    what = await _previewed(visit, asked)
    lessons = {id: await get_or_none(visit.bank.lessons.get(id)) for id in what.lessons[:PAGE]}
    runs = {id: await get_or_none(visit.bank.runs.get(id)) for id in what.runs[:PAGE]}
    return {
        "what": what,
        "seen": _mark(what),
        "size": _size(what),
        "titles": {id: lesson.title for id, lesson in lessons.items() if lesson},
        "tasks": {id: run.trajectory.task for id, run in runs.items() if run},
    }


async def _with_words(visit: Visit, words: str) -> Sequence[tuple[str, str, str, str]]:
    """Runs, lessons and recalls that hold all of these words: what each is, its id, its first words, its page."""
    bank, link = visit.bank, visit.link
    runs = [run.trajectory for run in await bank.runs.list(text=words, limit=PAGE)]
    lessons = await bank.lessons.list(text=words, retired=True, limit=PAGE)
    recalls = await bank.recalls.list(text=words, limit=PAGE)
    return [
        *(("run", run.id, run.task, link("runs", run.id)) for run in runs),
        *(("lesson", lesson.id, lesson.title, link("lessons", lesson.id)) for lesson in lessons),
        *(("recall", recall.id, recall.task, link("why", recall.id)) for recall in recalls),
    ]


async def _keys(visit: Visit) -> Sequence[str]:
    """Metadata that the latest runs have: what can be asked for."""
    runs = await visit.bank.runs.list(limit=_KEYS)
    return sorted({key for run in runs for key in run.metadata})[:PAGE]


def _mark(what: Erasing) -> str:
    """Stands for exactly these records: others of the same number have another."""
    return digest(what.model_dump_json())


def _size(what: Erasing) -> str:
    parts = (plural(len(what.lessons), "lesson"), plural(len(what.runs), "run"), plural(len(what.recalls), "recall"))
    lives_on = len(what.successors)
    return ", ".join(parts) + (f"; {plural(lives_on, 'lesson lives', 'lessons live')} on" if lives_on else "")
