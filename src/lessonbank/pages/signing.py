"""Asks a reviewer for the key where the bank has reviewers, and ends sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from lessonbank.errors import NotAllowed, UsageError

from .visit import Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank


async def page(visit: Visit) -> Response:
    """Asks who it is, and for the key."""
    return await _asked(visit, "")


async def sign_in(visit: Visit) -> Response:
    """Keep the name and the key for this session, if it is the key."""
    fields = await visit.form()
    name, key = (fields.get(field, [""])[0].strip() for field in ("name", "key"))
    try:
        holder = visit.site.bank.scoped(visit.scope, writer=name, key=key or None)
    except UsageError as error:
        return await _asked(visit, str(error), status=400)
    reviewers = await _has_reviewers(visit)
    if reviewers and not await _is_reviewer(holder):
        return await _asked(visit, "This is not the key of a reviewer of that name.", status=403)
    if visit.guest and not reviewers:
        return await _asked(visit, f"The server knows you as {visit.guest.name}: your key says so.", status=403)
    visit.session.name, visit.session.key = name, key or None
    return visit.go(local(fields.get("next", [""])[0]) or visit.link("inbox"))


async def _has_reviewers(visit: Visit) -> bool:
    """Whether somebody has a reviewer's key; also where a server does not tell it to the holder of this key."""
    try:
        return bool(await visit.bank.admin.reviewers())
    except NotAllowed:
        return True


async def _is_reviewer(holder: AsyncReasoningBank) -> bool:
    """Whether a key may decide. This approves no lesson at all: only a reviewer gets as far as being asked which."""
    try:
        await holder.lessons.approve(by=holder.writer)
    except NotAllowed:
        return False
    except UsageError:
        return True
    return True


async def sign_out(visit: Visit) -> Response:
    """End the session in this process; the cookie opens nothing any more."""
    await visit.form()
    visit.site.sessions.end(visit.session.id)
    return visit.go(f"{visit.site.prefix}/")


def needed(visit: Visit, error: NotAllowed, /) -> Response:
    """What was asked for needs the key of a reviewer: nothing was changed."""
    back = visit.request.headers.get("referer", "")
    context = {
        "problem": str(error),
        "name": visit.session.name,
        "back": _of_referer(back) or visit.link(),
        "reviewers": True,
    }
    return visit.page("sign_in.html", context, status=403)


async def _asked(visit: Visit, problem: str, *, status: int = 200) -> Response:
    reviewers = await _has_reviewers(visit)
    context = {
        "problem": problem,
        "name": visit.session.name,
        "back": visit.query("next") or "",
        "reviewers": reviewers,
    }
    return visit.page("sign_in.html", context, status=status)


def _of_referer(address: str) -> str:
    """The local part of where a form was sent from."""
    _, _, rest = address.partition("://")
    return local(f"/{rest.partition('/')[2]}") if rest else ""


def local(where: str, /) -> str:
    """`where` if it is a page of ours, else nothing: never another site."""
    return where if where.startswith("/") and not where.startswith(("//", "/\\")) else ""
