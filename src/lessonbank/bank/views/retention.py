"""How long runs are kept: the process says it, and where the bank has reviewers, the bank does."""

from __future__ import annotations

from typing import Final

from lessonbank.contracts.ports import Store
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import NotAllowed
from lessonbank.guard.identity import check_reviewer, holders

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
            "with bank.scoped(writer=NAME, key=…) and this Learning(keep_runs=)",
        )
    await keep(store, asked)
    return asked, ()
