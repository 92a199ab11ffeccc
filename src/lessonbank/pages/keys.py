"""The keys of a server: who may call it, as what, until when. An admin makes, renews and ends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, get_args

from starlette.responses import Response

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
    """The keys of the tenant."""
    return await _render(visit)


async def change(visit: Visit) -> Response:
    """Make, renew or end a key. A new secret is on the page that answers, and nowhere else."""
    fields = await visit.form()
    form = {name: values[0].strip() for name, values in fields.items()}
    person: _Person = {"by": visit.session.name, "key": visit.session.key}
    ring, do, id = _ring(visit), form.get("do"), form.get("key", "")
    if do == "add":
        role = form.get("role", "")
        if role not in ROLES:
            raise UsageError(f"a key has one of the roles {', '.join(ROLES)}")
        scope = _below(visit, form.get("of", ""))
        written = await ring.add(
            form.get("name", ""), scope=scope, role=role, days=number_of(form.get("days")), **person
        )
        return await _render(visit, written=written)
    held = {key.id for key, _ in await _held(visit)}
    if id not in held:
        raise NotFound("there is no such key here")
    if do == "rotate":
        return await _render(visit, written=await ring.rotate(id, days=number_of(form.get("days")) or 0, **person))
    if do == "remove":
        await ring.remove(id, **person)
        visit.session.message = "The key is ended: whoever holds it is out"
        return visit.go(visit.link("keys"))
    raise UsageError("add, rotate or remove a key")


async def _render(visit: Visit, *, written: str = "") -> Response:
    tenant = visit.guest.scope if visit.guest else ""
    context = {"keys": await _held(visit), "written": written, "roles": ROLES, "tenant": tenant}
    return visit.page("keys.html", context)


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
