"""The review pages of a server, below /review: a person signs in with the key of a reviewer or an admin."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette

from lessonbank import pages
from lessonbank.bank import AsyncReasoningBank
from lessonbank.errors import NotAllowed, Unauthenticated, UsageError

from .admission import identity_of
from .keys import Keys

PREFIX: Final = "/review"
_ROLES: Final = ("reviewer", "admin")


def review(
    bank: AsyncReasoningBank, /, *, origins: Collection[str], sessions: pages.Sessions | None = None
) -> Starlette:
    """The pages over `bank` for `application(bank, review=…)`.

    `origins`: the addresses under which people open them, such as `https://bank.example.com`. Raises UsageError.
    """
    keys = Keys(bank.store)

    async def door(written: str) -> pages.Guest:
        key = await keys.find(written)
        if key is None:
            raise Unauthenticated("there is no such key, or it has ended")
        if key.role not in _ROLES:
            raise NotAllowed(f"a key of the role {key.role!r} does not open these pages: ask for a reviewer's key")
        await keys.seen(key)
        return pages.Guest(key.name, key.scope, key.role == "admin", identity_of(key))

    return pages.application(
        bank,
        hosts=[_host(origin) for origin in origins],
        origins=origins,
        sessions=sessions,
        prefix=PREFIX,
        door=door,
        keys=keys,
    )


def _host(origin: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.netloc or origin != f"{parts.scheme}://{parts.netloc}":
        raise UsageError(f"{origin!r} is not an address such as https://bank.example.com: leave out what follows it")
    return parts.netloc
