"""What the owner of a bank looks after: scopes, who may decide, and whether all is sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from lessonbank.contracts.records.attempts import used_by_agents
from lessonbank.contracts.records.queue import Allowance, Spending
from lessonbank.errors import NotAllowed, StoreError, UsageError

from .visit import LARGE, Visit, counted_proposals, decisions_of

_KEPT: Final = ("store", "embedder")
"""Settings that a bank in a file or a database keeps itself."""
_LISTED: Final = 50
_A_SECOND: Final = 3_000
"""Records that are read and compared in a second of processor time: 20,000 lessons took 6.7 seconds."""


async def page(visit: Visit) -> Response:
    """What there is, and who decides."""
    bank, whole = visit.site.bank, len(visit.scopes) > 1
    spending = await visit.bank.runs.spending()
    context: dict[str, Any] = {
        "counts": {scope: await bank.scoped(scope).admin.counts() for scope in visit.scopes[:_LISTED]},
        "holders": await _holders(visit),
        "settings": _settings(visit),
        "seen": await _seen(visit),
        "in_database": str((visit.bank.settings or {}).get("store")).startswith("postgres"),
        "whole": whole,
        "queue": await visit.bank.runs.queue(),
        "spent": spending.spent,
        "bounds": _bounds(spending),
    }
    return visit.page("administration.html", context)


def _settings(visit: Visit) -> Mapping[str, str]:
    """What is in force for everybody. A file keeps its embedder, and each agent brings the rest of its settings; a
    server decides all of them."""
    given = visit.bank.settings or {}
    names = _KEPT if visit.guest is None and not str(given.get("store")).startswith("http") else tuple(given)
    return {name: str(given[name]) for name in names if name in given}


async def _seen(visit: Visit) -> Mapping[str, Sequence[str]]:
    """What the agents of this bank used of late, by the records that they left."""
    runs = await visit.bank.runs.list(limit=_LISTED)
    lessons = await visit.bank.lessons.list(limit=_LISTED)
    return used_by_agents(runs, lessons)


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
    context = {"problems": problems, "waits": waits, "whole": whole, "held": held, "seconds": seconds}
    return visit.page("_doctor.html" if visit.is_part else "doctor.html", context)


async def _waiting(visit: Visit) -> Mapping[str, object]:
    """What waits for people or for another try. Raises StoreError."""
    counts = await visit.bank.admin.counts()
    proposed = await counted_proposals(visit.session, visit.bank, visit.scope, counts)
    return {
        "unembedded": (await visit.bank.admin.unembedded())[:_LISTED],
        "pending": await visit.bank.runs.pending(limit=_LISTED),
        "decisions": decisions_of(counts.quarantined, proposed.besides),
        "failed": (await visit.bank.runs.queue()).failed,
        "unlabelled": len(await visit.bank.runs.unlabelled()),
    }


async def _records(visit: Visit) -> int:
    """How many records all scopes of the bank hold."""
    counts = [await visit.site.bank.scoped(scope).admin.counts() for scope in visit.scopes]
    return sum(count.lessons + count.trajectories + count.recalls for count in counts)


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
    cleanup = BackgroundTask(rmtree, folder, ignore_errors=True)
    return FileResponse(path, media_type="application/octet-stream", filename=named, background=cleanup)


async def _holders(visit: Visit) -> Mapping[str, Sequence[str]] | None:
    """Who has a key; `None` for whom that is not: also a server may refuse to tell it to the holder of a key."""
    if not visit.is_owner:
        return None
    try:
        reviewers = await visit.bank.admin.reviewers()
    except NotAllowed:
        return None
    return {"reviewers": reviewers, "writers": await _writers(visit)}


async def _writers(visit: Visit) -> Sequence[str]:
    try:
        return await visit.owned.admin.writers()
    except UsageError:
        return ()


def _bounds(spending: Spending) -> Sequence[tuple[str, int]]:
    """What workers let a scope spend, in words, and how many do."""
    return sorted(Counter(map(_words_of, spending.allowances)).items())


def _words_of(allowance: Allowance) -> str:
    tokens = None if allowance.tokens is None else f"{allowance.tokens:,} tokens"
    cost = None if allowance.cost is None else f"{allowance.cost:,.9f}".rstrip("0").rstrip(".") + " US dollars"
    bounds = " and ".join(filter(None, (tokens, cost)))
    return f"at most {bounds} a day" if bounds else "as much as it takes, and it is not counted"
