"""How long runs are kept: the process says it, and where the bank has reviewers, the bank does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from lessonbank.contracts.ports import Store
from lessonbank.contracts.store_calls import forget, get_setting
from lessonbank.errors import LessonbankError, NotAllowed
from lessonbank.guard.identity import check_reviewer, holders
from lessonbank.guard.quote import quoted

from .handle import Handle
from .spooling import erase_spooled

_KEPT: Final = "keep_runs"
"""The setting of a bank with reviewers. Without it, runs are kept for ever."""


async def keep(store: Store, days: float | None, /) -> None:
    """Let the bank keep runs for so long. `None`: for ever."""
    await store.put_setting(_KEPT, None if days is None else repr(days))


async def days_to_keep(
    store: Store, asked: float | None, /, *, name: str, key: str | None
) -> tuple[float | None, tuple[str, ...]]:
    """Days after which runs are erased, and a note where it is not what the process `asked` for.

    Where there are reviewers it is what the bank keeps. With the key of one, the bank keeps what was asked from now on.
    """
    if not await holders(store, "reviewer"):
        return asked, ()
    written = await get_setting(store, _KEPT)
    kept = None if written is None else float(written)
    if asked is None or asked == kept:
        return kept, ()
    try:
        await check_reviewer(store, "keep_runs", name=name, key=key)
    except NotAllowed:
        how_long = "for ever" if kept is None else f"for {kept:g} days"
        return kept, (
            f"this bank keeps runs {how_long}, and not for {asked:g} days: a reviewer changes it, by learning once "
            "with handle.scoped(writer=NAME, key=…) and this Learning(keep_runs=)",
        )
    await keep(store, asked)
    return asked, ()


async def forget_old_runs(handle: Handle, /) -> tuple[str, ...]:
    """Once a day and scope, erase what is older than the bank keeps; a note where that is not what was asked."""
    state, scope, today = handle.state, handle.scope, datetime.now(UTC).date()
    if handle.teller is not None or state.retention_checked.get((scope, handle.key)) == today:
        return ()
    try:
        days, notes = await days_to_keep(handle.store, handle.options.keep_runs, name=handle.writer, key=handle.key)
        if days is not None and state.erased.get(scope) != (today, days):
            before = datetime.now(UTC) - timedelta(days=days)
            await forget(handle.store, scope=scope, before=before, writer=handle.writer)
            await erase_spooled(handle.spool, scope, before=before)
            state.erased[scope] = today, days
        state.retention_checked[scope, handle.key] = today
    except LessonbankError as error:
        return (f"old runs were not erased: {quoted(error)}",)
    return notes
