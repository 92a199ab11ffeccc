"""People behind a proxy that signs them in: its header is believed from it alone, and opens what the server says."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("jinja2", reason="needs the extra pages")

import httpx2
from typer.testing import CliRunner

import lessonbank
from lessonbank.cli import app as cli
from lessonbank.errors import UsageError
from lessonbank.http.service.application import ProxyUsers, application
from lessonbank.http.service.keys import Keys
from lessonbank.http.service.review import review

pytestmark = [pytest.mark.full, pytest.mark.anyio]

PROXY, ELSEWHERE = "10.0.0.5", "10.0.0.6"
SITE = "https://bank.example.com"
ANA = {"X-Forwarded-User": "ana@example.com"}
LESSON = {"title": "Weigh", "content": "Weigh it first.", "task": "Ship a parcel", "by": "Ana"}


@dataclass
class House:
    """A server of two tenants, asked from any address."""

    app: Any
    bank: lessonbank.AsyncReasoningBank
    key: str
    lesson: str
    """A lesson of acme. The tenant other has one, too."""

    async def ask(
        self, path: str, headers: Mapping[str, str] | list[tuple[str, Any]], *, peer: str = PROXY, **more: Any
    ) -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.app, client=(peer, 4711))
        async with httpx2.AsyncClient(transport=transport, base_url=SITE) as client:
            return await client.request(more.pop("method", "GET"), path, headers=headers, **more)


@asynccontextmanager
async def house(role: Any = "reviewer", *, scope: str = "acme") -> AsyncGenerator[House]:
    users = ProxyUsers("X-Forwarded-User", [PROXY, "fd00::/64"], scope, role)
    async with await lessonbank.connect_async(":memory:", scope="default", embedder="lexical") as bank:
        made = [
            await bank.scoped(tenant).lessons.add(
                title="Weigh", content=f"Weigh it for {tenant}.", task="Ship", by="Ana"
            )
            for tenant in ("acme", "other")
        ]
        key = await Keys(bank).add("agent", scope="acme")
        pages = review(bank, origins=[SITE], users=users)
        yield House(application(bank, review=pages, users=users), bank, key, made[0].id)


async def test_a_person_reads_what_the_server_says_and_changes_nothing_without_a_key() -> None:
    async with house("reader") as one:
        told = (await one.ask("/v1", ANA)).json()
        assert (told["name"], told["role"], told["scope"]) == ("ana@example.com", "reader", "acme")
        assert [lesson["id"] for lesson in (await one.ask("/v1/lessons", ANA)).json()] == [one.lesson]
        for scope in ("other", "acmeother", "default", "*"):
            assert (await one.ask("/v1/lessons", {**ANA, "Lessonbank-Scope": scope})).status_code in (403, 422)
        bodies: dict[str, Any] = {"/v1/lessons": LESSON, "/v1/recalls": {"task": "Ship"}, "/v1/drain": {}}
        for path, body in bodies.items():
            answer = await one.ask(path, ANA, method="POST", json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), path
        assert (await one.ask("/v1/admin/export", ANA)).status_code == 403
        assert (await one.ask("/review/", ANA)).status_code == 401, "the pages are for reviewers"


async def test_the_header_is_refused_from_every_other_address() -> None:
    async with house() as one:
        for peer in (ELSEWHERE, "127.0.0.1", "::1", "fd01::1", "not an address", ""):
            for path in ("/v1/lessons", "/review/"):
                answer = await one.ask(path, ANA, peer=peer)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (peer, path)
            forwarded = {**ANA, "X-Forwarded-For": PROXY, "X-Real-IP": PROXY, "Forwarded": f"for={PROXY}"}
            assert (await one.ask("/v1/lessons", forwarded, peer=peer)).status_code == 401
        for peer in (PROXY, f"::ffff:{PROXY}", "fd00::5"):
            assert (await one.ask("/v1/lessons", ANA, peer=peer)).status_code == 200, peer


BAD_NAMES: list[list[tuple[str, Any]]] = [
    [("X-Forwarded-User", "ana@example.com"), ("X-Forwarded-User", "ben@example.com")],
    [("X-Forwarded-User", "ana@example.com"), ("x-forwarded-user", "ana@example.com")],
    [("X-Forwarded-User", "ana@example.com, ben@example.com")],
    [("X-Forwarded-User", "")],
    [("X-Forwarded-User", " ")],
    [("X-Forwarded-User", b"ana\x00@example.com")],
    [("X-Forwarded-User", b"ana\x1b[31m")],
    [("X-Forwarded-User", b"ana\x7f")],
    [("X-Forwarded-User", "ana\u202e@example.com".encode())],
    [("X-Forwarded-User", b"an\xff")],
    [("X-Forwarded-User", "x" * 300)],
    [("X-Forwarded-User", "ledger")],
]


async def test_several_names_none_or_one_that_cannot_be_are_refused() -> None:
    async with house() as one:
        for headers, path in product(BAD_NAMES, ("/v1/lessons", "/review/")):
            answer = await one.ask(path, headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (headers, path)
            assert not re.search(r"[\x00-\x1f\x7f]", answer.json()["detail"]), headers


async def test_a_name_and_a_key_at_once_are_refused_and_a_key_alone_is_taken() -> None:
    async with house() as one:
        key = {"Authorization": f"Bearer {one.key}"}
        for sent in (f"Bearer {one.key}", f"bearer\t{one.key}", "Basic YTpi", one.key):
            assert (await one.ask("/v1/admin/counts", {**ANA, "Authorization": sent})).status_code == 401, sent
        assert (await one.ask("/v1/admin/counts", key)).status_code == 200
        assert (await one.ask("/v1/admin/counts", key, peer=ELSEWHERE)).status_code == 200
        assert (await one.ask("/v1/lessons", {})).status_code == 401


async def test_without_the_option_the_header_means_nothing() -> None:
    async with house() as one:
        one.app = application(one.bank)
        assert (await one.ask("/v1/lessons", ANA)).status_code == 401
        told = await one.ask("/v1", {**ANA, "Authorization": f"Bearer {one.key}"})
        assert told.json()["name"] == "agent"


async def test_a_reviewer_decides_on_the_pages_and_stands_in_the_journal() -> None:
    async with house() as one:
        page = await one.ask(f"/review/lessons/{one.lesson}", ANA)
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', page.text))
        told = {"csrf": csrf, "lesson": f"1:{one.lesson}", "do": "retire", "reason": "seen"}
        for wrong in ({"Origin": "https://evil.example"}, {}):
            refused = await one.ask("/review/decide", {**ANA, **wrong}, method="POST", data=told)
            assert refused.status_code == 403
        forged = {**ANA, "Origin": SITE}
        assert (await one.ask("/review/decide", forged, method="POST", data={**told, "csrf": "x"})).status_code == 403
        done = await one.ask("/review/decide", forged, method="POST", data=told)
        assert done.status_code in (200, 303), done.text
        entry = (await one.bank.scoped("acme").history.list())[-1]
        assert (entry.writer, entry.entry.kind) == ("ana@example.com", "retire")
        assert (await one.ask("/review/?scope=other", ANA)).status_code == 404
        assert (await one.ask("/review/purge", {**ANA, "Origin": SITE}, method="POST", data=told)).status_code == 403


async def test_a_person_is_not_let_in_by_somebody_elses_session_or_by_a_name_in_the_place_of_a_key() -> None:
    async with house() as one:
        ben = {"X-Forwarded-User": "ben@example.com"}
        pages = [(await one.ask("/review/", who)).text for who in (ANA, ben)]
        assert "ana@example.com" in pages[0] and "ana@example.com" not in pages[1]
        for typed in ("ana@example.com", "proxy-ana@example.com", " proxy-x"):
            form = {"key": typed, "next": "/review/"}
            answer = await one.ask("/review/enter", {"Origin": SITE}, peer=ELSEWHERE, method="POST", data=form)
            assert answer.status_code == 403


def test_settings_that_let_anybody_name_people_are_refused() -> None:
    right: dict[str, Any] = {"header": "X-User", "proxies": [PROXY], "scope": "acme", "role": "reader"}
    every: list[dict[str, Any]] = [
        {"proxies": []},
        {"proxies": ["anywhere"]},
        {"proxies": ["10.0.0.5/8"]},
        {"header": "X Forwarded"},
        {"header": ""},
        {"header": "Authorization"},
        {"scope": "../acme"},
        {"role": "admin"},
    ]
    for wrong in every:
        with pytest.raises(UsageError):
            ProxyUsers(**{**right, **wrong})
    lone = CliRunner().invoke(cli, ["serve", "--bank", "b.db", "--new", "--user-header", "X-User"])
    assert lone.exit_code != 0
