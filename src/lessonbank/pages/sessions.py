"""Who looks at the pages: a one-time token becomes a session, and a session ends."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from lessonbank.contracts.records.ids import new_id

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

IDLE: Final = 8 * 3600.0
"""Seconds without a request after which a session ends."""
_MOST: Final = 1000
"""Sessions at once; the one that was used least lately goes first."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Whom a server's key lets in."""

    name: str
    scope: str
    """The tenant: this scope and all below it. Empty: the whole bank."""
    is_admin: bool
    """Whether it may erase and roll back."""
    identity: str
    """As whose word the bank takes what it tells."""


Door: TypeAlias = Callable[[str], Awaitable[Guest]]
"""Says whom a key lets in. Raises Unauthenticated, NotAllowed: nobody."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """How many proposals wait in a scope."""

    changes: int
    """The number of the last change when they were counted."""
    all: int
    besides: int
    """Those that are no quarantined lessons, as what files propose is."""


Back: TypeAlias = Callable[["AsyncReasoningBank"], Awaitable[object]]
"""Undoes one decision."""


@dataclass(frozen=True, slots=True)
class Done:
    """A decision that a person made in this session."""

    message: str
    scope: str
    sequence: int
    """Its last entry in the journal."""
    back: Back | None
    """What undoes exactly this. `None`: a rollback does, as long as nothing came after it."""
    again: str = ""
    """What is so again once it is taken back; empty: what the lesson or the run says then."""
    lesson: str = ""
    """The first lesson that it was about."""
    run: str = ""
    count: int = 1
    """How many lessons it was about."""
    id: str = field(default_factory=new_id)
    """By which a form says that it takes back this one."""


@dataclass(slots=True)
class Session:
    """One browser that was let in."""

    id: str
    csrf: str
    """What every form sends back: another site cannot read it."""
    name: str
    """The person, for the journal."""
    used: float
    key: str | None = field(default=None, repr=False)
    """The key of a reviewer, once the person gave it."""
    card: str | None = field(default=None, repr=False)
    """The key of a server that let the person in. It is looked at again with each request."""
    done: list[Done] = field(default_factory=list, repr=False)
    """What was decided, the last first."""
    proposed: dict[str, Proposed] = field(default_factory=dict[str, "Proposed"], repr=False)
    """What was counted of each scope, so that it is counted again only after a change."""
    message: str | None = None
    """What the next page says was done."""
    new_key: str = field(default="", repr=False)
    """The secret of a key that was just made, until a page showed it."""


class Sessions:
    """The sessions of one application, in memory: they end with the process."""

    def __init__(self, *, name: str = "reviewer", idle: float = IDLE, clock: Callable[[], float] = monotonic) -> None:
        self._name, self._idle, self._clock = name, idle, clock
        self._open: dict[str, Session] = {}
        self._token: str | None = None
        self.cookie: Final = f"lessonbank_{secrets.token_hex(4)}"
        """The cookie's name. Cookies do not tell ports apart, so each application has one of its own."""

    def new_token(self) -> str:
        """A token that lets one browser in, once. An earlier one that nobody used is void."""
        self._token = secrets.token_urlsafe(32)
        return self._token

    def exchange(self, token: str, /) -> Session | None:
        """A new session for the token; `None` if it is not the one, or was used."""
        held = self._token
        if held is None or not hmac.compare_digest(held.encode(), token.encode("utf-8", "replace")):
            return None
        self._token = None
        return self.begin(self._name)

    def begin(self, name: str, /, *, key: str | None = None) -> Session:
        """A session for somebody whom the caller knows. Its id is new, whatever the browser sent."""
        if len(self._open) >= _MOST:
            self.end(min(self._open.values(), key=lambda session: session.used).id)
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), name, self._clock(), key)
        self._open[session.id] = session
        return session

    def get(self, id: str | None, /) -> Session | None:
        """The session of a cookie, if it is still open; it is used now."""
        session = self._open.get(id or "")
        if session is None:
            return None
        if self._clock() - session.used > self._idle:
            self.end(session.id)
            return None
        session.used = self._clock()
        return session

    def end(self, id: str, /) -> None:
        """End a session, if it is open."""
        self._open.pop(id, None)
