"""How long runs are kept: the process says it, and where the bank has reviewers, the bank does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final

from lessonbank._base.iterate import closing
from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.store_calls import count_records, forget, get_setting
from lessonbank.errors import LessonbankError, NotAllowed
from lessonbank.guard.identity import check_reviewer, key_names
from lessonbank.guard.quote import quoted

from .outbox import erase_spooled
from .recall_again import kept_cures
from .scoped_bank import ScopedBank

_KEPT: Final = "keep_runs"
"""The setting of a bank with reviewers. Without it, runs are kept for ever."""
_LEAP: Final = timedelta(days=7)
"""Between two changes of a journal, more than that is a leap."""


async def set_keep_runs(store: Store, days: float | None, /) -> None:
    """Let the bank keep runs for so long. `None`: for ever."""
    await store.put_setting(_KEPT, None if days is None else repr(days))


async def days_to_keep(
    store: Store, asked: float | None, /, *, name: str, key: str | None
) -> tuple[float | None, tuple[str, ...]]:
    """Days after which runs are erased, and a note where it is not what the process `asked` for.

    Where there are reviewers it is what the bank keeps. With the key of one, the bank keeps what was asked from now on.
    """
    if not await key_names(store, "reviewer"):
        return asked, ()
    written = await get_setting(store, _KEPT)
    days = None if written is None else float(written)
    if asked is None or asked == days:
        return days, ()
    try:
        await check_reviewer(store, "keep_runs", name=name, key=key)
    except NotAllowed:
        how_long = "for ever" if days is None else f"for {days:g} days"
        return days, (
            f"this bank keeps runs {how_long}, and not for {asked:g} days: a reviewer changes it, by learning once "
            "with bank.scoped(writer=NAME, key=…) and this Learning(keep_runs=)",
        )
    await set_keep_runs(store, asked)
    return asked, ()


async def forget_old_runs(bank: ScopedBank, /) -> tuple[str, ...]:
    """Once a day and scope, erase what is older than the bank keeps; a note where that is not what was asked.

    What only a leap of the clock made old stays, and a note says so.
    """
    state, scope, today = bank.state, bank.scope, now().date()
    if bank.teller is not None or state.retention_checked.get((scope, bank.key)) == today:
        return ()
    try:
        days, notes = await days_to_keep(bank.store, bank.options.keep_runs, name=bank.writer, key=bank.key)
        if days is not None and state.erased.get(scope) != (today, days):
            for each in filter(None, (scope, await kept_cures(bank.store, scope))):
                before, leap = await older_than(bank.store, days, scope=each)
                await forget(bank.store, scope=each, before=before, writer=bank.writer)
                await erase_spooled(bank.spool, each, before=before)
                notes += leap
            state.erased[scope] = today, days
        state.retention_checked[scope, bank.key] = today
    except LessonbankError as error:
        return (f"old runs were not erased: {quoted(error)}",)
    return notes


async def older_than(store: Store, days: float, /, *, scope: str) -> tuple[datetime, tuple[str, ...]]:
    """Before when a run was kept that is older than `days`, and a note where leaps of the clock are not counted.

    The journal is in order, whatever clocks say: where it leaps by over a week, nothing was learned, or a clock is
    wrong. So these days count only once there is as much time without leaps.
    """
    at, left, leaps = now(), timedelta(days=days), list[tuple[datetime, datetime]]()
    plain = at - left
    async for leap in _leaps(store, scope, at):
        if at - leap[1] >= left:
            break
        left, at = left - (at - leap[1]), leap[0]
        leaps.append(leap)
    if not leaps or not await _is_any_kept(store, scope, at - left, plain):
        return at - left, ()
    begun, ended = leaps[0]
    return at - left, (
        f"what only a leap of the clock makes older than {days:g} days is not erased (the journal leaps from "
        f"{begun:%Y-%m-%d} to {ended:%Y-%m-%d}): check the clock; if it is right, call "
        f"admin.forget(days={days:g}, by=NAME)",
    )


async def _is_any_kept(store: Store, scope: str, since: datetime, before: datetime) -> bool:
    """Whether a run or a recall was kept between two moments."""
    newest = [await store.runs(RunFilter(before=at, limit=1, verdicts=False), scope=scope) for at in (since, before)]
    recalls = RecallFilter(since=since, before=before, limit=1)
    return newest[0] != newest[1] or bool(await store.recalls(recalls, scope=scope))


async def _leaps(store: Store, scope: str, end: datetime) -> AsyncIterator[tuple[datetime, datetime]]:
    """The moments between which the journal leaps, latest first. Of a quiet stretch only its ends are read.

    A moment that does not lie between those around it is of a clock that was wrong, and was put right.
    """
    first = await _moment(store, scope, 1)
    spans = [(1, first, (await count_records(store, scope=scope)).changes + 1, end)] if first else []
    while spans:
        low, begun, high, ended = spans.pop()
        if ended - begun <= _LEAP:
            continue
        if high - low == 1:
            yield begun, ended
            continue
        middle = (low + high) // 2
        at = min(max(await _moment(store, scope, middle) or begun, begun), ended)
        spans += [(low, begun, middle, at), (middle, at, high, ended)]


async def _moment(store: Store, scope: str, sequence: int) -> datetime | None:
    """When a change was made."""
    async with closing(store.journal(scope=scope, since=sequence - 1)) as journal:
        async for entry in journal:
            return entry.at
    return None
