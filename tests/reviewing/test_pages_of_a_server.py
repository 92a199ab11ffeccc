"""`lessonbank review` with a server's address: the pages of a bank that is elsewhere, as far as one's key goes."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

from pictures import PAGES
from seeding import SCOPE, opened
from serving_pages import serving

import lessonbank
from lessonbank.errors import UsageError
from lessonbank.http.service.application import Limits
from lessonbank.http.service.serving import Running, running

pytestmark = pytest.mark.full
FOR_ADMINS = {"doctor", "purge"}
"""Pages that ask the server for what a reviewer's key is not for."""


@pytest.fixture
def server(bank_file: Path) -> Generator[Running]:
    bank = partial(lessonbank.connect_async, bank_file, scope=SCOPE, embedder="lexical")
    with running(bank, limits=Limits(body=2_000_000, pause=1.0)) as server:
        yield server


@pytest.mark.parametrize(("role", "tenant", "refused"), [("admin", "", set()), ("reviewer", "acme", FOR_ADMINS)])
def test_every_page_is_shown_and_a_decision_is_made_and_undone(
    server: Running, bank_file: Path, monkeypatch: pytest.MonkeyPatch, role: str, tenant: str, refused: set[str]
) -> None:
    monkeypatch.setenv("LESSONBANK_API_KEY", server.key("Root", scope=tenant, role=role))  # type: ignore[arg-type]
    with serving(server.url, scope=SCOPE, name="Root") as site:
        csrf = site.enter().get("/inbox").csrf
        answers = {name: site.get(at) for name, at in PAGES.items()}
        assert {name for name, answer in answers.items() if answer.status != 200} == {"nowhere"} | refused
        assert {name for name, answer in answers.items() if answer.status >= 500} == set()
        whole = not tenant
        assert ("Download a backup" in answers["administration"].text) == whole, "a tenant has no part in it"
        with opened(bank_file) as bank:
            lesson = bank.lessons.list(state="quarantined")[0]
            told = {"csrf": csrf, "do": "approve", "lesson": f"{lesson.version}:{lesson.id}"}
            assert site.post("/decide", told).status == 303
            assert bank.lessons.get(lesson.id).state == "active"
            assert site.post("/undo", {"csrf": csrf}).status == 303
            assert bank.lessons.get(lesson.id).state == "quarantined"


def test_an_agents_key_shows_nothing(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONBANK_API_KEY", server.key("Bot", scope="acme", role="agent"))
    with serving(server.url, scope=SCOPE) as site:
        site.enter()
        own = {"words", "sign-in", "nowhere"}
        shown = {name: site.get(at) for name, at in PAGES.items()}
        assert {name for name, answer in shown.items() if answer.status == 200} <= own
        assert all("W0" not in answer.text for answer in shown.values())


def test_who_has_the_key_of_a_tenant_is_asked_for_the_scope(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONBANK_API_KEY", server.key("Ana", scope="acme", role="reviewer"))
    with pytest.raises(UsageError, match="--scope"), serving(server.url):
        pass


def test_a_reviewers_key_of_the_bank_counts_beside_the_servers(
    server: Running, bank_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONBANK_API_KEY", server.key("Ben", scope="acme", role="reviewer"))
    with opened(bank_file) as bank:
        key = bank.admin.add_reviewer("Ana")
        lesson = bank.lessons.list(state="quarantined")[0]
    with serving(server.url, scope=SCOPE) as site:
        csrf = site.enter().get("/inbox").csrf
        told = {"csrf": csrf, "do": "approve", "lesson": f"{lesson.version}:{lesson.id}"}
        assert site.post("/decide", told).status == 403
        assert "key" in site.get("/sign-in").text
        assert site.post("/sign-in", {"csrf": csrf, "name": "Ana", "key": "wrong"}).status in (400, 403)
        assert site.post("/sign-in", {"csrf": csrf, "name": "Ana", "key": key}).status == 303
        assert site.post("/decide", told).status == 303
