"""The pages as a web application: which address shows what, and who is let in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lessonbank.errors import Conflict, LessonbankError, NotAllowed, NotFound, StoreError, Unauthenticated, UsageError
from lessonbank.guard.identity import acting_as

from . import (
    administration,
    comparing,
    decisions,
    erasing,
    history,
    home,
    inbox,
    lessons,
    merging,
    near,
    queue,
    runs,
    signing,
    topics,
    why,
    words,
)
from . import keys as keys_page
from .rendering import environment
from .reports.style import STYLE
from .security import Guarded, Refused, form_of
from .sessions import Door, Guest, Session, Sessions
from .visit import KeyRing, Site, Visit, visiting

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank


Page = Callable[[Visit], Awaitable[Response]]
_ROUTES: Final[tuple[tuple[str, Page], ...]] = (
    ("/", home.start),
    ("/helps", home.helps),
    ("/taken-back", home.taken_back),
    ("/evidence", home.evidence),
    ("/lessons", lessons.listing),
    ("/lessons/{id}", lessons.show_lesson),
    ("/lessons/{id}/versions", lessons.versions),
    ("/lessons/{id}/held", lessons.held),
    ("/lessons/{id}/lift", lessons.effect),
    ("/lessons/{id}/near", near.page),
    ("/runs", runs.listing),
    ("/runs/{id}", runs.show_run),
    ("/runs/{id}/others", comparing.others),
    ("/compare", comparing.page),
    ("/topics", topics.page),
    ("/inbox", inbox.page),
    ("/inbox/proposed", inbox.proposed),
    ("/merge", merging.page),
    ("/why", why.page),
    ("/why/try", why.trying),
    ("/why/{id}", why.show_recall),
    ("/why/{id}/explained", why.explained),
    ("/history", history.timeline),
    ("/history/diff", history.comparison),
    ("/administration", administration.page),
    ("/doctor", administration.doctor),
    ("/words", words.page),
    ("/queue", queue.page),
    ("/queue/retry", queue.previewed),
    ("/keys", keys_page.page),
    ("/purge", erasing.page),
    ("/sign-in", signing.page),
)
_FORMS: Final[tuple[tuple[str, Page], ...]] = (
    ("/decide", decisions.decide),
    ("/lessons/{id}/edit", decisions.edit),
    ("/lessons/{id}/narrow", decisions.narrow),
    ("/runs/{id}/correct", decisions.correct),
    ("/merge", merging.merge),
    ("/lessons/{id}/unmerge", merging.unmerge),
    ("/undo", decisions.undo),
    ("/history/rollback", history.rollback),
    ("/purge", erasing.erase),
    ("/queue/retry", queue.retry),
    ("/keys", keys_page.change),
    ("/backup", administration.backup),
    ("/sign-in", signing.sign_in),
    ("/sign-out", signing.sign_out),
)
_STATUS: Final[tuple[tuple[type[LessonbankError], int], ...]] = (
    (NotFound, 404),
    (NotAllowed, 403),
    (Conflict, 409),
    (UsageError, 400),
    (StoreError, 503),
)
_TITLES: Final[Mapping[int, str]] = {
    400: "This cannot be done",
    403: "You may not do this",
    404: "Not found",
    409: "It changed meanwhile",
    503: "The bank cannot be read",
}
_LONGEST_KEY: Final = 10_000
"""Bytes of the form with a key, which anybody may send."""
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def application(
    bank: AsyncReasoningBank,
    /,
    *,
    hosts: Collection[str],
    sessions: Sessions | None = None,
    origins: Collection[str] | None = None,
    prefix: str = "",
    door: Door | None = None,
    keys: KeyRing | None = None,
    file: str = "",
) -> Starlette:
    """The pages of a bank, for a server that speaks ASGI.

    A bank made by `scoped()` shows its own scope alone. `hosts`: the names and ports under which the pages may be
    asked for, such as `127.0.0.1:8790`; `origins`: where their forms come from (`http://` and each host). `sessions`
    lets people in: `Sessions.new_token` for `/open?token=…`, or `Sessions.begin` for who is known already. `prefix`:
    where a server mounts the pages, such as `/review`. `door` says whom a key lets in, which people give on a page;
    `keys`: the server's keys, for its admins. `file`: the bank's file, which is named to people whose session ended.
    """
    where = frozenset(origins if origins is not None else (f"http://{host}" for host in hosts))
    lower = frozenset(origin.lower() for origin in where)
    site = Site(bank, sessions or Sessions(), lower, environment(prefix), prefix, door, keys, file)
    pages = [Route(at, _endpoint(site, page), methods=["GET"]) for at, page in _ROUTES]
    forms = [Route(at, _endpoint(site, page), methods=["POST"]) for at, page in _FORMS]
    made = Starlette(
        routes=[
            Route("/open", _entrance(site), methods=["GET"]),
            Route("/enter", _keyed_entrance(site), methods=["POST"]),
            *(Route(f"/static/{name}", _file(name, text), methods=["GET"]) for name, text in _static_files()),
            *pages,
            *forms,
            Route("/{nowhere:path}", _endpoint(site, _nowhere)),
        ]
    )
    made.add_middleware(Guarded, hosts=hosts)
    return made


def _endpoint(site: Site, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """The page for whoever has a session; what goes wrong is a page that says it."""

    async def answer(request: Request) -> Response:
        session = site.sessions.get(request.cookies.get(site.sessions.cookie))
        if session is None:
            return _ended(site, request)
        plain = Visit(request, site, session, site.bank, site.bank.scope, (site.bank.scope,), site.bank.scope)
        try:
            guest = await site.door(session.card) if site.door and session.card is not None else None
        except (NotAllowed, Unauthenticated) as error:
            site.sessions.end(session.id)
            return _ended(site, request, str(error))
        except LessonbankError as error:
            return _failed(plain, error)
        with acting_as(guest.identity if guest else ""):
            return await _visited(plain, guest, page)

    return answer


async def _visited(plain: Visit, guest: Guest | None, page: Page) -> Response:
    try:
        visit = await visiting(plain.site, plain.request, plain.session, guest)
    except LessonbankError as error:
        scope = guest.scope if guest and guest.scope else plain.scope
        return _failed(replace(plain, guest=guest, scope=scope, scopes=(scope,), home=scope), error)
    try:
        return await page(visit)
    except NotAllowed as error:
        return signing.needed(visit, error)
    except LessonbankError as error:
        return _failed(visit, error)


def _entrance(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """A one-time token becomes a cookie, and the address without it is shown."""

    async def enter(request: Request) -> Response:
        session = site.sessions.exchange(request.query_params.get("token", ""))
        if session is None:
            return _ended(site, request)
        return _let_in(site, session, f"{site.prefix}/", secure=request.url.scheme == "https")

    return enter


def _keyed_entrance(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """The key of a server becomes a cookie. The form comes from a page of ours: nobody is signed in by another site."""

    async def enter(request: Request) -> Response:
        if site.door is None:
            return _ended(site, request)
        try:
            fields = await form_of(request, csrf="", origins=site.origins, most=_LONGEST_KEY)
            written = fields.get("key", [""])[0].strip()
            guest = await site.door(written)
        except LessonbankError as error:
            return _ended(site, request, str(error), status=error.status if isinstance(error, Refused) else 403)
        session = site.sessions.begin(guest.name)
        session.card = written
        where = signing.local(fields.get("next", [""])[0]) or f"{site.prefix}/"
        return _let_in(site, session, where, secure=request.headers["origin"].startswith("https:"))

    return enter


def _let_in(site: Site, session: Session, where: str, *, secure: bool) -> Response:
    answer = RedirectResponse(where, status_code=303)
    at = site.prefix or "/"
    answer.set_cookie(site.sessions.cookie, session.id, path=at, httponly=True, samesite="strict", secure=secure)
    return answer


def _ended(site: Site, request: Request, problem: str = "", *, status: int = 401) -> Response:
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"HX-Refresh": "true"})
    query = f"?{request.url.query}" if request.url.query else ""
    back = f"{request.url.path}{query}" if request.method == "GET" else ""
    was_in = site.sessions.cookie in request.cookies  # nobody else knows the cookie's name
    context = {"problem": problem, "back": back, "by_key": site.door is not None, "was_in": was_in, "file": site.file}
    return HTMLResponse(site.templates.get_template("ended.html").render(context), status_code=status)


def _failed(visit: Visit, error: LessonbankError) -> Response:
    status = error.status if isinstance(error, Refused) else 500
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), status)
    context = {"title": _TITLES.get(status, "Something went wrong"), "sentence": str(error), "code": error.code}
    return visit.page("error.html", context, status=status)


async def _nowhere(visit: Visit) -> Response:
    raise NotFound("there is no such page")


def _static_files() -> Iterator[tuple[str, bytes]]:
    """What pages are made of beside their text. Nothing of it is secret, so it needs no session."""
    folder = files("lessonbank.pages") / "static"
    for part in (folder, folder / "vendor"):
        for file in part.iterdir():
            if file.name.endswith(tuple(_KINDS)):
                yield f"{'vendor/' if part is not folder else ''}{file.name}", file.read_bytes()
    yield "report.css", STYLE.encode()


def _file(name: str, content: bytes) -> Callable[[Request], Awaitable[Response]]:
    kind = _KINDS[name[name.rindex(".") :]]

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=600"})

    return answer
