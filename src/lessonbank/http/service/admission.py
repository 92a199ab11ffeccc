"""Decides whether a caller may do what it asks, and in which scope. Its key says so, and no body of a request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final
from urllib.parse import unquote

from fastapi import Request

from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.errors import NotAllowed, Unauthenticated, UsageError, VersionMismatch
from lessonbank.guard import check_scope
from lessonbank.guard.identity import identity_of as identity_in_bank
from lessonbank.guard.names import name_key
from lessonbank.guard.scope import covers
from lessonbank.http.client.operations import API, Operation

from .keys import Key, Keys
from .problems import TooOften
from .proxy_users import ProxyUsers

_BURST: Final = 10.0
"""Seconds of its rate that a key may use at once."""
_REMEMBERED: Final = 10_000
_PERSONS: Final = ("by", "approved_by")


class Rates:
    """How often each key was used: a bucket that fills at the key's rate."""

    def __init__(self) -> None:
        self._left = OrderedDict[str, tuple[float, float]]()

    def spend(self, key: Key, /, *, at: float | None = None) -> float:
        """Count one call; the seconds to wait where it was one too many."""
        at, rate = monotonic() if at is None else at, key.rate / 60
        most = max(1.0, rate * _BURST)
        left, since = self._left.pop(key.id, (most, at))
        left = min(most, left + (at - since) * rate)
        self._left[key.id] = (left - 1 if left >= 1 else left, at)
        while len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / rate


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the bank as it sees it."""

    key: Key
    bank: AsyncReasoningBank
    """In the caller's scope, under the name of its key."""
    writer_key: str | None

    @property
    def identity(self) -> str:
        """As whose word the bank takes what the caller tells. A writer's name without its key is a label."""
        return identity_of(self.key)

    async def check_person(self, arguments: Mapping[str, Any], /) -> None:
        """Refuse to act in the name of another person: only an admin's key may, whose holder knows its people.

        Raises NotAllowed.
        """
        for name in _PERSONS:
            person = arguments.get(name)
            if person is None or self.key.role == "admin" or name_key(person) == name_key(self.key.name):
                continue
            if not await self._has_key_of(person):
                raise NotAllowed(f"{name}= is the person who holds the key: give {name}={self.key.name!r}")

    async def _has_key_of(self, person: str) -> bool:
        """Whether the request has the key that the bank gave this person."""
        if self.writer_key and name_key(person) == name_key(self.bank.writer):
            with suppress(UsageError):
                return bool(await identity_in_bank(self.bank.store, name=person, key=self.writer_key))
        return False


def identity_of(key: Key, /) -> str:
    """As whose word the bank takes what the holder of a key tells."""
    return f"key:{name_key(key.name)}/{key.id}"


class Admission:
    """The door of a server."""

    def __init__(self, bank: AsyncReasoningBank, /, *, users: ProxyUsers | None = None) -> None:
        self._bank, self._keys, self._rates, self._users = bank, Keys(bank), Rates(), users

    async def key_of(self, request: Request, /) -> Key:
        """The key of a request. Raises Unauthenticated, RateLimited, VersionMismatch."""
        theirs = request.headers.get("lessonbank-api", str(API))
        if theirs != str(API):
            raise VersionMismatch(
                f"this server speaks API {API}, and the client {theirs[:10]!r}: use one release for both"
            )
        if self._users and (person := self._users.key_of(request)):
            return self._reading(request, person)
        key = await self._find_key(request)
        if key is None:
            raise Unauthenticated(
                "no such key, or it has ended: send `Authorization: Bearer KEY` (`lessonbank keys add`)"
            )
        self._spend(request, key)
        await self._keys.seen(key)
        return key

    async def is_open(self, request: Request, /) -> bool:
        """Whether the key of a request that goes on still opens: it may be removed, rotated or over by now."""
        if self._users and self._users.key_of(request):
            return True
        return await self._find_key(request) is not None

    async def _find_key(self, request: Request) -> Key | None:
        kind, _, written = request.headers.get("authorization", "").partition(" ")
        return await self._keys.find(written.strip()) if kind.lower() == "bearer" else None

    def _reading(self, request: Request, person: Key) -> Key:
        """A person whom a proxy signed in. Their browser would send what another site makes it send, too."""
        self._spend(request, person)
        if request.method not in ("GET", "HEAD"):
            raise NotAllowed("people who are signed in by a proxy read here, and decide on the review pages: use a key")
        return person

    def _spend(self, request: Request, key: Key) -> None:
        request.state.key, request.state.role = key.id, key.role
        if wait := self._rates.spend(key):
            raise TooOften(f"this key may call {key.rate:,} times a minute: wait {wait:.1f} s", wait=wait)

    async def admit(self, request: Request, operation: Operation, /) -> Caller:
        """The caller of an operation, if it may. Raises Unauthenticated, NotAllowed, UsageError, RateLimited."""
        key = await self.key_of(request)
        if not operation.allows(key.role):
            raise NotAllowed(f"a key of the role {key.role!r} is not for {operation.name}")
        if operation.whole_bank and key.scope:
            raise NotAllowed(f"{operation.name} acts on the whole bank, and this key is for one tenant")
        return self.caller(request, key, whole_bank=operation.whole_bank or operation.name == "admin.scopes")

    def caller(self, request: Request, key: Key, /, *, whole_bank: bool = False) -> Caller:
        """The bank as a key sees it, in the scope that the request names. Raises NotAllowed, UsageError."""
        scope = _header(request, "lessonbank-scope") or key.scope
        if not scope:
            if not whole_bank:
                raise UsageError("name the scope in the header `Lessonbank-Scope`: this key is for every scope")
            scope = self._bank.scope
        if not covers(key.scope, check_scope(scope)):
            raise NotAllowed(f"this key is for the scope {key.scope!r} and those below it")
        writer = _header(request, "lessonbank-writer") or key.name
        writer_key = _header(request, "lessonbank-writer-key")
        if whole_bank and not writer_key:
            return Caller(key, self._bank, None)
        return Caller(key, self._bank.scoped(scope, writer=writer, key=writer_key), writer_key)

    async def scopes(self, key: Key, /) -> tuple[str, ...]:
        """The scopes that a key covers and that hold anything."""
        return tuple(scope for scope in await self._bank.admin.scopes() if covers(key.scope, scope))


def _header(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    return unquote(value, errors="replace") if value else None
