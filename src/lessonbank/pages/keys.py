"""The keys of a server: who may call it, as what, until when. An admin makes, renews and ends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, get_args

from starlette.responses import Response

from lessonbank._base.checks import short_repr
from lessonbank.errors import NotFound, UsageError
from lessonbank.guard.identity import ServerRole
from lessonbank.guard.scope import covers

from .security import Refused
from .visit import KeyRing, Visit, number_of

ROLES: Final[tuple[ServerRole, ...]] = get_args(ServerRole)


class _Person(TypedDict):
    by: str | None
    key: str | None


async def page(visit: Visit) -> Response:
    """The keys of the tenant, and the secret of one that was just made."""
    keys, tenant = await _held(visit), visit.guest.scope if visit.guest else ""
    written, visit.session.new_key = visit.session.new_key, ""
    return visit.page("keys.html", {"keys": keys, "written": written, "roles": ROLES, "tenant": tenant})


async def change(visit: Visit) -> Response:
    """Make, renew or end a key. A new secret is on the next page, once: sent again, a form would make another key."""
    fields = await visit.form()
    form = {name: values[0].strip() for name, values in fields.items()}
    person: _Person = {"by": visit.session.name, "key": visit.session.key}
    ring, do, id = _ring(visit), form.get("do"), form.get("key", "")
    if do == "add":
        role = form.get("role", "")
        if role not in ROLES:
            raise UsageError(f"a key has one of the roles {', '.join(ROLES)}")
        scope = _below(visit, form.get("of", ""))
        days = _days(form.get("days", ""))
        visit.session.new_key = await ring.add(form.get("name", ""), scope=scope, role=role, days=days, **person)
        return visit.go(visit.link("keys"))
    held = {key.id for key, _ in await _held(visit)}
    if id not in held:
        raise NotFound("there is no such key here")
    if do == "rotate":
        visit.session.new_key = await ring.rotate(id, days=_days(form.get("days", "")) or 0, **person)
        return visit.go(visit.link("keys"))
    if do == "remove":
        await ring.remove(id, **person)
        visit.session.message = "The key is ended: whoever holds it is out"
        return visit.go(visit.link("keys"))
    raise UsageError("add, rotate or remove a key")


def _days(text: str) -> int | None:
    """How many days a form says; `None`: none. Raises UsageError: what cannot be read would be no end at all."""
    if text and number_of(text) is None:
        raise UsageError(f"days are a whole number; got {short_repr(text)}")
    return number_of(text)


async def _held(visit: Visit) -> Sequence[tuple[Any, datetime | None]]:
    guest = visit.guest
    return [pair for pair in await _ring(visit).list() if guest is None or covers(guest.scope, pair[0].scope)]


def _ring(visit: Visit) -> KeyRing:
    """Raises NotFound, Refused."""
    if visit.site.keys is None:
        raise NotFound("these pages belong to no server that has keys")
    if visit.guest is None or not visit.is_admin:
        raise Refused("this needs the key of an admin, and yours is a reviewer's")
    return visit.site.keys


def _below(visit: Visit, scope: str) -> str:
    """The scope of a new key: the tenant of the admin, or one below it. Raises Refused."""
    tenant = visit.guest.scope if visit.guest else ""
    if not covers(tenant, scope := scope or tenant):
        raise Refused(f"your key is for {tenant!r} and what is below it")
    return scope
