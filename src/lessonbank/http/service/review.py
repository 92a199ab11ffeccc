"""The review pages of a server, below /review: a person signs in with the key of a reviewer or an admin."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from lessonbank import pages
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.errors import NotAllowed, Unauthenticated, UsageError

from .admission import identity_of
from .keys import Key, Keys
from .problems import of_error
from .proxy_users import PREFIX as PERSON
from .proxy_users import ProxyUsers

PREFIX: Final = "/review"
_ROLES: Final = ("reviewer", "admin")


def review(
    bank: AsyncReasoningBank,
    /,
    *,
    origins: Collection[str],
    sessions: pages.Sessions | None = None,
    users: ProxyUsers | None = None,
) -> ASGIApp:
    """The pages over `bank` for `application(bank, review=…)`.

    `origins`: the addresses under which people open them, such as `https://bank.example.com`. `users`: people whom a
    proxy signs in, who need no key here. Raises UsageError.
    """
    keys, sessions = Keys(bank), sessions or pages.Sessions()
    signed_in = _SignedIn(users, sessions) if users else None

    async def door(written: str) -> pages.Guest:
        key = signed_in.key_of(written) if signed_in else None
        key = key or await keys.find(written)
        if key is None:
            raise Unauthenticated("there is no such key, or it has ended")
        if key.role not in _ROLES:
            raise NotAllowed(f"a key of the role {key.role!r} does not open these pages: ask for a reviewer's key")
        if not key.id.startswith(PERSON):
            await keys.seen(key)
        return pages.Guest(key.name, key.scope, key.role == "admin", identity_of(key))

    made = pages.application(
        bank,
        hosts=[_host(origin) for origin in origins],
        origins=origins,
        sessions=sessions,
        prefix=PREFIX,
        door=door,
        keys=keys,
    )
    return signed_in.before(made) if signed_in else made


class _SignedIn:
    """Sessions for people whom a proxy names with every request: their browsers hold no cookie of ours."""

    def __init__(self, users: ProxyUsers, sessions: pages.Sessions) -> None:
        self._users, self._sessions = users, sessions
        self._secret = secrets.token_urlsafe(32)
        """Without it a name that somebody types in the place of a key would open the pages."""
        self._open = dict[str, str]()
        self._keys = dict[str, Key]()

    def key_of(self, card: str, /) -> Key | None:
        """The person of a session's card."""
        return self._keys.get(card)

    def before(self, app: ASGIApp, /) -> ASGIApp:
        """The pages, which find the session of the person in the request, whatever cookie the browser sent."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                try:
                    person = self._users.key_of(HTTPConnection(scope))
                except Unauthenticated as error:
                    await of_error(error)(scope, receive, send)
                    return
                if person:
                    scope = {**scope, "headers": [*_without_cookies(scope), (b"cookie", self._cookie(person))]}
            await app(scope, receive, send)

        return answer

    def _cookie(self, person: Key) -> bytes:
        session = self._sessions.get(self._open.get(person.id))
        if session is None:
            session = self._sessions.begin(person.name)
            session.card = f"{self._secret} {person.id}"
            self._open[person.id], self._keys[session.card] = session.id, person
        return f"{self._sessions.cookie}={session.id}".encode()


def _without_cookies(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [pair for pair in scope["headers"] if pair[0] != b"cookie"]


def _host(origin: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.netloc or origin != f"{parts.scheme}://{parts.netloc}":
        raise UsageError(f"{origin!r} is not an address such as https://bank.example.com: leave out what follows it")
    return parts.netloc
