"""One request of a person: which bank and scope it is about, who asks, and how the answer is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lessonbank._base.plural import plural
from lessonbank.contracts.records import FILE, Counts, Lesson
from lessonbank.errors import NotFound, UsageError
from lessonbank.evidence.groups import topic_names
from lessonbank.guard.scope import covers

from .rendering import path
from .security import Refused, form_of
from .sessions import Done, Door, Guest, Proposed, Session, Sessions

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

PAGE = 50
"""Records on a page."""
LARGE: Final = 2_000
"""Lessons from which on what reads every record comes later than the page, or when it is asked for."""
_PAGES: Final = (
    ("", "Home"),
    ("inbox", "Inbox"),
    ("lessons", "Lessons"),
    ("topics", "Topics"),
    ("runs", "Runs"),
    ("why", "Why"),
    ("evidence", "Evidence"),
    ("history", "History"),
    ("administration", "Administration"),
)
_BELOW: Final[Mapping[str, str]] = {
    **dict.fromkeys(("doctor", "queue", "keys", "purge"), "administration"),
    **dict.fromkeys(("merge", "decide"), "inbox"),
    **{"compare": "runs", "undo": "history"},
}
"""The page that leads to another; to what is not here, Home does."""
_RECORDS: Final[Mapping[str, str]] = {"lessons": "The lesson", "runs": "The run", "why": "The recall", "queue": "Queue"}


class KeyRing(Protocol):
    """Where a server keeps its keys."""

    async def add(
        self, name: str, /, *, scope: str, role: Any, days: float | None, by: str | None, key: str | None
    ) -> str:
        """A new key, which is told this once. `by` and `key`: of the reviewer, where there are any."""
        ...

    async def list(self) -> Sequence[tuple[Any, datetime | None]]:
        """Every key with the time of its last use."""
        ...

    async def rotate(self, id: str, /, *, days: float, by: str | None, key: str | None) -> str:
        """A new secret; the earlier one opens for `days` more."""
        ...

    async def remove(self, id: str, /, *, by: str | None, key: str | None) -> object:
        """End a key."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """What all visits of one application share."""

    bank: AsyncReasoningBank
    sessions: Sessions
    origins: Collection[str]
    templates: Environment = field(repr=False)
    prefix: str = ""
    """What stands before the address of each page."""
    door: Door | None = None
    keys: KeyRing | None = None
    file: str = ""
    """The bank's file; empty where it is no file, or not to be named."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request with what every page needs."""

    request: Request = field(repr=False)
    site: Site = field(repr=False)
    session: Session
    bank: AsyncReasoningBank = field(repr=False)
    """A handle on the scope, in the hands of the reviewer if a key was given."""
    scope: str
    scopes: tuple[str, ...]
    """Those that can be chosen."""
    home: str
    """The scope that is meant where an address names none."""
    guest: Guest | None = None
    counts: Counts = field(default_factory=Counts)
    """How much the scope holds; nothing where a part of a page is asked for."""
    proposed: Proposed | None = None
    """How many proposals wait; `None`: not counted yet, because that would take long."""
    pages: tuple[tuple[str, str], ...] = _PAGES
    """The address and title of each page."""

    @property
    def address(self) -> str:
        """This page, for the way back to it."""
        query = self.request.url.query
        return self.request.url.path + (f"?{query}" if query else "")

    @property
    def here(self) -> Sequence[str]:
        """The parts of this page's address."""
        return self.request.url.path.removeprefix(self.site.prefix).strip("/").split("/")

    @property
    def section(self) -> str:
        """The page of the navigation that this one belongs to, by its address."""
        return _BELOW.get(self.here[0], self.here[0])

    @property
    def root(self) -> str:
        """The address of the page that shows the same of another scope."""
        known = self.section if self.section in dict(self.pages) else ""
        return self.here[0] if known == "administration" else known

    @property
    def up(self) -> tuple[str, str] | None:
        """The page above this one: its address and its title; `None` for the pages of the navigation."""
        first, *rest = self.here
        if rest and first in _RECORDS and (first == "queue" or len(rest) > 1):
            return self.link(first, *rest[:-1]), _RECORDS[first]
        titles = dict(self.pages)
        if not rest and first in titles:
            return None
        return (self.link(self.section), titles[self.section]) if self.section in titles else (self.link(), "Home")

    def link(self, *parts: str, **query: str | None) -> str:
        """The address of a page of this scope."""
        return self.site.prefix + path(*parts, **query, scope=None if self.scope == self.home else self.scope)

    @property
    def owned(self) -> AsyncReasoningBank:
        """The whole bank for who may see it; else a handle that refuses calls about all of it."""
        return self.site.bank if self.is_owner else self.bank

    @property
    def is_owner(self) -> bool:
        """Whether the person may see what belongs to the whole bank."""
        return self.guest is None or (self.guest.is_admin and not self.guest.scope)

    @property
    def is_admin(self) -> bool:
        """Whether the person may erase and roll back."""
        return self.guest is None or self.guest.is_admin

    @property
    def is_large(self) -> bool:
        """Whether reading every record of the scope takes long."""
        return self.counts.lessons > LARGE

    @property
    def waiting(self) -> int:
        """How much waits for a decision, as far as it is counted."""
        return self.counts.quarantined + (self.proposed.besides if self.proposed else 0)

    @property
    def in_quarantine(self) -> int:
        """How many lessons the shelf of the quarantine holds: what files propose lies on the other; 0: not counted."""
        return self.counts.quarantined - self.proposed.all + self.proposed.besides if self.proposed else 0

    @property
    def decisions(self) -> str:
        """What waits for a decision, in words; without proposals where these are not counted yet."""
        return decisions_of(self.counts.quarantined, self.proposed.besides if self.proposed else 0)

    @property
    def last(self) -> Done | None:
        """The decision that Undo would take back."""
        return next((decision for decision in self.session.done if decision.scope == self.scope), None)

    def check_admin(self) -> None:
        """Refuse a guest who may not erase and roll back. Raises Refused."""
        if not self.is_admin:
            raise Refused("this needs the key of an admin, and yours is a reviewer's")

    async def form(self) -> dict[str, list[str]]:
        """The fields of the form that was sent. Raises Refused."""
        return await form_of(self.request, csrf=self.session.csrf, origins=self.site.origins)

    @property
    def id(self) -> str:
        """The id in the address of a page of one record."""
        return self.request.path_params["id"]

    def query(self, name: str, /) -> str | None:
        """A part of the address; `None` if it is not there or blank."""
        return self.request.query_params.get(name, "").strip() or None

    def page(self, template: str, context: Mapping[str, object], /, *, status: int = 200) -> Response:
        """A page made from a template and what it tells."""
        made = self.site.templates.get_template(template)
        own = {"visit": self, "link": self.link, "csrf": self.session.csrf, "done": self._last_decision()}
        return HTMLResponse(made.render({**own, **context}), status_code=status)

    def _last_decision(self) -> str | None:
        """What was just decided, said once."""
        message, self.session.message = (None, self.session.message) if self.is_part else (self.session.message, None)
        return message

    def go(self, where: str, /) -> Response:
        """Show another page, after something was done."""
        return RedirectResponse(where, status_code=303)

    async def topics(self, lessons: Iterable[Lesson], /) -> Mapping[str, str]:
        """By topic id the one name that all pages call it (see `topic_names`); in a large scope, that of `lessons`."""
        return topic_names(lessons) if self.is_large else await self.bank.lessons.topics()

    @property
    def is_part(self) -> bool:
        """Whether a part of a page was asked for, to be put into the page that is open."""
        return self.request.headers.get("hx-request") == "true"


