"""What the owner of a bank looks after: scopes, who may decide, whether all is sound, and what is erased for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from lessonbank._concurrency import if_there
from lessonbank._counting import counted
from lessonbank.errors import Conflict, StoreError, UsageError
from lessonbank.types.ids import digest

from .visit import LARGE, Visit

if TYPE_CHECKING:
    from lessonbank.views.admin import Erasing

_LISTED: Final = 50
_A_SECOND: Final = 3_000
"""Records that are read and compared in a second of processor time: 20,000 lessons took 6.7 seconds."""
_NAMED: Final = ("lesson", "run", "recall")


async def page(visit: Visit) -> Response:
    """What there is, and who decides."""
    bank, whole = visit.site.bank, len(visit.scopes) > 1
    told: dict[str, Any] = {
        "counts": {scope: await bank.scoped(scope).admin.counts() for scope in visit.scopes[:_LISTED]},
        "reviewers": await visit.bank.admin.reviewers(),
        "writers": await _writers(visit),
        "settings": {name: str(value) for name, value in (visit.bank.settings or {}).items()},
        "whole": whole,
        "queue": await visit.bank.runs.queue(),
    }
    return visit.page("administration.html", told)


async def doctor(visit: Visit) -> Response:
    """Whether the bank is sound, what waits for people, and what no search finds.

    It reads every record where the bank is small or the person asks for it.
    """
    held = await _records(visit) if visit.is_owner else 0
    whole = held <= LARGE or visit.query("records") == "yes"
    try:
        problems: Sequence[str] | None = await visit.owned.admin.verify(journal=False, records=whole)
    except UsageError:
        problems = None
    waits: Mapping[str, object] | None = None
    if not problems:
        try:
            waits = await _waiting(visit)
        except StoreError as error:  # a quick look reads no record, and this met one that cannot be read
            problems = (str(error),)
    seconds = max(round(held / _A_SECOND), 1)
    told = {"problems": problems, "waits": waits, "whole": whole, "held": held, "seconds": seconds}
    return visit.page("_doctor.html" if visit.is_part else "doctor.html", told)


async def _waiting(visit: Visit) -> Mapping[str, object]:
    """What waits for people or for another try. Raises StoreError."""
    return {
        "unembedded": (await visit.bank.admin.unembedded())[:_LISTED],
        "pending": await visit.bank.runs.pending(limit=_LISTED),
        "proposals": len(await visit.bank.lessons.proposals()),
        "unlabelled": len(await visit.bank.runs.unlabelled()),
    }


async def _records(visit: Visit) -> int:
    """How many records all scopes of the bank hold."""
    counts = [await visit.site.bank.scoped(scope).admin.counts() for scope in visit.scopes]
    return sum(one.lessons + one.trajectories + one.recalls for one in counts)


async def purging(visit: Visit) -> Response:
    """What an erasure would take with it."""
    visit.check_admin()
    asked = {name: visit.query(name) for name in (*_NAMED, "metadata")}
    what = await _previewed(visit, asked) if any(asked.values()) else None
    told: dict[str, Any] = {"asked": asked, "what": what, "seen": what and _mark(what), "titles": {}, "tasks": {}}
    if what is not None:
        lessons = {id: await if_there(visit.bank.lessons.get(id)) for id in what.lessons[:_LISTED]}
        runs = {id: await if_there(visit.bank.runs.get(id)) for id in what.runs[:_LISTED]}
        told["titles"] = {id: one.title for id, one in lessons.items() if one}
        told["tasks"] = {id: one.trajectory.task for id, one in runs.items() if one}
    return visit.page("purge.html", told)


async def purge(visit: Visit) -> Response:
    """Erase what the person saw, for good."""
    fields = await visit.form()
    visit.check_admin()
    first = {name: next(iter(told), "").strip() for name, told in fields.items()}
    asked = {name: first.get(name) or None for name in (*_NAMED, "metadata")}
    if not first.get("reason"):
        raise UsageError("say why it is erased: the journal keeps the reason, and nothing else of it")
    what = await _previewed(visit, asked)
    if first.get("seen") != _mark(what):
        raise Conflict("what would be erased changed since it was shown: look again, then decide")
    gone = await visit.bank.admin.purge(**_wanted(asked), reason=first["reason"], by=visit.session.name)
    visit.session.told = f"Erased for good: {_size(gone)}"
    visit.session.done.clear()
    return visit.go(visit.link("administration"))


async def backup(visit: Visit) -> Response:
    """The whole file as it is now, sent to the person: a bank that can be opened."""
    await visit.form()
    visit.check_admin()
    folder = await to_thread.run_sync(lambda: mkdtemp(prefix="lessonbank-"))
    try:
        await visit.owned.admin.backup(path := Path(folder) / "backup.db")
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    named = f"lessonbank-{datetime.now(UTC):%Y%m%d-%H%M%S}.db"
    gone = BackgroundTask(rmtree, folder, ignore_errors=True)
    return FileResponse(path, media_type="application/octet-stream", filename=named, background=gone)


async def _previewed(visit: Visit, asked: Mapping[str, str | None]) -> Erasing:
    return await visit.bank.admin.purge(**_wanted(asked), reason="a preview", preview=True)


def _wanted(asked: Mapping[str, str | None]) -> dict[str, Any]:
    """What `purge` takes for what was asked. Raises UsageError."""
    named: dict[str, Any] = {name: asked[name] for name in _NAMED if asked[name]}
    if told := asked["metadata"]:
        key, equals, value = told.partition("=")
        if not equals or not key.strip():
            raise UsageError("metadata are given as key=value, as in user=u-17")
        named["metadata"] = {key.strip(): value.strip()}
    return named


def _mark(what: Erasing) -> str:
    """Stands for exactly these records: others of the same number have another."""
    return digest(what.model_dump_json())


def _size(what: Erasing) -> str:
    some = (("lesson", what.lessons), ("run", what.runs), ("recall", what.recalls))
    return ", ".join(counted(len(ids), name) for name, ids in some)


async def _writers(visit: Visit) -> Sequence[str]:
    try:
        return await visit.owned.admin.writers()
    except UsageError:
        return ()
