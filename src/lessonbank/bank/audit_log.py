"""The audit log of administration: acts that no other change tells leave an entry in the journal, too."""

from __future__ import annotations

import logging
from typing import Final

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Administer
from lessonbank.errors import StoreError
from lessonbank.guard.identity import identity_of
from lessonbank.guard.quote import quoted

log: Final = logging.getLogger("lessonbank")


async def record_act(
    store: Store,
    act: str,
    subject: str = "",
    /,
    *,
    scope: str,
    writer: str,
    key: str | None = None,
    read_only: bool = False,
) -> None:
    """Tell the journal of `scope` who did what.

    `read_only`: the act has to work also where nothing can be written; then the log says that no entry was left.
    Raises UsageError (a wrong key), StoreError.
    """
    by = await identity_of(store, name=writer, key=key)
    try:
        await store.apply([Administer(act=act, subject=subject, by=by)], scope=scope, writer=writer)
    except StoreError as error:
        if not read_only:
            raise
        log.warning("the journal has no entry of %s: %s", act, quoted(error))