def number_of(text: str | None, /) -> int | None:
    """The whole number that an address or a form says; `None` if it says none, or one that nothing has."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


async def visiting(site: Site, request: Request, session: Session, guest: Guest | None, /) -> Visit:
    """The visit that a request is. Raises NotFound: there is no such scope, or it is not to be seen here."""
    scopes = await scopes_of(site.bank, guest)
    home = site.bank.scope if site.bank.scope in scopes else await _first_with_lessons(site.bank, scopes)
    scope = request.query_params.get("scope") or home
    if scope not in scopes:
        raise NotFound(f"there is no scope {scope!r} here")
    bank = site.bank
    if scope != bank.scope or session.key is not None or guest is not None:
        bank = bank.scoped(scope, writer=session.name if session.key or guest else None, key=session.key)
    counts = Counts() if request.headers.get("hx-request") else await bank.admin.counts()
    proposed = _known_proposals(session, scope, counts)
    if proposed is None and not request.headers.get("hx-request") and counts.lessons <= LARGE:
        proposed = await counted_proposals(session, bank, scope, counts)
    return Visit(request, site, session, bank, scope, scopes, home, guest, counts, proposed)


def decisions_of(quarantined: int, proposals: int, /) -> str:
    """How many decisions wait, and which, as every page says it; empty where none does."""
    if not quarantined + proposals:
        return ""
    held = plural(quarantined, "lesson in quarantine", "lessons in quarantine") if quarantined else ""
    parts = ", ".join(filter(None, (held, plural(proposals, "proposal") if proposals else "")))
    return f"{plural(quarantined + proposals, 'decision waits', 'decisions wait')}: {parts}"


async def counted_proposals(session: Session, bank: AsyncReasoningBank, scope: str, counts: Counts, /) -> Proposed:
    """How many proposals wait. This looks through many lessons; the session remembers it until something changes."""
    if known := _known_proposals(session, scope, counts):
        return known
    proposals = await bank.lessons.proposals() if counts.lessons else ()
    tally = Proposed(counts.changes, len(proposals), sum(proposal.origin != FILE for proposal in proposals))
    session.proposed[scope] = tally
    return tally


def _known_proposals(session: Session, scope: str, counts: Counts) -> Proposed | None:
    known = session.proposed.get(scope)
    return known if known is not None and known.changes == counts.changes else None


async def _first_with_lessons(bank: AsyncReasoningBank, scopes: tuple[str, ...]) -> str:
    """A tenant's own scope may hold no more than the journal of its keys."""
    first, *others = scopes
    for scope in scopes if others else ():
        if (await bank.scoped(scope).admin.counts()).lessons:
            return scope
    return first


async def scopes_of(bank: AsyncReasoningBank, guest: Guest | None = None, /) -> tuple[str, ...]:
    """The scopes that may be shown: all of the bank, the tenant of a guest, or the one of a handle by `scoped`."""
    try:
        scopes = await bank.admin.scopes()
    except UsageError:
        scopes = (bank.scope,)
    if guest is not None and guest.scope:
        return tuple(scope for scope in scopes if covers(guest.scope, scope)) or (guest.scope,)
    return scopes if bank.scope in scopes else (bank.scope, *scopes)
